"""What accumulators share: a row of words per group, and the choice of the values that count."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.kernels.compiled import Bools, Int64s, given
from millstream.state.bridge import grown, squeezed, validity


def chosen(groups: Int64s, values: pa.Array | None, mask: Bools | None) -> tuple[Int64s, Int64s | None]:
    """The groups of the values that count, and their positions (None: all of them)."""
    groups = given(groups, np.int64)
    valid = None if values is None else validity(values)
    if mask is not None:
        valid = mask if valid is None else valid & mask
    if valid is None:
        return groups, None
    positions = np.flatnonzero(valid)
    return groups[positions], positions


class WordRows:
    """A row of int64 or float64 words per group; zeros are the empty accumulator."""

    dtype: Any = np.int64
    width = 1

    def __init__(self) -> None:
        self.words: npt.NDArray[Any] = np.zeros((0, self.width), dtype=self.dtype)

    @property
    def nbytes(self) -> int:
        return self.words.nbytes

    def reserve(self, capacity: int, used: int) -> None:
        self.words = grown(self.words, capacity, used)

    def begin(self, first: int, stop: int) -> None:
        self.words[first:stop] = 0

    def keep(self, groups: Int64s, capacity: int) -> None:
        self.words = squeezed(self.words, groups, capacity)

    def state(self, groups: Int64s) -> list[pa.Array]:
        rows = self.words[groups]
        return [pa.array(np.ascontiguousarray(rows[:, i])) for i in range(self.width)]

    def load(self, groups: Int64s, state: list[pa.Array]) -> None:
        self.words[groups] = self.stacked(state)

    def stacked(self, state: list[pa.Array]) -> npt.NDArray[Any]:
        rows = np.empty((len(state[0]), self.width), dtype=self.dtype)
        for i, column in enumerate(state):
            rows[:, i] = column.to_numpy(zero_copy_only=False)
        return rows
