"""Setting up: what is said when Java is missing or old, and who gets which session."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import millstream as ms
from millstream.bench.tree import family
from millstream.errors import SetupProblem
from millstream.runtime.spark import cluster
from millstream.runtime.spark.run import settings_at
from millstream.runtime.spark.session import DYNAMIC, check_java, driver_memory, get_session, sockets


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


def tcp_sockets(pid: int) -> set[str]:
    """The TCP sockets of a process, of either version, by their inodes."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        inodes |= {f"socket:[{line.split()[9]}]" for line in lines}
    open_ = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            open_.add(os.readlink(file))
    return inodes & open_


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="the system does not list sockets there")
def test_workers_open_no_port(spark) -> None:
    """Java and its Python processes meet in a folder that nobody else may open."""
    if not sockets():
        pytest.skip("no directory has a path that is short enough")
    place = Path(spark.conf.get("spark.python.unix.domain.socket.dir"))
    assert stat.S_IMODE(place.stat().st_mode) == stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert len(str(place)) + len("/.01234567-0123-0123-0123-0123456789ab.sock") <= 100
    rows = [{"k": k, "ts": f"2026-01-01 00:00:0{k}"} for k in range(5)]
    session = ms.Session("spark")
    stream = session.add_stream("A", rows, schema="k INT, ts TIMESTAMP", time="ts")
    seen: set[int] = set()
    with stream.window("2 seconds").group_by("k").agg(n="count(*)").start() as query:
        while query.running:
            for pid in family(os.getpid()):
                with suppress(OSError):
                    if b"python" in Path(f"/proc/{pid}/exe").readlink().name.encode() and pid != os.getpid():
                        seen.add(pid)
                        assert not tcp_sockets(pid)
        assert query.wait().to_arrow().num_rows == 5
    assert len(seen) > 1


def test_sockets_go_over_tcp_where_no_path_is_short_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.runtime.spark.session.MOST_OF_A_SOCKET", 10)
    assert sockets() == {}


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
