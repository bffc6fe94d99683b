"""The progress line: what it says, in which width, and the metrics for machines."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from millstream.cli.operators import brief
from millstream.cli.progress import Reporter, lasting, moment, short, size
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.runtime.spent import Spent, batch_time
from millstream.runtime.status import Status
from tests.cli.kit import QUERY, SINK, STREAM, Command

MARK = int(datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC).timestamp() * 1e6)
STATUS = Status(
    tuples_in={"Bid": 1_200_000, "Auction": 34_567},
    tuples_out=31,
    marks={"Bid": MARK, "Auction": MIN_TIME, "Over": MAX_TIME},
    behind={"Bid": 2.13},
    state_rows=512,
    state_bytes=40_400,
    letters={"late": 3, "broken": 0},
    seconds=41.0,
    rate_in=52_123.0,
    rate_out=0.4,
    batch=batch_time(0.42, [Spent(0, "a", {"work": 0.15, "transfer": 0.06})], 0.0),
)
WHOLE = (
    "in 1.23 M (52.1 k/s), out 31 (0.4/s), Auction -, Bid 2026-01-01 12:00:30 (2.1 s behind), state 512 (40.4 kB), late 3, "
    "batch 420 ms (36% ours, 14% transfer, 50% Spark)"
)


def describe(width: int | None = None) -> str:
    return Reporter().describe(STATUS, width)


def test_everything_where_there_is_room() -> None:
    assert describe() == describe(200) == WHOLE


@pytest.mark.parametrize("width", range(20, 200))
def test_what_does_not_fit_is_left_out_from_the_right(width: int) -> None:
    line = describe(width)
    assert len(line) <= width or line == "in 1.23 M"
    assert line.startswith("in 1.23 M") and not line.endswith(",")


def test_a_hundred_columns_hold_every_part() -> None:
    for part in ("in 1.23 M", "out 31", "Auction -", "Bid 2026-01-01 12:00:30", "state 512", "late 3", "batch 420 ms"):
        assert part in describe(96)


def test_numbers_lengths_and_times() -> None:
    assert [short(n) for n in (0, 0.44, 7, 51.7, 999, 1000, 51_240, 999_600, 1_200_000)] == [
        "0", "0.4", "7", "52", "999", "1 k", "51.2 k", "1 M", "1.2 M",
    ]  # fmt: skip
    assert [size(n) for n in (0, 512, 40_400, 15_100_000)] == ["0 B", "512 B", "40.4 kB", "15.1 MB"]
    assert [lasting(s) for s in (0.0421, 2.13, 26.4, 400, 10_000, 400_000)] == ["42 ms", "2.1 s", "26 s", "7 min", "3 h", "5 d"]
    now = datetime.now(UTC)
    assert moment(int(now.timestamp() * 1e6)) == now.strftime("%H:%M:%S")
    assert moment(int((now - timedelta(days=3)).timestamp() * 1e6)) == (now - timedelta(days=3)).strftime("%Y-%m-%d %H:%M:%S")


def test_a_table_of_operators(command: Command) -> None:
    done = command.local(STREAM + SINK + QUERY, "--operators")
    assert done.code == 0, done.err
    line = next(line for line in done.lines if "aggregate" in line)
    assert line.startswith("#2 aggregate count(*)") and line.split()[-5:-2] == ["5", "4", "0.8"]
    assert done.lines[-1].startswith("read 5 tuples from Bid")
    assert all(len(line) <= 100 for line in done.lines[:-1])
    assert "aggregate" not in command.local(STREAM + SINK.replace("'out'", "'more'") + QUERY).err


def test_a_run_that_is_over_at_once_says_its_remarks_too(command: Command) -> None:
    text = "SET execution.interval = '3 seconds';" + STREAM + SINK + QUERY
    done = command.local(text)
    assert done.code == 0, done.err
    assert [line for line in done.lines if "execution.interval has no effect" in line] == done.lines[:1]


def test_short_times() -> None:
    assert [brief(s) for s in (0, 7.2e-6, 0.00125, 0.0421, 0.25, 42.123, 1234)] == [
        "0 us", "7 us", "1.25 ms", "42.1 ms", "250 ms", "42.1 s", "1234 s",
    ]  # fmt: skip


def test_metrics_for_machines(command: Command) -> None:
    done = command.local(STREAM + SINK + QUERY, "--metrics", "metrics.jsonl")
    assert done.code == 0, done.err
    last = json.loads((command.directory / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["over"] is True and last["tuples_in"] == {"Bid": 5} and last["written"] == {"Out": 4} and last["late"] == 0
    assert {"read", "work", "sink"} <= set(last["spent"]) and 0 < sum(last["spent"].values()) <= last["seconds"]
    operators = {o["name"].split()[0]: o for o in last["operators"]}
    assert (operators["aggregate"]["tuples_in"], operators["aggregate"]["tuples_out"], operators["aggregate"]["idle"]) == (5, 4, 0.0)
    done = command.local(STREAM + SINK.replace("'out'", "'more'") + QUERY, "--metrics", "no/such/place")
    assert (done.code, done.err) == (1, "can not write the metrics to no/such/place: No such file or directory; choose another file\n")
