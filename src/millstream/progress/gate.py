"""The gate stands where a stream enters a stage: it takes units in order, and knows what they promise together."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.block import Block
from millstream.core.punctuation import Punctuation
from millstream.core.types import MAX_TIME, MIN_TIME, SEQUENCE, to_axis
from millstream.io.contract import Unit
from millstream.operators.contract import Config
from millstream.plan.catalog import Stream
from millstream.progress.arrivals import Step
from millstream.progress.claims import Claims, Judge
from millstream.progress.guard import Guard, unchanged
from millstream.progress.markers import Remembered
from millstream.progress.origin import Origin
from millstream.state.closed import Closed, listed
from millstream.state.registers import Registers

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Broken:
    """A unit broke promises that units before it had made: these of its tuples are late."""

    stream: str
    unit: Unit
    before: int = MIN_TIME
    """All tuples before this time."""
    origin: Origin | None = None
    """The row, commit or clock that made that promise."""
    tuples: tuple[tuple[int, str, str], ...] = ()
    """The tuples whose value was closed: arrival number in the unit, promise and clause."""


class Gate:
    """Lets the tuples of one crossing through, but for those that come too late; raises the low-water mark behind them.

    `path` are the stateless operators between the source and here: promises about the source's columns become
    promises about the columns that arrive. Only what it must remember across units is state.
    """

    def __init__(
        self, guard: Guard, path: Sequence[Config], entrance: int, *, reports: bool = False, speaks: bool, journal: bool = False
    ) -> None:
        self.guard = guard
        self.stream: Stream = guard.stream
        self.path = path
        self.entrance = entrance
        """The vertex where the stream enters the graph."""
        self.reports = reports
        self.speaks = speaks
        """Among the gates of one crossing, the one that tells of tuples late by their time, which no bucket has alone."""
        self.registers = Registers(journal=journal)
        self.closed = Closed(guard.source_schema, self.registers, "closed")
        self.judge = Judge(self.stream, guard.source_schema, self.closed, self.registers)
        self.sequence = unchanged(SEQUENCE, path, guard.schema.empty_table().select(guard.passed).schema)
        self.bounds = tuple(new for _, told in self.stream.bounds for old in told for new in self._translate(old))
        """What is promised from the start."""
        self.suspects: dict[int, tuple[str, str]] = {}

    def _translate(self, punctuation: Punctuation) -> list[Punctuation]:
        punctuations = [punctuation]
        for config in self.path:
            punctuations = [new for old in punctuations for new in config.translate(old)]
        return punctuations

    @property
    def mark(self) -> int:
        """The low-water mark of the stream as far as it has come."""
        return int(self.registers.get("mark", MIN_TIME))

    @property
    def tuples_mark(self) -> int:
        """The mark that the stream's own tuples have led to, without enabling timestamps."""
        return int(self.registers.get("tuples' mark", MIN_TIME))

    def learn(self, registers: Registers) -> None:
        """Know what another gate of the same stream knows, between two units."""
        for name in registers:
            self.registers[name] = copy.deepcopy(registers[name])  # it may grow

    def promises(self) -> tuple[Punctuation, ...]:
        """All that the stream has promised so far, as it is told behind the gate."""
        if self.registers.get("ended", 0):
            return (Punctuation.end(),)
        if not len(self.registers):
            return ()
        told = list(self.closed.promises())
        if self.mark > MIN_TIME:
            told.append(Punctuation.linear(self.stream.time, self.mark))
        if self.sequence is not None and self.registers.get("rows", 0):
            told.append(Punctuation.linear(SEQUENCE, int(self.registers["rows"])))
        return (*self.bounds, *(new for old in told for new in self._translate(old)))

    def take(self, block: Block, step: Step, *, numbered: bool = True) -> tuple[Block, list[Broken]]:
        """One block of a unit with the step it ends; the promises that hold after it, and those that it broke.

        Where arrival numbers are not read they are left as they came.
        """
        if self.registers.get("unit", -1) != step.unit.number:
            self.registers["unit"] = step.unit.number
            self.registers["before"] = self.mark
            if self.reports and self.speaks:
                self.registers["before origin"] = self.registers.get("origin")
            self.registers["rows before"] = self.registers.get("rows", 0)
            self.closed.pass_time(self.stream.time, self.mark)
        before = int(self.registers.get("before", MIN_TIME))
        late, remembered = self._late(block.batch, before), step.remembered
        closings = [new for told in step.closings for new in self.closed.news(told)]
        if step.claims is not None:
            guilty, promised, more = self.judge.judge(step.claims, before)
            late |= self._guilty(block.batch, step.claims, guilty)
            closings, remembered = closings + promised, remembered + more
        self.closed.add(closings)
        closings += self._remember(remembered)
        batch = self.guard.without(self._punctual(block.batch, late, before))
        if numbered:
            batch = self._numbered(batch)
        promises = [new for old in closings for new in self._translate(old)]
        if self.bounds and "bounds told" not in self.registers:
            self.registers["bounds told"] = 1
            promises = [*self.bounds, *promises]
        broken = self._broken(step, before)
        if step.done:
            self.registers["unit"] = -1  # what comes next, be it an enabling timestamp, begins anew
        if step.ended:
            self.registers["ended"] = 1
            return Block(batch, (*promises, Punctuation.end())), broken
        if not step.enabling:
            self.registers.raise_to("tuples' mark", step.mark)
        if step.mark > MIN_TIME and self.registers.raise_to("mark", step.mark):
            if self.reports and self.speaks:
                self.registers["origin"] = step.origin
            promises += self._translate(Punctuation.linear(self.stream.time, step.mark))
        rows = int(self.registers.get("rows before", 0)) + step.rows
        if self.registers.raise_to("rows", rows) and numbered and self.sequence is not None:
            promises += self._translate(Punctuation.linear(SEQUENCE, rows))
        return Block(batch, tuple(promises)), broken

    def _remember(self, remembered: Sequence[Remembered]) -> list[Punctuation]:
        """Remember keys up to a time; behind the gate they are closed for good."""
        told: list[Punctuation] = []
        for keys, until in remembered:
            names = tuple(keys.schema.names)
            self.closed.add_keys(names, self.stream.time, keys.columns, until)
            told += listed(names, None, keys.columns, np.full(len(until), MAX_TIME))
        return told

    def _late(self, batch: pa.RecordBatch, before: int) -> Mask:
        """The tuples that break what earlier units promised; where keys are unique all are told by claims."""
        late: Mask = np.zeros(batch.num_rows, dtype=np.bool_)
        if not batch.num_rows or not self.guard.columns or self.stream.unique:
            return late
        seen = self.guard.view(batch)
        closed = self.closed.matches(seen)
        return late | self._early(seen, before) | (late if closed is None else closed)

    def _early(self, seen: pa.RecordBatch, before: int) -> Mask:
        if before == MIN_TIME or self.stream.time not in self.guard.columns:
            return np.zeros(seen.num_rows, dtype=np.bool_)
        early: Mask = to_axis(seen.column(self.stream.time)) < before
        return early

    def _guilty(self, batch: pa.RecordBatch, claims: Claims, guilty: Mask) -> Mask:
        """The tuples whose claims are late."""
        if not batch.num_rows or not guilty.any():
            return np.zeros(batch.num_rows, dtype=np.bool_)
        found: Mask = guilty[claims.places(batch.column(self.guard.columns[SEQUENCE]).to_numpy())]
        return found

    def _punctual(self, batch: pa.RecordBatch, late: Mask, before: int) -> pa.RecordBatch:
        if not late.any():
            return batch
        if self.reports:
            seen = self.guard.view(batch)
            self._suspect(seen.filter(pa.array(late & ~self._early(seen, before))))
        return batch.filter(pa.array(~late))

    def _suspect(self, late: pa.RecordBatch) -> None:
        for row in range(late.num_rows):
            one = late.slice(row, 1)
            broken = self.closed.broken_by(one)
            clause = self.stream.closers(name for name, _ in broken.patterns)
            self.suspects[one.column(SEQUENCE)[0].as_py()] = broken.shown(self.guard.source_schema), clause

    def _numbered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Arrival numbers count on from the units before."""
        base = int(self.registers.get("rows before", 0))
        if self.sequence is None or not batch.num_rows or not base:
            return batch
        place = batch.schema.get_field_index(self.sequence)
        return batch.set_column(place, self.sequence, pc.add(batch.column(place), pa.scalar(base, pa.int64())))

    def _broken(self, step: Step, before: int) -> list[Broken]:
        """At the end of a unit, the tuples of it that were late."""
        if not step.done or not self.reports:
            return []
        tuples = tuple((number, *told) for number, told in sorted(self.suspects.items()))
        self.suspects = {}
        overtaken = before if self.speaks and step.low < before else MIN_TIME
        if not tuples and overtaken == MIN_TIME:
            return []
        return [Broken(self.stream.name, step.unit, overtaken, self.registers.get("before origin"), tuples)]
