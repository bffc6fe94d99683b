"""Bands written as differences of times join the same pairs as DuckDB finds, and free what they hold."""

from __future__ import annotations

import random

import pytest

import millstream as ms
from tests.oracle.cases import Case
from tests.oracle.queries import Query
from tests.oracle.streams import SECOND, StreamSpec
from tests.oracle.test_found import row

DAY = 86_400
TIMES = (0, 3, 4, 9, 15, DAY - 1, DAY + 2, DAY + 9, 2 * DAY + 1, 3 * DAY)
STREAMS = tuple(
    StreamSpec(name, rows=tuple(row(time + shift, time % 2, i=n) for n, time in enumerate(TIMES)))
    for name, shift in (("A", 0), ("B", 4))
)
GAP = "epoch_us(b.ts) - epoch_us(a.ts)"
DAYS = "date_diff('day', CAST(a.ts AS DATE), CAST(b.ts AS DATE))"
BANDS = {
    "b.ts - a.ts BETWEEN INTERVAL -5 SECONDS AND INTERVAL 10 SECONDS": f"{GAP} BETWEEN {-5 * SECOND} AND {10 * SECOND}",
    "b.ts - a.ts <= INTERVAL 5 SECONDS AND a.ts - b.ts < INTERVAL 5 SECONDS": f"{GAP} <= {5 * SECOND} AND {GAP} > {-5 * SECOND}",
    "a.ts BETWEEN SYMMETRIC b.ts + INTERVAL 4 SECONDS AND b.ts - INTERVAL 4 SECONDS": f"abs({GAP}) <= {4 * SECOND}",
    "CAST(b.ts AS DATE) >= CAST(a.ts AS DATE) AND CAST(b.ts AS DATE) < CAST(a.ts AS DATE) + 2": f"{DAYS} BETWEEN 0 AND 1",
    "unix_seconds(b.ts) - unix_seconds(a.ts) BETWEEN -5 AND 5": f"{GAP} BETWEEN {-5 * SECOND} AND {5 * SECOND}",
}
JOINS = {
    "JOIN": "a.i, b.i AS bi",
    "LEFT JOIN": "a.i, b.i AS bi",
    "LEFT SEMI JOIN": "a.i",
    "LEFT ANTI JOIN": "a.i",
}


@pytest.mark.parametrize("kind", JOINS)
@pytest.mark.parametrize("band", BANDS)
def test_the_pairs_are_those_of_duckdb(band: str, kind: str) -> None:
    text = f"SELECT {JOINS[kind]} FROM A AS a {kind} B AS b ON a.k = b.k AND "
    duck = text.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI") + BANDS[band]
    case = Case(STREAMS, (Query(text + band, duck),), 3, 2)
    case.check(case.run())
    case.check(case.host(2, random.Random(1)))


@pytest.mark.parametrize("band", BANDS)
def test_what_is_behind_the_band_is_freed(band: str) -> None:
    session = ms.Session("local")
    for name in "AB":
        session.add_stream(name, schema="k INT, ts TIMESTAMP", time="ts")
    session.add_sink("Out")
    session.sql(f"INSERT INTO Out SELECT a.k FROM A AS a JOIN B AS b ON a.k = b.k AND {band}")
    live = ms.testing.Live(session)
    for name in "AB":
        live.push(name, [(number, f"2026-01-01 12:00:{number:02d}") for number in range(50)])
    assert live.state_rows > 0
    for name in "AB":
        live.push(name, [(-1, "2026-02-01 12:00:00")])
    assert live.state_rows <= 2


FAR_OFF = {
    "INTERVAL": "b.ts - a.ts BETWEEN INTERVAL -100000000 DAYS AND INTERVAL 100000000 DAYS",
    "BIGINT": f"unix_micros(b.ts) - unix_micros(a.ts) BETWEEN {-(2**63)} AND {2**63 - 1}",
}


@pytest.mark.parametrize("kind", FAR_OFF)
def test_a_distance_beyond_all_times_loses_no_pair(kind: str) -> None:
    """Such a distance is a condition like others: it frees no tuples."""
    text = "SELECT a.i, b.i AS bi FROM A [RANGE 1 DAY] AS a JOIN B [RANGE 1 DAY] AS b ON a.k = b.k"
    near = f"SELECT a.i, b.i AS bi FROM A AS a JOIN B AS b ON a.k = b.k AND abs({GAP}) <= {DAY * SECOND}"
    case = Case(STREAMS, (Query(f"{text} AND {FAR_OFF[kind]}", near),), 3, 2)
    case.check(case.run())
    alone = Query(f"SELECT a.i FROM A AS a JOIN B AS b ON a.k = b.k AND {FAR_OFF[kind]}", "")
    assert "could never be purged" in str(Case(STREAMS, (alone,)).refusal())


@pytest.mark.parametrize("text", ["CAST(concat(b.d, ' 12:00:00') AS TIMESTAMP)", "b.d + INTERVAL 12 HOURS"])
def test_functions_beside_a_timestamp_read_dates_as_they_are(text: str) -> None:
    """Only a date that is moved by an interval is its midnight."""
    dated = "(SELECT k, i, ts, CAST(ts AS DATE) AS d FROM B)"
    select = "SELECT a.i, b.i AS bi FROM A{0} AS a JOIN " + dated + "{0} AS b ON a.k = b.k AND a.ts >= {1}"
    duck = select.format("", "b.d + INTERVAL 12 HOURS")
    case = Case(STREAMS, (Query(select.format(" [RANGE 9 DAYS]", text), duck),), 3, 2)
    case.check(case.run())
