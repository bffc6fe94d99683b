"""Every aggregate, over a window by key, with nulls and groups that hold nothing but nulls."""

from __future__ import annotations

from decimal import Decimal

from tests.runtimes.case import Case, at

STREAM = """
CREATE STREAM A (k INT, i INT, d DOUBLE, p DECIMAL(10, 2), s STRING, b BOOLEAN, day DATE, ts TIMESTAMP) TIMESTAMP BY ts SLACK 5 SECONDS;
"""
DAY = at(0).date()
TUPLES = [
    (1, 5, 0.5, Decimal("1.10"), "pear", True, DAY.replace(day=3), at(0)),
    (1, -7, 1e9, Decimal("-2.25"), "apple", True, DAY.replace(day=1), at(3)),
    (1, None, None, None, None, None, None, at(2)),
    (2, 3, -0.25, Decimal("99999999.99"), "Zebra", False, DAY, at(4)),
    (2, 3, 0.1, Decimal("99999999.99"), "zebra", None, DAY, at(4)),
    (2, 2147483647, 0.2, Decimal("0.01"), "", True, None, at(6)),
    (2, 2147483647, 0.3, Decimal("0.01"), "é", True, None, at(7)),
    (3, None, None, None, None, None, None, at(8)),
    (3, None, None, None, None, None, None, at(9)),
    (None, 4, 2.0, Decimal("4.00"), "x", False, DAY, at(11)),
    (None, 4, 2.0, Decimal("4.00"), "x", False, DAY, at(12)),
    (None, 6, 3.0, Decimal("6.50"), "y", False, DAY, at(12)),
    (4, 1, 1.0, Decimal("1.00"), "one", True, DAY, at(13)),
]
BUCKET = "time_bucket(INTERVAL 10 SECONDS, ts) AS window_start, time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end"


def aggregate(name: str, feature: str, calls: str, oracle: str | None = None) -> Case:
    return Case(
        name,
        feature,
        f"INSERT INTO Out SELECT k, {calls} FROM A [RANGE 10 SECONDS] GROUP BY k;",
        f"SELECT k, {oracle or calls}, {BUCKET} FROM A GROUP BY k, time_bucket(INTERVAL 10 SECONDS, ts)",
        streams=STREAM,
        inputs={"A": TUPLES},
    )


CASES = [
    Case(
        "group_by_null",
        "GROUP BY expressions, aliases and positions",
        "INSERT INTO Out SELECT NULL AS x, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY NULL;",
        "SELECT NULL AS x, count(*) AS n, time_bucket(INTERVAL 10 SECONDS, ts) AS window_start,"
        " time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end FROM A GROUP BY 3, 4",
    ),
    Case(
        "other_names",
        "mean, std, every, any, some",
        "INSERT INTO Out SELECT k, mean(v) AS m, std(v) AS s, every(v > 0) AS e, any(v > 50) AS a, some(v < 0) AS o"
        " FROM A [RANGE 10 SECONDS] GROUP BY k;",
        "SELECT k, avg(v) AS m, stddev(v) AS s, bool_and(v > 0) AS e, bool_or(v > 50) AS a, bool_or(v < 0) AS o,"
        " time_bucket(INTERVAL 10 SECONDS, ts) AS window_start, time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end"
        " FROM A GROUP BY ALL",
    ),
    Case(
        "having_aliases",
        "HAVING by aliases",
        "INSERT INTO Out SELECT k % 2 AS odd, sum(v) AS s FROM A [RANGE 10 SECONDS] GROUP BY odd HAVING s > 20 AND odd = 1;",
        "SELECT k % 2 AS odd, sum(v) AS s,"
        " time_bucket(INTERVAL 10 SECONDS, ts) AS window_start, time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end"
        " FROM A GROUP BY 1, 3, 4 HAVING sum(v) > 20 AND k % 2 = 1",
    ),
    aggregate("count", "count(*), count(x)", "count(*) AS a, count(i) AS b, count(s) AS c, count(1) AS d"),
    aggregate(
        "count_distinct",
        "count(DISTINCT x)",
        "count(DISTINCT i) AS a, count(DISTINCT s) AS b, count(DISTINCT p) AS c, count(DISTINCT b) AS d",
    ),
    aggregate(
        "count_if",
        "count_if, FILTER",
        "count_if(i > 3) AS a, count(*) FILTER (WHERE b) AS c, sum(d) FILTER (WHERE i > 0) AS e",
        "count(*) FILTER (WHERE i > 3) AS a, count(*) FILTER (WHERE b) AS c, sum(d) FILTER (WHERE i > 0) AS e",
    ),
    aggregate("sum_of_integers", "sum", "sum(i) AS a", "CAST(sum(i) AS BIGINT) AS a"),
    aggregate("sum_of_floats", "sum", "sum(d) AS a"),
    aggregate("sum_of_decimals", "sum", "sum(p) AS a"),
    aggregate(
        "sum_distinct",
        "sum(DISTINCT x)",
        "sum(DISTINCT i) AS a, sum(DISTINCT p) AS b",
        "CAST(sum(DISTINCT i) AS BIGINT) AS a, sum(DISTINCT p) AS b",
    ),
    aggregate(
        "distinct_constants",
        "aggregates of DISTINCT constants",
        "count(DISTINCT 1) AS a, count(DISTINCT 'x') AS b, count(DISTINCT NULL) AS c, sum(DISTINCT 2) AS e",
        "count(DISTINCT 1) AS a, count(DISTINCT 'x') AS b, count(DISTINCT NULL) AS c, CAST(sum(DISTINCT 2) AS BIGINT) AS e",
    ),
    aggregate("avg", "avg", "avg(i) AS a, avg(d) AS b"),
    aggregate("avg_of_decimals", "avg", "avg(p) AS a", "CAST(sum(p) / count(p) AS DECIMAL(14, 6)) AS a"),
    aggregate(
        "min_max", "min, max", "min(i) AS a, max(i) AS b, min(d) AS c, max(d) AS e, min(p) AS f, max(p) AS g"
    ),
    aggregate("min_max_of_texts", "min, max", "min(s) AS a, max(s) AS b"),
    aggregate("min_max_of_times", "min, max", "min(ts) AS a, max(ts) AS b, min(day) AS c, max(day) AS d"),
    aggregate(
        "deviation",
        "stddev, stddev_pop, variance, var_pop",
        "stddev(d) AS a, stddev_pop(d) AS b, variance(i) AS c, var_pop(i) AS e",
    ),
    aggregate("booleans", "bool_and, bool_or", "bool_and(b) AS a, bool_or(b) AS c"),
    aggregate(
        "expressions_of_aggregates",
        "expressions over aggregates",
        "max(i) - min(i) AS a, sum(d) / count(*) AS b, count(*) > 2 AS c, upper(max(s)) AS e",
    ),
    aggregate(
        "aggregates_of_expressions",
        "aggregates of expressions",
        "sum(CAST(i AS BIGINT) * 2 + 1) AS a, max(length(s)) AS b",
        "CAST(sum(i::BIGINT * 2 + 1) AS BIGINT) AS a, CAST(max(length(s)) AS INT) AS b",
    ),
    Case(
        "sum_overflows",
        "a sum that overflows, of which the group becomes a dead letter",
        "INSERT INTO Out SELECT k, sum(v) AS s FROM S [RANGE 10 SECONDS] GROUP BY k;",
        rows=[{"k": 1, "s": 3, "window_start": at(0), "window_end": at(10)}],
        streams="CREATE STREAM S (k INT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;",
        inputs={"S": [(1, 1, at(0)), (2, 2**63 - 1, at(1)), (2, 2**63 - 1, at(2)), (1, 2, at(3))]},
        letters=[("S", "error", '{"k": 2, "window_start": "2024-05-01 12:00:00+00:00"')],
    ),
]
