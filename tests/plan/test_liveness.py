"""Queries that no stream could ever answer, or whose state could never be freed, are refused with the reason."""

from __future__ import annotations

import pytest

from millstream.errors import MillstreamError
from millstream.pipeline import Pipeline

STREAMS = """
CREATE STREAM A (k INT, o TIMESTAMP, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
CREATE STREAM B (k INT, o TIMESTAMP, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
CREATE STREAM C (k INT, o TIMESTAMP, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
CREATE STREAM P (k INT, o TIMESTAMP, done BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
  PUNCTUATE ON (k) WHEN done;
CREATE STREAM Q (k INT, o TIMESTAMP, done BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
  PUNCTUATE ON (k) WHEN done;
CREATE SINK Out WITH (connector = 'memory');
"""
TWO = "(SELECT k, ts, ts + INTERVAL 7 SECONDS AS t2 FROM {})"
OUTER = "A [RANGE 5 S] AS a LEFT JOIN B [RANGE 5 S] AS b ON a.k = b.k"
AT_BOTH = (
    f"SELECT a.ts AS ts FROM {TWO.format('A')} AS a LEFT JOIN {TWO.format('B')} AS b ON a.k = b.k"
    " AND b.ts BETWEEN a.t2 AND a.t2 + INTERVAL 60 SECONDS"
    " AND b.t2 BETWEEN a.ts - INTERVAL 60 SECONDS AND a.ts"
)
AT_ANOTHER = (
    f"SELECT a.k AS k FROM {TWO.format('A')} AS a LEFT JOIN B AS b ON a.k = b.k"
    " AND b.ts BETWEEN a.t2 AND a.t2 + INTERVAL 9 S"
)
TRUNCATED = "(SELECT k, ts, date_trunc('minute', ts) AS t2 FROM A)"
NULL, UNMATCHED = (
    "may be null, and no mark passes null; pass over the nulls with WHERE",
    "the LEFT or ANTI JOIN below promises nothing of it",
)
SORTED = (
    "ORDER BY in a sub-query keeps no promise but the progress of its first column; leave ORDER BY out there"
)

# (query, part of the message)
REFUSED = [
    # Windows of joins on columns that do not progress.
    (
        "SELECT a.k FROM A [RANGE 5 S] AS a LEFT ANTI JOIN B [RANGE 5 S WA o] AS b ON a.k = b.k",
        "tuples of the left input would wait for partners for ever, because `o` is not a progressing column",
    ),
    (
        "SELECT a.k, b.k AS l FROM A [RANGE 5 S WA o] AS a JOIN B [RANGE 5 S WA o] AS b ON a.k = b.k",
        "tuples of the left and right input would wait for partners for ever, because `o`",
    ),
    (
        "SELECT a.k FROM (SELECT k, ts + INTERVAL 1 MONTH AS m FROM A) [RANGE 5 S WA m] AS a JOIN B [RANGE"
        " 5 S] AS b ON a.k = b.k",
        "because `m` is not",
    ),
    (
        "SELECT a.k FROM A [RANGE 5 S] AS a, B [RANGE 5 S] AS b, C [RANGE 5 S WA o] AS c WHERE a.k = b.k "
        "AND b.k = c.k",
        "because `o` is not",
    ),
    # A left join gives out its left tuples by one column of the right side alone.
    (
        f"SELECT count(*) AS n FROM ({AT_BOTH}) [RANGE 10 S WA ts]",
        f"windows over `ts` would never close: {UNMATCHED}",
    ),
    (
        f"SELECT count(*) AS n FROM ({AT_ANOTHER}) [RANGE 10 S]",
        f"windows over the later time of a join would never close: {UNMATCHED}",
    ),
    # Times that may be null.
    (
        f"SELECT a.k, b.ts AS bt FROM {OUTER} ORDER BY bt",
        f"an endless stream can not be sorted by `bt`: it {NULL}",
    ),
    (
        f"SELECT a.k, b.ts AS bt, count(*) AS n FROM {OUTER} GROUP BY a.k, b.ts",
        f"would never close: `ts` {NULL}",
    ),
    (
        f"SELECT date_trunc('day', b.ts) AS day, count(*) AS n FROM {OUTER} GROUP BY date_trunc('day', b.ts)",
        f"(computed) would never close: `ts` {NULL}",
    ),
    (
        f"SELECT x, count(*) AS n FROM (SELECT b.ts AS x FROM {OUTER} UNION ALL SELECT ts FROM C) GROUP BY x",
        f"`x` {NULL}",
    ),
    (f"SELECT DISTINCT a.k, b.ts AS bt FROM {OUTER}", f"would remember every tuple for ever: `bt` {NULL}"),
    # Expressions that stay as they are, or are null from some time on.
    (
        "SELECT k, count(*) AS n FROM A GROUP BY unix_seconds(ts) * 0, k",
        "would never close: `UNIX_SECONDS(ts) * 0` does not progress",
    ),
    (
        "SELECT k, count(*) AS n FROM A GROUP BY unix_seconds(ts) DIV 1000000000000, k",
        "does not progress, though `ts` does",
    ),
    (
        "SELECT k, count(*) AS n FROM A GROUP BY TRY_CAST(unix_micros(ts) AS INT), k",
        "does not progress, though `ts` does",
    ),
    (
        "SELECT DISTINCT k, TRY_CAST(ts AS INT) AS second FROM A",
        "would remember every tuple for ever; add a window",
    ),
    ("SELECT k, TRY_CAST(ts AS INT) AS second FROM A ORDER BY second", "can not be sorted by `second`"),
    ("SELECT k, CASE WHEN k > 0 THEN ts END AS some FROM A ORDER BY some", "can not be sorted by `some`"),
    # Windows that do not move on under what closes its groups by other columns.
    (
        "SELECT count(*) AS n FROM (SELECT DISTINCT k, ts FROM A [RANGE 10 S WA o]) [RANGE 10 S]",
        "windows over `o` would never close: it is not a progressing column; name one with WA",
    ),
    (
        "SELECT count(*) AS n FROM (SELECT DISTINCT k FROM P [RANGE 10 S WA o]) [RANGE 10 S]",
        "windows over `window_start` would never close",
    ),
    (
        "SELECT sum(n) AS n FROM (SELECT k, count(*) AS n FROM P [RANGE 10 S WA o] GROUP BY k) [RANGE 10 S]",
        "windows over `window_start` would never close",
    ),
    # Closed values of the right side, above a left or anti join.
    (
        "SELECT b.k AS bk, count(*) AS n FROM P [RANGE 5 S] AS a LEFT JOIN Q [RANGE 5 S] AS b ON a.k = b.k"
        " GROUP BY b.k",
        f"would never close: {UNMATCHED}",
    ),
    (
        "SELECT a.k, count(*) AS n FROM A [RANGE 5 S] AS a LEFT JOIN Q [RANGE 5 S] AS b ON a.k = b.k GROUP"
        " BY a.k",
        f"(`k`) would never close: {UNMATCHED}",
    ),
    (
        "SELECT a.k, count(*) AS n FROM A [RANGE 5 S] AS a LEFT ANTI JOIN Q [RANGE 5 S] AS b ON a.k = b.k "
        "GROUP BY a.k",
        f"(`k`) would never close: {UNMATCHED}",
    ),
    (
        "SELECT DISTINCT a.k FROM A [RANGE 5 S] AS a LEFT ANTI JOIN Q [RANGE 5 S] AS b ON a.k = b.k",
        f"would remember every tuple for ever: {UNMATCHED}",
    ),
    # What a sort drops.
    (
        "SELECT k, count(*) AS n FROM (SELECT k, ts FROM P ORDER BY ts) GROUP BY k",
        f"(`k`) would never close: {SORTED}",
    ),
    (
        "SELECT DISTINCT k FROM (SELECT k, ts FROM P ORDER BY ts)",
        f"would remember every tuple for ever: {SORTED}",
    ),
    (
        "SELECT count(*) AS n FROM (SELECT ts, ts + INTERVAL 1 S AS t2 FROM P ORDER BY t2) [RANGE 10 S WA "
        "ts]",
        f"windows over `ts` would never close: {SORTED}",
    ),
    (
        "SELECT count(*) AS n FROM (SELECT ts, ts + INTERVAL 1 S AS t2 FROM P ORDER BY t2) [RANGE 10 S]",
        f"windows over `ts` would never close: {SORTED}",
    ),
    (
        "SELECT count(*) AS n FROM (SELECT k, ts FROM A ORDER BY ts) [ROWS 3]",
        f"windows over the arrival numbers would never close: {SORTED}",
    ),
]

CLOSED = "SELECT a.k, count(*) AS n FROM P [RANGE 5 S] AS a JOIN Q [RANGE 5 S] AS b ON a.k = b.k GROUP BY a.k"


def build(query: str, setting: str = "") -> None:
    made = Pipeline()
    made.add_text(f"{STREAMS} {setting} INSERT INTO Out {query};")
    made.graph()


@pytest.mark.parametrize(("query", "message"), REFUSED)
def test_refused(query: str, message: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        build(query)
    assert message in str(caught.value)
    assert caught.value.place is not None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, count(*) AS n FROM A GROUP BY CAST(ts AS DATE), k",
        "SELECT k, count(*) AS n FROM A GROUP BY TRY_CAST(ts AS DATE), k",
        "SELECT k, ts FROM A ORDER BY ts",
        "SELECT count(*) AS n FROM (SELECT k, ts FROM P ORDER BY ts) [RANGE 3 S]",
        f"SELECT b.ts AS bt, count(*) AS n FROM {OUTER} WHERE b.ts IS NOT NULL GROUP BY b.ts",
        f"SELECT a.ts AS at, b.ts AS bt, count(*) AS n FROM {OUTER} GROUP BY b.ts, a.ts",
        f"SELECT DISTINCT b.ts AS bt, a.ts AS at FROM {OUTER}",
        f"SELECT count(*) AS n FROM (SELECT b.ts AS bt FROM {OUTER}) [RANGE 10 S WA bt]",
        "SELECT a.k, count(*) AS n FROM P [RANGE 5 S] AS a LEFT JOIN Q [RANGE 5 S] AS b ON a.k = b.k "
        "GROUP BY a.k",
        "SELECT a.k, count(*) AS n FROM A [RANGE 5 S] AS a LEFT SEMI JOIN Q [RANGE 5 S] AS b ON a.k = "
        "b.k GROUP BY a.k",
        "SELECT b.k, count(*) AS n FROM P [RANGE 5 S] AS a JOIN B [RANGE 5 S] AS b ON a.k = b.k GROUP BY b.k",
        "SELECT a.k FROM A [RANGE 5 S] AS a JOIN B [RANGE 5 S WA o] AS b ON a.k = b.k AND a.ts = b.ts",
        CLOSED,
        # Bands that are written as conditions are there when it is asked what progresses.
        "SELECT a.ts AS at FROM A AS a JOIN B AS b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + "
        "INTERVAL 5 S ORDER BY at",
        "SELECT w.n, w.window_start AS s FROM (SELECT count(*) AS n FROM (SELECT a.ts AS at FROM A AS a JOIN B AS b"
        " ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 S) [RANGE 9 S WA at]) AS w ORDER BY s",
        # An aggregate passes marks on all of its groups.
        "SELECT x.k FROM (SELECT k, ts, ts + INTERVAL 1 S AS t2, count(*) AS n FROM A GROUP BY k, ts, ts + INTERVAL 1 S)"
        " [RANGE 9 S WA t2] AS x JOIN B [RANGE 9 S] AS y ON x.k = y.k",
    ],
)
def test_accepted(query: str) -> None:
    build(query)


def test_a_window_join_hears_of_no_closed_value() -> None:
    with pytest.raises(
        MillstreamError,
        match=r"with `join.algorithm = 'window'` the join below hears of no closed value; leave the setting",
    ):
        build(CLOSED, "SET join.algorithm = 'window';")
    build(CLOSED, "SET join.algorithm = 'punctuated-window';")
    pairs = "SELECT b.k AS k FROM P [RANGE 9 S] AS b JOIN P [RANGE 3 S] AS c ON b.k = c.k"
    three = f"SELECT a.k FROM P AS a JOIN ({pairs}) AS q ON a.k = q.k"
    build(three)
    with pytest.raises(MillstreamError, match=r"would wait for partners for ever: with `join.algorithm"):
        build(three, "SET join.algorithm = 'window';")


def test_in_order_execution_needs_progress_of_the_time_it_sorts_by() -> None:
    join = (
        f"SELECT a.ts AS ts, a.t2 AS t2 FROM {TRUNCATED} AS a LEFT ANTI JOIN B AS b ON a.k = b.k"
        " AND b.ts BETWEEN a.t2 - INTERVAL 2 S AND a.t2 + INTERVAL 2 S"
    )
    query = f"SELECT ts, t2, count(*) AS n FROM ({join}) GROUP BY t2, ts"
    build(query)
    with pytest.raises(
        MillstreamError,
        match="in-order execution can not sort behind this LEFT, SEMI or ANTI JOIN: no mark comes",
    ):
        build(query, "SET execution.order = 'in-order';")
