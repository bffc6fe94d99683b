"""Arrivals turn what a source reads into tuples and promises, one unit at a time, without knowing the other units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.block import Block
from millstream.core.letters import DeadLetter, as_json
from millstream.core.punctuation import Punctuation
from millstream.core.types import (
    FIRST_TIME,
    LAST_TIME,
    MAX_TIME,
    MIN_TIME,
    SEQUENCE,
    TIMESTAMP,
    outside,
    to_axis,
)
from millstream.expressions import compile_expression, guarded_mask
from millstream.io.contract import Reading, Unit
from millstream.kernels.arrivals import follow
from millstream.plan.catalog import Stream
from millstream.progress.ahead import Limit
from millstream.progress.claims import Claims
from millstream.progress.markers import Remembered, markers
from millstream.progress.origin import Origin, late_by

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Step:
    """How far a unit has been read: tuples so far, their earliest time, and the low-water mark they lead to."""

    unit: Unit
    rows: int = 0
    low: int = MAX_TIME
    mark: int = MIN_TIME
    done: bool = False
    origin: Origin | None = None
    """The row, commit or clock that made the mark."""
    ended: bool = False
    """The whole stream is over."""
    enabling: bool = False
    """An enabling timestamp: the mark is the clock's, not the tuples'."""
    closings: tuple[Punctuation, ...] = ()
    """The value punctuations that came with the last piece, over the source's columns."""
    remembered: tuple[Remembered, ...] = ()
    """Closed values that are remembered up to a time."""
    claims: Claims | None = None
    """What its tuples promise by themselves, for the gate to judge."""

    @property
    def promises(self) -> bool:
        """It says something of values."""
        return bool(self.closings) or bool(self.remembered) or self.claims is not None


@dataclass
class Arrivals:
    """Reads one unit of a stream: bad times and tuples late within the unit become letters, marker rows become punctuations.

    A tuple is late when it breaks a punctuation that came before it, and the mark before a tuple depends only on
    the order of arrival, never on how the unit is cut into blocks.
    """

    stream: Stream
    unit: Unit
    entered: int
    """When the unit entered the system: the time of internal and latent tuples."""
    limit: Limit | None = None
    """The greatest distance from the arrival of the unit, where there is a limit."""
    rows: int = 0
    low: int = MAX_TIME
    mark: int = MIN_TIME
    origin: Origin | None = None

    def __post_init__(self) -> None:
        marks = {column.lower(): mark for column, mark in self.unit.detail.get("marks", {}).items()}
        timed = self.stream.timestamp.kind == "external" and self.stream.timestamp.order != "punctuated"
        self.recorded = timed and self.stream.time.lower() in marks
        """True where the source is a sink with recorded marks, which count in place of ORDERED and SLACK."""
        reached = marks[self.stream.time.lower()] if self.recorded else None
        self.reached: int = MIN_TIME if reached is None else reached
        """The mark behind the unit, as far as it was recorded."""
        clauses = self.stream.punctuate
        times = [
            f.name
            for f in self.stream.read_schema
            if pa.types.is_date(f.type) or pa.types.is_timestamp(f.type)
        ]
        self.dated = [name for name in times if name != self.stream.time]
        self.conditions = [compile_expression(p.when, self.stream.columns) for p in clauses]
        self.markers = [None if self._is_heartbeat(p.columns) else markers(p, self.stream) for p in clauses]

    def take(self, reading: Reading) -> tuple[Block, Step, list[DeadLetter]]:
        """The tuples of one reading, the promises that follow them, how far the unit is now, and the letters."""
        plain = self._take_plain(reading)
        if plain is not None:
            return plain, replace(self.step(), claims=Claims.of(self.stream, plain.batch)), list(reading.letters)
        letters = list(reading.letters)
        batch = self._stamped(reading.batch)
        numbers = self._numbers(batch.num_rows)
        keep = np.ones(batch.num_rows, dtype=np.bool_)
        times = to_axis(batch.column(self.stream.time))
        self._refuse_times(batch, times, keep, reading, letters)
        marked = self._marked(batch, keep, reading, letters)
        marks = np.logical_or.reduce(marked) if marked else np.zeros(batch.num_rows, dtype=np.bool_)
        keep &= ~marks
        self._refuse_impossible(batch, keep, reading, letters)
        before, makers = self._marks_before(times, keep, marked)
        origins = self._origins(makers, marks, reading)
        closings = self._close(batch, times, keep, marked, reading, letters)
        late = keep & (times < before)
        for row in np.flatnonzero(late):
            promise = self._shown(Punctuation.linear(self.stream.time, int(before[row])))
            letters.append(
                self._letter("late", late_by(promise, origins(int(row))), batch, int(row), reading, promise)
            )
        self.origin = origins(batch.num_rows)
        keep &= ~late
        if keep.any():
            self.low = min(self.low, int(times[keep].min()))
        batch = _with_numbers(batch, numbers)
        if not keep.all():
            batch = batch.filter(pa.array(keep))
        remembered = tuple(rows.remembered for rows in self.markers if rows is not None and rows.remembered is not None)
        step = replace(self.step(), closings=tuple(closings), remembered=remembered, claims=Claims.of(self.stream, batch))
        return Block(batch), step, letters

    def _take_plain(self, reading: Reading) -> Block | None:
        """The usual case in one compiled pass: times in the data, all of them usable, none late, no rows that are punctuations."""
        batch = reading.batch
        if self.conditions or any(p.matches(batch).any() for _, promised in self.stream.bounds for p in promised):
            return None
        if any(outside(batch.column(name)) is not None for name in self.dated):
            return None
        if self.stream.timestamp.kind != "external":
            return self._take_entering(batch)
        if batch.column(self.stream.time).null_count:
            return None
        followed = follow(
            to_axis(batch.column(self.stream.time)), self.mark, self._slack, FIRST_TIME, self._last
        )
        if followed is None:
            return None
        self.mark = followed[0]
        if followed[2] >= 0:
            self.origin = _origin("tuple", reading, followed[2])
        if batch.num_rows:
            self.low = min(self.low, followed[1])
        return Block(_with_numbers(batch, self._numbers(batch.num_rows)))

    def _take_entering(self, batch: pa.RecordBatch) -> Block | None:
        """The same for tuples that get their time here: nothing can be wrong with it, unless the clock is."""
        if not FIRST_TIME <= self.entered <= LAST_TIME:
            return None
        self.mark = max(self.mark, self.entered)
        if batch.num_rows:
            self.low = min(self.low, self.entered)
        stamps = pa.repeat(pa.scalar(self.entered, TIMESTAMP), batch.num_rows)
        made = {self.stream.time: stamps, SEQUENCE: pa.array(self._numbers(batch.num_rows))}
        names = self.stream.schema.names
        columns = [made[name] if name in made else batch.column(name) for name in names]
        return Block(pa.RecordBatch.from_arrays(columns, schema=self.stream.schema))

    def _numbers(self, rows: int) -> Int64s:
        """The arrival numbers of the next tuples."""
        self.rows += rows
        return np.arange(self.rows - rows, self.rows, dtype=np.int64)

    @property
    def _last(self) -> int:
        """The greatest time that a tuple may have."""
        return LAST_TIME if self.limit is None else min(LAST_TIME, self.limit.last)

    @property
    def _slack(self) -> int | None:
        """How far behind the latest tuple the mark stays; None when tuples move no mark."""
        timestamp = self.stream.timestamp
        if self.recorded:
            return None
        return {"slack": timestamp.slack, "ordered": 0}.get(timestamp.order)

    def _marked(self, batch: pa.RecordBatch, keep: Mask, reading: Reading, letters: list[DeadLetter]) -> list[Mask]:
        """For each PUNCTUATE clause the rows that are punctuations; a row for which that can not be told is of no use."""
        marked = []
        for condition in self.conditions:
            mask, failures = guarded_mask(condition, batch)
            for row, reason in failures:
                if keep[row]:
                    letters.append(self._letter("error", reason, batch, row, reading))
                    keep[row] = False
            marked.append(mask)
        return [mask & keep for mask in marked]

    def step(self) -> Step:
        return Step(self.unit, self.rows, self.low, self.mark, origin=self.origin)

    def finished(self, step: Step) -> Step:
        """The last step of the unit, with the mark that its source knows to be reached."""
        if self.reached <= step.mark:
            return replace(step, done=True)
        return replace(
            step, done=True, mark=self.reached, origin=Origin("commit", self.unit.detail.get("file"))
        )

    def _stamped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Internal and latent tuples get their time of entry."""
        if self.stream.timestamp.kind == "external":
            return batch
        stamps = pa.array(np.full(batch.num_rows, self.entered, dtype=np.int64)).view(TIMESTAMP)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True)) | {self.stream.time: stamps}
        fields = [f for f in self.stream.schema if f.name != SEQUENCE]
        return pa.RecordBatch.from_arrays([columns[f.name] for f in fields], schema=pa.schema(fields))

    def _refuse_times(self, batch: pa.RecordBatch, times: Int64s, keep: Mask, reading: Reading, letters: list[DeadLetter]) -> None:
        column = batch.column(self.stream.time)
        if column.null_count:
            nulls = np.asarray(column.is_null())
            for row in np.flatnonzero(nulls):
                letters.append(self._letter("null-timestamp", f"`{self.stream.time}` is null", batch, int(row), reading))
            keep &= ~nulls
        for name in (self.stream.time, *self.dated):
            wrong = outside(batch.column(name))
            if wrong is None:
                continue
            for row in np.flatnonzero(wrong & keep):
                number = int(to_axis(batch.column(name))[row])
                unit = "days" if pa.types.is_date(batch.column(name).type) else "microseconds"
                reason = f"`{name}` lies outside the years 1 to 9999 ({number} {unit})"
                letters.append(self._letter("broken", reason, batch, int(row), reading))
            keep &= ~wrong
        if self.limit is not None and self.stream.timestamp.kind == "external":
            ahead = keep & (times > self.limit.last)
            letters += [
                self._letter("ahead", self.limit.reason(self.stream), batch, int(row), reading)
                for row in np.flatnonzero(ahead)
            ]
            keep &= ~ahead

    def _close(
        self, batch: pa.RecordBatch, times: Int64s, keep: Mask, marked: list[Mask], reading: Reading, letters: list[DeadLetter]
    ) -> list[Punctuation]:
        """The value punctuations among the rows (`PUNCTUATE ON ... WHEN ...`); tuples that break one become letters."""
        punctuations: list[Punctuation] = []
        for rows, chosen in zip(self.markers, marked, strict=True):
            if rows is None:
                continue
            late, promised = rows.take(batch, chosen, times)
            punctuations += promised
            letters += [self._letter("error", reason, batch, row, reading) for row, reason in rows.failures]
            late &= keep
            for row in np.flatnonzero(late):
                broken = self._shown(rows.broken(batch.slice(int(row), 1)))
                reason = late_by(broken, f"closed by {rows.clause.text}")
                letters.append(self._letter("late", reason, batch, int(row), reading, broken))
            keep &= ~late
        return punctuations

    def _refuse_impossible(self, batch: pa.RecordBatch, keep: Mask, reading: Reading, letters: list[DeadLetter]) -> None:
        """Tuples with values that, by CHECK, can not occur."""
        for check, promised in self.stream.bounds:
            outside = np.logical_or.reduce([np.zeros(batch.num_rows, dtype=np.bool_), *(p.matches(batch) for p in promised)])
            for row in np.flatnonzero(outside & keep):
                broken = next(p for p in promised if p.matches(batch.slice(int(row), 1)).any())
                reason = f"CHECK ({check.condition.sql('spark')}) does not hold"
                letters.append(self._letter("check", reason, batch, int(row), reading, self._shown(broken)))
            keep &= ~outside

    def _is_heartbeat(self, columns: tuple[str, ...]) -> bool:
        return list(columns) == [self.stream.time]

    def _marks_before(self, times: Int64s, tuples: Mask, marked: list[Mask]) -> tuple[Int64s, Int64s]:
        """The low-water mark before every row of this unit, and the row that led to it or -1.

        The second array has one more element, for the place behind the last row.

        Every tuple with a time counts, also one that breaks a value punctuation: whether it does may only be known
        to the gate, and the mark must not depend on how the stream is cut into units.
        """
        if self.stream.timestamp.kind != "external":
            self.mark = max(self.mark, self.entered)
            return np.full(len(times), MIN_TIME, dtype=np.int64), np.full(len(times) + 1, -1, dtype=np.int64)
        after = np.full(len(times), MIN_TIME, dtype=np.int64)
        if self._slack is not None:
            np.subtract(times, self._slack, out=after, where=tuples)
        for clause, chosen in zip(self.stream.punctuate, marked, strict=True):
            if self._is_heartbeat(clause.columns):
                np.maximum(after, times, out=after, where=chosen)
        running = np.maximum.accumulate(np.concatenate([[self.mark], after]))
        self.mark = int(running[-1])
        rises = np.where(running[1:] > running[:-1], np.arange(len(times)), -1)
        return running[:-1], np.maximum.accumulate(np.concatenate([[-1], rises]))

    def _origins(self, makers: Int64s, marks: Mask, reading: Reading) -> Callable[[int], Origin | None]:
        """Tell for a row, or for what comes behind the last one, where the mark before it is from."""
        earlier = self.origin

        def origin(row: int) -> Origin | None:
            at = int(makers[row])
            return earlier if at < 0 else _origin("heartbeat" if marks[at] else "tuple", reading, at)

        return origin

    def _shown(self, punctuation: Punctuation) -> str:
        return punctuation.shown(self.stream.schema)

    def _letter(
        self, kind: str, reason: str, batch: pa.RecordBatch, row: int, reading: Reading, punctuation: str | None = None
    ) -> DeadLetter:
        line = None if reading.lines is None else int(reading.lines[row])
        return DeadLetter(self.stream.name, kind, reason, reading.file, line, punctuation, as_json(batch, row))


def _origin(kind: Literal["tuple", "heartbeat"], reading: Reading, row: int) -> Origin:
    return Origin(kind, reading.file, None if reading.lines is None else int(reading.lines[row]))


def _with_numbers(batch: pa.RecordBatch, numbers: Int64s) -> pa.RecordBatch:
    return batch.append_column(pa.field(SEQUENCE, pa.int64()), pa.array(numbers))
