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

from millstream.errors import PlanProblem
from millstream.graph.cut import INGEST
from millstream.io.contract import Unit
from millstream.runtime.program import Outcome, Program
from millstream.runtime.spark import wire
from millstream.runtime.spark.failures import sealed
from millstream.runtime.spark.halt import Halt
from millstream.runtime.spent import READ, TRANSFER, Watch

FORMAT = "millstream"
TARGET_SECONDS = 2.0
"""What an adaptive micro-batch should take: long beside Spark's 0.2 s of overhead, short beside a worker's memory."""

StreamState = Mapping[str, Any]
"""{"at": the source's position, "units": units taken so far, "clock": when the last of them was taken (microseconds),
"arrived": when they had come, "mark": the last ETS or None, "ended": bool}"""


def source_options(shipment: wire.Shipment, shape: str, units: int | None, tasks: int, halt: Halt) -> dict[str, str]:
    """The program goes in an option: it needs no shared file system, and pickled plans are small."""
    options = {"run": shipment.run, "program": base64.b64encode(shipment.data).decode("ascii"), "shape": shape, "tasks": str(tasks)}
    options["halt"] = halt.path
    return options if units is None else options | {"units": str(units)}


class MillstreamSource(DataSource):  # type: ignore[misc]
    """What `readStream.format("millstream")` stands for."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.shipment = wire.Shipment(options["run"], base64.b64decode(options["program"]))
        self.settings = {key: options[key] for key in ("shape", "tasks", "units", "halt") if key in options}
        self.options: dict[str, str] = {}  # the instance is pickled with every task; once is enough

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return wire.SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        units = self.settings.get("units")
        halt = Halt(self.settings["halt"])
        return Reader(self.shipment, self.settings["shape"], int(self.settings["tasks"]), int(units) if units else None, halt)


@dataclass(frozen=True)
class Errand:
    """One thing to read: a unit, or a mark (None: the end) that stands behind all units before `number`."""

    stream: int
    number: int
    unit: Unit | None = None
    mark: int | None = None
    entered: int = 0
    """When the unit was taken, by the offset: a replay must stamp its tuples with the same time."""

    def outcomes(self, program: Program) -> Iterator[Outcome]:
        if self.unit is not None:
            return program.ingest(self.stream, self.unit, self.entered)
        return program.mark(self.stream, self.number, self.mark)


class Errands(InputPartition):  # type: ignore[misc]
    """What one task reads."""

    def __init__(self, epoch: int, errands: Sequence[Errand]) -> None:
        self.epoch = epoch
        self.errands = tuple(errands)


class Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Offsets and partitions in a Python process beside the driver, `read` in the tasks.

    An offset is {"shape": ..., "step": n, "streams": {name: StreamState}}. Everything a replay of the
    micro-batch needs is in it: positions, unit numbers, enabling timestamps.
    """

    def __init__(self, shipment: wire.Shipment, shape: str, tasks: int, units: int | None, halt: Halt | None = None) -> None:
        self.shipment = shipment
        self.halt = halt
        self.shape = shape
        self.tasks = tasks
        self.pace = Pace(tasks, units)

    def initialOffset(self) -> dict[str, Any]:
        with sealed():
            streams = {
                name: {"at": dict(source.initial()), "units": 0, "clock": 0, "arrived": 0, "mark": None, "ended": False}
                for name, source in self.shipment.open().sources
            }
            return {"shape": self.shape, "step": 0, "streams": streams}

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing to note: a program run so is bounded, and its end is the end of its sources."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with sealed():
            self._check(start)
            if self.halt is not None and self.halt.asked:
                self.halt.answer()
                return start if start["step"] else {**start, "step": 1}
            program = self.shipment.open()
            units = self.pace.limit()
            streams = {name: self._move(program, number, start["streams"][name], units) for number, (name, _) in enumerate(program.sources)}
            taken = max((streams[name]["units"] - start["streams"][name]["units"] for name in streams), default=0)
            self.pace.took(taken)
            if streams == start["streams"] and start["step"]:
                return start  # the very same offset: Spark runs no micro-batch, but for the first, which it always runs
            return {"shape": self.shape, "step": start["step"] + 1, "streams": streams}

    def _move(self, program: Program, number: int, state: StreamState, limit: int) -> StreamState:
        if state["ended"]:
            return state
        source = program.sources[number][1]
        at = dict(source.latest(state["at"], limit))
        moved = {**state, "at": at}
        if at != state["at"]:
            units = source.units(state["at"], at)
            moved["units"] = state["units"] + len(units)
            moved["clock"] = max(now_us(), state["clock"])
            moved["arrived"] = max((source.arrived(unit) or moved["clock"] for unit in units), default=moved["clock"])
        if source.bounded and source.finished(at):
            moved["ended"] = True
        elif moved["units"] == state["units"]:
            ets = getattr(program, "ets", None)
            mark = ets(number, state, now_us()) if ets is not None else None
            if mark is not None and (state["mark"] is None or mark > state["mark"]):
                moved["mark"] = mark
        return moved

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with sealed():
            self._check(end)
            program = self.shipment.open()
            reads: list[Errand] = []
            marks: list[Errand] = []
            for number, (name, source) in enumerate(program.sources):
                before, after = start["streams"][name], end["streams"][name]
                if after["at"] != before["at"]:
                    reads += [Errand(number, u.number, u, entered=after["clock"]) for u in source.units(before["at"], after["at"])]
                if after["ended"] and not before["ended"]:
                    marks.append(Errand(number, after["units"]))
                elif after["mark"] != before["mark"]:
                    marks.append(Errand(number, after["units"], mark=after["mark"]))
            # A task costs some ms of Spark's time: small units share one, and marks ride with the last.
            share = -(-len(reads) // (4 * self.tasks)) or 1
            groups = [reads[i : i + share] for i in range(0, len(reads), share)] or [[]]
            groups[-1] = groups[-1] + marks
            return [Errands(end["step"] - 1, group) for group in groups]

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
        program = self.shipment.open()
        home = 0
        for errand in partition.errands:
            home = errand.number % program.buckets
            for outcome in errand.outcomes(program):
                yield from wire.rows_of(outcome, program.buckets, partition.epoch, home)
        if not partition.errands:
            return
        watch.lap(READ)
        yield wire.spent_row(INGEST, watch, program.buckets, partition.epoch, home)

    def commit(self, end: dict[str, Any]) -> None:
        """Everything before is done for good: sources may let go of what they keep for a replay."""
        for name, source in self.shipment.open().sources:
            source.release(end["streams"][name]["at"])

    def stop(self) -> None:
        for _, source in self.shipment.open().sources:
            source.close()

    def _check(self, offset: Mapping[str, Any]) -> None:
        if offset.get("shape") != self.shape:
            raise PlanProblem(
                "the checkpoint belongs to another query",
                hint="give a new checkpoint directory, or run the query it was made with",
            )


def now_us() -> int:
    return time.time_ns() // 1000


class Pace:
    """How many units of each stream a micro-batch may take: fixed, or grown and shrunk towards TARGET_SECONDS.

    It grows while micro-batches take all they may; the sources' own limits on bytes and tuples keep one from growing too large.
    Only the size of micro-batches depends on the clock, never an answer: what was taken is in the offset.
    """

    def __init__(self, tasks: int, fixed: int | None) -> None:
        self.least = tasks
        self.fixed = fixed
        self.now = fixed or tasks
        self.taken = 0  # by the last micro-batch
        self.batches = 0
        self.since = time.monotonic()

    def limit(self) -> int:
        if self.fixed is None and self.taken and self.batches > 1:  # the first one pays for the start-up
            seconds = time.monotonic() - self.since
            if seconds < TARGET_SECONDS / 2 and self.taken >= self.now:
                self.now *= 2
            elif seconds > TARGET_SECONDS * 2:
                self.now = max(self.least, self.taken // 2)
        return self.now

    def took(self, units: int) -> None:
        self.taken = units
        self.batches += units > 0
        self.since = time.monotonic()
