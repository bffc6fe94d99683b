"""The output of a run is read back as a stream: in order, with its marks, and nothing is late."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from millstream.pipeline import Pipeline
from millstream.runtime.launch import Launch
from millstream.runtime.local.run import LocalRun
from millstream.runtime.runs import run_local, run_spark
from millstream.testing.run import collected
from tests.runtimes.case import at

KEYS, WINDOWS, FILES = 12, 60, 20
WRITE = """
CREATE STREAM S (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = '{folder}/in', format = 'csv');
CREATE SINK Counts WITH (path = '{folder}/counts', format = '{format}');
CREATE SINK Plain WITH (path = '{folder}/plain', format = '{format}');
INSERT INTO Counts SELECT k, count(*) AS n FROM S [RANGE 10 SECONDS] GROUP BY k;
INSERT INTO Plain SELECT k, ts FROM S;
"""
READ = """
SET dead_letters.path = '{folder}/letters';
CREATE STREAM Counts (k INT, n BIGINT, {time} TIMESTAMP) TIMESTAMP BY {time} ORDERED
  WITH (path = '{folder}/counts', format = '{format}');
CREATE STREAM Plain (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
  WITH (path = '{folder}/plain', format = '{format}');
CREATE SINK Out WITH (connector = 'memory');
CREATE SINK Rows WITH (connector = 'memory');
INSERT INTO Out SELECT count(*) AS rows, sum(n) AS tuples FROM Counts [RANGE 1 MINUTE];
INSERT INTO Rows SELECT count(*) AS n FROM Plain [RANGE 1 MINUTE];
"""


def launch(text: str, **values: object) -> Launch:
    pipeline = Pipeline()
    pipeline.add_text(text.format(**values))
    return Launch.prepare(pipeline)


def given(folder: Path) -> None:
    """Two tuples of each key in each window; a file holds three windows."""
    (folder / "in").mkdir()
    tuples = [
        (k, at(10 * window + second)) for window in range(WINDOWS) for second in (1, 7) for k in range(KEYS)
    ]
    size = len(tuples) // FILES
    for number in range(FILES):
        lines = [f"{k},{ts:%Y-%m-%dT%H:%M:%SZ}\n" for k, ts in tuples[number * size : (number + 1) * size]]
        (folder / "in" / f"{number:02d}.csv").write_text("k,ts\n" + "".join(lines))


def read_back(folder: Path, format: str, time: str) -> dict[str, int]:
    """All that was written comes back in its windows; the letters by kind."""
    reading = launch(READ, folder=folder, format=format, time=time)
    status = run_local(reading)
    tables = collected(reading.pipeline, {sink.name: sink for sink in reading.sinks})  # type: ignore[misc]
    minutes = WINDOWS // 6
    shift = timedelta(seconds=10 if time == "window_end" else 0)
    if not status.letters:
        found = sorted((row["window_start"], row["rows"], row["tuples"]) for row in tables["Out"].to_pylist())
        assert (
            sum(rows for _, rows, _ in found) == WINDOWS * KEYS
            and sum(n for _, _, n in found) == 2 * WINDOWS * KEYS
        )
        assert found[1:-1] == [(at(60 * n), 6 * KEYS, 12 * KEYS) for n in range(1, len(found) - 1)] and found[
            0
        ][0] == at(0)
        assert len(found) == minutes + (shift > timedelta(0))
        assert tables["Rows"].column("n").to_pylist() == [12 * KEYS] * minutes
    return status.letters


def marks_of(sink: Path) -> list[dict[str, int | None]]:
    """The marks in the manifests of the one run that has written a sink, in their order."""
    manifests = (sink / "_millstream").glob("*/*[0-9].json")
    return [
        json.loads(path.read_text())["marks"]
        for path in sorted(manifests, key=lambda path: int(path.stem.rpartition("-")[2]))
    ]


def microseconds(seconds: float) -> int:
    return round(at(seconds).timestamp() * 1_000_000)


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_what_one_process_wrote(tmp_path: Path, format: str) -> None:
    given(tmp_path)
    run_local(launch(WRITE, folder=tmp_path, format=format))
    assert marks_of(tmp_path / "counts") == [
        {"window_end": microseconds(10 * WINDOWS), "window_start": microseconds(10 * WINDOWS - 10)}
    ]
    assert marks_of(tmp_path / "plain") == [{"ts": microseconds(10 * WINDOWS - 3)}]
    assert read_back(tmp_path, format, "window_start") == {}


def test_a_sink_whose_query_is_dropped_has_its_marks(tmp_path: Path) -> None:
    given(tmp_path)
    writing = launch(WRITE, folder=tmp_path, format="jsonl")
    run = LocalRun(writing.graph, writing.sources, writing.sinks)
    run.open()
    while not all(feed.ended for feed in run.feeds):
        run.step()
    writing.change("DROP QUERY Counts", fits=run.change)
    run.run()
    writing.close()
    assert marks_of(tmp_path / "counts") == [
        {"window_end": microseconds(10 * WINDOWS), "window_start": microseconds(10 * WINDOWS - 10)}
    ]


class Enough:
    """A stop that is asked for after so many looks."""

    left = 20

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_a_watched_sink_moves_time_on(tmp_path: Path) -> None:
    given(tmp_path)
    run_local(launch(WRITE, folder=tmp_path, format="jsonl"))
    text = READ.replace("ORDERED\n", "ORDERED ETS NONE\n").replace("'{format}')", "'{format}', watch = true)")
    reading = launch(text, folder=tmp_path, format="jsonl", time="window_start")
    status = run_local(reading, stop=Enough())  # type: ignore[arg-type]
    assert (
        status.marks["Counts"] == microseconds(10 * WINDOWS - 10)
        and status.written["Out"] == WINDOWS // 6 - 1
    )


def test_what_spark_wrote(tmp_path: Path, spark: object) -> None:
    """Several windows a micro-batch and 4 buckets; without the manifests many would be late."""
    given(tmp_path)
    settings = "SET execution.buckets = 4; SET source.max_files_per_batch = 3;"
    status = run_spark(launch(WRITE + settings, folder=tmp_path, format="csv"))
    assert status.written == {"Counts": WINDOWS * KEYS, "Plain": 2 * WINDOWS * KEYS} and status.batches > 5
    assert len(list((tmp_path / "counts").glob("part-*"))) > 4 * 5
    for sink, columns in {"counts": {"window_start", "window_end"}, "plain": {"ts"}}.items():
        marks = marks_of(tmp_path / sink)
        assert all(epoch.keys() == columns for epoch in marks)
        for column in columns:
            told = [epoch[column] for epoch in marks[:-1]]
            assert all(isinstance(mark, int) for mark in told)
            assert told == sorted(set(told), key=int)  # type: ignore[arg-type]
    assert read_back(tmp_path, "csv", "window_start") == {}
    assert read_back(tmp_path, "csv", "window_end") == {}
    shutil.rmtree(tmp_path / "counts" / "_millstream")
    assert read_back(tmp_path, "csv", "window_start")["late"] > WINDOWS * KEYS / 4
