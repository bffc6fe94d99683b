"""Ingest reads the units of one stream and takes their tuples through the operators that keep no state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from millstream.core.block import Block, empty_batch
from millstream.core.letters import DeadLetter, as_json
from millstream.core.punctuation import Punctuation
from millstream.core.types import MAX_TIME, SEQUENCE, to_axis
from millstream.graph.cut import INGEST, Crossing, Cut
from millstream.io.contract import Source, Unit
from millstream.operators.edges import Enter
from millstream.plan.catalog import Stream
from millstream.progress.ahead import Limit, distance
from millstream.progress.arrivals import Arrivals, Step
from millstream.progress.gate import Broken
from millstream.progress.guard import Guard, carrying, guarded, with_guard
from millstream.progress.origin import Origin, late_by
from millstream.runtime.executor import Executor
from millstream.runtime.gauges import Gauge


@dataclass(frozen=True)
class Arrival:
    """What one reading put on one crossing, and how far the unit is now."""

    crossing: Crossing
    block: Block
    step: Step


@dataclass(frozen=True)
class Piece:
    """One reading after ingest: a block for every crossing of the stream, and the letters."""

    arrivals: tuple[Arrival, ...]
    letters: tuple[DeadLetter, ...] = ()
    stream: str = ""
    rows: int = 0
    """What was read: tuples, marker rows and what became a letter."""
    gauges: tuple[tuple[int, Gauge], ...] = ()
    """What the operators here did."""

    def lag(self, arrived: int) -> int | None:
        """How old the oldest tuple of the unit was when it arrived; None when there is none."""
        low = min((arrival.step.low for arrival in self.arrivals), default=MAX_TIME)
        return None if low == MAX_TIME else arrived - low


def older(one: int | None, other: int | None) -> int | None:
    """The greater of two lags, of which either may be unknown."""
    known = [lag for lag in (one, other) if lag is not None]
    return max(known, default=None)


class Ingest:
    """The ingest part of a graph for one stream: hosted by a Spark task, or by the one process."""

    def __init__(
        self, cut: Cut, vertex: int, source: Source, batch_size: int, *, by_clock: bool = True
    ) -> None:
        config = cut.graph[vertex].config
        assert isinstance(config, Enter)
        self.stream: Stream = config.stream
        self.source = source
        self.ahead = distance(self.stream, source, by_clock)
        self.batch_size = batch_size
        self.vertex = vertex
        members = [v for v in cut.members(INGEST) if cut.path(v.number)[0].number == vertex]
        self.crossings = [c for v in members for c in cut.out_of(v.number)]
        self.schemas = {c.number: Guard.at(cut, c).schema for c in self.crossings}
        self.empty = {number: Block(empty_batch(schema)) for number, schema in self.schemas.items()}
        self.nothing = Block(empty_batch(self.stream.schema))
        self.guarded = bool(guarded(self.stream))
        self.made: dict[int, list[Block]] = {}
        self.executor = Executor(carrying(members, self.stream), self._collect, {c.producer for c in self.crossings})

    def _collect(self, vertex: int, block: Block) -> None:
        self.made.setdefault(vertex, []).append(block)

    def read(self, unit: Unit, entered: int, taken: int | None = None) -> Iterator[Piece]:
        """One unit, piece by piece; the last piece says that the unit is done.

        It arrived when its source says so, else when it was `taken`; gates that report on the unit hear when.
        """
        if self.ahead is not None:
            arrived = self.source.arrived(unit)
            moment = arrived if arrived is not None else entered if taken is None else taken
            unit = replace(unit, detail={**unit.detail, "arrived": moment})
        arrivals = self._arrivals(unit, entered)
        held = None
        for reading in self.source.read(unit, self.batch_size):
            if held is not None:
                yield self._piece(*held)
            held = (*arrivals.take(reading), reading.batch.num_rows + len(reading.letters))
        if held is None:
            held = self.nothing, arrivals.step(), [], 0
        block, step, letters, rows = held
        yield self._piece(block, arrivals.finished(step), letters, rows)

    def _arrivals(self, unit: Unit, entered: int) -> Arrivals:
        limit = None if self.ahead is None else Limit(unit.detail["arrived"], self.ahead)
        return Arrivals(self.stream, unit, entered, limit)

    def mark(self, number: int, mark: int | None, made: int = 0) -> Piece:
        """Progress without tuples: an enabling timestamp and when it was `made`, or the end of the stream."""
        unit = Unit(number)
        step = Step(unit, done=True, ended=True)
        if mark is not None:
            step = Step(unit, mark=mark, done=True, enabling=True, origin=Origin("clock", moment=made))
        return self._piece(self.nothing, step, [], 0)

    def _piece(self, block: Block, step: Step, letters: list[DeadLetter], rows: int) -> Piece:
        self.made = {}
        entering = Block(with_guard(block.batch, self.stream)) if self.guarded else block
        if self.executor.operators:
            self.executor.emit(self.vertex, entering)
            self.executor.run()
        else:
            self._collect(self.vertex, entering)
        arrivals = []
        for crossing in self.crossings:
            arrivals.append(Arrival(crossing, self._joined(crossing), step))
        letters = [*letters, *self.executor.take_letters()]
        return Piece(tuple(arrivals), tuple(letters), self.stream.name, rows, self.executor.take_gauges())

    def _joined(self, crossing: Crossing) -> Block:
        """One block of the columns that the crossing carries; promises are made by the gate."""
        batches = [block.batch for block in self.made.get(crossing.producer, ()) if len(block)]
        if not batches:
            return self.empty[crossing.number]
        batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        names = self.schemas[crossing.number].names
        return Block(batch if batch.num_columns == len(names) else batch.select(names))

    def late_letters(self, broken: Broken) -> list[DeadLetter]:
        """Read a unit again for the tuples that broke a promise made before it."""
        arrivals = self._arrivals(broken.unit, 0)
        promises = {number: told for number, *told in broken.tuples}
        overtaken = Punctuation.linear(self.stream.time, broken.before).shown(self.stream.schema)
        letters = []
        for reading in self.source.read(broken.unit, self.batch_size):
            # Those that are late within the unit were reported where it was read, and are not in the block any more.
            first = arrivals.rows
            block, _, _ = arrivals.take(reading)
            numbers = block.batch.column(SEQUENCE).to_numpy()
            early = to_axis(block.batch.column(self.stream.time)) < broken.before
            for row in np.flatnonzero(early | np.isin(numbers, list(promises))):
                line = None if reading.lines is None else int(reading.lines[int(numbers[row]) - first])
                text, clause = (overtaken, "") if early[row] else promises[int(numbers[row])]
                reason = late_by(text, broken.origin if early[row] else clause and f"closed by {clause}")
                letters.append(DeadLetter(self.stream.name, "late", reason, reading.file, line, text, as_json(block.batch, int(row))))
        return letters
