"""A Spark session that the user has started: what runs in it, what it may not be asked for, and its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "own_session.py"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program saw. The only `python3` on its PATH has none of our libraries."""
    place = tmp_path_factory.mktemp("bin")
    (place / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    (place / "python3").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    path = os.pathsep.join([str(place), "/usr/bin", "/bin"])
    done = subprocess.run(
        [sys.executable, PROGRAM],
        env={**kept, "PATH": path},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_its_workers_run_under_the_python_of_the_driver(seen: dict[str, Any]) -> None:
    assert seen["workers"] == "python3"
    assert seen["counts"] == [[1, 2]]


@pytest.mark.slow
def test_it_is_left_as_it_was(seen: dict[str, Any]) -> None:
    assert seen["left alone"] == [True, True, True]


@pytest.mark.slow
def test_its_listeners_hear_of_our_queries(seen: dict[str, Any]) -> None:
    assert seen["heard"] == ["progress", "started", "terminated"]


@pytest.mark.slow
def test_values_that_it_would_ignore_are_refused(seen: dict[str, Any]) -> None:
    ignored = "master = local[3] (it runs on local[2]), spark.task.cpus = 2 (it has none)"
    assert (
        seen["refused"]
        == f"a Spark session is running, and would ignore {ignored}; stop it first (`spark.stop()`), or leave these out"
    )


@pytest.mark.slow
def test_when_it_is_stopped_the_query_says_so_and_its_answers_stay(seen: dict[str, Any]) -> None:
    assert seen["stopped"] == "the Spark session was stopped while the query ran; run again"
    assert seen["answers"] > 0
