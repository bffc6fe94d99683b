"""The gate stands where a stream enters a stage: it takes units in order, and knows what they promise together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.block import Block
from millstream.core.punctuation import Punctuation
from millstream.core.types import MIN_TIME, SEQUENCE, to_axis
from millstream.io.contract import Unit
from millstream.operators.contract import Config
from millstream.operators.promises import Closed
from millstream.plan.catalog import Stream
from millstream.progress.arrivals import Step
from millstream.state.registers import Registers


@dataclass(frozen=True)
class Broken:
    """A unit broke a promise that units before it had made: its tuples that match are late."""

    stream: str
    unit: Unit
    punctuation: Punctuation


class Gate:
    """Lets the tuples of one crossing through, but for those that come too late; raises the low-water mark behind them.

    `path` are the stateless operators between the source and here: promises about the source's columns become
    promises about the columns that arrive. Only what it must remember across units is state.
    """

    def __init__(self, stream: Stream, path: list[Config], schema: pa.Schema, reports: bool, journal: bool = False) -> None:
        self.stream = stream
        self.path = path
        self.schema = schema
        self.reports = reports
        self.registers = Registers(journal=journal)
        self.closed = Closed(schema, self.registers, "closed")
        self.time = self._name_of(stream.time)
        self.sequence = self._name_of(SEQUENCE)
        self.suspects: set[Punctuation] = set()

    def _name_of(self, column: str) -> str | None:
        """The name under which a column of the source arrives here, if it does."""
        punctuations = self._translate(Punctuation.linear(column, 0))
        for name in (p.patterns[0][0] for p in punctuations):
            found = {name: name}
            for config in reversed(self.path):
                step = config.source_columns(found.values())
                if step is None:
                    break
                found = {k: step[v] for k, v in found.items()}
            else:
                return name
        return None

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

    def take(self, block: Block, step: Step) -> tuple[Block, list[Broken]]:
        """One block of a unit with the step it ends; the promises that hold after it, and those that it broke."""
        number = step.unit.number
        if self.registers.get("unit", -1) != number:
            self.registers["unit"] = number
            self.registers["before"] = self.mark
            self.registers["rows before"] = self.registers.get("rows", 0)
        before = int(self.registers.get("before", MIN_TIME))
        batch = self._numbered(self._punctual(block.batch, before))
        promises = [p for p in block.punctuations if not p.is_linear]
        for punctuation in promises:
            self.closed.add(punctuation)
        broken = [Broken(self.stream.name, step.unit, p) for p in self._broken(step, before)]
        if step.ended:
            return Block(batch, (*promises, Punctuation.end())), broken
        if not step.enabling:
            self.registers.raise_to("tuples' mark", step.mark)
        if self.registers.raise_to("mark", step.mark):
            promises += self._translate(Punctuation.linear(self.stream.time, step.mark))
        rows = int(self.registers.get("rows before", 0)) + step.rows
        if self.registers.raise_to("rows", rows) and self.sequence is not None:
            promises += self._translate(Punctuation.linear(SEQUENCE, rows))
        return Block(batch, tuple(promises)), broken

    def _punctual(self, batch: pa.RecordBatch, before: int) -> pa.RecordBatch:
        """Without the tuples that break what earlier units promised."""
        if batch.num_rows and self.time is not None and before > MIN_TIME:
            times = to_axis(batch.column(self.time))
            if int(times.min()) < before:
                batch = batch.filter(pa.array(times >= before))
        if batch.num_rows:
            late = self.closed.matches(batch)
            if late is not None and late.any():
                self.suspects |= self._which(batch.filter(pa.array(late)))
                batch = batch.filter(pa.array(~late))
        return batch

    def _which(self, late: pa.RecordBatch) -> set[Punctuation]:
        """The promises that these late tuples break, for the report."""
        return {p for row in range(late.num_rows) for p in self.closed.broken_by(late.slice(row, 1))}

    def _numbered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Arrival numbers count on from the units before."""
        base = int(self.registers.get("rows before", 0))
        if self.sequence is None or not batch.num_rows or not base:
            return batch
        place = batch.schema.get_field_index(self.sequence)
        return batch.set_column(place, batch.schema.field(place), pc.add(batch.column(place), np.int64(base)))

    def _broken(self, step: Step, before: int) -> list[Punctuation]:
        if not step.done:
            return []
        found = sorted(self.suspects, key=str)
        self.suspects = set()
        if self.reports and step.low < before:
            found.append(Punctuation.linear(self.stream.time, before))
        return found
