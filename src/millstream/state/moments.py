"""Variance and standard deviation, over a sample or the whole population."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.kernels import totals
from millstream.kernels.compiled import Bools, Int64s
from millstream.state.bridge import fixed_array, flat_values
from millstream.state.words import WordRows, chosen


class Moments(WordRows):
    """A sample of one value has no variance (NULL); a population of one has variance 0."""

    dtype = np.float64
    width = 3

    def __init__(self, function: str) -> None:
        super().__init__()
        self._sample = function.endswith("samp")
        self._root = function.startswith("stddev")

    def update(self, groups: Int64s, values: pa.Array | None, mask: Bools | None) -> None:
        assert values is not None
        groups, positions = chosen(groups, values, mask)
        if pa.types.is_decimal128(values.type):
            values = values.cast(pa.float64())
        reals = flat_values(values).astype(np.float64, copy=False)
        totals.add_moments(self.words, groups, reals if positions is None else reals[positions])

    def merge(self, groups: Int64s, state: list[pa.Array]) -> None:
        totals.merge_moments(self.words, groups, self.stacked(state))

    def result(self, groups: Int64s) -> pa.Array:
        rows = self.words[groups]
        count = rows[:, 0] - 1.0 if self._sample else rows[:, 0]
        some = count > 0
        spread = rows[:, 2] / np.where(some, count, 1.0)
        return fixed_array(np.sqrt(spread) if self._root else spread, some, pa.float64())
