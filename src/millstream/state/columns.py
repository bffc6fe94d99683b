"""Rows of a fixed Arrow schema that only grow at the end, so that taking any rows is cheap at any time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.core.block import empty_batch
from millstream.kernels.compiled import Bools, Int64s, given
from millstream.state.column_kinds import Column, column_for


class Columns:
    """An append-only row store. Row numbers are dense, from 0, and change only by `keep` and `clear`.

    What `take` gives back never changes afterwards: compaction writes new arrays, and appending only adds.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._columns: list[Column] = [column_for(field.type) for field in schema]
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._columns)

    def append(self, batch: pa.RecordBatch) -> int:
        """Add the rows of a batch; returns the number of the first."""
        if batch.num_columns != len(self._columns):
            raise ValueError(f"{batch.num_columns} columns for a store of {len(self._columns)}")
        return self.append_arrays(batch.columns, batch.num_rows)

    def append_arrays(self, arrays: list[pa.Array], rows: int) -> int:
        for field, array in zip(self.schema, arrays, strict=True):
            if array.type != field.type:
                raise TypeError(f"column {field.name} is {array.type}, not {field.type}")
        first = self._rows
        for column, array in zip(self._columns, arrays, strict=True):
            column.append(array, first)
        self._rows += rows
        return first

    def take(self, rows: Int64s) -> pa.RecordBatch:
        if not self._columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), type=pa.struct([])))
        rows = given(rows, np.int64)
        if not len(rows):
            return empty_batch(self.schema)
        first, last = int(rows[0]), int(rows[-1])
        if last - first + 1 == len(rows) and bool((rows[1:] > rows[:-1]).all()):
            arrays = [column.slice(first, last + 1, self._rows) for column in self._columns]
        else:
            arrays = [column.take(rows, self._rows) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def take_column(self, place: int, rows: Int64s) -> pa.Array:
        return self._columns[place].take(given(rows, np.int64), self._rows)

    def equal(self, rows: Int64s, arrays: list[pa.Array], places: Sequence[int] | None = None) -> Bools:
        """True where stored row `rows[i]` has the key of position i: null equals null, NaN NaN, -0.0 0.0. `places`: of the key."""
        same = np.ones(len(rows), dtype=np.bool_)
        columns = self._columns if places is None else [self._columns[place] for place in places]
        for column, array in zip(columns, arrays, strict=True):
            same &= column.equal(rows, array, self._rows)
        return same

    def keep(self, rows: Int64s) -> None:
        """Row i becomes what row `rows[i]` was; all other rows are gone."""
        if not len(rows):
            self.clear()
            return
        for column in self._columns:
            column.keep(rows, self._rows)
        self._rows = len(rows)

    def clear(self) -> None:
        for column in self._columns:
            column.clear()
        self._rows = 0
