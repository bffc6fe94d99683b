"""All streams of a program as one Spark source: an offset per stream, and one task per unit or few units."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from millstream.core.types import MIN_TIME
from millstream.errors import PlanProblem, SourceProblem
from millstream.graph.cut import INGEST
from millstream.io.contract import Source, Unit
from millstream.io.files import FileSource
from millstream.runtime.program import Outcome, Program, StreamState
from millstream.runtime.spark import wire
from millstream.runtime.spark.editions import Editions
from millstream.runtime.spark.failures import parts_differ, sealed
from millstream.runtime.spark.halt import Halt
from millstream.runtime.spent import READ, TRANSFER, Watch

FORMAT = "millstream"
TARGET_SECONDS = 2.0
"""What an adaptive micro-batch should take: long beside Spark's 0.2 s of overhead, short beside a worker's memory."""

PATIENCE = 0.25
"""Seconds that the source keeps looking before it tells Spark that nothing is new: a round through the JVM costs more than a look."""
LOOK = 0.025
"""Seconds between two looks."""
THRIFT = 30
"""A look that takes long is repeated seldom: the time between looks is at least so many times theirs."""


def source_options(
    shipment: wire.Shipment, shape: str, units: int | None, tasks: int, halt: Halt, interval: float = 0.0
) -> dict[str, str]:
    """The program goes in an option: it needs no shared file system, and pickled plans are small."""
    options = {"run": shipment.run, "program": base64.b64encode(shipment.data).decode("ascii"), "shape": shape, "tasks": str(tasks)}
    options |= {"halt": halt.path, "edition": str(shipment.edition), "interval": str(interval)}
    return options if units is None else options | {"units": str(units)}


class MillstreamSource(DataSource):  # type: ignore[misc]
    """What `readStream.format("millstream")` stands for."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.shipment = wire.Shipment(options["run"], base64.b64decode(options["program"]), int(options["edition"]))
        self.settings = {
            key: options[key] for key in ("shape", "tasks", "units", "halt", "interval") if key in options
        }
        self.options: dict[str, str] = {}  # the instance is pickled with every task; once is enough

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return wire.SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        units = self.settings.get("units")
        halt = Halt(self.settings["halt"])
        tasks, interval = int(self.settings["tasks"]), float(self.settings["interval"])
        return Reader(
            self.shipment, self.settings["shape"], tasks, int(units) if units else None, halt, interval
        )


@dataclass(frozen=True)
class Errand:
    """One thing to read: a unit, or a mark (None: the end) that stands behind all units before `number`."""

    stream: int
    number: int
    unit: Unit | None = None
    mark: int | None = None
    entered: int = 0
    """The time at which the unit was taken or the mark was made; it is in the offset, for replays."""

    def outcomes(self, program: Program) -> Iterator[Outcome]:
        if self.unit is not None:
            return program.ingest(self.stream, self.unit, self.entered)
        return program.mark(self.stream, self.number, self.mark, self.entered)


class Errands(InputPartition):  # type: ignore[misc]
    """What one task reads."""

    def __init__(self, epoch: int, errands: Sequence[Errand], shipment: wire.Shipment | None = None, tells: bool = False) -> None:
        self.epoch = epoch
        self.errands = tuple(errands)
        self.shipment = shipment
        """The program, when it is another than the query was started with."""
        self.tells = tells
        """Whether this task tells the stages of it, or, where there are none, those who deliver."""


class Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Offsets and partitions in a Python process beside the driver, `read` in the tasks.

    An offset is {"shape": ..., "step": n, "edition": n, "streams": {name: StreamState}}. Everything a replay of the
    micro-batch needs is in it: positions, unit numbers, enabling timestamps, the edition of the program.
    """

    def __init__(
        self,
        shipment: wire.Shipment,
        shape: str,
        tasks: int,
        units: int | None,
        halt: Halt | None = None,
        interval: float = 0.0,
    ) -> None:
        self.shipment = shipment
        self.halt = halt
        self.editions = Editions(None if halt is None else halt.path)
        self.shape = shape
        self.tasks = tasks
        self.pace = Pace(tasks, units, max(TARGET_SECONDS, interval))
        self.interval = interval
        """Seconds from the beginning of a micro-batch to that of the next.

        Spark's own trigger would ask for nothing meanwhile: no stop and no change of queries would be heard,
        and what a micro-batch has left behind would wait, too.
        """
        self.due = 0.0
        """When the next micro-batch may begin."""
        self.begun = False

    def initialOffset(self) -> dict[str, Any]:
        with sealed():
            streams = _before(self.shipment.open(), {})
            return {"shape": self.shape, "step": 0, "edition": self.shipment.edition, "streams": streams}

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing to note: a program run so is bounded, and its end is the end of its sources."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far a micro-batch can go now.

        While nothing is new it looks again for a moment, which costs less than to be asked again. It also does so when a micro-batch
        begun now would still run at the moment when a silent stream can let something go: that would have to wait for the next.
        """
        with sealed():
            self._check(start)
            if self.halt is not None and self.halt.asked:
                self.halt.answer()
                return start if start["step"] else {**start, "step": 1}
            if not self.begun:
                _refuse_more(self.shipment.open(), start["streams"])
                self.begun = True
            units = self.pace.limit()
            if self._too_early(start):
                return start
            until = time.monotonic() + PATIENCE
            while True:
                began = time.monotonic()
                shipment = self.editions.newest(self.shipment)
                program = shipment.open()
                before = _before(program, start["streams"])
                streams, soon = self._look(program, before, units, min(self.pace.seconds, until - began))
                now = time.monotonic()
                pause = max(LOOK, THRIFT * (now - began))
                changed = shipment.edition != start["edition"]
                over, new = changed or now + pause > until, changed or streams != start["streams"]
                if not start["step"] or (new and (over or not soon)):
                    break
                if not new and (over or all(source.bounded for _, source in program.sources)):
                    return start  # the very same offset: Spark runs no micro-batch, but for the first, which it always runs
                time.sleep(pause)
            taken = max((streams[name]["units"] - before[name]["units"] for name in streams), default=0)
            self.pace.took(taken)
            if self.interval:
                open_ = [
                    (source, streams[name]["at"])
                    for name, source in program.sources
                    if not streams[name]["ended"]
                ]
                more = any(source.latest(at, 1) != at for source, at in open_)
                self.due = 0.0 if more else time.monotonic() + self.interval
            return {"shape": self.shape, "step": start["step"] + 1, "edition": shipment.edition, "streams": streams}

    def _too_early(self, start: Mapping[str, Any]) -> bool:
        """Wait for a moment at most. True while the next micro-batch may not begin.

        A change of queries may always begin one.
        """
        until = min(self.due, time.monotonic() + PATIENCE)
        while time.monotonic() < until:
            if self.editions.newest(self.shipment).edition != start["edition"]:
                return False
            if self.halt is not None and self.halt.asked:
                return True
            time.sleep(LOOK)
        return time.monotonic() < self.due

    def _look(self, program: Program, before: Mapping[str, StreamState], limit: int, ahead: float) -> tuple[dict[str, StreamState], bool]:
        """Every stream as far as it is; those that bring nothing may make enabling timestamps.

        True when they can make none now, but will within so many seconds.
        """
        now = now_us()  # before the look: what comes during it must not be late by an enabling timestamp that did not know of it
        streams = {name: self._move(source, before[name], limit) for name, source in program.sources}
        moving = {name for name in streams if streams[name]["units"] != before[name]["units"]}
        made = program.enabling(before, moving, now)
        for name, mark in made.items():
            if name not in moving and not streams[name]["ended"] and mark > (before[name]["mark"] or MIN_TIME):
                streams[name] = {**streams[name], "mark": mark, "made": now}
        return streams, bool(moving and not made and program.enabling(before, moving, now + round(ahead * 1e6)))

    def _move(self, source: Source, state: StreamState, limit: int) -> StreamState:
        if state["ended"]:
            return state
        at = dict(source.latest(state["at"], limit))
        moved = {**state, "at": at}
        if at != state["at"]:
            units = source.units(state["at"], at)
            moved["units"] = state["units"] + len(units)
            moved["clock"] = max(now_us(), state["clock"])
            moved["arrived"] = max((source.arrived(unit) or moved["clock"] for unit in units), default=moved["clock"])
        if source.bounded and source.finished(at):
            moved["ended"] = True
        return moved

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with sealed():
            self._check(end)
            shipment = self.editions.get(end["edition"], self.shipment)
            program = shipment.open()
            changed = end["edition"] != start["edition"]
            reads: list[Errand] = []
            marks: list[Errand] = []
            began = _before(program, start["streams"])
            for number, (name, source) in enumerate(program.sources):
                before, after = began[name], end["streams"][name]
                if after["at"] != before["at"]:
                    reads += [Errand(number, u.number, u, entered=after["clock"]) for u in source.units(before["at"], after["at"])]
                if after["ended"] and (changed or not before["ended"]):  # whoever is new has not heard it
                    marks.append(Errand(number, after["units"]))
                elif after["mark"] != before["mark"]:
                    marks.append(
                        Errand(number, after["units"], mark=after["mark"], entered=after.get("made", 0))
                    )
            # A task costs some ms of Spark's time: small units share one, and marks ride with the last.
            share = -(-len(reads) // (4 * self.tasks)) or 1
            groups = [reads[i : i + share] for i in range(0, len(reads), share)] or [[]]
            groups[-1] = groups[-1] + marks
            other = None if shipment.edition == self.shipment.edition else shipment
            return [Errands(end["step"] - 1, group, other, not program.stages or not n) for n, group in enumerate(groups)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Errands)
        watch = Watch()
        with sealed():
            for chunk in wire.in_chunks(self._rows(partition, watch)):
                batch = wire.to_batch(chunk)
                watch.lap(READ)
                yield batch
                watch.lap(TRANSFER)

    def _rows(self, partition: Errands, watch: Watch) -> Iterator[wire.Wire]:
        shipment = partition.shipment or self.shipment
        program = shipment.open()
        ids = wire.ids_of(program)
        if partition.shipment is not None and partition.tells:
            yield from wire.program_rows(shipment, ids if program.stages else ids[:1], partition.epoch)
        home = 0
        for errand in partition.errands:
            home = errand.number % program.buckets
            for outcome in errand.outcomes(program):
                yield from wire.rows_of(outcome, ids, partition.epoch, home)
        if not partition.errands:
            return
        watch.lap(READ)
        yield wire.spent_row(INGEST, watch, ids, partition.epoch, home)

    def commit(self, end: dict[str, Any]) -> None:
        """Everything before is done for good: sources may let go of what they keep for a replay."""
        for name, source in self.editions.get(end["edition"], self.shipment).open().sources:
            source.release(end["streams"][name]["at"])

    def stop(self) -> None:
        for _, source in self.editions.newest(self.shipment).open().sources:
            source.close()

    def _check(self, offset: Mapping[str, Any]) -> None:
        if (shape := offset.get("shape")) == self.shape:
            return
        (query, *numbers), (ours, *asked) = str(shape).split(), self.shape.split()
        if len(numbers) == 2:  # of a time when each bucket had a partition of its own
            numbers.append(numbers[1])
        if query == ours and numbers == asked:
            return
        if query == ours and len(numbers) == len(asked):
            raise parts_differ(
                "the checkpoint", [int(number) for number in numbers], [int(number) for number in asked]
            )
        raise PlanProblem(
            "the checkpoint belongs to another query",
            hint="give a new checkpoint directory, or run the query it was made with",
        )


def _refuse_more(program: Program, streams: Mapping[str, StreamState]) -> None:
    """A stream that had ended when the checkpoint was left can bring no more: everything behind it was closed."""
    for name, source in program.sources:
        if streams[name]["ended"] and isinstance(source, FileSource) and not source.finished(streams[name]["at"]):
            raise SourceProblem(
                f"stream {name} has ended in this checkpoint, and what has come since would not be read",
                hint="give a new checkpoint directory and sink; a stream that goes on needs watch = true from the start",
            )


def _before(program: Program, streams: Mapping[str, StreamState]) -> dict[str, StreamState]:
    """How far the streams of a program are; one that nobody has read, or read again after it was left, is at its beginning."""
    entrances = getattr(program, "entrances", {})
    found = {}
    for name, source in program.sources:
        entrance = entrances.get(name, 0)
        known = streams.get(name)
        beginning = {"at": dict(source.initial()), "units": 0, "clock": 0, "arrived": 0, "mark": None, "ended": False, "entrance": entrance}
        found[name] = beginning if known is None or known["entrance"] != entrance else known
    return found


def now_us() -> int:
    return time.time_ns() // 1000


class Pace:
    """The units of each stream that a micro-batch may take: fixed, or adapted to so many seconds.

    It grows while micro-batches take all they may; the sources' own limits on bytes and tuples keep one from growing too large.
    Only the size of micro-batches depends on the clock, never an answer: what was taken is in the offset.
    """

    def __init__(self, tasks: int, fixed: int | None, target: float = TARGET_SECONDS) -> None:
        self.target = target
        self.least = tasks
        self.fixed = fixed
        self.now = fixed or tasks
        self.taken = 0  # by the last micro-batch
        self.batches = 0
        self.since = time.monotonic()
        self.seconds = 0.0
        """What the last micro-batch took, from its offset to the question for the next."""

    def limit(self) -> int:
        self.seconds = self.seconds or time.monotonic() - self.since
        if self.fixed is None and self.taken and self.batches > 1:  # the first one pays for the start-up
            seconds = self.seconds
            if seconds < self.target / 2 and self.taken >= self.now:
                self.now *= 2
            elif seconds > self.target * 2:
                self.now = max(self.least, self.taken // 2)
        return self.now

    def took(self, units: int) -> None:
        self.taken = units
        self.batches += units > 0
        self.since = time.monotonic()
        self.seconds = 0.0
