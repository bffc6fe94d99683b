"""count, sum and avg: exact for integers and decimals, compensated for floats."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.errors import DataProblem
from millstream.kernels import totals
from millstream.kernels.compiled import Bools, Int64s
from millstream.state.bridge import fixed_array, flat_values, words_of
from millstream.state.words import WordRows, chosen


class Overflow(DataProblem):
    """Totals that their type can not hold; `rows` is True for those among the groups that were asked for."""

    rows: Bools = np.empty(0, dtype=np.bool_)

    @classmethod
    def of(cls, rows: Bools, message: str, hint: str) -> Overflow:
        made = cls(message, hint=hint)
        made.rows = rows
        return made


class Count(WordRows):
    def update(self, groups: Int64s, values: pa.Array | None, mask: Bools | None) -> None:
        totals.add_ones(self.words, chosen(groups, values, mask)[0])

    def merge(self, groups: Int64s, state: list[pa.Array]) -> None:
        totals.add_counts(self.words, groups, self.stacked(state))

    def result(self, groups: Int64s) -> pa.Array:
        return pa.array(self.words[:, 0][groups])


class IntegerTotal(WordRows):
    """sum (int64, an error when it does not fit) or avg (float64) of integers."""

    width = 4

    def __init__(self, average: bool, unsigned: bool) -> None:
        super().__init__()
        self._average = average
        self._unsigned = unsigned

    def update(self, groups: Int64s, values: pa.Array | None, mask: Bools | None) -> None:
        assert values is not None
        groups, positions = chosen(groups, values, mask)
        words = words_of(values)
        if positions is not None:
            words = words[positions]
        if self._unsigned:
            totals.add_decimals(self.words, groups, np.stack([words, np.zeros_like(words)], axis=1))
        else:
            totals.add_integers(self.words, groups, words)

    def merge(self, groups: Int64s, state: list[pa.Array]) -> None:
        totals.add_totals(self.words, groups, self.stacked(state))

    def result(self, groups: Int64s) -> pa.Array:
        rows = self.words[groups]
        some = rows[:, 0] > 0
        if self._average:
            with np.errstate(invalid="ignore"):
                return fixed_array(totals.floats_of(rows) / rows[:, 0], some, pa.float64())
        total = np.ascontiguousarray(rows[:, 1])
        wide: Bools = (rows[:, 2] != total >> 63) | (rows[:, 3] != rows[:, 2])
        if wide.any():
            raise Overflow.of(
                wide, "a sum of integers does not fit 64 bits", "CAST the argument of sum to DECIMAL"
            )
        return fixed_array(total, some, pa.int64())


class DecimalTotal(WordRows):
    """sum or avg of decimal128 values, to the last digit."""

    width = 4

    def __init__(self, kind: pa.DataType, result: pa.DataType, average: bool) -> None:
        super().__init__()
        self._result = result
        self._average = average
        self._factor = 10 ** (result.scale - kind.scale)
        self._bound = 10**result.precision

    def update(self, groups: Int64s, values: pa.Array | None, mask: Bools | None) -> None:
        assert values is not None
        groups, positions = chosen(groups, values, mask)
        pairs = flat_values(values)
        totals.add_decimals(self.words, groups, pairs if positions is None else pairs[positions])

    def merge(self, groups: Int64s, state: list[pa.Array]) -> None:
        totals.add_totals(self.words, groups, self.stacked(state))

    def result(self, groups: Int64s) -> pa.Array:
        rows = self.words[groups]
        out = np.empty((len(rows), 3), dtype=np.int64)
        if self._average:
            if totals.halves_up(rows, self._factor, (2**63 - 1) // self._factor, out):
                self._divide(rows, out)
        else:
            high, low = divmod(self._bound, 2**64)
            if not totals.fit(rows, np.uint64(low), np.uint64(high)):
                self._refuse([abs(_whole(row)) for row in rows])
            out[:, :2] = rows[:, 1:3]
        return fixed_array(np.ascontiguousarray(out[:, :2]), rows[:, 0] > 0, self._result)

    def _divide(self, rows: Int64s, out: Int64s) -> None:
        """The few averages whose totals are too wide for the kernel."""
        sizes = [0] * len(rows)
        for i in np.flatnonzero(out[:, 2] == 0):
            total, count = _whole(rows[i]) * self._factor, int(rows[i, 0])
            quotient, rest = divmod(abs(total), count)
            sizes[i] = quotient + (2 * rest >= count)
            if sizes[i] < self._bound:
                value = -sizes[i] if total < 0 else sizes[i]
                out[i, 0] = np.uint64(value & (2**64 - 1)).view(np.int64)
                out[i, 1] = value >> 64
        self._refuse(sizes)

    def _refuse(self, sizes: list[int]) -> None:
        """Raise for the totals of too many digits, if there are any."""
        wide = np.array([size >= self._bound for size in sizes], dtype=np.bool_)
        if wide.any():
            kind = f"DECIMAL({self._result.precision},{self._result.scale})"
            raise Overflow.of(
                wide, f"a total does not fit {kind}", "CAST the argument to fewer digits, or to DOUBLE"
            )


def _whole(row: Int64s) -> int:
    return (int(row[3]) << 128) + (int(row[2]) % 2**64 << 64) + int(row[1]) % 2**64


class FloatTotal(WordRows):
    """sum or avg of floats."""

    dtype = np.float64
    width = 3

    def __init__(self, average: bool) -> None:
        super().__init__()
        self._average = average

    def update(self, groups: Int64s, values: pa.Array | None, mask: Bools | None) -> None:
        assert values is not None
        groups, positions = chosen(groups, values, mask)
        reals = flat_values(values).astype(np.float64, copy=False)
        totals.add_floats(self.words, groups, reals if positions is None else reals[positions])

    def merge(self, groups: Int64s, state: list[pa.Array]) -> None:
        totals.add_float_totals(self.words, groups, self.stacked(state))

    def result(self, groups: Int64s) -> pa.Array:
        rows = self.words[groups]
        with np.errstate(invalid="ignore"):
            total = np.where(np.isfinite(rows[:, 1]), rows[:, 1] + rows[:, 2], rows[:, 1])
            if self._average:
                total = total / rows[:, 0]
        return fixed_array(total, rows[:, 0] > 0, pa.float64())
