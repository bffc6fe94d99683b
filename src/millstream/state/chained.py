"""Rows by the hash of some of their columns: those of a value are found without a look at the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.kernels import chains
from millstream.kernels.compiled import Bools, Int32s, Int64s, UInt64s
from millstream.state.bridge import grown

_AHEAD = 64
_NONE = np.empty(0, dtype=np.int64)


class Chained:
    """Nothing is kept before somebody asks; then chains over the rows, which the rows that came since are added to."""

    def __init__(self) -> None:
        self._nodes: Int64s = np.empty((0, 4), dtype=np.int64)
        self._heads: Int32s = np.empty(0, dtype=np.int32)
        self._known = 0

    def find(self, wanted: UInt64s, top: int, alive: Bools, hashes_of: Callable[[Int64s], UInt64s]) -> tuple[Int64s, Int64s]:
        """Which of the hashes, and an alive row below `top` that has it."""
        if not top or not len(wanted):
            return _NONE, _NONE
        self._extend(top, hashes_of)
        hashes, valid = wanted.view(np.int64), np.ones(len(wanted), dtype=np.bool_)
        low, high = np.full(len(wanted), MIN_TIME), np.full(len(wanted), MAX_TIME)
        begun, slack = np.empty(_AHEAD + 1, dtype=np.int64), np.uint64(0)
        found: list[tuple[Int64s, Int64s]] = []
        position, row = 0, chains.FRESH
        while position < len(wanted):
            which, rows = np.empty(max(1024, len(wanted)), dtype=np.int64), np.empty(max(1024, len(wanted)), dtype=np.int64)
            count, position, row = chains.probe(
                self._heads, self._nodes, alive, hashes, valid, low, high, position, row, which, rows, begun, slack
            )
            found.append((which[:count], rows[:count]))
        return np.concatenate([which for which, _ in found]), np.concatenate([rows for _, rows in found])

    def _extend(self, top: int, hashes_of: Callable[[Int64s], UInt64s]) -> None:
        if top == self._known:
            return
        later = np.arange(self._known, top)
        if top > len(self._nodes):
            self._nodes = grown(self._nodes, top + top // 2, self._known)
        ends = np.full(len(later), MIN_TIME), np.full(len(later), MAX_TIME)
        chains.fill(self._nodes, self._known, hashes_of(later).view(np.int64), *ends)
        first = self._known
        if top > len(self._heads):
            self._heads, first = np.full(1 << top.bit_length(), -1, dtype=np.int32), 0
        chains.link(self._heads, self._nodes, first, top)
        self._known = top

    @property
    def nbytes(self) -> int:
        return self._nodes.nbytes + self._heads.nbytes
