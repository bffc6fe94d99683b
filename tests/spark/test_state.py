"""What a bucket writes to the state store, and how a worker comes by the state again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import toy

from millstream.runtime.program import Packet
from millstream.runtime.spark import shelf
from millstream.runtime.spark import stage as stages
from millstream.runtime.spark.stage import BucketProcessor, Store, attach, leave, save


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
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Store]:
    monkeypatch.setattr(shelf, "base", lambda: str(tmp_path))
    stages._kept.clear()
    yield Store(Handle())
    stages._kept.clear()


def packets(word: str, number: int) -> list[Packet]:
    return [Packet(0, 0, (number, 0, 0), toy.pack({"counts": [[word, 1]]}))]


def batch(program, store: Store, word: str, *, hot: bool = True, fail: bool = False) -> Any:
    stage, head = attach(program, "run", 0, 0, store)
    stage.run(packets(word, 0))
    if fail:
        return stage
    head = save(stage, head, store)
    if hot:
        leave("run", 0, 0, stage, head.token)
    return stage


def counts(store: Store) -> dict[str, int]:
    """What the next worker finds."""
    stage, head = attach(program(), "run", 0, 0, store)
    found = dict(stage.counts)
    leave("run", 0, 0, stage, head.token)
    return found


def program(**settings: Any):
    return toy.ToyProgram((("w", None),), (), **settings)


@pytest.mark.parametrize("same_worker", [True, False])
def test_hot_state_is_used_while_it_is_the_stored_one(store: Store, same_worker: bool) -> None:
    batch(program(), store, "a")
    if not same_worker:
        stages._kept.clear()
    second = batch(program(), store, "a")
    assert counts(store) == {"a": 2} and second.restored == 0


def test_a_shelf_without_room_leaves_the_state_with_the_worker(store: Store) -> None:
    first = batch(program(forgetful=True), store, "a")
    assert batch(program(forgetful=True), store, "a") is first
    assert first.counts == {"a": 2} and first.restored == 0
    stages._kept.clear()
    assert batch(program(forgetful=True), store, "a").restored == 2


def test_a_new_host_rebuilds(store: Store) -> None:
    for _ in range(3):
        batch(program(), store, "a", hot=False)
    again = batch(program(), store, "b", hot=False)
    assert again.counts == {"a": 3, "b": 1} and again.restored == 3


def test_the_leftover_of_a_failed_attempt_is_never_used(store: Store) -> None:
    batch(program(), store, "a")
    batch(program(), store, "x", fail=True)
    batch(program(), store, "b")
    assert counts(store) == {"a": 1, "b": 1}
    stage, _ = attach(program(), "run", 0, 0, store)
    stage.run(packets("x", 0))
    leave("run", 0, 0, stage, b"of an attempt that was not committed")
    batch(program(), store, "c")
    assert counts(store) == {"a": 1, "b": 1, "c": 1}


def test_segments_that_say_nothing_any_more_are_removed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "PIECE", 100)
    sizes = []
    for _ in range(40):
        batch(program(padding=150), store, "a", hot=False)
        sizes.append(len(store.map.values))
    assert max(sizes) < 25 and sizes != sorted(sizes)
    assert batch(program(), store, "b", hot=False).counts == {"a": 40, "b": 1}


def test_nothing_changed_nothing_written(store: Store) -> None:
    stage, head = attach(program(), "run", 0, 0, store)
    assert save(stage, head, store) == head and not store.map.values


def test_a_processor_pickles_before_it_is_opened() -> None:
    import pickle

    from millstream.runtime.spark.wire import Shipment

    pickle.loads(pickle.dumps(BucketProcessor(Shipment("run", b""), 0, last=True)))
