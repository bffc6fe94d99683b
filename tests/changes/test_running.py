"""Changes to runs over real files, on both runtimes, and what a crash leaves of them."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import millstream as ms
from millstream.runtime.control import Control

TEXT = """
CREATE STREAM S (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE
  WITH (path = '{place}/in', format = 'csv', watch = true);
CREATE STREAM Other (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE
  WITH (path = '{place}/other', format = 'csv', watch = true);
CREATE SINK Counts WITH (path = '{place}/counts', format = 'jsonl');
INSERT INTO Counts SELECT k, count(*) AS n FROM S [RANGE 1 MINUTE] GROUP BY k;
"""
SUMS = """
CREATE SINK Sums WITH (path = '{place}/sums', format = 'jsonl');
INSERT INTO Sums SELECT k, sum(v) AS total FROM S [RANGE 1 MINUTE] WHERE k > 0 GROUP BY k;
"""
JOINED = """
CREATE SINK Joined WITH (path = '{place}/joined', format = 'jsonl');
INSERT INTO Joined SELECT S.k AS k, S.v AS v FROM S [RANGE 1 HOUR] AS S JOIN Other [RANGE 1 HOUR] AS O ON S.k = O.k;
"""
MINUTES = 8


def minute(place: Path, number: int) -> None:
    """A file with the tuples of one minute: the one before is complete then."""
    rows = [f"{second % 3},{number * 60 + second},2026-01-01 12:{number:02d}:{second:02d}" for second in range(60)]
    hidden = place / "in" / f".{number}"
    hidden.write_text("\n".join(["k,v,ts", *rows, ""]))
    hidden.rename(place / "in" / f"{number:03d}.csv")


def told(place: Path, sink: str) -> list[tuple[int, int, int]]:
    """(minute, key, value) of what a sink shows."""
    rows = [json.loads(line) for file in (place / sink).glob("part-*") for line in file.read_text().splitlines()]
    value = {"counts": "n", "sums": "total"}[sink]
    return sorted((int(row["window_start"][14:16]), row["k"], row[value]) for row in rows)


def until(condition: Callable[[], object], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def complete(place: Path, sink: str, number: int) -> Callable[[], bool]:
    return lambda: any(row[0] == number for row in told(place, sink))


SAID: list[str] = []
"""What the run that was started last has said."""


@contextmanager
def running(place: Path, runtime: str, checkpoint: str | None = None, directory: Path | None = None) -> Iterator[Control]:
    session = ms.Session(runtime, "local[2]" if runtime == "spark" else None)
    session.sql(TEXT.replace("{place}", str(place)))
    SAID.clear()
    control, stop = Control(None if directory is None else str(directory), say=SAID.append), threading.Event()
    problems: list[BaseException] = []

    def work() -> None:
        try:
            session.run(checkpoint=checkpoint, stop=stop, control=control)
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield control
    finally:
        stop.set()
        thread.join(60)
    assert not problems, problems


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("in", "other", "control"):
        (tmp_path / name).mkdir()
    return tmp_path


def counts(minutes: range) -> list[tuple[int, int, int]]:
    return [(number, key, 20) for number in minutes for key in range(3)]


def sums(minutes: range) -> list[tuple[int, int, int]]:
    return [(n, key, sum(n * 60 + second for second in range(60) if second % 3 == key)) for n in minutes for key in (1, 2)]


@pytest.mark.parametrize("runtime", ["local", "spark"])
def test_queries_come_and_go_while_files_come(runtime: str, place: Path, request: pytest.FixtureRequest) -> None:
    if runtime == "spark":
        request.getfixturevalue("spark")
    with running(place, runtime) as control:
        minute(place, 0)
        minute(place, 1)
        until(complete(place, "counts", 0))
        control.ask(SUMS.replace("{place}", str(place)))
        minute(place, 2)
        minute(place, 3)
        until(complete(place, "sums", 2))
        with pytest.raises(ms.MillstreamError, match="no sink `Nowhere`"):
            control.ask("INSERT INTO Nowhere SELECT k FROM S")
        control.ask("SET execution.strategy = 'breadth-first'; DROP QUERY Counts")
        before = told(place, "counts")
        minute(place, 4)
        until(complete(place, "sums", 3))
        control.ask(JOINED.replace("{place}", str(place)))  # of a stream that nobody has read
        (place / "other" / "1.csv").write_text("k,ts\n1,2026-01-01 12:05:00\n")
        minute(place, 5)
        until(complete(place, "sums", 4))
        until(lambda: any(file.read_text() for file in (place / "joined").glob("part-*")))
    assert told(place, "counts") == before == counts(range(3))
    assert told(place, "sums") == sums(range(2, 5))
    with pytest.raises(ms.MillstreamError, match="the run is over"):
        control.ask("DROP QUERY Sums")


def test_a_checkpoint_keeps_what_was_changed(place: Path, spark: object) -> None:
    checkpoint = str(place / "checkpoint")
    with running(place, "spark", checkpoint) as control:
        minute(place, 0)
        minute(place, 1)
        until(complete(place, "counts", 0))
        control.ask(SUMS.replace("{place}", str(place)))
        minute(place, 2)
        until(complete(place, "counts", 1))
    minute(place, 3)
    with running(place, "spark", checkpoint) as control:
        until(complete(place, "sums", 2))
        control.ask("DROP QUERY Counts")
        minute(place, 4)
        until(complete(place, "sums", 3))
    log = place / "checkpoint" / "millstream-spool" / "changes.jsonl"
    written = log.read_text()
    assert written.count("\n") == 2
    # One that was written down, but which no micro-batch was planned with, is made then, or found to be wrong and forgotten.
    log.write_text(written + json.dumps({"text": "DROP QUERY Gone", "variables": {}, "file": None}) + "\n")
    refused = "this needs 2 stages, and the run keeps the 1 that it began with; start a new run with SET execution.stages = 2;"
    with running(place, "spark", checkpoint, place / "control") as control:
        minute(place, 5)
        until(complete(place, "sums", 4))
        with pytest.raises(ms.MillstreamError, match=re.escape(refused)):
            control.ask("""
                CREATE SINK Deep WITH (connector = 'memory');
                INSERT INTO Deep SELECT n, count(*) AS m
                FROM (SELECT k, count(*) AS n FROM S [RANGE 1 MINUTE] GROUP BY k) [RANGE 1 HOUR] AS x GROUP BY n;
            """)
    assert "1 stage: the queries need 1, and one that comes later can use up to 1" in SAID
    assert told(place, "counts") == counts(range(3))
    assert told(place, "sums") == sums(range(2, 5))
    assert log.read_text() == written
    os.remove(log)
    session = ms.Session("spark", "local[2]")
    session.sql(TEXT.replace("{place}", str(place)))
    with pytest.raises(ms.MillstreamError, match=r"has lost how its queries were changed: .* lists 0 of 2 changes"):
        session.run(checkpoint=checkpoint)


def test_changes_come_from_a_directory(place: Path) -> None:
    with running(place, "local", directory=place / "control"):
        minute(place, 0)
        minute(place, 1)
        until(complete(place, "counts", 0))
        (place / "control" / "1.sql").write_text(SUMS.replace("{place}", str(place)))
        (place / "control" / "2.sql").write_text("DROP QUERY Counts")
        until(lambda: (place / "sums").exists())
        minute(place, 2)
        minute(place, 3)
        until(complete(place, "sums", 2))
    assert told(place, "counts")[:3] == counts(range(1))
    assert told(place, "sums") == sums(range(2, 3))


def test_whoever_waits_for_a_change_is_told_when_the_run_ends() -> None:
    """Also when the change was taken in, and no micro-batch ran under it any more."""
    control = Control()
    heard: list[BaseException] = []

    def ask() -> None:
        try:
            control.ask("DROP QUERY Counts")
        except ms.MillstreamError as problem:
            heard.append(problem)

    asker = threading.Thread(target=ask, daemon=True)
    asker.start()
    taken: list[object] = []

    def take(request: object) -> bool:
        taken.append(request)
        return False  # it will be done later

    until(lambda: control.serve(take) or taken)
    control.close()
    asker.join(10)
    assert [str(problem) for problem in heard] == ["the run is over, nothing can be changed any more"]


def test_a_directory_that_is_not_there_and_a_file_that_is_no_text(place: Path) -> None:
    with pytest.raises(ms.MillstreamError, match=r"there is no directory .*/nowhere to take changes from"):
        Control(str(place / "nowhere"))
    said: list[str] = []
    (place / "control" / "1.sql").write_bytes(b"\xff")
    Control(str(place / "control"), say=said.append).serve(lambda request: True)
    assert len(said) == 1 and said[0].startswith(f"nothing was changed by {place}/control/1.sql: it can not be read")
