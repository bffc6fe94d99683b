"""A tuple that makes an expression fail costs that tuple, or that pair, and never the run."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from millstream.pipeline import Pipeline
from millstream.runtime.program import Outcome, Packet
from millstream.testing import Result, run
from tests.oracle.buckets import Host, Place, run_hosted
from tests.oracle.watch import watched

COLUMNS = "(k BIGINT, i INT, s STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED"
STREAMS = f"""
CREATE STREAM A {COLUMNS}; CREATE STREAM B {COLUMNS}; CREATE STREAM P {COLUMNS} PUNCTUATE ON (k) WHEN CAST(s AS INT) = 1;
CREATE SINK Out WITH (connector = 'memory');
"""
TIME = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
ROWS = [{"k": 1, "i": 2**31 - 1, "s": "x", "ts": TIME}, {"k": 1, "i": 5, "s": "7", "ts": TIME}]


def answer(query: str) -> Result:
    pipeline = Pipeline()
    pipeline.add_text(STREAMS + f"INSERT INTO Out {query};")
    return run(pipeline, {"A": ROWS, "B": ROWS, "P": ROWS})


@pytest.mark.parametrize(
    ("query", "tuples", "letters"),
    [
        ("SELECT i + 1 AS j FROM A", 1, 1),
        ("SELECT i FROM A WHERE i + 1 > 0", 1, 1),
        ("SELECT k, sum(i + 1) AS t FROM A [RANGE 5 SECONDS] GROUP BY k", 1, 1),
        ("SELECT a.i FROM A [NOW] AS a, B [NOW] AS b WHERE a.k = b.k AND a.i + b.i > 0", 1, 3),
        ("SELECT a.i FROM A [NOW] AS a LEFT JOIN B [NOW] AS b ON a.k = b.k AND CAST(a.s AS INT) > b.i", 2, 2),
        ("SELECT a.i FROM A [NOW] AS a JOIN B [NOW] AS b ON a.k = CAST(b.s AS INT) - 6", 2, 1),
        ("SELECT i FROM P", 1, 1),
    ],
)
def test_failing_tuples_become_letters(query: str, tuples: int, letters: int) -> None:
    result = answer(query)
    assert len(result.rows()) == tuples
    assert [letter.kind for letter in result.letters] == ["error"] * letters


def test_times_that_nobody_can_write_become_letters() -> None:
    """Years 1 to 9999 count; the others, tuples without a time, and windows that reach further do not."""
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    times = [first - 1, first, 0, last - 10_000_000, last + 1, 2**63 - 1, -(2**63), None, last, 0]
    kind = pa.timestamp("us", "UTC")
    others = pa.array([0] * 9 + [2**62]).cast(kind)
    table = pa.table(
        {
            "k": range(10),
            "ts": pa.array(times).cast(kind),
            "u": others,
            "d": pa.array([None] * 9 + [0], pa.date32()),
        }
    )
    columns = "(k BIGINT, ts TIMESTAMP, u TIMESTAMP, d DATE)"
    pipeline = Pipeline()
    pipeline.add_text(f"CREATE STREAM A {columns} TIMESTAMP BY ts SLACK 1 SECOND;")
    pipeline.add_text("CREATE SINK Out WITH (connector = 'memory');")
    pipeline.add_text("INSERT INTO Out SELECT count(*) AS n FROM A [RANGE 10 SECONDS SLIDE 5 SECONDS];")
    result = run(pipeline, {"A": table}, batch=2, files={"A": 3})
    rows = [letter for letter in result.letters if letter.kind != "error"]
    assert sorted(letter.kind for letter in rows) == ["broken"] * 5 + ["null-timestamp"]
    assert sum("`u` lies outside the years 1 to 9999" in letter.reason for letter in rows) == 1
    windows = [letter for letter in result.letters if letter.kind == "error"]
    assert [letter.reason for letter in windows] == ["the window reaches outside the years 1 to 9999"] * 3
    assert sorted(str(json.loads(str(letter.content))["window_start"]) for letter in windows) == [
        str(first - 5_000_000),
        "9999-12-31 23:59:50+00:00",
        "9999-12-31 23:59:55+00:00",
    ]
    assert result.tables["Out"].column("n").to_pylist() == [1] * 5


BEYOND = "the time lies outside the years 1 to 9999"
SUM = "a sum of integers does not fit 64 bits"


@pytest.mark.parametrize(
    "expression",
    [
        "timestamp_seconds(1767225600000 + k)",
        "timestamp_micros(9000000000000000000 + k)",
        "CAST(1767225600000 + k AS TIMESTAMP)",
        "CAST(3e11 + k AS TIMESTAMP)",
        "CAST(concat('1000', k, '-01-01') AS TIMESTAMP)",
        "CAST(concat('000', k - 1, '-01-01') AS DATE)",
        "date_add(ts, 3000000)",
        "date_add(ts, CAST(-800000 * k AS INT))",
        "CAST(ts AS DATE) + INTERVAL 9000 YEARS",
        "CAST(ts AS DATE) - INTERVAL 800000 DAYS",
        "add_months(ts, 120000)",
        "add_months(ts, CAST(-30000 * k AS INT))",
        "ts + INTERVAL 9000 YEARS",
        "ts - INTERVAL 800000 DAYS",
        "timestampadd(YEAR, 9000, ts)",
        "date_from_unix_date(CAST(3000000 * k AS INT))",
        "CASE WHEN k = 1 THEN timestamp_seconds(1767225600000) ELSE ts END",
    ],
)
def test_no_expression_makes_a_time_outside_the_calendar(expression: str) -> None:
    result = answer(f"SELECT {expression} AS t FROM A")
    assert result.rows() == []
    assert [(letter.kind, BEYOND in letter.reason) for letter in result.letters] == [("error", True)] * 2


def test_a_lenient_time_outside_the_calendar_is_null() -> None:
    result = answer(
        "SELECT TRY_CAST(1767225600000 + k AS TIMESTAMP) AS t, TRY_CAST('0000-01-01' AS DATE) AS d FROM A"
    )
    assert [(row["t"], row["d"]) for row in result.rows()] == [(None, None)] * 2
    assert result.letters == []


@pytest.mark.parametrize("select", ["count(*) AS n", "DISTINCT s"])
def test_a_window_on_dates_that_reaches_further_is_a_letter(select: str) -> None:
    days = "(SELECT CAST(ts AS DATE) AS d, max(s) AS s FROM A GROUP BY CAST(ts AS DATE)) [RANGE 4000000 DAYS]"
    result = answer(f"SELECT {select} FROM {days}")
    assert result.rows() == []
    (letter,) = result.letters
    assert (letter.kind, letter.stream) == ("error", "A")
    assert json.loads(str(letter.content))["window_end"] == 4_000_000


MOST = 2**63 - 1
SUMS = """
CREATE STREAM S (k BIGINT, g BIGINT, v BIGINT, m DECIMAL(38,0), done BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED PUNCTUATE ON (k) WHEN done;
CREATE SINK Out WITH (connector = 'memory');
"""


def summed(query: str, buckets: int) -> Result:
    """Two groups, of which the sums of the second do not fit."""
    at = [TIME + dt.timedelta(seconds=second) for second in (0, 1, 2, 3, 15, 25)]
    most = Decimal("9" * 38)
    rows = [
        {"k": 1, "g": 7, "v": 5, "m": Decimal(5), "done": False, "ts": at[0]},
        {"k": 2, "g": 8, "v": MOST, "m": most, "done": False, "ts": at[1]},
        {"k": 2, "g": 8, "v": MOST, "m": most, "done": False, "ts": at[2]},
        {"k": 2, "g": 8, "v": 0, "m": Decimal(0), "done": True, "ts": at[3]},
        {"k": 1, "g": 7, "v": 6, "m": Decimal(6), "done": False, "ts": at[4]},
        {"k": 1, "g": 7, "v": 0, "m": Decimal(0), "done": True, "ts": at[5]},
    ]
    pipeline = Pipeline()
    pipeline.add_text(SUMS + f"INSERT INTO Out {query};")
    with watched() as watch:
        if buckets:
            options = {"buckets": buckets, "chance": random.Random(3), "watch": watch}
            result = run_hosted(pipeline, {"S": rows}, batch=1, files={"S": 3}, **options)
        else:
            result = run(pipeline, {"S": rows}, batch=1)
        assert not watch.left_over()
    return result


@pytest.mark.parametrize("buckets", [0, 2])
@pytest.mark.parametrize(
    ("query", "sums", "content"),
    [
        (
            "SELECT k, sum(v) AS t FROM S [RANGE 10 SECONDS] GROUP BY k",
            [5, 6],
            {"k": 2, "window_start": "2024-01-01 00:00:00+00:00", "window_end": "2024-01-01 00:00:10+00:00"},
        ),
        ("SELECT k, sum(v) AS t FROM S GROUP BY k", [11], {"k": 2}),
        ("SELECT k, sum(DISTINCT v) + sum(v) AS t FROM S GROUP BY k", [22], {"k": 2}),
        ("SELECT k, avg(m) + sum(m) AS t FROM S GROUP BY k", [Decimal("16.5")], {"k": 2}),
        (
            "SELECT sum(v) AS t FROM S GROUP BY date_trunc('minute', ts), g + 1",
            [11],
            {"DATE_TRUNC('MINUTE', ts)": "2024-01-01 00:00:00+00:00", "g + 1": 9},
        ),
        ("SELECT k, ts, sum(v * 9) AS t FROM S WHERE NOT done GROUP BY k, ts", [45, 54], None),
        (
            "SELECT sum(v) AS t, max(w) AS w FROM "
            "(SELECT k, window_start AS w, max(v) AS v FROM S [RANGE 1 SECOND] GROUP BY k) [RANGE 1 MINUTE] GROUP BY k, window_start",
            [11],
            {"k": 2, "window_start": "2024-01-01 00:00:00+00:00", "window_end": "2024-01-01 00:01:00+00:00"},
        ),
    ],
)
def test_a_group_whose_sum_overflows_is_one_letter(
    query: str, sums: list[int | Decimal], content: dict[str, Any] | None, buckets: int
) -> None:
    result = summed(query, buckets)
    assert sorted(row["t"] for row in result.rows()) == sums
    assert {letter.kind for letter in result.letters} == {"error"}
    if content is not None:
        (letter,) = result.letters
        assert letter.stream == "S"
        assert json.loads(str(letter.content)) == content
        assert "does not fit" in letter.reason and "CAST the argument" in letter.reason


class Replaying(Host):
    """A host of which each step is done by a worker that dies, and then once more."""

    def _step(self, place: Place, packets: list[Packet]) -> Outcome:
        lost = self.program.stage(*place)
        if self.written.get(place):
            lost.restore(self.written[place])
        before = lost.run(pickle.loads(pickle.dumps(packets)))
        outcome = super()._step(place, packets)
        assert sorted(map(repr, before.letters)) == sorted(map(repr, outcome.letters))
        return outcome


def test_a_replay_makes_the_letters_of_groups_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.oracle.buckets.Host", Replaying)
    for query in (
        "SELECT k, sum(v) AS t FROM S [RANGE 10 SECONDS] GROUP BY k",
        "SELECT k, sum(v) AS t FROM S GROUP BY k",
    ):
        result = summed(query, 2)
        assert len(result.letters) == 1


def test_a_window_may_reach_further_than_the_calendar_in_a_join() -> None:
    """Only its tuples have to lie within it."""
    query = """SELECT a.i FROM A [RANGE 4000000 DAYS] AS a LEFT JOIN B [RANGE 4000000 DAYS] AS b ON a.i = b.i,
    A [RANGE 4000000 DAYS] AS c WHERE a.i = c.i"""
    result = answer(query)
    assert sorted(row["i"] for row in result) == [5, 2**31 - 1]
    assert result.letters == []
