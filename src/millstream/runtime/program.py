"""A program is a query graph made ready to be hosted: ingest, stages keyed by bucket, sinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from millstream.io.contract import DeadLetter, Sink, Source, Unit
from millstream.operators.contract import Due
from millstream.runtime.gauges import Gauge

StreamState = Mapping[str, Any]
"""How far a stream is, as an offset has it: {"at": the source's position, "units": units taken so far, "clock": when the last of them
was taken (microseconds), "arrived": when they had come, "mark": the last ETS or None, "made": when it
was made, "ended": bool,
"entrance": the vertex where it enters the graph}"""


@dataclass(frozen=True)
class Packet:
    """A block on its way to a bucket of a stage, or to a sink.

    `order` tells packets of one port apart in stream order; a stage takes them sorted by (port, order).
    """

    bucket: int
    port: int
    order: tuple[int, int, int]  # (unit number or upstream bucket, part, 0)
    block: bytes


@dataclass(frozen=True)
class Note:
    """What a bucket tells the driver after a micro-batch. A lost note costs a moment, never an answer."""

    stage: int
    """-1 for a task that reads sources."""
    bucket: int = 0
    read: tuple[tuple[str, int], ...] = ()
    """Tuples read since the last note, by stream."""
    lags: tuple[tuple[str, int], ...] = ()
    """How old tuples were when they arrived, at most, by stream."""
    held: int = 0
    """Tuples and groups in this bucket's state."""
    due: tuple[tuple[int, Due], ...] = ()
    """What the operators here wait for, by their vertex."""
    marks: tuple[tuple[str, int], ...] = ()
    """The low-water mark that each stream's own tuples have led to."""
    reached: tuple[tuple[str, int], ...] = ()
    """The same with enabling timestamps."""
    delivered: tuple[tuple[str, int], ...] = ()
    """The promises to sinks here (see `runtime.delivered`)."""
    state_bytes: int = 0
    gauges: tuple[tuple[int, Gauge], ...] = ()
    """What the operators here, by their vertex, have done since the last note."""


@dataclass(frozen=True)
class Outcome:
    """What one micro-batch of a stage, or one unit of ingest, put out."""

    packets: tuple[Packet, ...] = ()  # to the next stage
    results: tuple[tuple[int, bytes], ...] = ()  # (sink number, packed block)
    letters: tuple[DeadLetter, ...] = ()
    note: Note | None = None


@dataclass(frozen=True)
class Changes:
    """A segment of a bucket's journal."""

    data: bytes
    since: int = 0
    """Segments before this one say nothing any more."""


class Stage(Protocol):
    """The running state of one bucket of one stage."""

    def run(self, packets: Sequence[Packet]) -> Outcome:
        """Take one micro-batch and run until nothing can move."""

    def changes(self, number: int) -> Changes | None:
        """What has changed since the last call, to be appended to the state store as segment `number`; None when nothing has."""

    def restore(self, segments: Iterable[tuple[int, bytes]]) -> None:
        """Rebuild the state from the segments that are left, each with its number."""

    def contents(self) -> object:
        """The whole state as it is in memory: arrays and small values, to be pickled or mapped by another process."""

    def adopt(self, contents: object) -> None:
        """Go on with what `contents` gave, perhaps in another process."""


class Program(Protocol):
    """Pickles; workers build their parts from it."""

    sources: tuple[tuple[str, Source], ...]
    sinks: tuple[Sink, ...]
    buckets: int
    partitions: int
    """Partitions of Spark that the buckets of a stage share."""

    @property
    def stages(self) -> int: ...

    def ingest(self, stream: int, unit: Unit, entered: int) -> Iterator[Outcome]:
        """Read one unit: typed tuples through the stateless prefix, packed per bucket of stage 0."""

    def mark(self, stream: int, unit_number: int, mark: int | None, made: int = 0) -> Iterator[Outcome]:
        """Progress without tuples: an enabling timestamp and when it was made, or the end of the stream."""

    def stage(self, index: int, bucket: int) -> Stage: ...

    def noted(self, notes: Sequence[Note]) -> None:
        """In the user's process, after each micro-batch: what the buckets had to say."""

    def reached(self, sink: int) -> Mapping[str, int | None]:
        """The low-water marks of a sink behind the last micro-batch, by column; in the user's process."""

    def enabling(self, streams: Mapping[str, StreamState], moving: Set[str], now: int) -> Mapping[str, int]:
        """The enabling timestamps that silent streams should make now, while those in `moving` bring tuples; asked by the source."""

    def rows(self, sink: int, block: bytes) -> object:
        """The tuples of a packed block as a record batch in the sink's schema, hidden columns dropped."""
