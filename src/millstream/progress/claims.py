"""Claims: where every tuple is a promise (UNIQUE, CLUSTERED BY), what a unit says of its tuples, and how the gate judges it.

Whether a tuple counts may depend on units before its own: one that is late says nothing about the values it has. So a unit that is
read alone decides nothing; it sends what there is to judge, and every gate comes to the same verdict.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.punctuation import Punctuation, plain_values
from millstream.core.types import MAX_TIME, MIN_TIME, SEQUENCE, from_axis, to_axis
from millstream.kernels.compiled import given
from millstream.kernels.verdicts import walk
from millstream.plan.catalog import Stream
from millstream.progress.guard import guarded
from millstream.progress.markers import Remembered, beyond
from millstream.state.closed import Closed, listed
from millstream.state.group_table import GroupTable
from millstream.state.keys import hash_column
from millstream.state.registers import Registers

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Claims:
    """The guarded columns of tuples. With clusters alone, those of a run of equal values stand as one, with the latest of their times."""

    __slots__ = ("tuples",)

    def __init__(self, tuples: pa.RecordBatch) -> None:
        self.tuples = tuples

    @classmethod
    def of(cls, stream: Stream, batch: pa.RecordBatch) -> Claims | None:
        """What these tuples of a unit say; None when nothing."""
        if not batch.num_rows or not (stream.unique or stream.clustered):
            return None
        batch = batch.select(list(guarded(stream)))
        return cls(batch if stream.unique else _runs(stream, batch))

    def places(self, numbers: Int64s) -> Int64s:
        """The claim that each tuple belongs to, by arrival number."""
        firsts = self.tuples.column(SEQUENCE).to_numpy()
        return np.searchsorted(firsts, numbers, side="right") - 1

    def __getstate__(self) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.tuples.schema) as writer:
            writer.write_batch(self.tuples)
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]

    def __setstate__(self, data: bytes) -> None:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            self.tuples = reader.read_next_batch()


class Judge:
    """Stands at a gate: which claims are late, and what the others promise. Its memory is in the gate's registers."""

    def __init__(self, stream: Stream, schema: pa.Schema, closed: Closed, registers: Registers) -> None:
        self.stream = stream
        self.schema = schema
        self.closed = closed
        self.registers = registers
        self.uniques = [key.columns for key in stream.unique]
        self.horizons = [key.horizon for key in stream.unique]
        self.clusters = [key.columns for key in stream.clustered]

    def judge(self, claims: Claims, before: int) -> tuple[Mask, list[Punctuation], tuple[Remembered, ...]]:
        """The claims that are late, be it by a time before the mark, and what the others promise: for good, and remembered up to a time."""
        tuples = claims.tuples
        late = self.closed.matches(tuples)
        if late is None:
            late = np.zeros(tuples.num_rows, dtype=np.bool_)
        if before > MIN_TIME and self.stream.time in tuples.schema.names:
            late |= to_axis(tuples.column(self.stream.time)) < before
        opened = [self.registers.get(f"open cluster {n}") for n in range(len(self.clusters))]
        begins = np.zeros((len(self.clusters), tuples.num_rows), dtype=np.bool_)
        if self.clusters or not self._rises(tuples):
            self._walk(tuples, opened, late, begins)
        promised: list[Punctuation] = []
        remembered: list[Remembered] = []
        for columns, horizon in zip(self.uniques, self.horizons, strict=True):
            chosen = _without_nulls(tuples, columns, ~late)
            if horizon is None:
                promised += _punctuations(chosen.select(list(columns)))
            elif chosen.num_rows:
                remembered.append((chosen.select(list(columns)), beyond(to_axis(chosen.column(self.stream.time)), horizon)))
        for number, columns in enumerate(self.clusters):
            promised += self._finished(number, columns, opened[number], tuples.filter(pa.array(begins[number])))
        return late, promised, tuple(remembered)

    def _rises(self, tuples: pa.RecordBatch) -> bool:
        """One key of numbers that rise, as most are, needs no closer look."""
        if len(self.uniques) != 1 or len(self.uniques[0]) != 1:
            return False
        column = tuples.column(self.uniques[0][0])
        if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type)):
            return False
        values = to_axis(column)
        return bool((values[1:] > values[:-1]).all())

    def _walk(self, tuples: pa.RecordBatch, opened: list[tuple[Any, ...] | None], late: Mask, begins: Mask) -> None:
        codes = np.empty((len(self.uniques) + len(self.clusters), tuples.num_rows), dtype=np.int64)
        current = np.full(len(self.clusters), -1, dtype=np.int64)
        timed = self.stream.time in tuples.schema.names
        times = given(to_axis(tuples.column(self.stream.time)), np.int64) if timed else np.zeros(tuples.num_rows, dtype=np.int64)
        groups = 1
        for c, columns in enumerate([*self.uniques, *self.clusters]):
            table = GroupTable(pa.schema([self.schema.field(name) for name in columns]), ())
            if c >= len(self.uniques) and (value := opened[c - len(self.uniques)]) is not None:
                table.upsert(_row(value, table.key_schema), np.zeros(1, dtype=np.int64))
                current[c - len(self.uniques)] = 0
            arrays = [tuples.column(name) for name in columns]
            codes[c], _ = table.upsert(arrays, np.zeros(tuples.num_rows, dtype=np.int64))
            groups = max(groups, len(table))
            if c < len(self.uniques):
                for array in arrays:
                    if array.null_count:
                        codes[c][np.asarray(array.is_null())] = -1  # null is not equal to null: SQL's rule
        until = np.full((len(self.uniques), tuples.num_rows), MAX_TIME)
        for c, horizon in enumerate(self.horizons):
            if horizon is not None:
                until[c] = beyond(times, horizon)
        walk(codes, len(self.uniques), groups, late, current, begins, times, until)

    def _finished(self, number: int, columns: tuple[str, ...], opened: tuple[Any, ...] | None, begun: pa.RecordBatch) -> list[Punctuation]:
        """All clusters but the last are over."""
        if not begun.num_rows:
            return []
        values = begun.select(list(columns))
        if opened is not None:
            first = pa.RecordBatch.from_arrays(_row(opened, values.schema), schema=values.schema)
            values = pa.concat_batches([first, values])
        last = values.slice(values.num_rows - 1)
        self.registers[f"open cluster {number}"] = tuple(plain_values(column)[0] for column in last.columns)
        return _punctuations(values.slice(0, values.num_rows - 1))


def _row(values: tuple[Any, ...], schema: pa.Schema) -> list[pa.Array]:
    return [pa.array([value], type=field.type) for value, field in zip(values, schema, strict=True)]


def _without_nulls(tuples: pa.RecordBatch, names: tuple[str, ...], chosen: Mask) -> pa.RecordBatch:
    for name in names:
        if tuples.column(name).null_count:
            chosen = chosen & np.asarray(tuples.column(name).is_valid())
    return tuples if chosen.all() else tuples.filter(pa.array(chosen))


def _punctuations(values: pa.RecordBatch) -> list[Punctuation]:
    return listed(values.schema.names, None, values.columns, np.full(values.num_rows, MAX_TIME))


def _runs(stream: Stream, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The first of each run of tuples that are equal but for their time and number, with the latest time of the run."""
    begins = np.zeros(batch.num_rows, dtype=np.bool_)
    begins[0] = True
    for name in batch.schema.names:
        if name not in (stream.time, SEQUENCE):
            begins[1:] |= _differs(batch.column(name))
    starts = np.flatnonzero(begins)
    if len(starts) == batch.num_rows:
        return batch
    found = batch.take(pa.array(starts))
    place = batch.schema.get_field_index(stream.time)
    if place < 0:
        return found
    latest = np.maximum.reduceat(to_axis(batch.column(place)), starts)
    return found.set_column(place, batch.schema.field(place), from_axis(latest, batch.schema.field(place).type))


def _differs(column: pa.Array) -> Mask:
    """Where a value is another than the one before it; null and NaN are values."""
    hashes, injective = hash_column(column)
    found: Mask = hashes[1:] != hashes[:-1]
    if not injective:
        after, before = column.slice(1), column.slice(0, len(column) - 1)
        equal = pc.fill_null(pc.equal(after, before), False)
        both_null = pc.and_(pc.is_null(after), pc.is_null(before))
        found = found | ~np.asarray(pc.or_(equal, both_null).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return found
