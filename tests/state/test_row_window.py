"""The window of rows against a list, over random operations, compactions and restarts from the journal."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.errors import DataProblem
from millstream.state.row_window import RowWindow
from tests.state.naive import NaiveRow, NaiveWindow

SCHEMA = pa.schema([("name", pa.int64()), ("text", pa.string())])
EDGES = (MIN_TIME, MIN_TIME + 1, -1, 0, 1, MAX_TIME - 1, MAX_TIME)


class Harness:
    """Drives a window and the list beside it with the same random operations."""

    def __init__(self, seed: int, journal: bool) -> None:
        self.rng = random.Random(seed)
        self.journal = journal
        self.window = RowWindow(SCHEMA, journal=journal)
        self.naive = NaiveWindow()
        self.names = 0
        self.segments: list[tuple[int, bytes]] = []
        self.number = 0
        self.clock = 0
        self.size = self.rng.choice([3, 30, 300])
        self.edges = self.rng.choice([0.0, 0.05])
        self.jitter = self.rng.choice([0, 2, 20])

    def time(self) -> int:
        return self.rng.choice(EDGES) if self.rng.random() < self.edges else self.clock + self.rng.randint(-self.jitter, self.jitter)

    def interval(self) -> tuple[int, int]:
        low, high = sorted([self.time(), self.time()])
        return (low, low) if self.rng.random() < 0.5 else (low, high)

    def hashes(self, size: int) -> np.ndarray:
        return np.array([self.rng.choice([0, 1, 2**63, 2**64 - 1, 2**40, 7]) for _ in range(size)], dtype=np.uint64)

    def spans(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        pairs = [self.interval() for _ in range(size)]
        return np.array([low for low, _ in pairs], dtype=np.int64), np.array([high for _, high in pairs], dtype=np.int64)

    def named(self, rows: np.ndarray) -> list[int]:
        batch = self.window.take(rows)
        assert batch.schema == SCHEMA
        assert batch.column("text").to_pylist() == [f"t{name}" if name % 5 else None for name in batch.column("name").to_pylist()]
        return list(batch.column("name").to_pylist())

    def insert(self) -> None:
        size = self.rng.randrange(self.size)
        names = list(range(self.names, self.names + size))
        self.names += size
        batch = pa.record_batch(
            [pa.array(names, type=pa.int64()), pa.array([f"t{n}" if n % 5 else None for n in names], type=pa.string())], schema=SCHEMA
        )
        hashes, (low, high) = self.hashes(size), self.spans(size)
        own = self.rng.random() < 0.5
        expiry = np.array([self.time() for _ in names], dtype=np.int64) if own else high
        matched = np.array([self.rng.random() < 0.2 for _ in names], dtype=np.bool_) if own else np.zeros(size, dtype=np.bool_)
        first = self.window.insert(batch, hashes, low, high, expiry if own else None, matched if own else None)
        assert self.named(np.arange(first, first + size)) == names
        self.naive.rows += [
            NaiveRow(*row)
            for row in zip(names, hashes.tolist(), low.tolist(), high.tolist(), expiry.tolist(), matched.tolist(), strict=True)
        ]
        self.clock += self.rng.randrange(4)

    def probe(self) -> None:
        size = self.rng.randrange(20)
        hashes, (low, high) = self.hashes(size), self.spans(size)
        valid = np.array([self.rng.random() < 0.9 for _ in range(size)], dtype=np.bool_)
        limit = self.rng.choice([1, 2, 7, 1000])
        pairs: list[tuple[int, int]] = []
        for probes, rows in self.window.probe(hashes, valid, low, high, limit):
            assert 0 < len(probes) <= limit
            pairs += zip(probes.tolist(), self.named(rows), strict=True)
        asked = list(zip(hashes.tolist(), valid.tolist(), low.tolist(), high.tolist(), strict=True))
        assert pairs == self.naive.pairs(asked)

    def find(self) -> None:
        hashes = self.hashes(2)
        wanted = set(hashes.tolist())
        asked = np.unique(hashes)
        which, rows = self.window.of([], asked, np.ones(len(asked), dtype=np.bool_), True)
        assert self.named(np.sort(rows)) == [row.name for row in self.naive.rows if row.hash in wanted]
        assert [row.hash for row in self.naive.rows if row.hash in wanted] == asked[which[np.argsort(rows)]].tolist()

    def expire(self) -> None:
        mark = self.rng.choice([self.clock - 20, self.clock, self.clock + 5, self.time()])
        rows = self.window.expire(mark)
        assert self.named(rows) == self.naive.expired(mark)
        if self.rng.random() < 0.8:
            self.drop(rows)

    def discard(self) -> None:
        rows = self.window.alive_rows()
        if len(rows):
            self.drop(np.array([self.rng.choice(rows) for _ in range(self.rng.randrange(self.size))], dtype=np.int64))

    def drop(self, rows: np.ndarray) -> None:
        self.naive.discard(set(self.named(rows)))
        self.window.discard(rows)

    def match(self) -> None:
        rows = self.window.alive_rows()
        if len(rows):
            rows = np.array([self.rng.choice(rows) for _ in range(5)], dtype=np.int64)
            self.window.mark_matched(rows)
            names = set(self.named(rows))
            for row in self.naive.rows:
                row.matched |= row.name in names

    def prolong(self) -> None:
        rows = self.window.alive_rows()
        if len(rows):
            chosen = np.array([self.rng.choice(rows) for _ in range(5)], dtype=np.int64)
            until = {name: self.time() for name in self.named(chosen)}
            self.window.prolong(chosen, np.array([until[name] for name in self.named(chosen)], dtype=np.int64))
            for row in self.naive.rows:
                row.expiry = max(row.expiry, until.get(row.name, row.expiry))

    def write(self) -> None:
        if self.journal:
            self.append(0)
            assert self.window.changes() is None

    def append(self, since: int) -> None:
        self.number += 1
        segment = self.window.changes(self.number, since)
        if segment is not None:
            self.segments.append((self.number, segment.data))

    def drop_segments(self) -> None:
        """The oldest segments go; what they alone said is said again."""
        if self.journal:
            since = self.rng.randint(1, self.number + 1)
            self.append(since)
            self.segments = [segment for segment in self.segments if segment[0] >= since]

    def restart(self) -> None:
        if not self.journal:
            return
        self.write()
        self.window = RowWindow(SCHEMA, journal=self.journal)
        self.window.restore(self.segments)

    def check(self) -> None:
        rows = self.window.alive_rows()
        assert len(self.window) == len(rows) == len(self.naive.rows)
        assert self.named(rows) == [row.name for row in self.naive.rows]
        assert self.window.is_matched(rows).tolist() == [row.matched for row in self.naive.rows]
        assert self.window.expiries(rows).tolist() == [row.expiry for row in self.naive.rows]
        if self.journal:
            assert (np.diff(self.window.numbers(rows)) > 0).all()


CHOICES = ["insert", "insert", "insert", "probe", "find", "expire", "discard", "match", "prolong", "write", "drop_segments", "restart"]
OPERATIONS = st.lists(st.sampled_from(CHOICES), max_size=40)


@given(OPERATIONS, st.integers(0, 2**32), st.booleans())
def test_random_operations(operations: list[str], seed: int, journal: bool) -> None:
    harness = Harness(seed, journal)
    for operation in operations:
        getattr(harness, operation)()
        harness.check()


def test_memory_is_bounded_by_live_state() -> None:
    window = RowWindow(pa.schema([("x", pa.int64())]))
    batch, hashes = pa.record_batch({"x": pa.array(range(1000))}), np.arange(1000, dtype=np.uint64)
    for step in range(300):
        times = np.full(1000, step, dtype=np.int64)
        window.insert(batch, hashes, times, times)
        window.discard(window.expire(step - 9))
    assert len(window) == 10_000
    assert window.nbytes < 3 * 10_000 * (8 + 32 + 8 + 8 + 8 + 8 + 2)


def test_a_damaged_segment_is_noticed() -> None:
    window = RowWindow(pa.schema([("x", pa.int64())]), journal=True)
    zeros = np.zeros(1, dtype=np.int64)
    window.insert(pa.record_batch({"x": pa.array([1])}), zeros.view(np.uint64), zeros, zeros)
    first = window.changes(1)
    assert first is not None
    with pytest.raises(DataProblem, match="damaged"):
        RowWindow(window.schema).restore([(1, b"????" + first.data)])


def test_no_journal_no_changes() -> None:
    with pytest.raises(RuntimeError, match="no journal"):
        RowWindow(SCHEMA).changes()
