"""min and max of everything that has an order, and with them bool_and and bool_or."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.kernels import texts, totals
from millstream.kernels.compiled import Bools, Int64s
from millstream.state.bridge import fixed_array, fixed_dtype, flat_values, grown, text_parts, words_of
from millstream.state.column_kinds import TextColumn
from millstream.state.words import WordRows, chosen

_SIGN = np.int64(-(2**63))


class WordExtreme(WordRows):
    """Types of at most eight bytes that order as integers; of unsigned ones the sign bit is flipped."""

    width = 2

    def __init__(self, kind: pa.DataType, greatest: bool) -> None:
        super().__init__()
        self._kind = kind
        self._greatest = greatest
        self._flip = _SIGN if pa.types.is_uint64(kind) else np.int64(0)

    def update(self, groups: Int64s, values: pa.Array | None, mask: Bools | None) -> None:
        assert values is not None
        groups, positions = chosen(groups, values, mask)
        words = words_of(values)
        if positions is not None:
            words = words[positions]
        totals.best_integers(self.words, groups, words ^ self._flip if self._flip else words, self._greatest)

    def merge(self, groups: Int64s, state: list[pa.Array]) -> None:
        others = self.stacked(state)
        some = np.flatnonzero(others[:, 0])
        totals.best_integers(self.words, groups[some], others[some, 1], self._greatest)

    def result(self, groups: Int64s) -> pa.Array:
        rows = self.words[groups]
        values = rows[:, 1] ^ self._flip
        dtype = fixed_dtype(self._kind)
        flat = values.view(np.uint64) if dtype == np.uint64 else values.astype(dtype)
        return fixed_array(flat, rows[:, 0] > 0, self._kind)


class FloatExtreme(WordRows):
    dtype = np.float64
    width = 2

    def __init__(self, kind: pa.DataType, greatest: bool) -> None:
        super().__init__()
        self._kind = kind
        self._greatest = greatest

    def update(self, groups: Int64s, values: pa.Array | None, mask: Bools | None) -> None:
        assert values is not None
        groups, positions = chosen(groups, values, mask)
        reals = flat_values(values).astype(np.float64, copy=False)
        totals.best_floats(self.words, groups, reals if positions is None else reals[positions], self._greatest)

    def merge(self, groups: Int64s, state: list[pa.Array]) -> None:
        others = self.stacked(state)
        some = np.flatnonzero(others[:, 0])
        totals.best_floats(self.words, groups[some], others[some, 1], self._greatest)

    def result(self, groups: Int64s) -> pa.Array:
        rows = self.words[groups]
        return fixed_array(rows[:, 1].astype(fixed_dtype(self._kind)), rows[:, 0] > 0, self._kind)


class DecimalExtreme(WordRows):
    width = 3

    def __init__(self, kind: pa.DataType, greatest: bool) -> None:
        super().__init__()
        self._kind = kind
        self._greatest = greatest

    def update(self, groups: Int64s, values: pa.Array | None, mask: Bools | None) -> None:
        assert values is not None
        groups, positions = chosen(groups, values, mask)
        pairs = flat_values(values)
        totals.best_decimals(self.words, groups, pairs if positions is None else pairs[positions], self._greatest)

    def merge(self, groups: Int64s, state: list[pa.Array]) -> None:
        others = self.stacked(state)
        some = np.flatnonzero(others[:, 0])
        totals.best_decimals(self.words, groups[some], np.ascontiguousarray(others[some, 1:]), self._greatest)

    def result(self, groups: Int64s) -> pa.Array:
        rows = self.words[groups]
        return fixed_array(np.ascontiguousarray(rows[:, 1:]), rows[:, 0] > 0, self._kind)


class TextExtreme:
    """Strings and binaries, in order of their bytes. Groups point into a store of texts that is swept when half of it is old."""

    def __init__(self, kind: pa.DataType, greatest: bool) -> None:
        self._kind = kind
        self._greatest = greatest
        self._best: Int64s = np.empty(0, dtype=np.int64)
        self._groups = 0
        self._texts = TextColumn(kind)
        self._stored = 0

    @property
    def nbytes(self) -> int:
        return self._best.nbytes + self._texts.nbytes

    def reserve(self, capacity: int, used: int) -> None:
        self._best = grown(self._best, capacity, used)

    def begin(self, first: int, stop: int) -> None:
        self._best[first:stop] = -1
        self._groups = stop

    def update(self, groups: Int64s, values: pa.Array | None, mask: Bools | None) -> None:
        assert values is not None
        groups, positions = chosen(groups, values, mask)
        if positions is None:
            positions = np.arange(len(groups))
        winners = np.empty(len(groups), dtype=np.int64)
        stored = self._texts.offsets, self._texts.data
        count = texts.best_texts(self._best, groups, *text_parts(values), positions, *stored, self._greatest, winners)
        winners = winners[:count]
        self._store(winners, values.take(pa.array(-2 - self._best[winners])))

    def _store(self, groups: Int64s, values: pa.Array) -> None:
        self._texts.append(values, self._stored)
        self._best[groups] = np.arange(self._stored, self._stored + len(values))
        self._stored += len(values)
        if self._stored > 2 * self._groups + 1024:
            self._sweep(np.flatnonzero(self._best[: self._groups] >= 0))

    def _sweep(self, groups: Int64s) -> None:
        self._texts.keep(self._best[groups], self._stored)
        self._stored = len(groups)
        self._best[groups] = np.arange(len(groups))

    def keep(self, groups: Int64s, capacity: int) -> None:
        best = np.empty(capacity, dtype=np.int64)
        best[: len(groups)] = self._best[groups]
        self._best, self._groups = best, len(groups)
        self._sweep(np.flatnonzero(best[: len(groups)] >= 0))

    def merge(self, groups: Int64s, state: list[pa.Array]) -> None:
        self.update(groups, state[0], None)

    def load(self, groups: Int64s, state: list[pa.Array]) -> None:
        self._best[groups] = -1
        self.update(groups, state[0], None)

    def state(self, groups: Int64s) -> list[pa.Array]:
        return [self.result(groups)]

    def result(self, groups: Int64s) -> pa.Array:
        best = self._best[groups]
        none = best < 0
        if not none.any():
            return self._texts.take(best, self._stored)
        if none.all():
            return pa.nulls(len(groups), type=self._kind)
        return self._texts.take(best[~none], self._stored).take(pa.array(np.cumsum(~none) - 1, mask=none))
