"""Rows tied by value, and rows found by the order of their keys, against naive ones."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from millstream.state import ordered
from millstream.state.keys import hash_columns
from millstream.state.row_window import RowWindow

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int64())])


@given(st.lists(st.sampled_from(["insert", "tie", "discard", "between", "many"]), max_size=40), st.integers(0, 2**32))
def test_the_last_row_of_a_tied_value_is_known(actions: list[str], seed: int) -> None:
    r = random.Random(seed)
    window = RowWindow(SCHEMA, keys=("k",))
    alive: dict[int, int] = {}  # by name, which no compaction changes
    tied: set[int] = set()
    before, ordered.SHORT = ordered.SHORT, 4
    try:
        for action in actions:
            rows = window.alive_rows()
            names = window.take(rows).column("n").to_pylist()
            if action in ("insert", "many"):
                open_keys = [k for k in range(8) if k not in tied]
                keys = [r.choice(open_keys) for _ in range(40 if action == "many" else 3)] if open_keys else []
                fresh = range(len(alive), len(alive) + len(keys))
                batch = pa.record_batch([pa.array(keys, pa.int64()), pa.array(fresh, pa.int64())], schema=SCHEMA)
                times = np.zeros(len(keys), dtype=np.int64)
                window.insert(batch, hash_columns([batch.column(0)])[0], times, times)
                alive.update(zip(fresh, keys, strict=True))
            elif action == "tie":
                values = r.sample(range(8), 2)
                keys = [pa.array(values, pa.int64())]
                which, found = window.of(keys, *hash_columns(keys))
                window.tie(found, which, 2)
                tied |= set(values)
            elif action == "discard" and len(rows):
                chosen = r.sample(range(len(rows)), r.randint(1, len(rows)))
                last = window.take(window.discard(rows[np.array(chosen)])).column("k").to_pylist()
                gone = {names[at] for at in chosen}
                left = {alive[name] for name in names if name not in gone}
                assert sorted(last) == sorted({alive[name] for name in gone} & tied - left)
            elif action == "between":
                low, high = sorted([r.randrange(9), r.randrange(9)])
                found = window.take(window.between(low, high)).column("n").to_pylist()
                assert found == [name for name in names if low <= alive[name] <= high]
            living = {alive[name] for name in window.take(window.alive_rows()).column("n").to_pylist()}
            assert window.tied == len(living & tied)
    finally:
        ordered.SHORT = before


def test_a_hash_that_stands_twice_finds_its_rows_twice() -> None:
    """More rows than there are: two keys may have one hash."""
    window = RowWindow(SCHEMA, keys=("k",))
    batch = pa.record_batch([pa.array([1, 1, 2], pa.int64()), pa.array([0, 1, 2], pa.int64())], schema=SCHEMA)
    times = np.zeros(3, dtype=np.int64)
    window.insert(batch, hash_columns([batch.column(0)])[0], times, times)
    keys = [pa.array([1, 1, 2, 1], pa.int64())]
    which, rows = window.of(keys, *hash_columns(keys))
    assert list(zip(which.tolist(), rows.tolist(), strict=True)) == [(0, 1), (0, 0), (1, 1), (1, 0), (2, 2), (3, 1), (3, 0)]
