"""The group table against a dictionary, over random operations, bad hashes, compactions and restarts from the journal."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.kernels.partition import bucket_of
from millstream.state import keys
from millstream.state.accumulators import AccumulatorSpec
from millstream.state.group_table import GroupTable
from tests.state.naive import canonical
from tests.state.samples import KEY_TYPES, array_of, values_of

SPECS = (
    AccumulatorSpec("count"),
    AccumulatorSpec("sum", pa.int64()),
    AccumulatorSpec("max", pa.string()),
    AccumulatorSpec("min", pa.string()),
)
EDGES = (MIN_TIME, MAX_TIME, MAX_TIME - 1, -1, 0)
Key = tuple[Any, ...]


class Harness:
    """Drives a table and the dictionary beside it with the same random operations."""

    def __init__(self, seed: int, journal: bool) -> None:
        self.rng = random.Random(seed)
        self.journal = journal
        kinds = [self.rng.choice(KEY_TYPES) for _ in range(self.rng.choice([0, 1, 1, 2, 3]))]
        self.schema = pa.schema([(f"k{i}", kind) for i, kind in enumerate(kinds)])
        self.table = GroupTable(self.schema, SPECS, journal=journal)
        self.naive: dict[Key, list[tuple[int | None, str | None]]] = {}
        self.segments: list[tuple[int, bytes]] = []
        self.number = 0
        self.clock = 0
        self.size = self.rng.choice([3, 30, 300])
        self.spread = self.rng.choice([2, 6, 1000])
        self.nulls = self.rng.choice([0.0, 0.2])

    def axis(self) -> int:
        return self.rng.choice(EDGES) if self.rng.random() < 0.02 else self.clock + self.rng.randrange(-3, 3)

    def named(self, groups: np.ndarray) -> list[Key]:
        batch, axis = self.table.keys(groups), self.table.axis(groups)
        assert batch.schema == self.schema
        columns = [[canonical(value) for value in values_of(column)] for column in batch.columns]
        return list(zip(axis.tolist(), *columns, strict=True))

    def insert(self) -> None:
        size = self.rng.randrange(self.size)
        columns = [array_of(field.type, size, self.rng, self.nulls, self.spread) for field in self.schema]
        axis = np.array([self.axis() for _ in range(size)], dtype=np.int64)
        names = list(zip(axis.tolist(), *[map(canonical, values_of(column)) for column in columns], strict=True))
        groups, first = self.table.upsert(columns, axis)
        assert self.named(groups) == names
        assert self.table.lookup(columns, axis).tolist() == groups.tolist()
        new = [names[i] for i in first]
        assert len(set(new)) == len(new) and set(new) == set(names) - set(self.naive)
        numbers = [self.rng.choice([None, self.rng.randrange(-9, 9)]) for _ in range(size)]
        texts = [self.rng.choice([None, "", "a", "b" * self.rng.randrange(9)]) for _ in range(size)]
        self.table.update(0, groups)
        self.table.update(1, groups, pa.array(numbers, type=pa.int64()))
        self.table.update(2, groups, pa.array(texts, type=pa.string()))
        self.table.update(3, groups, pa.array(texts, type=pa.string()))
        for name, number, text in zip(names, numbers, texts, strict=True):
            self.naive.setdefault(name, []).append((number, text))
        self.clock += self.rng.randrange(3)

    def lookup(self) -> None:
        columns = [array_of(field.type, 20, self.rng, self.nulls, self.spread) for field in self.schema]
        axis = np.array([self.axis() for _ in range(20)], dtype=np.int64)
        names = list(zip(axis.tolist(), *[map(canonical, values_of(column)) for column in columns], strict=True))
        groups = self.table.lookup(columns, axis)
        assert (groups >= 0).tolist() == [name in self.naive for name in names]
        assert self.named(groups[groups >= 0]) == [name for name in names if name in self.naive]

    def of(self) -> None:
        places = sorted(self.rng.sample(range(len(self.schema)), self.rng.randint(1, len(self.schema)))) if len(self.schema) else []
        if not places:
            return
        values = [array_of(self.schema.field(place).type, 20, self.rng, self.nulls, self.spread) for place in places]
        wanted = set(zip(*[map(canonical, values_of(column)) for column in values], strict=True))
        groups = self.table.of(tuple(self.schema.names[place] for place in places), values)
        assert groups.tolist() == sorted(groups.tolist())
        found = [name for name in self.naive if tuple(name[1 + place] for place in places) in wanted]
        assert sorted(map(repr, self.named(groups))) == sorted(map(repr, found))

    def expire(self) -> None:
        mark = self.rng.choice([self.clock - 3, self.clock, self.axis()])
        groups = self.table.expire(mark)
        assert groups.tolist() == sorted(groups.tolist())
        assert sorted(map(repr, self.named(groups))) == sorted(repr(name) for name in self.naive if name[0] < mark)
        if self.rng.random() < 0.8:
            self.drop(groups)

    def discard(self) -> None:
        groups = self.table.alive()
        if len(groups):
            self.drop(np.array([self.rng.choice(groups) for _ in range(self.rng.randrange(self.size))], dtype=np.int64))

    def drop(self, groups: np.ndarray) -> None:
        for name in set(self.named(groups)):
            del self.naive[name]
        self.table.discard(groups)

    def write(self) -> None:
        if self.journal:
            self.append(0)
            assert self.table.changes() is None

    def append(self, since: int) -> None:
        self.number += 1
        segment = self.table.changes(self.number, since)
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
        self.table = GroupTable(self.schema, SPECS, journal=self.journal)
        self.table.restore(self.segments)

    def check(self) -> None:
        groups = self.table.alive()
        assert len(self.table) == len(groups)
        _, _, results = self.table.result(groups)
        found = list(zip(*[result.to_pylist() for result in results], strict=True))
        assert [result.type for result in results] == [spec.result_type for spec in SPECS]
        expected = {}
        for name, rows in self.naive.items():
            numbers, texts = [n for n, _ in rows if n is not None], [t for _, t in rows if t is not None]
            expected[name] = (len(rows), sum(numbers) if numbers else None, max(texts, default=None), min(texts, default=None))
        assert dict(zip(self.named(groups), found, strict=True)) == expected


OPERATIONS = st.lists(
    st.sampled_from(["insert", "insert", "insert", "lookup", "of", "of", "expire", "discard", "write", "drop_segments", "restart"]),
    max_size=30,
)


@given(OPERATIONS, st.integers(0, 2**32), st.booleans())
def test_random_operations(operations: list[str], seed: int, journal: bool) -> None:
    harness = Harness(seed, journal)
    for operation in operations:
        getattr(harness, operation)()
        harness.check()


@given(OPERATIONS, st.integers(0, 2**32), st.booleans())
def test_random_operations_with_a_terrible_hash(operations: list[str], seed: int, journal: bool) -> None:
    honest = keys.hash_column

    def terrible(array: pa.Array) -> tuple[np.ndarray, bool]:
        return honest(array)[0] % np.uint64(3), False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "hash_column", terrible)
        patch.setattr(keys, "combine", lambda hashes, others: np.copyto(hashes, (hashes + others) % np.uint64(3)))
        test_random_operations.hypothesis.inner_test(operations, seed, journal)


def test_null_and_the_number_with_its_hash() -> None:
    from tests.kernels.test_hashing import unmix

    twin = unmix(int(keys.NULL_HASH))
    zero = np.zeros(1, dtype=np.int64)
    for order in ([None, twin], [twin, None]):
        table = GroupTable(pa.schema([("k", pa.uint64())]), [])
        groups = [int(table.upsert([pa.array([value], type=pa.uint64())], zero)[0][0]) for value in [*order, *order]]
        assert groups == [0, 1, 0, 1]


def test_keys_of_one_bucket_spread_over_all_slots() -> None:
    numbers = np.arange(200_000)
    hashes, _, _ = keys.hash_columns([pa.array(numbers)])
    mine = numbers[bucket_of(hashes, 64) == 5]
    table = GroupTable(pa.schema([("k", pa.int64())]), [])
    table.upsert([pa.array(mine)], np.zeros(len(mine), dtype=np.int64))
    parts = np.add.reduceat(table._slots != 0, np.arange(0, len(table._slots), len(table._slots) // 16))
    assert parts.min() > 0.5 * len(mine) / 16


def test_numbers_hold_until_the_next_upsert() -> None:
    table = GroupTable(pa.schema([("k", pa.int64())]), [AccumulatorSpec("count")])
    for step in range(20):
        groups, first = table.upsert([pa.array(range(1000))], np.full(1000, step))
        assert len(first) == 1000
        table.update(0, groups)
        old = table.expire(step)
        table.discard(old)
        batch, axis, (counts,) = table.result(groups)
        assert batch.column(0).to_pylist() == list(range(1000)) and set(axis.tolist()) == {step} and set(counts.to_pylist()) == {1}


def test_memory_is_bounded_by_live_state() -> None:
    table = GroupTable(pa.schema([("k", pa.int64())]), [AccumulatorSpec("count")])
    for step in range(300):
        groups, _ = table.upsert([pa.array(range(1000))], np.full(1000, step))
        table.update(0, groups)
        table.discard(table.expire(step - 9))
    assert len(table) == 10_000
    assert table.nbytes < 3 * 10_000 * (8 + 8 + 8 + 8 + 8 + 1 + 24) + 40_000


def test_few_groups_take_little_room() -> None:
    table = GroupTable(pa.schema([("k", pa.int64())]), [AccumulatorSpec("count")])
    groups, first = table.upsert([pa.array(np.arange(65536) % 10)], np.zeros(65536, dtype=np.int64))
    assert len(first) == 10 and groups.tolist() == [i % 10 for i in range(65536)]
    assert table.nbytes < 100_000
