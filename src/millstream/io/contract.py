"""What a source and a sink must do, the same for both runtimes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from millstream.core.letters import DeadLetter

Position = Mapping[str, Any]
"""How far a source has been read; JSON, because Spark keeps it in its offset log."""


@dataclass(frozen=True)
class Unit:
    """A stretch of a stream that one reader reads in order, such as a file.

    Units of a stream are numbered from 0 in stream order, without gaps, so that any number of tasks
    may read them in parallel and the order can still be told.
    """

    number: int
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """A piece of a unit: tuples in the stream's schema, and what could not be read."""

    batch: pa.RecordBatch
    letters: tuple[DeadLetter, ...] = ()
    file: str | None = None
    lines: Any = None  # int64 array: the line (or row) number in `file` of each tuple, from 1


@dataclass(frozen=True)
class Limits:
    """What one micro-batch takes of one stream, at most; None is no limit. One unit is always taken, however large it is."""

    bytes: int | None = None
    tuples: int | None = None

    def hold(self, size: int, tuples: int) -> bool:
        return (self.bytes is None or size <= self.bytes) and (self.tuples is None or tuples <= self.tuples)

    def share(self, of: int) -> Limits:
        """A part of them."""
        return Limits(*(None if most is None else max(1, most // of) for most in (self.bytes, self.tuples)))

    def fitting(self, sizes: Iterable[tuple[int, int | None]]) -> int:
        """How many of these units, given as (bytes, tuples), one micro-batch takes; of unknown tuples (None) one unit fills it."""
        size = tuples = taken = 0
        for unit_bytes, unit_tuples in sizes:
            size += unit_bytes
            tuples += (self.tuples or 0) if unit_tuples is None else unit_tuples
            if taken and not self.hold(size, tuples):
                break
            taken += 1
        return taken


NO_LIMITS = Limits()

DAY = 86_400_000_000
"""Microseconds. No time zone is further from another."""


class Source(Protocol):
    """Reads one stream. Must pickle: `latest` runs beside the driver, `read` in any task.

    `units(start, end)` and `read(unit)` must give the same every time they are asked, so that a
    micro-batch can be replayed after a crash.
    """

    @property
    def bounded(self) -> bool:
        """True when the stream has an end (a file stream without `watch`)."""

    def check(self) -> None:
        """Raise a SourceProblem when the source can not be read at all (missing path)."""

    def initial(self) -> Position: ...

    def latest(self, start: Position, limit: int | None) -> Position:
        """How far can be read now, at most `limit` units beyond `start`.

        A source that knows how large its units are has a method `hosted(directory, limits)` as well: the same source for Spark, which
        keeps to `Limits` and keeps in a directory of the checkpoint what a restart must know and a position should not carry.
        """

    def units(self, start: Position, end: Position) -> list[Unit]: ...

    def read(self, unit: Unit, batch_size: int) -> Iterator[Reading]: ...

    def arrived(self, unit: Unit) -> int | None:
        """The time at which the unit's tuples came (microseconds), where it is not the clock's.

        The answer is the same every time. A source may have a property `ahead` as well: how far after
        their arrival tuples may lie where their stream declares nothing.
        """

    def finished(self, position: Position) -> bool:
        """True when a bounded source has nothing beyond this position."""

    def release(self, position: Position) -> None:
        """Nothing before this position will be asked for again, also after a crash: a source that keeps what it received may drop it."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Part:
    """Something a writer has written and a commit makes visible; pickles."""

    sink: str
    detail: Mapping[str, Any]


class Writer(Protocol):
    """Writes one part of a sink, in one task or in the one process."""

    def write(self, batch: pa.RecordBatch) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> Part: ...

    def abort(self) -> None: ...


class Sink(Protocol):
    """Takes the results. Must pickle: writers open in any task, `commit` runs beside the driver."""

    @property
    def name(self) -> str: ...

    @property
    def distributed(self) -> bool:
        """False when parts must be handed to the driver (console, memory) rather than written by the task."""

    def check(self, schema: pa.Schema) -> None:
        """Raise a SinkProblem when the sink can not be written (its path exists, a format can not hold a type)."""

    def writer(self, schema: pa.Schema, part: str, epoch: int | None) -> Writer:
        """Epoch None: results become visible as they are flushed. Otherwise nothing is visible before `commit`."""

    def commit(self, epoch: int, parts: Iterable[Part]) -> None:
        """Make an epoch's parts visible; asked twice for one epoch it does it once."""

    def finish(self) -> None: ...


def lacking(given: object, contract: type) -> list[str]:
    """Names of `Source` or `Sink` that an object lacks. A class is no object and lacks all."""
    names = [name for name in vars(contract) if not name.startswith("_")]
    return [name for name in names if isinstance(given, type) or not hasattr(given, name)]


__all__ = [
    "DAY", "NO_LIMITS", "DeadLetter", "Limits", "Part", "Position", "Reading", "Sink", "Source", "Unit", "Writer",
    "lacking",
]  # fmt: skip
