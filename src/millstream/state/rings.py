"""Rings tie the rows of a punctuated value together, so that the last of them is known when it goes (paper 002, section 4.4)."""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Int32s, Int64s, given
from millstream.kernels.lives import loosen, tie
from millstream.state.bridge import grown, squeezed

_NONE = np.empty(0, dtype=np.int64)


class Rings:
    """For each row the ring it is in, or none; and how many rows each ring has. Before the first ring there is nothing to keep."""

    def __init__(self) -> None:
        self._ring: Int32s = np.empty(0, dtype=np.int32)
        self._counts: Int64s = _NONE
        self._spare: Int64s = np.empty(64, dtype=np.int64)
        self._spares = 0
        self._top = 0
        self.tied = 0
        """Rings that have rows."""

    def tie(self, rows: Int64s, to: Int64s, count: int, capacity: int) -> None:
        """Row `rows[i]` belongs to value `to[i]` of `count`, which are new but for rows in rings; `capacity` is that of the rows."""
        if not len(rows):
            return
        self.reserve(capacity, force=True)
        if self._top + count > len(self._counts):
            self._counts = grown(self._counts, max(64, 2 * (self._top + count)), self._top)
        rows, to, before = given(rows, np.int64), given(to, np.int64), self._top - self._spares
        made = np.full(count, -1, dtype=np.int64)
        self._spares, self._top = tie(self._ring, self._counts, self._spare, self._spares, self._top, rows, to, made)
        self.tied += self._top - self._spares - before

    def loosen(self, rows: Int64s) -> Int64s:
        """Rows go; gives those that were the last of their rings."""
        if not self.tied:
            return _NONE
        last = np.empty(len(rows), dtype=np.int64)
        last = last[: loosen(self._ring, self._counts, rows, last)]
        if len(last):
            if self._spares + len(last) > len(self._spare):
                self._spare = grown(self._spare, 2 * (self._spares + len(last)), self._spares)
            self._spare[self._spares : self._spares + len(last)] = self._ring[last]
            self._spares += len(last)
            self.tied -= len(last)
        return last

    def reserve(self, capacity: int, *, force: bool = False) -> None:
        if (force or len(self._ring)) and capacity > len(self._ring):
            before = len(self._ring)
            self._ring = grown(self._ring, capacity, before)
            self._ring[before:] = -1

    def forget(self, first: int, stop: int) -> None:
        """Rows that are new have no ring, whatever stood there."""
        if len(self._ring):
            self._ring[first:stop] = -1

    def keep(self, rows: Int64s, capacity: int) -> None:
        """Row i becomes what row `rows[i]` was."""
        if len(self._ring):
            self._ring = squeezed(self._ring, rows, capacity)

    @property
    def nbytes(self) -> int:
        return self._ring.nbytes + self._counts.nbytes + self._spare.nbytes
