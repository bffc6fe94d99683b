"""Rows by the hash of some of their columns: those of a value are found without a look at the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.kernels import chains
from millstream.kernels.compiled import Bools, Int32s, Int64s, UInt64s
from millstream.state.bridge import grown

_NONE = np.empty(0, dtype=np.int64)


def rows_of(heads: Int32s, nodes: Int64s, alive: Bools, hashes: UInt64s, valid: Bools, room: int) -> tuple[Int64s, Int64s]:
    """Which of the hashes, and an alive row that has it; `room` is for how many at first. A hash that stands twice finds its rows twice."""
    while True:
        which, rows = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        count = chains.find(heads, nodes, alive, hashes.view(np.int64), valid, which, rows)
        if count >= 0:
            return which[:count], rows[:count]
        room *= 2


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
        return rows_of(self._heads, self._nodes, alive, wanted, np.ones(len(wanted), dtype=np.bool_), top)

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
