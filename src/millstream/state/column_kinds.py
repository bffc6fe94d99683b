"""How one column of stored rows is kept: flat values, text, or Arrow chunks for everything else."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.compiled import Bools, Bytes, Int64s
from millstream.kernels.texts import equal_texts, gather_bytes, gather_offsets
from millstream.state.bridge import (
    Values,
    fixed_array,
    fixed_dtype,
    flat_values,
    grown,
    is_text,
    squeezed,
    text_array,
    text_parts,
    validity,
)

_SMALLEST = 64


class Column(Protocol):
    """`used` is the number of rows there are; it is counted once for all columns, by their owner."""

    @property
    def nbytes(self) -> int: ...

    def append(self, array: pa.Array, used: int) -> None: ...

    def slice(self, first: int, stop: int, used: int) -> pa.Array: ...

    def take(self, rows: Int64s, used: int) -> pa.Array: ...

    def equal(self, rows: Int64s, array: pa.Array, used: int) -> Bools: ...

    def keep(self, rows: Int64s, used: int) -> None: ...

    def clear(self) -> None: ...


def column_for(kind: pa.DataType) -> Column:
    if fixed_dtype(kind) is not None:
        return FlatColumn(kind)
    return TextColumn(kind) if is_text(kind) else ChunkColumn(kind)


def room(capacity: int, needed: int) -> int:
    """Half as much again: doubling would leave up to half of the memory empty."""
    return max(needed, capacity + capacity // 2, _SMALLEST)


class _Validity:
    """Which rows are not null; no array at all until the first null."""

    def __init__(self) -> None:
        self._valid: Bools | None = None

    @property
    def nbytes(self) -> int:
        return 0 if self._valid is None else self._valid.nbytes

    def append(self, valid: Bools | None, used: int, rows: int) -> None:
        if self._valid is None:
            if valid is None:
                return
            self._valid = np.ones(room(0, used + rows), dtype=np.bool_)
        if used + rows > len(self._valid):
            self._valid = grown(self._valid, room(len(self._valid), used + rows), used)
        self._valid[used : used + rows] = True if valid is None else valid

    def slice(self, first: int, stop: int) -> Bools | None:
        return None if self._valid is None else self._valid[first:stop]

    def take(self, rows: Int64s) -> Bools | None:
        return None if self._valid is None else self._valid[rows]

    def keep(self, rows: Int64s) -> None:
        valid = self.take(rows)
        self._valid = None if valid is None or bool(valid.all()) else valid

    def equal(self, rows: Int64s, array: pa.Array, same: Bools) -> Bools:
        """Correct a comparison of values for nulls on either side."""
        theirs, mine = validity(array), self.take(rows)
        if theirs is None and mine is None:
            return same
        everywhere = np.ones(len(rows), dtype=np.bool_)
        mine, theirs = everywhere if mine is None else mine, everywhere if theirs is None else theirs
        corrected: Bools = (mine == theirs) & (same | ~mine)
        return corrected


class FlatColumn:
    """Values of a fixed width in one growing array."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        dtype: Any = fixed_dtype(kind)
        self._empty = np.empty((0, 2) if pa.types.is_decimal128(kind) else 0, dtype=dtype.base)
        self._values: Values = self._empty
        self._shared = False  # somebody holds a view of the values
        self._nulls = _Validity()

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._nulls.nbytes

    def append(self, array: pa.Array, used: int) -> None:
        stop = used + len(array)
        if stop > len(self._values):
            self._values = grown(self._values, room(len(self._values), stop), used)
            self._shared = False
        self._values[used:stop] = flat_values(array)
        self._nulls.append(validity(array), used, len(array))

    def slice(self, first: int, stop: int, used: int) -> pa.Array:
        values = self._values[first:stop]
        if (stop - first) * 2 < len(self._values):
            values = values.copy()  # a small view would hold on to all of the memory
        else:
            self._shared = True
        return fixed_array(values, self._nulls.slice(first, stop), self._kind)

    def take(self, rows: Int64s, used: int) -> pa.Array:
        return fixed_array(self._values[rows], self._nulls.take(rows), self._kind)

    def equal(self, rows: Int64s, array: pa.Array, used: int) -> Bools:
        mine, theirs = self._values[rows], flat_values(array)
        same: Bools = np.asarray(mine == theirs)
        if same.ndim == 2:
            same = np.asarray(same.all(axis=1))
        elif mine.dtype.kind == "f":
            same |= (mine != mine) & (theirs != theirs)
        return self._nulls.equal(rows, array, same)

    def keep(self, rows: Int64s, used: int) -> None:
        capacity = len(self._values) if len(self._values) <= 4 * len(rows) else 2 * len(rows)
        if self._shared:
            self._values, self._shared = self._values.copy(), False
        self._values = squeezed(self._values, rows, capacity)
        self._nulls.keep(rows)

    def clear(self) -> None:
        self._values = self._empty
        self._shared = False
        self._nulls = _Validity()


class TextColumn:
    """Strings and binaries: offsets and bytes, each in one growing array."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self.clear()

    def clear(self) -> None:
        self.offsets: Int64s = np.zeros(1, dtype=np.int64)
        self.data: Bytes = np.empty(0, dtype=np.uint8)
        self._nulls = _Validity()

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.data.nbytes + self._nulls.nbytes

    def append(self, array: pa.Array, used: int) -> None:
        rows = len(array)
        offsets, data = text_parts(array)
        begin = int(self.offsets[used])
        end = begin + int(offsets[-1] - offsets[0])
        if used + rows + 1 > len(self.offsets):
            self.offsets = grown(self.offsets, room(len(self.offsets), used + rows + 1), used + 1)
        if end > len(self.data):
            self.data = grown(self.data, room(len(self.data), end), begin)
        self.offsets[used : used + rows + 1] = offsets + (begin - offsets[0])
        self.data[begin:end] = data[offsets[0] : offsets[-1]]
        self._nulls.append(validity(array), used, rows)

    def slice(self, first: int, stop: int, used: int) -> pa.Array:
        offsets = self.offsets[first : stop + 1]
        data = self.data[offsets[0] : offsets[-1]].copy()
        return text_array(offsets - offsets[0], data, self._nulls.slice(first, stop), self._kind)

    def _gather(self, rows: Int64s) -> tuple[Int64s, Bytes]:
        offsets = gather_offsets(self.offsets, rows)
        return offsets, gather_bytes(self.offsets, self.data, rows, offsets)

    def take(self, rows: Int64s, used: int) -> pa.Array:
        return text_array(*self._gather(rows), self._nulls.take(rows), self._kind)

    def equal(self, rows: Int64s, array: pa.Array, used: int) -> Bools:
        return self._nulls.equal(rows, array, equal_texts(self.offsets, self.data, rows, *text_parts(array)))

    def keep(self, rows: Int64s, used: int) -> None:
        self.offsets, self.data = self._gather(rows)
        self._nulls.keep(rows)


class ChunkColumn:
    """Anything else (nested types, wide decimals): Arrow chunks, merged so that each is more than twice the next."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._chunks: list[pa.Array] = []

    @property
    def nbytes(self) -> int:
        return sum(int(chunk.nbytes) for chunk in self._chunks)

    def append(self, array: pa.Array, used: int) -> None:
        if not len(array):
            return
        self._chunks.append(array)
        while len(self._chunks) > 1 and len(self._chunks[-2]) <= 2 * len(self._chunks[-1]):
            last = self._chunks.pop()
            self._chunks[-1] = pa.concat_arrays([self._chunks[-1], last])

    def _whole(self) -> pa.ChunkedArray:
        return pa.chunked_array(self._chunks, type=self._kind)

    def slice(self, first: int, stop: int, used: int) -> pa.Array:
        return pa.concat_arrays(self._whole().slice(first, stop - first).chunks)

    def take(self, rows: Int64s, used: int) -> pa.Array:
        if len(self._chunks) == 1:
            return self._chunks[0].take(pa.array(rows))
        taken = self._whole().take(pa.array(rows))
        return pa.concat_arrays(taken.chunks) if taken.num_chunks else pa.array([], type=self._kind)

    def equal(self, rows: Int64s, array: pa.Array, used: int) -> Bools:
        mine = self.take(rows, used)
        if pa.types.is_null(self._kind):
            return np.ones(len(rows), dtype=np.bool_)  # all of them are null
        same = pc.fill_null(pc.equal(mine, array), False)
        both_null = pc.and_(pc.is_null(mine), pc.is_null(array))
        return np.asarray(pc.or_(same, both_null).to_numpy(zero_copy_only=False), dtype=np.bool_)

    def keep(self, rows: Int64s, used: int) -> None:
        self._chunks = [self.take(rows, used)]

    def clear(self) -> None:
        self._chunks = []
