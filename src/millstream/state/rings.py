"""Rings tie the rows of a punctuated value together, so that the last of them is known when it goes (paper 002, section 4.4)."""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Bools, Int32s, Int64s
from millstream.kernels.lives import loosen
from millstream.state.bridge import grown, squeezed

_NONE = np.empty(0, dtype=np.int64)


class Rings:
    """For each row the ring it is in, or none; and how many rows each ring has. Before the first ring there is nothing to keep."""

    def __init__(self) -> None:
        self._ring: Int32s = np.empty(0, dtype=np.int32)
        self._counts: Int64s = _NONE
        self._spare: list[Int64s] = []
        self._top = 0
        self.tied = 0
        """Rings that have rows."""

    def tie(self, rows: Int64s, to: Int64s, count: int, capacity: int) -> None:
        """Row `rows[i]` belongs to value `to[i]` of `count` new ones; `capacity` is that of the rows."""
        if not len(rows):
            return
        self.reserve(capacity, force=True)
        sizes = np.bincount(to, minlength=count)
        used = np.flatnonzero(sizes)
        rings = np.empty(count, dtype=np.int64)
        rings[used] = self._make(len(used))
        self._counts[rings[used]] = sizes[used]
        self._ring[rows] = rings[to]
        self.tied += len(used)

    def _make(self, count: int) -> Int64s:
        spare = np.concatenate(self._spare) if self._spare else _NONE
        self._spare = [spare[count:]] if len(spare) > count else []
        fresh = count - len(spare[:count])
        if self._top + fresh > len(self._counts):
            self._counts = grown(self._counts, max(64, 2 * (self._top + fresh)), self._top)
        self._top += fresh
        return np.concatenate([spare[:count], np.arange(self._top - fresh, self._top)])

    def loosen(self, rows: Int64s) -> Int64s:
        """Rows go; gives those that were the last of their rings."""
        if not self.tied:
            return _NONE
        last = np.empty(len(rows), dtype=np.int64)
        last = last[: loosen(self._ring, self._counts, rows, last)]
        if len(last):
            self._spare.append(self._ring[last].astype(np.int64))
            self.tied -= len(last)
        return last

    def free(self, rows: Int64s) -> Bools:
        """Which of the rows are in no ring."""
        return self._ring[rows] < 0 if len(self._ring) else np.ones(len(rows), dtype=np.bool_)

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
        return self._ring.nbytes + self._counts.nbytes
