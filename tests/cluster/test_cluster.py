"""The same file on a cluster: executors get our package, a checkpoint goes on with more of them, what is missing is one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.kit import EXPECTED, answer, prepare, run, standalone

ROOT = Path(__file__).parents[2]
ONE, TWO = "local-cluster[1,1,1024]", "local-cluster[2,1,1024]"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    prepare(tmp_path)
    return tmp_path


def test_a_master_that_does_not_answer_is_one_line(place: Path) -> None:
    done = run(place, "--master", "spark://127.0.0.1:1")
    assert done.code == 3
    last = "no Spark master answers at spark://127.0.0.1:1: Connection refused; check the address, and that the master runs"
    assert done.err.splitlines() == ["starting Spark ...", last]


@pytest.mark.slow
def test_a_wrong_master_is_one_line(place: Path) -> None:
    done = run(place, "--master", "sparkle")
    assert done.code == 1
    assert done.err.splitlines()[1].startswith("Spark could not be started on sparkle: ") and len(done.err.splitlines()) == 2, done.err


@pytest.mark.slow
def test_a_checkpoint_made_with_one_executor_goes_on_with_two(place: Path) -> None:
    first = run(place, "--master", ONE, "--checkpoint", "checkpoint", stop_after=3)
    assert first.code == 0 and "stopped" in first.err, first.err
    before = json.loads((place / "checkpoint" / "millstream.json").read_text())["buckets"]
    second = run(place, "--master", TWO, "--checkpoint", "checkpoint")
    assert second.code == 0, second.err
    assert answer(place) == EXPECTED
    assert json.loads((place / "checkpoint" / "millstream.json").read_text())["buckets"] == before


@pytest.mark.slow
def test_a_checkpoint_of_one_core_goes_on_with_more(place: Path) -> None:
    """One bucket by default, and still one where three cores would make three."""
    first = run(place, "--master", "local[1]", "--checkpoint", "checkpoint", stop_after=3)
    assert first.code == 0, first.err
    second = run(place, "--master", "local[3]", "--checkpoint", "checkpoint")
    assert second.code == 0, second.err
    assert answer(place) == EXPECTED
    assert json.loads((place / "checkpoint" / "millstream.json").read_text())["buckets"] == 1


@pytest.mark.slow
def test_a_standalone_cluster_gets_our_package(place: Path) -> None:
    """Its workers know nothing of ours: what they run is what was sent."""
    with standalone(place, workers=2) as master:
        done = run(place, "--master", master, "--conf", "spark.executor.memory=512m")
        assert done.code == 0, done.err
        sent = [path for path in place.glob("worker-*/*/*/millstream_package/millstream/runtime/spark/daemon.py")]
        assert len(sent) == 2
    assert answer(place) == EXPECTED


@pytest.mark.slow
def test_a_cluster_without_workers_is_one_line(place: Path) -> None:
    with standalone(place, workers=0) as master:
        done = run(place, "--master", master, "--conf", "spark.scheduler.maxRegisteredResourcesWaitingTime=3s")
    assert done.code == 3
    assert done.err.splitlines()[-1].startswith(f"{master} gave no executor within 3 s; has it workers"), done.err


@pytest.mark.slow
def test_executors_without_our_python_are_one_line(place: Path) -> None:
    done = run(place, "--master", ONE, environment={"PYSPARK_PYTHON": "/nowhere/python3"})
    assert done.code == 1
    assert "an executor can not run /nowhere/python3; PYSPARK_PYTHON names" in done.err.splitlines()[-1], done.err


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_shared_suite_on_two_executors() -> None:
    """In a process of its own: a process has one Spark, and this one's may be on one machine."""
    chosen = ["-m", "not slow", "-k", "test_spark or test_letters", "tests/runtimes/test_runtimes.py"]
    command = [sys.executable, "-m", "pytest", "-q", *chosen]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "MILLSTREAM_TEST_MASTER": TWO}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
