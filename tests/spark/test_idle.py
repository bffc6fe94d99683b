"""A silent stream holds nobody up on Spark, and a run with nothing to do runs no micro-batches."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from millstream.io import MemorySink
from millstream.io.contract import Part
from millstream.pipeline import Pipeline
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_spark
from millstream.runtime.status import Status

TEXT = """
CREATE STREAM Fast (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW 2 SECONDS
    WITH (path = '{place}/fast', format = 'jsonl', watch = true);
CREATE STREAM Slow (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW 2 SECONDS
    WITH (path = '{place}/slow', format = 'jsonl', watch = true);
CREATE SINK Seconds WITH (connector = 'memory');
CREATE SINK Decades WITH (connector = 'memory');
CREATE VIEW Both AS SELECT k, ts FROM Fast UNION ALL SELECT k, ts FROM Slow;
CREATE VIEW Counts AS SELECT k, count(*) AS n FROM Both [RANGE 1 SECOND] GROUP BY k;
SET dead_letters.path = '{place}/letters';
INSERT INTO Seconds SELECT k, count(*) AS n FROM Both [RANGE {window}] GROUP BY k;
INSERT INTO Decades SELECT n, count(*) AS c FROM Counts [RANGE 3650 DAYS] GROUP BY n;
"""


class Counting(MemorySink):
    """Knows how many micro-batches there were."""

    batches = 0

    def commit(self, epoch: int, parts: Iterable[Part]) -> None:
        super().commit(epoch, parts)
        self.batches += 1


class Run:
    """A pipeline on Spark in a thread of its own."""

    def __init__(self, place: Path, window: str, checkpoint: str | None) -> None:
        pipeline = Pipeline()
        pipeline.add_text(TEXT.format(place=place, window=window))
        self.sink = Counting("Seconds")
        object.__setattr__(pipeline.catalog.sinks.need("Seconds"), "sink", self.sink)
        self.status = Status()
        self.stop = threading.Event()
        launch = Launch.prepare(pipeline, checkpoint)
        self.thread = threading.Thread(target=lambda: run_spark(launch, stop=self.stop, on_status=lambda s: setattr(self, "status", s)))

    def until(self, true: Callable[[], bool], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end and self.thread.is_alive(), "it never came"
            time.sleep(0.05)

    @property
    def rows(self) -> int:
        return self.sink.to_arrow().num_rows


@contextmanager
def running(place: Path, window: str = "1 SECOND", checkpoint: str | None = None) -> Iterator[Run]:
    run = Run(place, window, checkpoint)
    run.thread.start()
    try:
        yield run
    finally:
        run.stop.set()
        run.thread.join()


def write(directory: Path, name: str, *times: float) -> None:
    """A file that appears whole."""
    directory.mkdir(exist_ok=True)
    lines = "".join(json.dumps({"k": 1, "ts": _shown(at)}) + "\n" for at in times)
    (directory / f"{name}.part").write_text(lines)
    os.replace(directory / f"{name}.part", directory / f"{name}.jsonl")


def _shown(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1e6):06d}Z"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "fast").mkdir()
    (tmp_path / "slow").mkdir()
    return tmp_path


@pytest.mark.slow
def test_a_silent_stream_holds_nobody_up_and_an_idle_run_runs_nothing(spark: object, place: Path) -> None:
    write(place / "slow", "0", time.time())
    write(place / "fast", "0", time.time())
    with running(place) as run:
        run.until(lambda: run.rows > 0)
        for number in range(1, 4):  # the slow stream says nothing any more
            write(place / "fast", str(number), time.time())
            time.sleep(1.2)
        run.until(lambda: sum(run.sink.to_arrow().column("n").to_pylist()) == 5)
        # All seconds are out. The decade is open, and its stage has state, but nothing that comes soon would close it.
        time.sleep(1)
        batches = run.sink.batches
        time.sleep(3)
        assert run.sink.batches == batches
        assert run.status.state_rows >= 1


@pytest.mark.slow
def test_a_restart_over_silent_streams_lets_out_what_has_become_due(spark: object, place: Path) -> None:
    now = time.time()
    write(place / "slow", "0", now)
    write(place / "fast", "0", now)
    checkpoint = str(place / "checkpoint")
    with running(place, "10 SECONDS", checkpoint) as run:
        run.until(lambda: run.status.tuples_in == {"Fast": 1, "Slow": 1})
        assert run.rows == 0 or time.time() - now > 5, "a window came out before its end"
    with running(place, "10 SECONDS", checkpoint) as again:
        again.until(lambda: run.rows + again.rows == 1)
