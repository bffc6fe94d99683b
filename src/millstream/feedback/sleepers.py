"""Sleepers are the tuples of one input that nobody needs now: the blacklist of paper 003, a window of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.feedback.watch import Watch
from millstream.kernels.compiled import Int64s, UInt64s
from millstream.state.row_window import RowWindow

UNDER = "__under"
"""Of a sleeping tuple: the watch that it sleeps under."""


class Sleepers:
    """Each sleeps under one watch and one hash, until a partner of that hash comes, or it is too old for any."""

    def __init__(self, schema: pa.Schema, journal: bool) -> None:
        self.rows = RowWindow(schema.append(pa.field(UNDER, pa.int64())), journal=journal)
        self._watches: dict[int, Watch] = {}
        self.slept = self.woken = 0
        """Tuples, since somebody has looked."""

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, batch: pa.RecordBatch, hashes: UInt64s, watch: Watch, expiry: Int64s) -> None:
        self.slept += len(hashes)
        self._watches[watch.number] = watch
        watch.sleepers += len(hashes)
        under = pa.array(np.full(len(hashes), watch.number, dtype=np.int64))
        always = np.zeros(len(hashes), dtype=np.int64)
        columns = pa.RecordBatch.from_arrays([*batch.columns, under], schema=self.rows.schema)
        self.rows.insert(columns, hashes ^ watch.mixed, always, always, expiry)

    def take(self, watch: Watch, hashes: UInt64s) -> pa.RecordBatch | None:
        """Those under a watch and one of these different hashes, who sleep no more."""
        if not len(self.rows):
            return None
        always = np.zeros(len(hashes), dtype=np.int64)
        found = [rows for _, rows in self.rows.probe(hashes ^ watch.mixed, np.ones(len(hashes), dtype=np.bool_), always, always)]
        if not found:
            return None
        rows = np.concatenate(found)
        self.woken += len(rows)
        return self._out(rows)

    def under(self, watch: Watch) -> UInt64s:
        """The hashes of those under a watch, one for each."""
        self._watches[watch.number] = watch
        rows = self.rows.alive_rows()
        chosen = rows[np.asarray(self.rows.take(rows).column(UNDER)) == watch.number]
        return self.rows.hashes(chosen) ^ watch.mixed

    def expired(self, bound: int) -> pa.RecordBatch | None:
        """Those who are too old, and gone now."""
        rows = self.rows.expire(bound)
        return self._out(rows) if len(rows) else None

    def _out(self, rows: Int64s) -> pa.RecordBatch:
        """Rows that are here no more."""
        batch = self.rows.take(rows)
        for number, count in zip(*np.unique(np.asarray(batch.column(UNDER)), return_counts=True), strict=True):
            if number in self._watches:  # after a restart it counts them itself
                self._watches[number].sleepers -= int(count)
        self.rows.discard(rows)
        return batch.select(batch.schema.names[:-1])

    def look(self) -> tuple[int, int]:
        """How many have fallen asleep and how many were woken, since the last look."""
        found, self.slept, self.woken = (self.slept, self.woken), 0, 0
        return found

    def all(self) -> pa.RecordBatch:
        return self.rows.take(self.rows.alive_rows())
