"""What a bucket writes to the state store, and how a worker comes by the state again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import toy

from millstream.runtime.program import Packet
from millstream.runtime.spark import stage as stages
from millstream.runtime.spark.stage import BucketProcessor, Hot, Store, attach, save


class MapInMemory:
    def __init__(self) -> None:
        self.values: dict[tuple[int], tuple[Any, ...]] = {}
        self.reads = 0

    def getValue(self, key):
        self.reads += 1
        return self.values.get(key)

    def updateValue(self, key, value) -> None:
        self.values[key] = value

    def removeKey(self, key) -> None:
        del self.values[key]


class Handle:
    def __init__(self) -> None:
        self.map = MapInMemory()

    def getMapState(self, *_: object) -> MapInMemory:
        return self.map


@pytest.fixture
def store() -> Iterator[Store]:
    stages._hot.clear()
    yield Store(Handle())
    stages._hot.clear()


def packets(word: str, number: int) -> list[Packet]:
    return [Packet(0, 0, (number, 0, 0), toy.pack({"counts": [[word, 1]]}))]


def batch(program, store: Store, word: str, *, hot: bool = True, fail: bool = False) -> Any:
    stage, head = attach(program, "run", 0, 0, store)
    stage.run(packets(word, 0))
    if fail:
        return stage
    head = save(stage, head, store)
    if hot:
        stages._hot["run", 0, 0] = Hot(stage, head.token, head.end)
    return stage


def program(**settings: Any):
    return toy.ToyProgram((("w", None),), (), **settings)


def test_hot_state_is_used_while_it_is_the_stored_one(store: Store) -> None:
    first = batch(program(), store, "a")
    assert batch(program(), store, "a") is first
    assert first.counts == {"a": 2} and first.restored == 0


def test_a_new_worker_rebuilds(store: Store) -> None:
    for _ in range(3):
        batch(program(), store, "a", hot=False)
    again = batch(program(), store, "b")
    assert again.counts == {"a": 3, "b": 1} and again.restored == 3


def test_the_leftover_of_a_failed_attempt_is_never_used(store: Store) -> None:
    batch(program(), store, "a")
    batch(program(), store, "x", fail=True)
    assert batch(program(), store, "b").counts == {"a": 1, "b": 1}
    stage, head = attach(program(), "run", 0, 0, store)
    stages._hot["run", 0, 0] = Hot(stage, b"of an attempt that was not committed", head.end)
    assert batch(program(), store, "c").counts == {"a": 1, "b": 1, "c": 1}


def test_a_worker_left_behind_reads_only_what_it_missed(store: Store) -> None:
    old = batch(program(), store, "a")
    left = stages._hot.pop(("run", 0, 0))
    for _ in range(3):
        batch(program(), store, "b", hot=False)
    stages._hot["run", 0, 0] = left
    assert batch(program(), store, "c") is old
    assert old.counts == {"a": 1, "b": 3, "c": 1} and old.restored == 3


def test_snapshots_replace_the_log(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "PIECE", 100)
    monkeypatch.setattr(stages, "LEAST_LOG", 1000)
    sizes = []
    for _ in range(40):
        batch(program(padding=150), store, "a", hot=False)
        sizes.append(len(store.map.values))
    assert max(sizes) < 25 and sizes != sorted(sizes)
    assert batch(program(), store, "b").counts == {"a": 40, "b": 1}


def test_nothing_changed_nothing_written(store: Store) -> None:
    stage, head = attach(program(), "run", 0, 0, store)
    assert save(stage, head, store) == head and not store.map.values


def test_a_processor_pickles_before_it_is_opened() -> None:
    import pickle

    from millstream.runtime.spark.wire import Shipment

    pickle.loads(pickle.dumps(BucketProcessor(Shipment("run", b""), 0, last=True)))
