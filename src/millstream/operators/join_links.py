"""How joins that give each other feedback are connected: up to who makes an input, and down to who may let something sleep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.core.block import Block
from millstream.feedback.watch import Watch
from millstream.kernels.compiled import UInt64s
from millstream.operators.contract import Output, UnaryOperator

if TYPE_CHECKING:
    from millstream.operators.join_feedback import JoinFeedback


@dataclass
class Link:
    """From a consumer up to the join that makes one of its inputs, past operators that keep nothing."""

    producer: JoinFeedback
    passing: tuple[UnaryOperator, ...]
    names: dict[str, str]
    """The producer's name of each column of the input that is one of its own."""
    wake: Callable[[], None]
    """Have the producer take a step, though nothing has come for it."""

    def resume(self, watch: Watch, hashes: UInt64s, out: Output) -> Iterator[pa.RecordBatch]:
        """The tuples that were held back under these hashes, as the consumer sees them."""
        made = Output()
        self.producer.resume(watch, hashes, made)
        out.letters += made.letters
        batch = self.seen(made.blocks, out)
        if self.producer.held:
            self.wake()
        if batch is not None:
            yield batch

    def seen(self, blocks: Sequence[Block], out: Output) -> pa.RecordBatch | None:
        """What the producer has made, as the consumer sees it."""
        for operator in self.passing:
            made = Output()
            for block in blocks:
                operator.handle(Block(block.batch), made)
            blocks = made.blocks
            out.letters += made.letters
        batches = [block.batch for block in blocks if len(block)]
        return pa.concat_batches(batches) if len(batches) > 1 else next(iter(batches), None)

    def forget(self) -> None:
        if self.producer.forget():
            self.wake()


class Epoch:
    """Moves on whenever what joins know of each other may have changed; what was found out in another one is found out anew."""

    def __init__(self) -> None:
        self.number = 0
        self.watches: list[Watch] = []
        self.waking = 0
        """Joins that are about to wake somebody."""
        self._quiet: bool | None = None

    def turn(self) -> None:
        self.number += 1

    def stir(self) -> None:
        """A watch has begun to rest, or is about to rest no longer."""
        self.turn()
        self._quiet = None

    @property
    def quiet(self) -> bool:
        """Whether all watches rest: nobody sleeps then, or is woken just now."""
        if self._quiet is None:
            self._quiet = all(watch.resting for watch in self.watches)
        return self._quiet


@dataclass(frozen=True)
class Ask:
    """A watch that the tuples of one input are asked about, by these columns of theirs; `owner` is the consumer that watches.

    None for one whose demand does not change: what it does not need it never will, so nobody sleeps for it.
    """

    owner: JoinFeedback | None
    watch: Watch
    columns: tuple[str, ...]
    above: bool = False
    """Whether the join that makes the input sees to it: it does not make what is not needed."""


@dataclass(frozen=True)
class Downstream:
    """A consumer further on for which something may sleep here or above, and the next one on the way to it."""

    owner: JoinFeedback
    consumer: JoinFeedback
    names: dict[str, str]
    """What the next one calls the columns of this join that it sees."""

    def least(self) -> dict[str, int]:
        """By this join's names, the least values that may still be asked for."""
        known = self.consumer.reach.least(self.owner)
        return {column: known[name] for column, name in self.names.items() if name in known}
