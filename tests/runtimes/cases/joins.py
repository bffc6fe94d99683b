"""Joins of streams: every kind, every way to bound them, every kind of key."""

from __future__ import annotations

from tests.runtimes.case import AB, AB_TUPLES, Case, at

NEAR = "B.ts BETWEEN A.ts - INTERVAL 2 SECONDS AND A.ts + INTERVAL 5 SECONDS"
WINDOWS = "A [RANGE 5 SECONDS] {join} B [RANGE 2 SECONDS]"
PUNCTUATED = """
CREATE STREAM A (k INT, v INT, done BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts SLACK 5 SECONDS PUNCTUATE ON (k) WHEN done;
CREATE STREAM B (k INT, w INT, done BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts SLACK 5 SECONDS PUNCTUATE ON (k) WHEN done;
"""
PUNCTUATED_TUPLES = {
    "A": [
        (1, 1, False, at(0)),
        (2, 2, False, at(1)),
        (1, 3, False, at(2)),
        (1, None, True, at(2)),
        (2, 4, False, at(9)),
        (3, 5, False, at(9)),
        (2, None, True, at(9)),
        (3, None, True, at(10)),
    ],
    "B": [
        (2, 20, False, at(0)),
        (2, None, True, at(0)),
        (1, 10, False, at(5)),
        (1, 11, False, at(50)),
        (3, 30, False, at(51)),
        (1, None, True, at(60)),
        (4, 40, False, at(60)),
    ],
}


def joined(name: str, feature: str, join: str, select: str, on: str = "A.k = B.k", oracle: str | None = None) -> Case:
    """A join of A and B in unequal windows."""
    return Case(
        name,
        feature,
        f"INSERT INTO Out SELECT {select} FROM {WINDOWS.format(join=join)} ON {on};",
        oracle or f"SELECT {select} FROM A {join.replace('LEFT SEMI', 'SEMI').replace('LEFT ANTI', 'ANTI')} B ON {on} AND {NEAR}",
    )


CASES = [
    Case(
        "inner",
        "inner join in windows",
        "INSERT INTO Out SELECT A.k, v, w, A.ts AS a, B.ts AS b FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS] WHERE A.k = B.k;",
        f"SELECT A.k, v, w, A.ts AS a, B.ts AS b FROM A, B WHERE A.k = B.k AND {NEAR}",
    ),
    joined("inner_on", "inner join in windows", "JOIN", "v, w"),
    joined("condition", "conditions beside the keys", "JOIN", "A.k, v, w", "A.k = B.k AND A.v < B.w"),
    joined("no_key", "join without equal keys", "JOIN", "v, w", "A.v < B.w"),
    joined("expression_key", "keys that are expressions", "JOIN", "v, w", "A.k + 1 = B.k * 2"),
    joined("left", "LEFT JOIN", "LEFT JOIN", "A.k, v, A.ts, w, B.ts AS b"),
    joined("left_condition", "LEFT JOIN", "LEFT JOIN", "A.k, v, w", "A.k = B.k AND A.v < B.w AND A.v > 10"),
    joined("semi", "LEFT SEMI JOIN", "LEFT SEMI JOIN", "A.k, v, A.ts"),
    joined("semi_condition", "LEFT SEMI JOIN", "LEFT SEMI JOIN", "A.k, v", "A.k = B.k AND A.v < B.w"),
    joined("anti", "LEFT ANTI JOIN", "LEFT ANTI JOIN", "A.k, v, A.ts"),
    joined("anti_condition", "LEFT ANTI JOIN", "LEFT ANTI JOIN", "A.k, v", "A.k = B.k AND A.v < B.w"),
    Case(
        "left_then_where",
        "LEFT JOIN",
        f"INSERT INTO Out SELECT A.k, v FROM {WINDOWS.format(join='LEFT JOIN')} ON A.k = B.k WHERE B.w IS NULL;",
        f"SELECT A.k, v FROM A LEFT JOIN B ON A.k = B.k AND {NEAR} WHERE w IS NULL",
    ),
    Case(
        "left_filtered",
        "LEFT JOIN",
        f"INSERT INTO Out SELECT A.k, v, w FROM {WINDOWS.format(join='LEFT JOIN')} ON A.k = B.k WHERE A.v > 10;",
        f"SELECT A.k, v, w FROM A LEFT JOIN B ON A.k = B.k AND {NEAR} WHERE v > 10",
    ),
    Case(
        "using",
        "USING",
        f"INSERT INTO Out SELECT k, v, w FROM {WINDOWS.format(join='JOIN')} USING (k);",
        f"SELECT A.k, v, w FROM A, B WHERE A.k = B.k AND {NEAR}",
    ),
    Case(
        "now",
        "[NOW]",
        "INSERT INTO Out SELECT A.k, v, w FROM A [RANGE 5 SECONDS], B [NOW] WHERE A.k = B.k;",
        "SELECT A.k, v, w FROM A, B WHERE A.k = B.k AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 5 SECONDS",
    ),
    Case(
        "now_now",
        "[NOW]",
        "INSERT INTO Out SELECT A.k AS a, B.k AS b, A.ts FROM A [NOW], B [NOW];",
        "SELECT A.k AS a, B.k AS b, A.ts FROM A, B WHERE A.ts = B.ts",
    ),
    Case(
        "band",
        "times compared in WHERE",
        "INSERT INTO Out SELECT v, w FROM A, B WHERE A.k = B.k AND A.ts >= B.ts - INTERVAL 3 SECONDS AND A.ts < B.ts + INTERVAL 4 SECONDS;",
        "SELECT v, w FROM A, B WHERE A.k = B.k AND A.ts >= B.ts - INTERVAL 3 SECONDS AND A.ts < B.ts + INTERVAL 4 SECONDS",
    ),
    Case(
        "band_between",
        "times compared in WHERE",
        "INSERT INTO Out SELECT v, w FROM A JOIN B ON A.k = B.k AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 3 SECONDS;",
        "SELECT v, w FROM A JOIN B ON A.k = B.k AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 3 SECONDS",
    ),
    Case(
        "same_time",
        "times compared in WHERE",
        "INSERT INTO Out SELECT A.k, v, w, B.ts FROM A, B WHERE A.ts = B.ts AND A.k = B.k;",
        "SELECT A.k, v, w, B.ts FROM A, B WHERE A.ts = B.ts AND A.k = B.k",
    ),
    Case(
        "same_ten_seconds",
        "expressions of times compared in WHERE",
        "INSERT INTO Out SELECT v, w FROM A, B WHERE unix_seconds(A.ts) DIV 10 = unix_seconds(B.ts) DIV 10 AND A.k = B.k;",
        "SELECT v, w FROM A, B WHERE CAST(epoch(A.ts) AS BIGINT) // 10 = CAST(epoch(B.ts) AS BIGINT) // 10 AND A.k = B.k",
    ),
    Case(
        "three_way",
        "join of three streams",
        "INSERT INTO Out SELECT v, w, x FROM A [RANGE 5 SECONDS], B [RANGE 4 SECONDS], C [RANGE 3 SECONDS] WHERE A.k = B.k AND A.k = C.k;",
        """SELECT v, w, x FROM A, B, C WHERE A.k = B.k AND A.k = C.k
           AND B.ts BETWEEN A.ts - INTERVAL 4 SECONDS AND A.ts + INTERVAL 5 SECONDS
           AND C.ts BETWEEN A.ts - INTERVAL 3 SECONDS AND A.ts + INTERVAL 5 SECONDS
           AND C.ts BETWEEN B.ts - INTERVAL 3 SECONDS AND B.ts + INTERVAL 4 SECONDS""",
    ),
    Case(
        "left_left",
        "LEFT JOIN of three streams",
        """INSERT INTO Out SELECT A.k, v, w, x FROM A [RANGE 9 SECONDS] LEFT JOIN B [RANGE 9 SECONDS] ON A.k = B.k
           LEFT JOIN C [RANGE 2 SECONDS] ON A.k = C.k;""",
        """SELECT A.k, v, w, x FROM A LEFT JOIN B ON A.k = B.k AND B.ts BETWEEN A.ts - INTERVAL 9 SECONDS AND A.ts + INTERVAL 9 SECONDS
           LEFT JOIN C ON A.k = C.k AND C.ts BETWEEN A.ts - INTERVAL 2 SECONDS AND A.ts + INTERVAL 9 SECONDS
           AND (B.ts IS NULL OR C.ts BETWEEN B.ts - INTERVAL 2 SECONDS AND B.ts + INTERVAL 9 SECONDS)""",
    ),
    Case(
        "left_inner",
        "LEFT JOIN of three streams",
        """INSERT INTO Out SELECT A.k, v, w, x FROM A [RANGE 9 SECONDS] LEFT JOIN B [RANGE 9 SECONDS] ON A.k = B.k
           JOIN C [RANGE 2 SECONDS] ON A.k = C.k;""",
        """SELECT A.k, v, w, x FROM A LEFT JOIN B ON A.k = B.k AND B.ts BETWEEN A.ts - INTERVAL 9 SECONDS AND A.ts + INTERVAL 9 SECONDS
           JOIN C ON A.k = C.k AND C.ts BETWEEN A.ts - INTERVAL 2 SECONDS AND A.ts + INTERVAL 9 SECONDS
           AND (B.ts IS NULL OR C.ts BETWEEN B.ts - INTERVAL 2 SECONDS AND B.ts + INTERVAL 9 SECONDS)""",
    ),
    Case(
        "three_way_other_keys",
        "join of three streams",
        "INSERT INTO Out SELECT * FROM A [RANGE 3 SECONDS], B [RANGE 3 SECONDS], C [RANGE 3 SECONDS] WHERE A.k = B.k AND A.v = C.x;",
        """SELECT A.*, B.k AS k_1, w, B.ts AS ts_1, C.k AS k_2, x, C.ts AS ts_2 FROM A, B, C WHERE A.k = B.k AND A.v = C.x
           AND B.ts BETWEEN A.ts - INTERVAL 3 SECONDS AND A.ts + INTERVAL 3 SECONDS
           AND C.ts BETWEEN A.ts - INTERVAL 3 SECONDS AND A.ts + INTERVAL 3 SECONDS
           AND C.ts BETWEEN B.ts - INTERVAL 3 SECONDS AND B.ts + INTERVAL 3 SECONDS""",
        inputs={stream: [(k, v % 5, ts) for k, v, ts in rows] for stream, rows in AB_TUPLES.items()},
    ),
    Case(
        "three_way_table",
        "join of two streams and a table",
        "INSERT INTO Out SELECT v, w, name FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS], Names WHERE A.k = B.k AND A.k = Names.k;",
        f"SELECT v, w, name FROM A, B, '${{tables}}/names.csv' AS n WHERE A.k = B.k AND A.k = n.k AND {NEAR}",
    ),
    Case(
        "self_join",
        "join of a stream with itself",
        "INSERT INTO Out SELECT x.v AS a, y.v AS b FROM A [RANGE 2 SECONDS] AS x, A [NOW] AS y WHERE x.k = y.k;",
        "SELECT x.v AS a, y.v AS b FROM A AS x, A AS y WHERE x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 2 SECONDS",
    ),
    Case(
        "join_of_unions",
        "join of unions",
        "INSERT INTO Out SELECT P.k, P.v, Q.x FROM A UNION B [RANGE 2 SECONDS] AS P, C [RANGE 2 SECONDS] AS Q WHERE P.k = Q.k;",
        """SELECT P.k, P.v, Q.x FROM (FROM A UNION ALL FROM B) AS P, C AS Q
           WHERE P.k = Q.k AND Q.ts BETWEEN P.ts - INTERVAL 2 SECONDS AND P.ts + INTERVAL 2 SECONDS""",
    ),
    Case(
        "composite_keys",
        "composite keys",
        "INSERT INTO Out SELECT A.k, A.v, B.ts FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS] WHERE A.k = B.k AND A.v = B.w;",
        """SELECT A.k, A.v, B.ts FROM A, B WHERE A.k = B.k AND A.v = B.w
           AND B.ts BETWEEN A.ts - INTERVAL 20 SECONDS AND A.ts + INTERVAL 20 SECONDS""",
        inputs={stream: [(k, v % 5, ts) for k, v, ts in rows] for stream, rows in AB_TUPLES.items()},
    ),
    Case(
        "null_keys",
        "null keys never join",
        "INSERT INTO Out SELECT A.k, v, w FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 5 SECONDS] ON A.k = B.k;",
        "SELECT A.k, v, w FROM A LEFT JOIN B ON A.k = B.k",
        inputs={"A": [(None, 1, at(0)), (1, 2, at(0)), (None, 3, at(1))], "B": [(None, 10, at(0)), (1, 11, at(1)), (1, None, at(2))]},
    ),
    Case(
        "null_keys_anti",
        "null keys never join",
        "INSERT INTO Out SELECT k, v FROM A [RANGE 5 SECONDS] LEFT ANTI JOIN B [RANGE 5 SECONDS] ON A.k = B.k;",
        "SELECT k, v FROM A ANTI JOIN B ON A.k = B.k",
        inputs={"A": [(None, 1, at(0)), (1, 2, at(0)), (2, 3, at(1))], "B": [(None, 10, at(0)), (1, 11, at(1))]},
    ),
    Case(
        "null_safe_key",
        "<=> in a join",
        "INSERT INTO Out SELECT v, w FROM A [RANGE 5 SECONDS] JOIN B [RANGE 5 SECONDS] ON A.k <=> B.k;",
        "SELECT v, w FROM A JOIN B ON A.k IS NOT DISTINCT FROM B.k",
        inputs={"A": [(None, 1, at(0)), (1, 2, at(0))], "B": [(None, 10, at(0)), (1, 11, at(1)), (2, 12, at(1))]},
    ),
    Case(
        "empty_right",
        "streams without a tuple",
        "INSERT INTO Out SELECT A.k, w FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 2 SECONDS] ON A.k = B.k;",
        "SELECT k, CAST(NULL AS INT) AS w FROM A",
        inputs={"A": AB_TUPLES["A"]},
    ),
    Case(
        "empty_left",
        "streams without a tuple",
        "INSERT INTO Out SELECT A.k, w FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 2 SECONDS] ON A.k = B.k;",
        "SELECT A.k, w FROM A, B",
        inputs={"B": AB_TUPLES["B"]},
    ),
    Case(
        "edges_of_ranges",
        "inner join in windows",
        "INSERT INTO Out SELECT v, w FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS] WHERE A.k = B.k;",
        rows=[{"v": 0, "w": 8}, {"v": 0, "w": 10}, {"v": 0, "w": 15}],
        inputs={"A": [(1, 0, at(10))], "B": [(1, w, at(s)) for w, s in ((7, 7.999999), (8, 8), (10, 10), (15, 15), (16, 15.000001))]},
    ),
    Case(
        "punctuated_join",
        "join closed by punctuations, without windows",
        "INSERT INTO Out SELECT A.k, v, w FROM A, B WHERE A.k = B.k;",
        "SELECT A.k, v, w FROM A, B WHERE A.k = B.k AND NOT A.done AND NOT B.done",
        streams=PUNCTUATED,
        inputs=PUNCTUATED_TUPLES,
    ),
    Case(
        "punctuated_left",
        "join closed by punctuations, without windows",
        "INSERT INTO Out SELECT A.k, v, w FROM A LEFT JOIN B ON A.k = B.k;",
        "SELECT A.k, v, w FROM (FROM A WHERE NOT done) AS A LEFT JOIN (FROM B WHERE NOT done) AS B ON A.k = B.k",
        streams=PUNCTUATED,
        inputs=PUNCTUATED_TUPLES,
    ),
    Case(
        "punctuated_window_join",
        "join closed by punctuations and windows",
        "INSERT INTO Out SELECT A.k, v, w FROM A [RANGE 10 SECONDS], B [RANGE 10 SECONDS] WHERE A.k = B.k;",
        """SELECT A.k, v, w FROM A, B WHERE A.k = B.k AND NOT A.done AND NOT B.done
           AND B.ts BETWEEN A.ts - INTERVAL 10 SECONDS AND A.ts + INTERVAL 10 SECONDS""",
        streams=PUNCTUATED,
        inputs=PUNCTUATED_TUPLES,
    ),
    Case(
        "auction",
        "join, then GROUP BY closed by punctuations",
        "INSERT INTO Out SELECT A.k, count(*) AS n, sum(w) AS s FROM A [RANGE 10 SECONDS], B [NOW] WHERE A.k = B.k GROUP BY A.k;",
        """SELECT A.k, count(*) AS n, CAST(sum(w) AS BIGINT) AS s FROM A, B WHERE A.k = B.k AND NOT A.done AND NOT B.done
           AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 10 SECONDS GROUP BY A.k""",
        streams=PUNCTUATED,
        inputs=PUNCTUATED_TUPLES,
    ),
    Case(
        "keys_of_two_types",
        "keys of two numeric types",
        "INSERT INTO Out SELECT v, w FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS] WHERE A.k = B.k;",
        f"SELECT v, w FROM A, B WHERE A.k = B.k AND {NEAR}",
        streams=AB.replace("B (k INT", "B (k BIGINT").replace("A (k INT", "A (k SMALLINT"),
    ),
]
