"""Setting up: what is said when Java is missing or old, and who gets which session."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from millstream.errors import SetupProblem
from millstream.runtime.spark import cluster
from millstream.runtime.spark.run import settings_at
from millstream.runtime.spark.session import DYNAMIC, check_java, driver_memory, get_session


def java(place: Path, version: str) -> str:
    (place / "bin").mkdir()
    script = place / "bin" / "java"
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    script.chmod(0o755)
    return str(place)


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_java_that_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", java(tmp_path, version))
    check_java()


@pytest.mark.parametrize(("version", "said"), [("1.8.0_402", "is Java 8"), ("11.0.2", "is Java 11"), ("none", "unknown version")])
def test_java_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, said: str) -> None:
    monkeypatch.setenv("JAVA_HOME", java(tmp_path, version))
    with pytest.raises(SetupProblem, match=said):
        check_java()


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupProblem, match="does not run"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupProblem, match="none was found"):
        check_java()


def test_driver_memory_is_within_reason() -> None:
    assert 1024 <= int(driver_memory().rstrip("m").replace("2g", "2048")) <= 4096


def test_every_thread_gets_the_running_session(spark) -> None:
    got = []
    other = threading.Thread(target=lambda: got.append(get_session().sparkContext.applicationId))
    other.start()
    other.join()
    assert got == [spark.sparkContext.applicationId]


def test_a_running_session_that_is_not_what_is_asked_for_is_refused(spark) -> None:
    """What it has already may be asked for again."""
    assert get_session("local[2]", {"spark.ui.enabled": "false"}) is get_session()
    with pytest.raises(SetupProblem) as refused:
        get_session(
            "local[4]", {"spark.ui.enabled": "true", "spark.task.cpus": "2", "spark.worker.timeout": "60"}
        )
    said = "master = local[4] (it runs on local[2]), spark.ui.enabled = true (it has false), spark.task.cpus = 2 (it has none)"
    assert f"would ignore {said}, spark.worker.timeout = 60 (it has none); stop it first" in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("place", "forced"),
    [("/a/b", True), ("file:///a/b", True), ("hdfs://h:9000/a", False), ("s3a://b/a", False)],
)
def test_how_checkpoints_are_written_is_chosen_where_they_are_local(place: str, forced: bool) -> None:
    name = "spark.sql.streaming.checkpointFileManagerClass"
    assert (name in settings_at(place, {})) is forced
    assert settings_at(place, {name: "own"})[name] == "own"
    assert name not in DYNAMIC  # what every session of ours gets


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("local", "local[1,3]"),
        ("local[*]", "local[*,3]"),
        ("local[2]", "local[2,3]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://h:1", "spark://h:1"),
    ],
)
def test_a_task_on_one_machine_is_tried_again(given: str, used: str) -> None:
    assert cluster.with_retries(given) == used
