"""Windows under aggregation and duplicate elimination."""

from __future__ import annotations

from datetime import UTC, date, datetime

from tests.runtimes.case import AB_TUPLES, Case, at


def counted(span: int, slide: int, source: str = "A", group: str = "k, ") -> str:
    """Count and sum by key in windows of `span` seconds every `slide`."""
    return f"""SELECT {group}count(*) AS n, CAST(sum(v) AS BIGINT) AS s, window_start, window_start + seconds({span}) AS window_end
    FROM (SELECT *, unnest(starts(ts, {span}, {slide})) AS window_start FROM {source}) GROUP BY {group}window_start"""


def query(window: str, source: str = "A", group: str = "k") -> str:
    listed, by = (f"{group}, ", f" GROUP BY {group}") if group else ("", "")
    return f"INSERT INTO Out SELECT {listed}count(*) AS n, sum(v) AS s FROM {source} {window}{by};"


def in_rows(size: int, slide: int) -> str:
    return f"""SELECT k, count(*) AS n, CAST(sum(v) AS BIGINT) AS s, window_start, window_start + {size} AS window_end
    FROM (SELECT *, unnest(row_starts(number, {size}, {slide})) AS window_start
          FROM (SELECT *, row_number() OVER () - 1 AS number FROM A)) GROUP BY k, window_start"""


BUCKET = "time_bucket(INTERVAL 10 SECONDS, ts) AS window_start, time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end"

DAILY = "(SELECT CAST(ts AS DATE) AS d, count(*) AS n FROM S GROUP BY d)"

CASES = [
    Case("tumbling", "tumbling: RANGE", query("[RANGE 10 SECONDS]"), counted(10, 10)),
    Case(
        "tumbling_without_group",
        "tumbling: RANGE",
        query("[RANGE 10 SECONDS]", group=""),
        counted(10, 10, group=""),
    ),
    Case("sliding", "sliding: RANGE, SLIDE", query("[RANGE 20 SECONDS SLIDE 5 SECONDS]"), counted(20, 5)),
    Case(
        "sliding_unevenly",
        "sliding: RANGE, SLIDE",
        query("[RANGE 7 SECONDS, SLIDE 3 SECONDS]"),
        counted(7, 3),
    ),
    Case("with_gaps", "SLIDE longer than RANGE", query("[RANGE 4 SECONDS SLIDE 10 SECONDS]"), counted(4, 10)),
    Case(
        "sliding_finely",
        "sliding: RANGE, SLIDE",
        query("[RANGE 1500 MILLISECONDS SLIDE 250 MILLISECONDS]"),
        counted(1.5, 0.25),
    ),
    Case("rows", "ROWS", query("[ROWS 7]"), in_rows(7, 7)),
    Case("rows_sliding", "ROWS, SLIDE", query("[ROWS 10 SLIDE 4]"), in_rows(10, 4)),
    Case("rows_with_gaps", "ROWS, SLIDE", query("[ROWS 3 SLIDE 8]"), in_rows(3, 8)),
    Case(
        "paper_spelling",
        "[RANGE, SLIDE, WA] as in the papers",
        "INSERT INTO Out SELECT k, count(*) AS n, sum(v) AS s [RANGE 20 sec, SLIDE 10 sec, WA ts] FROM A GROUP BY k;",
        counted(20, 10),
    ),
    Case(
        "window_on_union",
        "window on a union",
        "INSERT INTO Out SELECT count(*) AS n FROM A UNION B UNION C [RANGE 10 SECONDS, WA ts];",
        f"SELECT count(*) AS n, {BUCKET} FROM (SELECT ts FROM A UNION ALL SELECT ts FROM B UNION ALL SELECT ts FROM C) GROUP BY ALL",
    ),
    Case(
        "window_on_subquery",
        "window on a sub-query",
        "INSERT INTO Out SELECT d, count(*) AS n FROM (SELECT v > 20 AS d, ts FROM A) [RANGE 10 SECONDS] AS S GROUP BY d;",
        f"SELECT v > 20 AS d, count(*) AS n, {BUCKET} FROM A GROUP BY ALL",
    ),
    Case(
        "window_ends_in_expressions",
        "window_start and window_end as columns",
        """INSERT INTO Out SELECT unix_seconds(window_start) AS s, window_end, count(*) AS n, k
           FROM A [RANGE 10 SECONDS] GROUP BY k, window_start;""",
        """SELECT CAST(epoch(time_bucket(INTERVAL 10 SECONDS, ts)) AS BIGINT) AS s,
           time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end, count(*) AS n, k,
           time_bucket(INTERVAL 10 SECONDS, ts) AS window_start FROM A GROUP BY k, time_bucket(INTERVAL 10 SECONDS, ts)""",
    ),
    Case(
        "window_before_1970",
        "tumbling: RANGE",
        query("[RANGE 10 SECONDS]"),
        rows=[
            {
                "k": 1,
                "n": 2,
                "s": 3,
                "window_start": datetime(1969, 12, 31, 23, 59, 50, tzinfo=UTC),
                "window_end": datetime(1970, 1, 1, tzinfo=UTC),
            },
            {
                "k": 1,
                "n": 1,
                "s": 4,
                "window_start": datetime(1970, 1, 1, tzinfo=UTC),
                "window_end": datetime(1970, 1, 1, 0, 0, 10, tzinfo=UTC),
            },
        ],
        inputs={
            "A": [
                (1, 1, datetime(1969, 12, 31, 23, 59, 55, tzinfo=UTC)),
                (1, 2, datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
                (1, 4, datetime(1970, 1, 1, tzinfo=UTC)),
            ]
        },
    ),
    Case(
        "edges",
        "tumbling: RANGE",
        query("[RANGE 10 SECONDS]"),
        counted(10, 10),
        inputs={
            "A": [
                (1, 1, at(0)),
                (1, 2, at(9.999999)),
                (1, 4, at(10)),
                (1, 8, at(10)),
                (1, 16, at(20)),
                (1, 32, at(3600)),
            ]
        },
    ),
    Case(
        "group_by_time",
        "GROUP BY a progressing time, without a window",
        "INSERT INTO Out SELECT ts, count(*) AS n, max(v) AS m FROM A GROUP BY ts;",
        "SELECT ts, count(*) AS n, max(v) AS m FROM A GROUP BY ts",
    ),
    Case(
        "group_by_truncated_time",
        "GROUP BY an expression of a progressing time",
        "INSERT INTO Out SELECT date_trunc('MINUTE', ts) AS m, k, count(*) AS n FROM A GROUP BY m, k;",
        "SELECT date_trunc('minute', ts) AS m, k, count(*) AS n FROM A GROUP BY ALL",
    ),
    Case(
        "group_by_divided_time",
        "GROUP BY an expression of a progressing time",
        "INSERT INTO Out SELECT unix_seconds(ts) DIV 7 AS d, count(*) AS n FROM A GROUP BY 1;",
        "SELECT CAST(epoch(ts) AS BIGINT) // 7 AS d, count(*) AS n FROM A GROUP BY 1",
    ),
    Case(
        "having",
        "HAVING",
        "INSERT INTO Out SELECT k FROM A [RANGE 10 SECONDS] GROUP BY k HAVING count(*) > 2 AND sum(v) > 10;",
        f"SELECT k, {BUCKET} FROM A GROUP BY k, time_bucket(INTERVAL 10 SECONDS, ts) HAVING count(*) > 2 AND sum(v) > 10",
    ),
    Case(
        "group_by_expression",
        "GROUP BY expressions, aliases and positions",
        "INSERT INTO Out SELECT k % 2 AS odd, v > 0 AS up, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY odd, 2;",
        f"SELECT k % 2 AS odd, v > 0 AS up, count(*) AS n, {BUCKET} FROM A GROUP BY ALL",
    ),
    Case(
        "distinct",
        "SELECT DISTINCT in windows",
        "INSERT INTO Out SELECT DISTINCT k, v > 20 AS up FROM A [RANGE 10 SECONDS];",
        f"SELECT DISTINCT k, v > 20 AS up, {BUCKET} FROM A",
    ),
    Case(
        "distinct_sliding",
        "SELECT DISTINCT in windows",
        "INSERT INTO Out SELECT DISTINCT k FROM A [RANGE 20 SECONDS SLIDE 10 SECONDS];",
        """SELECT DISTINCT k, window_start, window_start + INTERVAL 20 SECONDS AS window_end
           FROM (SELECT *, unnest(starts(ts, 20, 10)) AS window_start FROM A)""",
    ),
    Case(
        "distinct_by_time",
        "SELECT DISTINCT with a progressing time",
        "INSERT INTO Out SELECT DISTINCT ts, k FROM A;",
        "SELECT DISTINCT ts, k FROM A",
    ),
    Case(
        "distinct_nulls",
        "SELECT DISTINCT in windows",
        "INSERT INTO Out SELECT DISTINCT k, v FROM A [RANGE 10 SECONDS];",
        f"SELECT DISTINCT k, v, {BUCKET} FROM A",
        inputs={
            "A": [
                (None, 1, at(0)),
                (None, 1, at(1)),
                (None, None, at(1)),
                (None, None, at(2)),
                (1, None, at(12)),
                (1, None, at(13)),
            ]
        },
    ),
    Case(
        "window_over_nothing",
        "streams without a tuple",
        query("[RANGE 10 SECONDS]"),
        counted(10, 10),
        inputs={},
    ),
    Case(
        "one_tuple",
        "tumbling: RANGE",
        query("[RANGE 10 SECONDS SLIDE 5 SECONDS]"),
        counted(10, 5),
        inputs={"A": AB_TUPLES["A"][:1]},
    ),
    Case(
        "days",
        "RANGE on a DATE: whole days",
        """INSERT INTO Out SELECT sum(n) AS n
        FROM (SELECT CAST(ts AS DATE) AS d, count(*) AS n FROM S GROUP BY CAST(ts AS DATE)) [RANGE 48 HOURS];""",
        rows=[
            {"n": 3, "window_start": date(2024, 5, 1), "window_end": date(2024, 5, 3)},
            {"n": 1, "window_start": date(2024, 5, 5), "window_end": date(2024, 5, 7)},
        ],
        streams="CREATE STREAM S (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;",
        inputs={"S": [(1, at(0)), (2, at(9)), (3, at(86_400)), (4, at(4 * 86_400))]},
    ),
    Case(
        "days_joined",
        "joins by a DATE and a TIMESTAMP",
        """CREATE VIEW Daily AS SELECT CAST(ts AS DATE) AS d, count(*) AS n FROM S GROUP BY CAST(ts AS DATE);
        INSERT INTO Out SELECT x.d, y.k FROM Daily AS x JOIN S AS y ON y.ts BETWEEN x.d AND x.d + INTERVAL 30 HOURS;
        INSERT INTO Near SELECT y.k, x.n FROM S [RANGE 1 DAY] AS y LEFT JOIN Daily [RANGE 1 DAY] AS x ON x.n > 1;""",
        {
            "Out": f"SELECT x.d, y.k FROM {DAILY} AS x"
            " JOIN S AS y ON y.ts BETWEEN x.d::TIMESTAMP AND x.d::TIMESTAMP + INTERVAL 30 HOURS",
            "Near": f"SELECT y.k, x.n FROM S AS y LEFT JOIN {DAILY} AS x"
            " ON x.n > 1 AND y.ts BETWEEN x.d::TIMESTAMP - INTERVAL 1 DAY AND x.d::TIMESTAMP + INTERVAL 1 DAY",
        },
        streams="CREATE STREAM S (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;",
        inputs={"S": [(k, at(k * k * 3600)) for k in range(16)]},
    ),
]
