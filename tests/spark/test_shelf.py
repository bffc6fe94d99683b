"""The shelf: what one worker leaves another finds, once, and only as the state it is; nothing stays behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from millstream.runtime.spark import shelf
from millstream.runtime.spark.shelf import Shelf, owner_name, sweep

ROWS = 50_000


def big() -> np.ndarray:
    return np.arange(ROWS, dtype=np.int64)


def test_what_is_left_is_found_once(tmp_path: Path) -> None:
    place = Shelf("run", 0, 1, str(tmp_path))
    assert place.take(b"one") is None
    assert place.put(b"one", {"numbers": big(), "small": np.arange(3), "name": "x"})
    found = place.take(b"one")
    assert found["numbers"].tolist() == big().tolist() and found["small"].tolist() == [0, 1, 2] and found["name"] == "x"
    assert place.take(b"one") is None


def test_under_another_token_it_does_not_count(tmp_path: Path) -> None:
    place = Shelf("run", 0, 0, str(tmp_path))
    place.put(b"one", [big()])
    assert place.take(b"two") is None and place.take(b"one") is None


def test_arrays_are_changed_in_place_and_written_no_more(tmp_path: Path) -> None:
    place = Shelf("run", 0, 0, str(tmp_path))
    place.put(b"one", [big(), big()])
    files = set(os.listdir(place.folder))
    first, second = place.take(b"one")
    first[7] = -7
    place.put(b"two", [first, np.concatenate([second, second])])
    kept = files & set(os.listdir(place.folder)) - {"state"}
    assert len(kept) == 1 and len(os.listdir(place.folder)) == 3  # the array that grew has replaced its file
    first, second = place.take(b"two")
    assert first[7] == -7 and len(second) == 2 * ROWS


def test_another_process_goes_on_with_it(tmp_path: Path) -> None:
    place = Shelf("run", 0, 0, str(tmp_path))
    place.put(b"one", {"numbers": big(), "nested": pa.array([[1, 2]] * ROWS)})
    other = f"""
from millstream.runtime.spark.shelf import Shelf
place = Shelf("run", 0, 0, {str(tmp_path)!r})
found = place.take(b"one")
found["numbers"] += 1
assert found["nested"][-1].as_py() == [1, 2]
place.put(b"two", found)
"""
    subprocess.run([sys.executable, "-c", other], check=True)
    assert place.take(b"two")["numbers"].tolist() == (big() + 1).tolist()


def test_a_worker_that_died_half_way_leaves_nothing_to_take(tmp_path: Path) -> None:
    place = Shelf("run", 0, 0, str(tmp_path))
    place.put(b"one", [big()])
    other = f"""
import os, signal
from millstream.runtime.spark.shelf import Shelf
found, = Shelf("run", 0, 0, {str(tmp_path)!r}).take(b"one")
found[:] = 0
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", other]).returncode == -9
    assert place.take(b"one") is None


def test_no_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Shelf("run", 0, 0, str(tmp_path))
    place.put(b"one", [big()])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(place, "_write", full)
    assert not place.put(b"two", [big()])
    assert place.take(b"one") is None and not os.path.exists(place.folder)


def test_what_dead_runs_have_left_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "base", lambda: str(tmp_path))
    living, dead = Shelf("living", 0, 0), Shelf("dead", 0, 0)
    living.put(b"", [big()])
    dead.put(b"", [big()])
    os.rename(os.path.join(dead.run, owner_name(os.getppid())), os.path.join(dead.run, f"owner-{os.getppid()}-1"))
    sweep()
    assert os.path.exists(living.run) and not os.path.exists(dead.run)
    sweep(leaving=os.getppid())
    assert not os.path.exists(living.run)


def test_the_first_state_of_a_run_sweeps_what_dead_runs_have_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the daemon of the workers is not ours."""
    monkeypatch.setattr(shelf, "base", lambda: str(tmp_path))
    dead = Shelf("dead", 0, 0)
    dead.put(b"", [big()])
    os.rename(
        os.path.join(dead.run, owner_name(os.getppid())), os.path.join(dead.run, f"owner-{os.getppid()}-1")
    )
    Shelf("new", 0, 0).put(b"", [big()])
    assert not os.path.exists(dead.run)


def test_memory_of_replaced_files_comes_back(tmp_path: Path) -> None:
    place = Shelf("run", 0, 0, str(tmp_path))
    place.put(b"one", [big()])
    place.take(b"one")
    assert len(shelf._mapped[place.folder]) == 1
    for name in os.listdir(place.folder):
        os.unlink(os.path.join(place.folder, name))  # as another worker does when it has replaced them
    shelf.let_go()
    assert place.folder not in shelf._mapped
