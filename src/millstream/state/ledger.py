"""The ledger of a journal: what each of its segments holds, and from which one on they are worth keeping."""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Int64s

LEAST = 1 << 20
"""Bytes below which a journal is never worn."""
COLUMNS = 4


class Ledger:
    """Four columns in one array that grows in place, so that keeping it costs the same however long it is.

    Number, rows, bytes, and how many of these are `apart`: of registers, which have no rows to share their price among.
    """

    def __init__(self) -> None:
        self._lines: Int64s = np.empty((64, COLUMNS), dtype=np.int64)
        self._first = 0
        self._top = 0
        self.rows = 0
        self.bytes = 0
        self.apart = 0

    def add(self, number: int, rows: int, size: int, apart: int = 0) -> None:
        if self._top == len(self._lines):
            kept = self._lines[self._first : self._top]
            self._lines = np.empty((max(64, 2 * len(kept)), COLUMNS), dtype=np.int64)
            self._lines[: len(kept)] = kept
            self._first, self._top = 0, len(kept)
        self._lines[self._top] = number, rows, size, apart
        self._top += 1
        self.rows += rows
        self.bytes += size
        self.apart += apart

    def worn(self, living: int, end: int, apart: int = 0) -> int:
        """The first segment to keep, with `living` rows of state and so many bytes `apart`; 0 when all are. The next one is `end`.

        Worn is a journal of more than twice the bytes that the state would take: then its oldest quarter goes.
        """
        needed = apart + (living * (self.bytes - self.apart) / self.rows if self.rows else 0.0)
        if self.bytes <= LEAST + 2 * needed:
            return 0
        sizes = np.cumsum(self._lines[self._first : self._top, 2])
        kept = self._first + int(np.searchsorted(sizes, self.bytes // 4)) + 1
        return int(self._lines[kept, 0]) if kept < self._top else end

    def drop(self, since: int) -> None:
        """Segments before this one are gone."""
        lines = self._lines[self._first : self._top]
        count = int(np.searchsorted(lines[:, 0], since))
        self.rows -= int(lines[:count, 1].sum())
        self.bytes -= int(lines[:count, 2].sum())
        self.apart -= int(lines[:count, 3].sum())
        self._first += count
