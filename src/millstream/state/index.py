"""An index of a window of rows: chains of rows by the hash of some of their columns, and the interval that each covers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from millstream.core.types import MIN_TIME
from millstream.errors import DataProblem
from millstream.kernels import chains
from millstream.kernels.compiled import Bools, Int32s, Int64s, UInt64s, given
from millstream.state.bridge import grown, squeezed
from millstream.state.chained import rows_of

_AHEAD = 64


def _heads(capacity: int) -> Int32s:
    if capacity >= 2**31:
        raise DataProblem("more than two billion rows in one window", hint="use more buckets")
    return np.full(1 << (capacity - 1).bit_length(), -1, dtype=np.int32)


class Index:
    def __init__(self, chained: bool) -> None:
        """Without chains all rows are in one, and a probe looks at every row that time has left in reach (nested loops)."""
        self.chained = chained
        self.nodes: Int64s = np.empty((0, 4), dtype=np.int64)
        self.heads: Int32s = np.full(1, -1, dtype=np.int32)
        self.probes = 0
        """Rows that probes have looked at."""
        self._greatest, self._slack = MIN_TIME, np.uint64(0)  # of the rows' highs, see `kernels.chains`

    def add(self, first: int, hashes: UInt64s, low: Int64s, high: Int64s) -> None:
        """Rows from `first` on, for which there is room."""
        stop = first + len(hashes)
        chains.fill(self.nodes, first, hashes.view(np.int64), low, high)
        chains.link(self.heads, self.nodes, first, stop)
        self._greatest, self._slack = chains.disorder(self.nodes, first, stop, self._greatest, np.uint64(self._slack))

    def reserve(self, capacity: int, top: int) -> None:
        self.nodes = grown(self.nodes, capacity, top)
        if capacity > len(self.heads) and self.chained:
            self.heads = _heads(capacity)
            chains.link(self.heads, self.nodes, 0, top)

    def keep(self, rows: Int64s, capacity: int) -> None:
        """These rows alone, under new numbers in the same order."""
        self.nodes = squeezed(self.nodes, rows, capacity)
        self.heads = _heads(capacity if self.chained else 1)
        chains.link(self.heads, self.nodes, 0, len(rows))
        self._greatest, self._slack = chains.disorder(self.nodes, 0, len(rows), MIN_TIME, np.uint64(0))

    def probe(self, alive: Bools, hashes: UInt64s, valid: Bools, low: Int64s, high: Int64s, limit: int) -> Iterator[tuple[Int64s, Int64s]]:
        """See `RowWindow.probe`."""
        wanted, valid = given(hashes, np.uint64).view(np.int64), given(valid, np.bool_)
        low, high = given(low, np.int64), given(high, np.int64)
        position, row, size = 0, chains.FRESH, min(limit, max(1024, len(hashes)))
        slack = np.uint64(self._slack)
        begun = np.empty(_AHEAD + 1, dtype=np.int64)
        while position < len(hashes):
            probes, rows = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
            count, position, row, seen = chains.probe(
                self.heads, self.nodes, alive, wanted, valid, low, high, position, row, probes, rows, begun, slack
            )
            self.probes += seen
            if count:
                yield probes[:count], rows[:count]
            size = min(limit, 4 * size)

    def of(self, alive: Bools, hashes: UInt64s, valid: Bools, room: int) -> tuple[Int64s, Int64s]:
        return rows_of(self.heads, self.nodes, alive, given(hashes, np.uint64), given(valid, np.bool_), room)

    def hashes(self, rows: Int64s) -> UInt64s:
        found: UInt64s = self.nodes[rows, chains.HASH].view(np.uint64)
        return found

    @property
    def nbytes(self) -> int:
        return self.nodes.nbytes + self.heads.nbytes
