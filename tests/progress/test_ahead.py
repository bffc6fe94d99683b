"""A tuple too far after its arrival becomes a letter, moves no mark and closes nothing."""

from __future__ import annotations

import os
import random
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.clock import ManualClock
from millstream.errors import SyntaxProblem
from millstream.io import GeneratorSource, ListSource, open_source
from millstream.io.contract import DAY
from millstream.pipeline import Pipeline
from millstream.plan.catalog import Stream
from millstream.progress.ahead import Ahead, distance
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_local, run_spark
from millstream.runtime.status import Status
from millstream.testing.run import run
from tests.oracle.buckets import run_hosted
from tests.oracle.watch import Watch
from tests.progress.live import Live
from tests.runtimes.case import NOON, at
from tests.runtimes.compare import assert_same

AHEAD, SLACK = 4, 2
TEXT = """
CREATE STREAM S (number INT, k INT, kind STRING, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 2 SECONDS AHEAD 4 SECONDS
  PUNCTUATE ON (k) WHEN kind = 'closed'
  PUNCTUATE ON (ts) WHEN kind = 'beat';
CREATE SINK Kept WITH (connector = 'memory');
CREATE SINK Counts WITH (connector = 'memory');
INSERT INTO Kept SELECT number, k, ts FROM S;
INSERT INTO Counts SELECT k, count(*) AS n FROM S [RANGE 4 SECONDS] GROUP BY k;
"""
ROWS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, 3, None]),
        st.sampled_from(["tuple"] * 9 + ["closed", "beat"]),
        st.one_of(st.integers(0, 15), st.integers(0, 8), st.none()),
    ),
    max_size=40,
)
UNITS = st.integers(1, 6)
ARRIVALS = st.lists(st.integers(0, 12), min_size=6, max_size=6)


def reference(
    rows: list[tuple[int, Any, str, datetime | None]], arrived: list[datetime]
) -> tuple[list[Any], list[tuple[str, int]]]:
    """The tuples that are good, and the numbers of the others with the reason."""
    mark = datetime.min.replace(tzinfo=UTC)
    closed: set[Any] = set()
    kept, letters = [], []
    for (number, k, kind, ts), arrival in zip(rows, arrived, strict=True):
        if ts is None:
            letters.append(("null-timestamp", number))
        elif ts > arrival + timedelta(seconds=AHEAD):
            letters.append(("ahead", number))
        elif kind == "closed":
            closed.add(k)
        elif kind == "beat":
            mark = max(mark, ts)
        else:
            if k in closed or ts < mark:
                letters.append(("late", number))
            else:
                kept.append((number, k, ts))
            mark = max(mark, ts - timedelta(seconds=SLACK))
    return kept, letters


def microseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize("hosted", [False, True], ids=["one process", "hosted"])
@given(ROWS, st.integers(1, 5), UNITS, ARRIVALS, st.integers(0, 99))
def test_tuples_ahead(
    hosted: bool, drawn: list[Any], batch: int, files: int, seconds: list[int], seed: int
) -> None:
    rows = [
        (number, k, kind, None if second is None else at(second))
        for number, (k, kind, second) in enumerate(drawn)
    ]
    size = -(-len(rows) // files) or 1
    kept, letters = reference(rows, [at(seconds[number // size]) for number in range(len(rows))])
    pipeline = Pipeline()
    pipeline.add_text(TEXT)
    arrivals = [microseconds(at(second)) for second in seconds]
    with patch.object(ListSource, "arrived", lambda source, unit: arrivals[unit.number]):
        if hosted:
            chance, watch = random.Random(seed), Watch()
            result = run_hosted(
                pipeline, {"S": rows}, buckets=2, chance=chance, watch=watch, batch=batch, files={"S": files}
            )
        else:
            result = run(pipeline, {"S": rows}, runtime="local", batch=batch, files={"S": files})
    assert_same(result.rows("Kept"), [{"number": n, "k": k, "ts": ts} for n, k, ts in kept])
    found = sorted(
        (letter.kind, int((letter.content or "").split('"number": ')[1].split(",")[0]))
        for letter in result.letters
    )
    assert found == sorted(letters)
    counts: dict[Any, int] = {}
    for _, k, ts in kept:
        start = ts - timedelta(seconds=ts.second % 4)
        counts[k, start] = counts.get((k, start), 0) + 1
    windows = [
        {"k": k, "n": n, "window_start": start, "window_end": start + timedelta(seconds=4)}
        for (k, start), n in counts.items()
    ]
    assert_same(result.rows("Counts"), windows)


def test_the_edge_is_allowed() -> None:
    live = Live(
        "CREATE STREAM A (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED AHEAD 5 SECONDS;",
        "SELECT k FROM A",
        now=100,
    )
    live.push("A", (1, 105), (2, 105.000001), (3, 105))
    assert [row["k"] for row in live.settle()] == [1, 3]
    (letter,) = live.letters
    assert (letter.kind, letter.line, letter.punctuation) == ("ahead", 2, None)
    assert letter.reason == "`ts` lies more than 5 SECONDS after the time at which the tuple arrived"
    live.push("A", (4, 109))
    assert [row["k"] for row in live.settle(after=4)] == [
        1,
        3,
        4,
    ]  # measured from the arrival, not from the stream's own time


def of(clause: str) -> Stream:
    pipeline = Pipeline()
    pipeline.add_text(
        f"CREATE STREAM S (ts TIMESTAMP) TIMESTAMP BY ts ORDERED {clause} WITH (connector = 'rate')"
    )
    stream = pipeline.catalog.relations.need("S")
    assert isinstance(stream, Stream)
    return stream


def test_the_default_is_a_day_where_a_stream_has_no_end(tmp_path: Path) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", tz="UTC"))])
    folder = {"path": str(tmp_path), "format": "csv"}
    for source, expected in [
        (open_source("S", schema, {**folder, "watch": "true"}), DAY),
        (open_source("S", schema, {"connector": "socket", "port": "9"}), DAY),
        (open_source("S", schema, folder), None),
        (open_source("S", schema, {"connector": "rate"}), None),
        (ListSource("S", schema), None),
        (GeneratorSource.__new__(GeneratorSource), None),
    ]:
        assert distance(of(""), source, by_clock=True) == expected
        assert distance(of(""), source, by_clock=False) is None
        assert distance(of("AHEAD NONE"), source, by_clock=True) is None
        assert (
            distance(of("AHEAD 2 s"), source, by_clock=True)
            == distance(of("AHEAD 2 s"), source, by_clock=False)
            == 2_000_000
        )


def test_a_stamped_stream_takes_no_limit() -> None:
    with pytest.raises(SyntaxProblem, match="AHEAD"):
        Pipeline().add_text(
            "CREATE STREAM S (k INT) TIMESTAMP INTERNAL AS ts AHEAD 1 DAY WITH (connector = 'rate')"
        )


def test_the_arrival_of_a_file_is_recorded_when_it_is_taken(tmp_path: Path) -> None:
    """Whatever happens to the file before the unit is read once more."""
    schema = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
    file = tmp_path / "a.csv"
    file.write_text("k,ts\n")
    source = open_source("S", schema, {"path": str(tmp_path), "watch": "true"})
    (unit,) = source.units(source.initial(), position := source.latest(source.initial(), None))
    first = source.arrived(unit)
    assert first == file.stat().st_ctime_ns // 1000
    time.sleep(0.02)
    os.chmod(file, 0o600)
    (again,) = source.units(source.initial(), position)
    assert file.stat().st_ctime_ns // 1000 > (first or 0) and source.arrived(again) == first


def watched(folder: Path, rows: list[datetime], clause: str = "") -> Launch:
    """A pipeline over a watched directory with one file."""
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_text("ts\n" + "".join(f"{row:%Y-%m-%dT%H:%M:%S.%fZ}\n" for row in rows))
    pipeline = Pipeline()
    pipeline.add_text(f"""
        CREATE STREAM S (ts TIMESTAMP) TIMESTAMP BY ts SLACK 9 DAYS {clause}
          WITH (path = '{folder}/in', watch = true);
        CREATE SINK Out WITH (path = '{folder}/out', format = 'jsonl');
        INSERT INTO Out SELECT ts FROM S;
    """)
    return Launch.prepare(pipeline)


class Enough:
    """A stop that is asked for after so many looks."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_times_of_another_zone_are_told_once(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    launch = watched(
        tmp_path, [now + timedelta(hours=2 * (number % 5 < 3)) for number in range(1200)], "AHEAD 1 HOUR"
    )
    status = run_local(launch, stop=Enough(5))  # type: ignore[arg-type]
    assert status.letters == {"ahead": 720}
    (line,) = status.remarks
    assert (
        line.startswith("stream S: 720 of the first 1,200 tuples lie too far after their arrival")
        and "time zone" in line
    )


def test_a_clock_that_is_moved_by_hand_sets_no_limit(tmp_path: Path) -> None:
    launch = watched(tmp_path, [NOON + timedelta(days=2)])
    clock = ManualClock(microseconds(NOON))
    assert run_local(launch, stop=Enough(5), clock=clock).letters == {}  # type: ignore[arg-type]


def test_a_watched_file_is_limited_to_a_day(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    status = run_local(
        watched(tmp_path, [now + timedelta(hours=23), now + timedelta(hours=25)]), stop=Enough(5)
    )  # type: ignore[arg-type]
    assert status.letters == {"ahead": 1} and status.tuples_out == 1 and status.remarks == []


@pytest.mark.slow
def test_a_watched_file_is_limited_to_a_day_on_spark(tmp_path: Path, spark: object) -> None:
    now, stop = datetime.now(UTC), threading.Event()
    launch = watched(tmp_path, [now + timedelta(hours=23), now + timedelta(hours=25)])

    def seen(status: Status) -> None:
        if status.tuples_out:
            stop.set()

    status = run_spark(launch, stop=stop, on_status=seen)
    assert status.letters == {"ahead": 1} and status.tuples_out == 1 and status.remarks == []


@pytest.mark.parametrize(
    ("read", "ahead", "told"), [(999, 999, 0), (1000, 499, 0), (1000, 500, 1), (50_000, 500, 0)]
)
def test_a_stream_is_judged_by_its_first_tuples(read: int, ahead: int, told: int) -> None:
    from millstream.core.letters import DeadLetter

    watch = Ahead()
    watch.put([DeadLetter("S", "ahead", "")] * ahead + [DeadLetter("S", "late", "")] * 1000)
    for _ in range(2):
        assert len(watch.lines({"S": read, "T": 5000})) == told
