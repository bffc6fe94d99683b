"""What every operator is: needs declared as data, state in containers, steps over blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from millstream.core.block import Block
from millstream.core.letters import DeadLetter
from millstream.core.punctuation import Punctuation
from millstream.kernels.compiled import UInt64s
from millstream.operators.buffers import Inputs
from millstream.state.journal import Segment, Segments

if TYPE_CHECKING:
    from millstream.feedback.sleepers import Sleepers
    from millstream.feedback.watch import Watch
    from millstream.operators.join_feedback import JoinFeedback

ANYWHERE = None
"""A port whose tuples may be in any bucket."""

OUTPUT = "everything that waits"
"""For `Due`, in place of a column: the tuples that wait before an operator for the time of all its inputs."""

Keys = tuple[str, ...] | None


@dataclass(frozen=True)
class Needs:
    """What the scheduler, EXPLAIN and the cut into stages must know; nothing tests an operator's class."""

    keys: tuple[Keys, ...] = (ANYWHERE,)
    """Per port: the columns whose equal values must meet in one bucket; `()` wants everything in one bucket."""
    idle_waiting_prone: bool = False
    """True when the operator may hold input while a silent partner keeps it from going on (paper 000, section 2)."""
    ordered: bool = False
    linear: str = "pass"
    """What a linear punctuation does here: pass, purge or propagate."""
    value: str = "pass"
    """What a value punctuation does here."""
    spreading: tuple[int, ...] | None = None
    """The ports whose keys tell in which bucket a result is; None for all."""
    together: bool = False
    """Whether it wants to be in one bucket with those of its kind that it reads."""
    same: tuple[tuple[tuple[int, str], ...], ...] = ()
    """Columns, as (port, name), that every result has equal; of those that want to be together."""

    @property
    def ports(self) -> int:
        return len(self.keys)


@dataclass(frozen=True)
class Due:
    """A mark on a column of one input. Reached, it lets something go, or leads to a promise (see `Operator.due`, `Config.ways`)."""

    port: int
    """-1 for a mark that several inputs must reach together: `Config.ways` tells which."""
    attribute: str
    mark: int


class Container(Protocol):
    """Where state lives: rows, groups or registers. A checkpoint writes it, a restart reads it."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def changes(self, number: int = 0, since: int = 0) -> Segment | None:
        """What segment `number` of the journal has to say, so that none before `since` is needed any more; None for nothing."""

    def restore(self, segments: Segments) -> None: ...


@dataclass(slots=True)
class Output:
    """Where an operator puts its results during one step."""

    blocks: list[Block] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    handed: int = 0
    """Tuples that the consumer has been given already."""

    def put(self, batch: pa.RecordBatch, punctuations: Iterable[Punctuation] = ()) -> None:
        punctuations = tuple(punctuations)
        if batch.num_rows or punctuations:
            self.blocks.append(Block(batch, punctuations))


class Operator(ABC):
    """Running state. `step` takes up to `limit` tuples from one input and puts blocks out."""

    needs: Needs
    feedback: JoinFeedback | None = None
    """Where it takes part in demand feedback."""
    watches: Sequence[Watch] = ()
    """Where it looks for demand inside itself."""
    asleep: Sequence[Sleepers] = ()
    """Its tuples that nobody needs now, by port."""
    known: tuple[tuple[tuple[str, ...], UInt64s], ...] = ()
    """Columns of its input, and the hashes of their values that it can use: tuples with others are of no use to it, now or later."""

    @property
    def state(self) -> tuple[Container, ...]:
        return ()

    @property
    def waiting(self) -> int:
        """Tuples that wait inside for another input; of idle-waiting-prone operators only."""
        return 0

    def behind(self) -> Sequence[int]:
        """The ports for which tuples wait inside; of idle-waiting-prone operators only."""
        return ()

    def more(self, inputs: Inputs) -> bool:
        """True when a step would take something."""
        return inputs.any() is not None

    @abstractmethod
    def step(self, inputs: Inputs, out: Output, limit: int | None) -> None: ...

    def due(self) -> Iterable[Due]:
        """What this operator waits for: each of these marks would let something go by itself.

        Where results or promises wait it is the next such mark. Where only memory does, it is the last one: one
        enabling timestamp then clears all, and none is made for each tuple that expires.
        """
        return ()


class UnaryOperator(Operator):
    """An operator with one input, which handles each block whole."""

    def step(self, inputs: Inputs, out: Output, limit: int | None) -> None:
        block = inputs.heads[0].take(limit)
        if block is not None:
            self.handle(block, out)

    @abstractmethod
    def handle(self, block: Block, out: Output) -> None: ...


@dataclass(frozen=True)
class Config(ABC):
    """A frozen description of an operator, over known input schemas, that builds the running one."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns that come out."""

    @property
    def needs(self) -> Needs:
        return Needs()

    @abstractmethod
    def build(self, journal: bool = False) -> Operator:
        """The running operator; with a journal its state can be written change by change."""

    @property
    def label(self) -> str:
        """A short line for EXPLAIN."""
        return type(self).__name__.lower()

    def translate(self, punctuation: Punctuation) -> tuple[Punctuation, ...]:
        """What a punctuation on the input promises of the output; for operators that keep no state."""
        raise NotImplementedError(f"{type(self).__name__} keeps state")

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        """The marks on the inputs that lead to a mark on an output column: alternatives, each of marks that are needed together.

        The inverse of how punctuations go through. None at all means that only the end of the inputs leads there.
        """
        return ()

    @cached_property
    def stateless(self) -> bool:
        """True when tuples pass one by one and `translate` tells all about punctuations."""
        return type(self).translate is not Config.translate

    def reads(self, column: str) -> bool:
        """False when an input column plays no part in it."""
        return True

    keeps_all = False
    """True when every tuple that goes in comes out."""

    @property
    def choices(self) -> dict[str, str]:
        """Settings that its state depends on."""
        return {}

    def carrying(self, input: pa.Schema, columns: tuple[str, ...]) -> Config:
        """The same stateless operator over an input with more columns, which go along unchanged."""
        raise NotImplementedError(f"{type(self).__name__} keeps state")

    def source_columns(self, columns: Iterable[str]) -> dict[str, str] | None:
        """For output columns that are input columns unchanged: their names on the input, or None if one is not."""
        return None
