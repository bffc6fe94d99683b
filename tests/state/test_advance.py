"""A follower that takes up the changes of another container behaves as that one does."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from millstream.state.accumulators import AccumulatorSpec
from millstream.state.group_table import GroupTable
from millstream.state.keys import hash_columns
from millstream.state.registers import Registers
from millstream.state.row_window import RowWindow

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64())])
blocks = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(0, 50)), max_size=12)
steps = st.lists(st.tuples(blocks, st.integers(0, 60), st.booleans()), max_size=8)


def batch_of(rows: list[tuple[str | None, int]]) -> pa.RecordBatch:
    columns = [pa.array([r[0] for r in rows], pa.string()), pa.array([r[1] for r in rows], pa.int64())]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def contents(window: RowWindow) -> list[tuple[object, ...]]:
    rows = window.alive_rows()
    batch = window.take(rows)
    return list(zip(batch.column("k").to_pylist(), batch.column("v").to_pylist(), window.is_matched(rows).tolist(), strict=True))


@given(steps)
def test_rows_follow(steps: list[tuple[list[tuple[str | None, int]], int, bool]]) -> None:
    leader, follower = RowWindow(SCHEMA, journal=True), RowWindow(SCHEMA, journal=True)
    for rows, mark, snapshot in steps:
        batch = batch_of(rows)
        if rows:
            hashes, _, _ = hash_columns([batch.column("k")], null_is_value=True)
            axis = np.array([r[1] for r in rows], dtype=np.int64)
            leader.insert(batch, hashes, axis, axis)
            leader.mark_matched(leader.alive_rows()[::3])
        leader.discard(leader.expire(mark))
        if snapshot:
            follower.advance([leader.snapshot()])
        elif (changes := leader.changes()) is not None:
            follower.advance([changes])
        assert contents(follower) == contents(leader)


@given(steps)
def test_groups_follow(steps: list[tuple[list[tuple[str | None, int]], int, bool]]) -> None:
    specs = [AccumulatorSpec("count"), AccumulatorSpec("sum", pa.int64())]
    keys = pa.schema([("k", pa.string())])
    leader, follower = (GroupTable(keys, specs, journal=True) for _ in range(2))
    for rows, mark, snapshot in steps:
        batch = batch_of(rows)
        if rows:
            groups, _ = leader.upsert([batch.column("k")], np.array([r[1] // 10 for r in rows], dtype=np.int64))
            leader.update(0, groups)
            leader.update(1, groups, batch.column("v"))
        leader.discard(leader.expire(mark // 10))
        if snapshot:
            follower.advance([leader.snapshot()])
        elif (changes := leader.changes()) is not None:
            follower.advance([changes])
        assert answer(follower) == answer(leader)


def answer(table: GroupTable) -> list[tuple[object, ...]]:
    keys, axis, (counts, sums) = table.result(table.alive())
    found = zip(keys.column(0).to_pylist(), axis.tolist(), counts.to_pylist(), sums.to_pylist(), strict=True)
    return sorted(found, key=str)


def test_registers_follow() -> None:
    leader, follower = Registers(journal=True), Registers(journal=True)
    leader["a"], leader["b"] = 1, 2
    follower.advance([leader.changes() or b""])
    del leader["a"]
    leader["c"] = 3
    follower.advance([leader.changes() or b""])
    assert {name: follower[name] for name in follower} == {"b": 2, "c": 3}
    follower.advance([leader.snapshot()])
    assert {name: follower[name] for name in follower} == {"b": 2, "c": 3}
