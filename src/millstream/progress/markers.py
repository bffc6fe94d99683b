"""Marker rows of one unit, told by PUNCTUATE: the values they close, and the tuples that come too late for it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.punctuation import Constant, Pattern, Punctuation, Range, plain_values
from millstream.core.types import MAX_TIME, MIN_TIME, to_axis
from millstream.expressions import compile_expression, evaluate_guarded
from millstream.kernels.compiled import given
from millstream.kernels.markers import NEVER, first_cover, follow_keys
from millstream.language.statements import Punctuate, Span
from millstream.plan.catalog import Stream
from millstream.plan.promised import bounds, clipped, limits
from millstream.state.closed import listed
from millstream.state.group_table import GroupTable
from millstream.state.ranges import Ranges

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Failures = list[tuple[int, str]]
_NONE = np.empty(0, dtype=np.int64)


Remembered = tuple[pa.RecordBatch, Int64s]
"""Keys that are closed, and the time before which each is taken to be."""


def beyond(times: Int64s, horizon: int) -> Int64s:
    """The first times at which a promise of these times is not recognised as broken."""
    return np.minimum(times, MAX_TIME - 1 - horizon) + (horizon + 1)


class Markers:
    """One clause in one unit. `take` goes through a block; what was closed in blocks before is remembered.

    Rows whose values can not be computed, or are null in a condition, close nothing: they are told with the reason.
    """

    def __init__(self, clause: Punctuate, stream: Stream) -> None:
        self.stream = stream
        self.clause = clause
        self.failures: Failures = []
        self.remembered: Remembered | None = None
        """What the last block closed up to a time, though nobody behind the gate hears of the time."""
        self.computed = [] if clause.values is None else [compile_expression(e, stream.columns) for e in bounds(clause.values)]

    def take(self, batch: pa.RecordBatch, chosen: Mask, times: Int64s) -> tuple[Mask, list[Punctuation]]:
        """The rows that come after one that closed their value, and what the chosen rows promise."""
        raise NotImplementedError

    def broken(self, row: pa.RecordBatch) -> Punctuation:
        """The promise that a late tuple breaks."""
        return Punctuation.of({c: Constant(plain_values(row.column(c))[0]) for c in self.clause.columns})

    def _values(self, batch: pa.RecordBatch, rows: Int64s) -> tuple[list[pa.Array], Int64s]:
        """The computed values of marker rows, and the rows they belong to."""
        arrays, kept, failures = evaluate_guarded(self.computed, batch.take(pa.array(rows)))
        self.failures = [(int(rows[at]), reason) for at, reason in failures]
        return arrays, rows if kept is None else rows[kept]

    def _nothing(self, rows: Int64s) -> None:
        self.failures += [(int(row), f"the row promises nothing: a value of ({self.clause.told}) is null") for row in rows]


class KeyMarkers(Markers):
    """Values one by one: of columns, with the time below which they are closed where it is among them, or of a list."""

    def __init__(self, clause: Punctuate, stream: Stream) -> None:
        super().__init__(clause, stream)
        self.columns = tuple(c for c in clause.columns if c != stream.time)
        self.timed = len(self.columns) < len(clause.columns)
        self.table = GroupTable(pa.schema([stream.schema.field(c) for c in self.columns]), ())
        self.until: Int64s = _NONE

    def take(self, batch: pa.RecordBatch, chosen: Mask, times: Int64s) -> tuple[Mask, list[Punctuation]]:
        late = np.zeros(batch.num_rows, dtype=np.bool_)
        self.failures, self.remembered = [], None
        if not len(self.table) and not chosen.any():
            return late, []
        keys, rows = self._closers(batch, np.flatnonzero(chosen))
        closed, _ = self.table.upsert(keys, np.zeros(len(rows), dtype=np.int64))
        if len(self.until) < len(self.table):
            self.until = np.concatenate([self.until, np.full(2 * len(self.table) - len(self.until), MIN_TIME, dtype=np.int64)])
        horizon = self.clause.horizon
        until = times[rows] if self.timed or horizon is not None else np.full(len(rows), MAX_TIME, dtype=np.int64)
        if horizon is not None:
            until = beyond(until, horizon)
        groups = self.table.lookup([batch.column(c) for c in self.columns], np.zeros(batch.num_rows, dtype=np.int64))
        follow_keys(groups, given(times, "int64"), rows, closed, until, self.until, late)
        if horizon is not None and len(rows):
            self.remembered = pa.RecordBatch.from_arrays(keys, schema=self.table.key_schema), until
            return late, []
        return late, self._promised(keys, until)

    def broken(self, row: pa.RecordBatch) -> Punctuation:
        patterns: dict[str, Pattern] = {c: Constant(plain_values(row.column(c))[0]) for c in self.columns}
        if self.timed:
            group = self.table.lookup([row.column(c) for c in self.columns], np.zeros(1, dtype=np.int64))[0]
            patterns[self.stream.time] = Range(high=int(self.until[group]))
        return Punctuation.of(patterns)

    def _closers(self, batch: pa.RecordBatch, rows: Int64s) -> tuple[list[pa.Array], Int64s]:
        """What is closed, and by which rows, in order."""
        if self.clause.values is None:
            chosen = pa.array(rows)
            return [batch.column(c).take(chosen) for c in self.columns], rows
        kind = self.stream.schema.field(self.columns[0]).type
        arrays, rows = self._values(batch, rows)
        valid = np.array([np.asarray(array.is_valid()) for array in arrays]).reshape(len(arrays), len(rows))
        self._nothing(rows[~valid.any(axis=0)])
        if pa.types.is_integer(kind):
            least, greatest = limits(kind)
            valid &= np.array([(v := to_axis(array)) == np.clip(v, least, greatest) for array in arrays])
        at = np.repeat(np.arange(len(rows)), len(arrays))[valid.T.ravel()]
        which = np.tile(np.arange(len(arrays)), len(rows))[valid.T.ravel()]
        values = pa.concat_arrays(arrays if not pa.types.is_integer(kind) else [array.cast(pa.int64()) for array in arrays])
        return [values.take(pa.array(which * len(rows) + at)).cast(kind)], rows[at]

    def _promised(self, keys: list[pa.Array], until: Int64s) -> list[Punctuation]:
        if not self.timed and len(keys) == 1:
            keys = [keys[0].unique()]
        return listed(self.columns, self.stream.time if self.timed else None, keys, until[: len(keys[0])])


class SpanMarkers(Markers):
    """Ranges of a column whose values lie on an axis."""

    def __init__(self, clause: Punctuate, stream: Stream) -> None:
        super().__init__(clause, stream)
        self.column = clause.columns[0]
        self.kind = stream.schema.field(self.column).type
        self.known = Ranges()

    def take(self, batch: pa.RecordBatch, chosen: Mask, times: Int64s) -> tuple[Mask, list[Punctuation]]:
        late = np.zeros(batch.num_rows, dtype=np.bool_)
        self.failures = []
        column = batch.column(self.column)
        values = to_axis(column)
        if len(self.known):
            late |= self.known.holds(values)
        rows, firsts, lasts = self._closers(batch, np.flatnonzero(chosen))
        promised: list[Punctuation] = []
        if len(rows):
            order = np.argsort(values, kind="stable")
            cover = first_cover(values[order], firsts, lasts)
            covered = cover != NEVER
            late[order[covered]] |= rows[cover[covered]] < order[covered]
            fresh = Ranges()
            fresh.grow((firsts, lasts))
            self.known.grow((firsts, lasts))
            promised = list(fresh.told(self.column, self.kind))
        if column.null_count:
            late &= np.asarray(column.is_valid())
        return late, promised

    def _closers(self, batch: pa.RecordBatch, rows: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Rows with the first and the last value that each closes; those that close none are left out."""
        if not len(rows):
            return rows, _NONE, _NONE
        span = self.clause.values
        assert isinstance(span, Span)
        arrays, rows = self._values(batch, rows)
        valid = np.ones(len(rows), dtype=np.bool_)
        for array in arrays:
            valid &= np.asarray(array.is_valid())
        self._nothing(rows[~valid])
        ends = iter([to_axis(array)[valid] for array in arrays])
        rows = rows[valid]
        # A bound that is left out by `<` or `>` at the very end of the axis closes nothing.
        firsts = np.full(len(rows), MIN_TIME) if span.low is None else next(ends)
        lasts = np.full(len(rows), MAX_TIME) if span.high is None else next(ends)
        some = np.ones(len(rows), dtype=np.bool_)
        if not span.low_inclusive:
            some &= firsts < MAX_TIME
            firsts = firsts + some
        if not span.high_inclusive:
            some &= lasts > MIN_TIME
            lasts = lasts - some
        firsts, lasts = clipped(firsts, lasts, self.kind)
        some &= firsts <= lasts
        return rows[some], given(firsts[some], "int64"), given(lasts[some], "int64")


def markers(clause: Punctuate, stream: Stream) -> Markers:
    return SpanMarkers(clause, stream) if isinstance(clause.values, Span) else KeyMarkers(clause, stream)
