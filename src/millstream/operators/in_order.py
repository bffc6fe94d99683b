"""In-order execution: tuples wait at a union or join until no other input can bring an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from millstream.core.block import Block, empty_batch
from millstream.core.punctuation import Punctuation, Range
from millstream.core.types import MAX_TIME, MIN_TIME, Int64s, to_axis
from millstream.operators.buffers import Buffer, Inputs
from millstream.operators.contract import OUTPUT, Config, Container, Due, Needs, Operator, Output
from millstream.state.registers import Registers
from millstream.state.row_window import RowWindow

MANY = 16
"""Blocks of one input that wait as they came."""


@dataclass(frozen=True)
class InOrder(Config):
    """An operator whose inputs are merged by time before it sees them (papers 000, Figure 6, and 001, Figure 11).

    It is idle-waiting prone: a time-stamp memory (TSM) register for each input holds the time below which nothing more comes from
    it, and a tuple goes on when no register is behind it. The operator inside is the same as out of order, and driven by progress:
    waiting changes when it sees a tuple, never what it answers.
    """

    inner: Config
    schemas: tuple[pa.Schema, ...]
    times: tuple[str, ...]
    """The time column of each input."""
    time: str | None = None
    """The time of the output, where it has one; results leave in its order."""
    ordered: bool = True
    """False for a sort: the input is out of order, so that only its promises move its register, not its tuples."""
    latent: tuple[int, ...] = ()
    """Inputs with latent time: their tuples wait for nobody, and nobody waits for them."""

    @property
    def schema(self) -> pa.Schema:
        return self.inner.schema

    @property
    def needs(self) -> Needs:
        return replace(self.inner.needs, idle_waiting_prone=True, ordered=True)

    @property
    def label(self) -> str:
        return f"in-order {self.inner.label}" if len(self.schemas) > 1 else f"sort {self.times[0]}"

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        """What waits goes when all inputs are there; what that leads to further on is the inner operator's to say."""
        if attribute == OUTPUT:
            return (tuple(Due(port, time, mark) for port, time in enumerate(self.times) if port not in self.latent),)
        return self.inner.ways(attribute, mark)

    def build(self, journal: bool = False) -> RunningInOrder:
        return RunningInOrder(self, journal)


class _Names:
    """Of the registers of one input."""

    __slots__ = ("mark", "passed", "promised", "tsm")

    def __init__(self, port: int) -> None:
        self.tsm = f"tsm {port}"
        """The time below which nothing more comes, by tuples and promises."""
        self.mark = f"mark {port}"
        """The same by promises alone."""
        self.passed = f"passed {port}"
        """What of it the operator inside has been told."""
        self.promised = f"promised {port}"
        """Other promises, which it has not been told yet."""


class _Fresh(NamedTuple):
    """A block that waits as it came: its earliest and its latest time, and its tuples."""

    low: int
    high: int
    batch: pa.RecordBatch


class RunningInOrder(Operator):
    def __init__(self, config: InOrder, journal: bool) -> None:
        self.config = config
        self.needs = config.needs
        self.inner = config.inner.build(journal)
        self.feedback, self.watches, self.asleep = self.inner.feedback, self.inner.watches, self.inner.asleep
        self.registers = Registers(journal=journal)
        self.names = [_Names(port) for port in range(len(config.schemas))]
        self.rows = [RowWindow(schema, journal=journal) for schema in config.schemas]
        self.empty = [empty_batch(schema) for schema in config.schemas]
        self.nothing = empty_batch(config.schema)
        self.fresh: list[list[_Fresh]] = [[] for _ in config.schemas]
        """Blocks that have come last and wait as they came; they go into a container when they are many, or when one is asked for."""
        self.buffers = [Buffer() for _ in config.schemas]
        self.inputs = Inputs([buffer.head() for buffer in self.buffers])
        self.ordered = [port for port in range(len(config.schemas)) if port not in config.latent]
        """The inputs that wait for each other."""

    @property
    def state(self) -> tuple[Container, ...]:
        for port in range(len(self.rows)):
            self._store(port)
        return (*self.rows, self.registers, *self.inner.state)

    @property
    def waiting(self) -> int:
        count = 0
        for rows, fresh in zip(self.rows, self.fresh, strict=True):
            count += len(rows)
            for each in fresh:
                count += each.batch.num_rows
        return count

    def behind(self) -> Sequence[int]:
        earliest = min([self._earliest(port) for port in range(len(self.rows))])
        if earliest == MAX_TIME:
            return ()
        return [port for port in self.ordered if self.registers.get(self.names[port].tsm, MIN_TIME) < earliest]

    def step(self, inputs: Inputs, out: Output, limit: int | None) -> None:
        # What waits inside may go by what has come for it: more of those that wait would only wait, too.
        port = next((port for port in self.behind() if inputs.heads[port].ready), None)
        port = inputs.any() if port is None else port
        made = Output()
        if port is not None:
            block = inputs.heads[port].take(limit)
            assert block is not None
            self._arrive(port, block)
            self._release()
            self._promise()
        elif self.feedback is not None:
            self.inner.step(self.inputs, made, None)  # somebody has woken it
        while self.inner.more(self.inputs):
            self.inner.step(self.inputs, made, None)
        self._emit(made, out)

    # -- tuples ---------------------------------------------------------------------------------------------------

    def _arrive(self, port: int, block: Block) -> None:
        names = self.names[port]
        if len(block):
            axis = self._axis(port, block.batch)
            low, high = (int(axis[0]),) * 2 if len(axis) == 1 else (int(axis.min()), int(axis.max()))
            self.fresh[port].append(_Fresh(low, high, block.batch))
            if self.config.ordered:
                self.registers.raise_to(names.tsm, high)
        for punctuation in block.punctuations:
            if punctuation.is_end:
                self.registers[names.tsm] = self.registers[names.mark] = MAX_TIME
            elif punctuation.is_linear and punctuation.patterns[0][0] == self.config.times[port]:
                pattern = punctuation.patterns[0][1]
                assert isinstance(pattern, Range)
                self.registers.raise_to(names.tsm, pattern.high)
                self.registers.raise_to(names.mark, pattern.high)
            else:
                kept: tuple[Punctuation, ...] = self.registers.get(names.promised, ())
                self.registers[names.promised] = (*kept, punctuation)

    def _release(self) -> None:
        """Tuples whose time no register is behind go on, and latent ones; simultaneous ones do not wait for each other."""
        least = min([self.registers.get(self.names[port].tsm, MIN_TIME) for port in self.ordered])
        for port, rows in enumerate(self.rows):
            bound = MAX_TIME if port in self.config.latent else least
            fresh = self.fresh[port]
            if len(fresh) > MANY or any([each.low <= bound < each.high for each in fresh]):
                self._store(port)
            if len(rows):
                found = rows.alive_rows() if bound == MAX_TIME else rows.expire(bound + 1)
                if len(found):
                    self.buffers[port].put(Block(rows.take(found)))
                    rows.discard(found)
            if self.fresh[port]:
                for each in self.fresh[port]:
                    if each.high <= bound:
                        self.buffers[port].put(Block(each.batch))
                self.fresh[port] = [each for each in self.fresh[port] if each.high > bound]

    def _store(self, port: int) -> None:
        """Put blocks that still wait into the container, where any tuple of them is found by its time."""
        for each in self.fresh[port]:
            axis = self._axis(port, each.batch)
            self.rows[port].insert(each.batch, np.zeros(len(axis), dtype=np.uint64), axis, axis)
        self.fresh[port] = []

    def _axis(self, port: int, batch: pa.RecordBatch) -> Int64s:
        return to_axis(batch.column(self.config.times[port]), MIN_TIME)

    def _earliest(self, port: int) -> int:
        """Of the tuples that wait; MAX_TIME when none does."""
        earliest = self.rows[port].earliest
        return min([earliest, *[each.low for each in self.fresh[port]]]) if self.fresh[port] else earliest

    # -- promises -------------------------------------------------------------------------------------------------

    def _promise(self) -> None:
        """What an input has promised holds inside as far as no tuple of it waits out here."""
        for port, rows in enumerate(self.rows):
            names, found = self.names[port], []
            mark = min(self.registers.get(names.mark, MIN_TIME), self._earliest(port))
            if mark > self.registers.get(names.passed, MIN_TIME):
                self.registers[names.passed] = mark
                found.append(Punctuation.end() if mark == MAX_TIME else Punctuation.linear(self.config.times[port], mark))
            kept: tuple[Punctuation, ...] = self.registers.get(names.promised, ())
            if kept:
                held = [each.batch for each in self.fresh[port]]
                if len(rows):
                    held.append(rows.take(rows.alive_rows()))
                ready = [p for p in kept if not any(p.matches(batch).any() for batch in held)]
                found = [*ready, *found]
                if ready:
                    self.registers[names.promised] = tuple(p for p in kept if p not in ready)
            if found:
                self.buffers[port].put(Block(self.empty[port], tuple(found)))

    def _emit(self, made: Output, out: Output) -> None:
        """In the order of time, and the promises behind."""
        out.letters += made.letters
        batches = [block.batch for block in made.blocks if len(block)]
        batch = self.nothing
        if batches:
            batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
            if self.config.time is not None and len(batch) > 1:
                batch = batch.sort_by(self.config.time)
        out.put(batch, [punctuation for block in made.blocks for punctuation in block.punctuations])

    def due(self) -> Iterator[Due]:
        earliest = min([self._earliest(port) for port in range(len(self.rows))])
        if earliest < MAX_TIME:
            yield Due(-1, OUTPUT, earliest)
        yield from self.inner.due()
