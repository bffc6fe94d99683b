"""Rows in the order of a key: those between two values are found without a look at the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from millstream.kernels.compiled import Int64s

SHORT = 1024
"""Rows that came last and are looked at one by one."""
_NONE = np.empty(0, dtype=np.int64)


class Ordered:
    """Nothing is kept before somebody asks; then the rows are sorted, and again when a quarter more have come."""

    def __init__(self) -> None:
        self._keys: Int64s = _NONE
        self._rows: Int64s = _NONE

    def between(self, first: int, last: int, top: int, keys_of: Callable[[Int64s], Int64s]) -> Int64s:
        """The rows below `top` whose key is between two values, both inclusive; dead ones among them."""
        known = len(self._rows)
        later = np.arange(known, top)
        if len(later) > max(SHORT, known // 4):
            keys = np.concatenate([self._keys, keys_of(later)])
            order = np.argsort(keys, kind="stable")
            self._keys, self._rows = keys[order], np.concatenate([self._rows, later])[order]
            later = _NONE
        found = self._rows[np.searchsorted(self._keys, first) : np.searchsorted(self._keys, last, side="right")]
        if not len(later):
            return found
        keys = keys_of(later)
        return np.concatenate([found, later[(keys >= first) & (keys <= last)]])

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._rows.nbytes
