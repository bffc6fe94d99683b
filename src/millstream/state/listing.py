"""A list of keys of any type, each with the time up to which it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from millstream.core.types import MIN_TIME
from millstream.kernels.compiled import Int64s
from millstream.state.accumulators import AccumulatorSpec
from millstream.state.group_table import GroupTable


class Listing:
    """A table of groups that nobody aggregates: it knows keys by their hash, and compares them where hashes do not tell."""

    def __init__(self) -> None:
        self._table: GroupTable | None = None
        self._left = 0  # after the last sweep

    def grow(self, more: tuple[pa.RecordBatch, Int64s]) -> None:
        """Add keys; of a key that is there the later time holds."""
        keys, bounds = more
        if self._table is None:
            self._table = GroupTable(keys.schema, [AccumulatorSpec("max", pa.int64())])
        groups, _ = self._table.upsert(keys.columns, np.zeros(keys.num_rows, dtype=np.int64))
        self._table.update(0, groups, pa.array(bounds))

    def shrink(self, less: list[pa.Array]) -> None:
        """Take keys away."""
        if self._table is not None:
            groups = self._table.lookup(less, np.zeros(len(less[0]), dtype=np.int64))
            self._table.discard(groups[groups >= 0])

    def sweep(self, mark: int) -> None:
        """Keys that hold up to the mark at most are of no use any more."""
        if self._table is not None:
            groups = self._table.alive()
            self._table.discard(groups[np.asarray(self._table.values(0, groups)) <= mark])
        self._left = len(self)

    @property
    def crowded(self) -> bool:
        """A sweep may be worth it: twice as many as after the last one."""
        return len(self) > 2 * self._left + 1024

    def bounds(self, keys: list[pa.Array]) -> Int64s:
        """The time up to which each key holds; MIN_TIME where it is not in the list."""
        found = np.full(len(keys[0]), MIN_TIME, dtype=np.int64)
        if self._table is not None:
            groups = self._table.lookup(keys, np.zeros(len(keys[0]), dtype=np.int64))
            known = groups >= 0
            found[known] = np.asarray(self._table.values(0, groups[known]))
        return found

    @property
    def entries(self) -> tuple[pa.RecordBatch, Int64s]:
        assert self._table is not None
        keys, _, (bounds,) = self._table.result(self._table.alive())
        return keys, np.asarray(bounds, dtype=np.int64)

    def __len__(self) -> int:
        return 0 if self._table is None else len(self._table)

    @property
    def nbytes(self) -> int:
        return 0 if self._table is None else self._table.nbytes

    def __getstate__(self) -> Any:
        return None if self._table is None else self.entries

    def __setstate__(self, entries: Any) -> None:
        self._table, self._left = None, 0
        if entries is not None:
            self.grow(entries)
