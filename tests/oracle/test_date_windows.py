"""Windows on a DATE are whole days, and a date beside a timestamp is its midnight."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.oracle.cases import Case
from tests.oracle.queries import Query
from tests.oracle.streams import SECOND, StreamSpec

DAY = 86_400
DAILY = "(SELECT CAST(ts AS DATE) AS d, count(*) AS n FROM A GROUP BY CAST(ts AS DATE))"
TIMES = [0.2, 0.9, 1.0, 1.5, 3.0, 3.999, 7.25, 8.0, 8.5, 14.0, 15.75, 21.1, 22.0, 40.0]


def stream(name: str, shift: float, order: str = "slack") -> StreamSpec:
    days = random.Random(name).sample(TIMES, len(TIMES)) if order == "slack" else TIMES
    rows: list[dict[str, Any]] = []
    for number, day in enumerate(days):
        empty: dict[str, Any] = dict.fromkeys(("x", "m", "s", "b", "d"))
        rows.append({**empty, "k": number % 3, "i": number, "kind": "row", "ts": round((day + shift) * DAY * SECOND)})
    return StreamSpec(name, order=order, slack=50 * DAY * SECOND if order == "slack" else 0, rows=tuple(rows))


DAILY_B = DAILY.replace("FROM A", "FROM B")
MIDNIGHT = "x.d::TIMESTAMP"


def weeks(days: int) -> str:
    """The rows of DAILY with the first day of their window."""
    start = f"('1970-01-01'::DATE + ({days} * floor((d - '1970-01-01'::DATE) / {days}))::INT)::DATE"
    return f"(SELECT *, {start} AS w FROM {DAILY})"


def near(left: str, right: str, low: int, high: int) -> str:
    """The distance of two times, in hours."""
    return f"{right} - {left} BETWEEN INTERVAL ({low}) HOUR AND INTERVAL {high} HOUR"


# (ours, DuckDB's)
QUERIES = [
    (
        f"SELECT sum(n) AS s FROM {DAILY} [RANGE 7 DAYS]",
        f"SELECT sum(n)::BIGINT, w, (w + 7)::DATE FROM {weeks(7)} GROUP BY w",
    ),
    (
        f"SELECT sum(n) AS s FROM {DAILY} [RANGE 48 HOURS SLIDE 1 DAY]",
        f"""SELECT sum(n)::BIGINT, w::DATE, (w + 2)::DATE
        FROM (SELECT *, unnest([d, (d - 1)::DATE]) AS w FROM {DAILY}) GROUP BY w""",
    ),
    (
        f"SELECT DISTINCT n FROM {DAILY} [RANGE 2 DAYS]",
        f"SELECT DISTINCT n, w, (w + 2)::DATE FROM {weeks(2)}",
    ),
    (
        f"SELECT x.d, y.i FROM {DAILY} [RANGE 1 DAY] AS x JOIN B [RANGE 0 SECONDS] AS y ON y.i >= 0",
        f"SELECT x.d, y.i FROM {DAILY} AS x JOIN B AS y ON y.i >= 0 AND {near(MIDNIGHT, 'y.ts', 0, 24)}",
    ),
    (
        f"SELECT y.i, x.n FROM B [RANGE 36 HOURS] AS y LEFT JOIN {DAILY} [RANGE 1 DAY] AS x ON x.n > 1",
        f"SELECT y.i, x.n FROM B AS y LEFT JOIN {DAILY} AS x ON x.n > 1 AND {near('y.ts', MIDNIGHT, -24, 36)}",
    ),
    (
        f"SELECT y.i FROM B [RANGE 1 DAY] AS y LEFT ANTI JOIN {DAILY} [RANGE 0 DAYS] AS x ON x.n > 1",
        f"SELECT y.i FROM B AS y ANTI JOIN {DAILY} AS x ON x.n > 1 AND {near('y.ts', MIDNIGHT, 0, 24)}",
    ),
    (
        f"SELECT x.d, y.d AS e FROM {DAILY} [RANGE 1 DAY] AS x JOIN {DAILY_B} [RANGE 5 DAYS] AS y ON x.n = y.n",
        f"SELECT x.d, y.d FROM {DAILY} AS x JOIN {DAILY_B} AS y ON x.n = y.n AND y.d - x.d BETWEEN -5 AND 1",
    ),
    (
        f"""SELECT x.d, y.i, z.i AS j FROM {DAILY} [RANGE 2 DAYS] AS x, B [RANGE 30 HOURS] AS y,
        B [RANGE 1 DAY] AS z WHERE y.k = z.k""",
        f"""SELECT x.d, y.i, z.i FROM {DAILY} AS x, B AS y, B AS z WHERE y.k = z.k
        AND {near(MIDNIGHT, "y.ts", -30, 48)} AND {near(MIDNIGHT, "z.ts", -24, 48)} AND {near("y.ts", "z.ts", -24, 30)}""",
    ),
    (
        f"""SELECT y.i, x.n, z.k FROM B [RANGE 1 DAY] AS y LEFT JOIN {DAILY} [RANGE 1 DAY] AS x ON x.n > 1,
        A [RANGE 1 DAY] AS z WHERE y.k = z.k""",
        f"""SELECT y.i, x.n, z.k
        FROM B AS y LEFT JOIN {DAILY} AS x ON x.n > 1 AND {near("y.ts", MIDNIGHT, -24, 24)}, A AS z WHERE y.k = z.k
        AND {near("y.ts", "z.ts", -24, 24)} AND (x.d IS NULL OR {near(MIDNIGHT, "z.ts", -24, 24)})""",
    ),
    (
        f"SELECT x.d, y.i FROM {DAILY} AS x JOIN B AS y ON y.ts BETWEEN x.d AND x.d + INTERVAL 30 HOURS",
        f"SELECT x.d, y.i FROM {DAILY} AS x JOIN B AS y ON {near(MIDNIGHT, 'y.ts', 0, 30)}",
    ),
    (
        f"SELECT x.d, y.i FROM {DAILY} AS x JOIN B AS y ON y.ts >= x.d - 1 AND y.ts < x.d + 2",
        f"SELECT x.d, y.i FROM {DAILY} AS x JOIN B AS y ON y.ts >= {MIDNIGHT} - INTERVAL 1 DAY AND y.ts < {MIDNIGHT} + INTERVAL 2 DAY",
    ),
    (
        f"SELECT x.d, y.i FROM {DAILY} AS x JOIN (SELECT i, date_trunc('day', ts) AS t FROM B) AS y ON y.t = x.d",
        f"SELECT x.d, y.i FROM {DAILY} AS x JOIN B AS y ON date_trunc('day', y.ts) = {MIDNIGHT}",
    ),
    (
        f"SELECT y.i, x.n FROM B AS y LEFT JOIN {DAILY} AS x ON x.d >= y.ts AND x.d < y.ts + INTERVAL 2 DAYS",
        f"""SELECT y.i, x.n FROM B AS y LEFT JOIN {DAILY} AS x
        ON {MIDNIGHT} >= y.ts AND {MIDNIGHT} < y.ts + INTERVAL 2 DAY""",
    ),
    (
        f"""SELECT count(*) AS n FROM
        (SELECT x.d, y.i FROM {DAILY} [RANGE 1 DAY] AS x JOIN B [RANGE 0 SECONDS] AS y ON y.i >= 0) [RANGE 1 DAY]""",
        f"""SELECT count(*), w, w + INTERVAL 1 DAY FROM (SELECT date_trunc('day', greatest({MIDNIGHT}, y.ts)) AS w
        FROM {DAILY} AS x JOIN B AS y ON {near(MIDNIGHT, "y.ts", 0, 24)}) GROUP BY w""",
    ),
]


@pytest.mark.parametrize("order", ["out-of-order", "in-order"])
@pytest.mark.parametrize(("ours", "duck"), QUERIES)
def test_windows_on_dates_answer_as_sql_does(ours: str, duck: str, order: str) -> None:
    shuffled, sorted_ = (stream("A", 0), stream("B", 0.25)), (stream("A", -20, "ordered"), stream("B", -20, "ordered"))
    case = Case(shuffled, (Query(ours, duck),), 3, 2, order=order, tree="m-join")
    case.check(case.run())
    case = Case(sorted_, (Query(ours, duck),), 1, order=order)
    case.check(case.host(2, random.Random(1)))


@pytest.mark.parametrize(
    ("tree", "parts"), [("auto", ("left input for 1 d", "right input for 5 d")), ("m-join", ("0 for 5 d",))]
)
def test_explain_counts_what_a_join_keeps_in_days(tree: str, parts: tuple[str, ...]) -> None:
    query = f"SELECT x.d FROM {DAILY} [RANGE 1 DAY] AS x JOIN {DAILY_B} [RANGE 5 DAYS] AS y ON x.n = y.n"
    if tree == "m-join":
        query = (
            query.replace("[RANGE 1 DAY]", "[RANGE 5 DAYS]")
            + f" JOIN {DAILY} [RANGE 5 DAYS] AS z ON z.n = x.n"
        )
    case = Case((stream("A", 0), stream("B", 0)), (Query(query, query),), tree=tree)
    text = case.pipeline().explain("graph")
    assert all(part in text for part in parts)
