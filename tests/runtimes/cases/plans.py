"""Several queries in one pipeline, and queries that shuffle more than once."""

from __future__ import annotations

from tests.runtimes.case import Case

BUCKET = "time_bucket(INTERVAL 10 SECONDS, ts) AS window_start, time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end"
NEAR = "B.ts BETWEEN A.ts - INTERVAL 2 SECONDS AND A.ts + INTERVAL 5 SECONDS"
COUNTS = f"SELECT k, count(*) AS n, {BUCKET} FROM A GROUP BY ALL"

CASES = [
    Case(
        "several_inserts",
        "several INSERTs",
        """INSERT INTO One SELECT k, v FROM A WHERE v > 50;
           INSERT INTO Two SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k;
           INSERT INTO Three SELECT v, w FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS] WHERE A.k = B.k;""",
        {"One": "SELECT k, v FROM A WHERE v > 50", "Two": COUNTS, "Three": f"SELECT v, w FROM A, B WHERE A.k = B.k AND {NEAR}"},
    ),
    Case(
        "one_sink_twice",
        "two INSERTs into one sink",
        "INSERT INTO Out SELECT k, v FROM A WHERE v > 50; INSERT INTO Out SELECT k, w AS v FROM B WHERE w < 0;",
        "SELECT k, v FROM A WHERE v > 50 UNION ALL SELECT k, w FROM B WHERE w < 0",
    ),
    Case(
        "shared_view",
        "a view read by two queries",
        """CREATE VIEW Big AS SELECT k, v, ts FROM A WHERE v > 0;
           INSERT INTO One SELECT k, count(*) AS n FROM Big [RANGE 10 SECONDS] GROUP BY k;
           INSERT INTO Two SELECT max(v) AS top FROM Big [RANGE 10 SECONDS];""",
        {
            "One": f"SELECT k, count(*) AS n, {BUCKET} FROM A WHERE v > 0 GROUP BY ALL",
            "Two": f"SELECT max(v) AS top, {BUCKET} FROM A WHERE v > 0 GROUP BY ALL",
        },
    ),
    Case(
        "shared_aggregate",
        "a view read by two queries",
        """CREATE VIEW Counts AS SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k;
           INSERT INTO One SELECT k, n FROM Counts WHERE n > 2;
           INSERT INTO Two SELECT k, n FROM Counts WHERE k = 1;""",
        {"One": f"SELECT k, n FROM ({COUNTS}) WHERE n > 2", "Two": f"SELECT k, n FROM ({COUNTS}) WHERE k = 1"},
    ),
    Case(
        "join_then_aggregate",
        "join, then GROUP BY another key",
        """INSERT INTO Out SELECT v % 3 AS m, count(*) AS n, sum(w) AS s [RANGE 10 SECONDS, WA A.ts]
           FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS] WHERE A.k = B.k GROUP BY v % 3;""",
        f"""SELECT v % 3 AS m, count(*) AS n, CAST(sum(w) AS BIGINT) AS s, {BUCKET.replace("ts)", "A.ts)")}
            FROM A, B WHERE A.k = B.k AND {NEAR} GROUP BY ALL""",
    ),
    Case(
        "join_then_time",
        "join, then GROUP BY times of both sides",
        """INSERT INTO Out SELECT A.ts, B.ts, count(*) AS n FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS]
           WHERE A.k = B.k GROUP BY A.ts, B.ts;""",
        f"SELECT A.ts, B.ts AS ts_1, count(*) AS n FROM A, B WHERE A.k = B.k AND {NEAR} GROUP BY A.ts, B.ts",
    ),
    Case(
        "aggregate_of_aggregate",
        "GROUP BY over GROUP BY",
        """INSERT INTO Out SELECT n, count(*) AS m FROM
           (SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k) [RANGE 30 SECONDS, WA window_start] AS S GROUP BY n;""",
        f"""SELECT n, count(*) AS m, time_bucket(INTERVAL 30 SECONDS, window_start) AS window_start,
            time_bucket(INTERVAL 30 SECONDS, window_start) + INTERVAL 30 SECONDS AS window_end
            FROM ({COUNTS}) AS S GROUP BY n, time_bucket(INTERVAL 30 SECONDS, S.window_start)""",
    ),
    Case(
        "join_of_aggregates",
        "join of GROUP BYs",
        """CREATE VIEW As10 AS SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k;
           CREATE VIEW Bs10 AS SELECT k, count(*) AS m FROM B [RANGE 10 SECONDS] GROUP BY k;
           INSERT INTO Out SELECT As10.k, n, m FROM As10, Bs10 WHERE As10.k = Bs10.k AND As10.window_start = Bs10.window_start;""",
        f"""SELECT a.k, n, m FROM ({COUNTS}) AS a, (SELECT k, count(*) AS m, {BUCKET} FROM B GROUP BY ALL) AS b
            WHERE a.k = b.k AND a.window_start = b.window_start""",
    ),
    Case(
        "aggregate_then_join",
        "GROUP BY, then join with a stream",
        """CREATE VIEW Tops AS SELECT k, max(v) AS top, window_end FROM A [RANGE 10 SECONDS] GROUP BY k;
           INSERT INTO Out SELECT B.k, w, top FROM Tops, B
           WHERE Tops.k = B.k AND B.ts >= Tops.window_end AND B.ts <= Tops.window_end + INTERVAL 10 SECONDS;""",
        f"""SELECT B.k, w, top FROM (SELECT k, max(v) AS top, {BUCKET} FROM A GROUP BY ALL) AS t, B
            WHERE t.k = B.k AND B.ts BETWEEN t.window_end AND t.window_end + INTERVAL 10 SECONDS""",
    ),
    Case(
        "distinct_then_count",
        "SELECT DISTINCT, then GROUP BY",
        """INSERT INTO Out SELECT k, count(*) AS n
           FROM (SELECT DISTINCT k, v % 4 AS m FROM A [RANGE 10 SECONDS]) [RANGE 10 SECONDS, WA window_start] AS D
           GROUP BY k;""",
        f"SELECT k, count(*) AS n, window_start, window_end FROM (SELECT DISTINCT k, v % 4 AS m, {BUCKET} FROM A) GROUP BY ALL",
    ),
    Case(
        "union_of_aggregates",
        "UNION ALL of GROUP BYs",
        "INSERT INTO Out SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k "
        "UNION ALL SELECT k, count(*) AS n FROM B [RANGE 10 SECONDS] GROUP BY k;",
        f"{COUNTS} UNION ALL SELECT k, count(*) AS n, {BUCKET} FROM B GROUP BY ALL",
    ),
    Case(
        "left_then_aggregate",
        "LEFT JOIN, then GROUP BY",
        """INSERT INTO Out SELECT A.k, count(*) AS n, count(w) AS m [RANGE 10 SECONDS, WA A.ts]
           FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 2 SECONDS] ON A.k = B.k AND w > 20 GROUP BY A.k;""",
        f"""SELECT A.k, count(*) AS n, count(w) AS m, {BUCKET.replace("ts)", "A.ts)")}
            FROM A LEFT JOIN B ON A.k = B.k AND w > 20 AND {NEAR} GROUP BY ALL""",
    ),
    Case(
        "anti_then_aggregate",
        "LEFT ANTI JOIN, then GROUP BY",
        """CREATE VIEW Alone AS SELECT A.k, A.v, A.ts FROM A [RANGE 5 SECONDS] LEFT ANTI JOIN B [RANGE 2 SECONDS] ON A.k = B.k;
           INSERT INTO Out SELECT v > 0 AS up, count(*) AS n FROM Alone [RANGE 10 SECONDS] GROUP BY v > 0;""",
        f"SELECT v > 0 AS up, count(*) AS n, {BUCKET} FROM (SELECT A.* FROM A ANTI JOIN B ON A.k = B.k AND {NEAR}) GROUP BY ALL",
    ),
    Case(
        "sorted_aggregate",
        "ORDER BY over GROUP BY",
        "INSERT INTO Out SELECT window_start, k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k ORDER BY window_start, n DESC, k;",
        """SELECT time_bucket(INTERVAL 10 SECONDS, ts) AS window_start, k, count(*) AS n,
           time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end FROM A GROUP BY ALL""",
    ),
    Case(
        "joined_twice",
        "join of a join, on either time",
        """CREATE VIEW Pairs AS SELECT A.k, A.v, B.w, A.ts FROM A [RANGE 3 SECONDS], B [RANGE 3 SECONDS] WHERE A.k = B.k;
           INSERT INTO Later SELECT P.k, v, w, x FROM Pairs [RANGE 2 SECONDS] AS P, C [RANGE 2 SECONDS] WHERE P.w % 5 = C.x % 5;
           INSERT INTO First SELECT P.k, v, w, x FROM Pairs [RANGE 2 SECONDS, WA ts] AS P, C [RANGE 2 SECONDS] WHERE P.w % 5 = C.x % 5;""",
        {
            sink: f"""SELECT A.k, v, w, x FROM A, B, C WHERE A.k = B.k
                AND B.ts BETWEEN A.ts - INTERVAL 3 SECONDS AND A.ts + INTERVAL 3 SECONDS
                AND w % 5 = x % 5 AND C.ts BETWEEN {time} - INTERVAL 2 SECONDS AND {time} + INTERVAL 2 SECONDS"""
            for sink, time in (("Later", "greatest(A.ts, B.ts)"), ("First", "A.ts"))
        },
    ),
    Case(
        "table_after_left",
        "LEFT JOIN, then join with a table",
        """INSERT INTO Out SELECT v, w, name FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 2 SECONDS] ON A.k = B.k
           LEFT JOIN Names ON Names.k = B.k;""",
        f"SELECT v, w, name FROM A LEFT JOIN B ON A.k = B.k AND {NEAR} LEFT JOIN '${{tables}}/names.csv' AS n ON n.k = B.k",
    ),
    Case(
        "distinct_of_join",
        "join, then SELECT DISTINCT",
        """INSERT INTO Out SELECT DISTINCT A.k, w > 0 AS up [RANGE 10 SECONDS, WA B.ts]
           FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS] WHERE A.k = B.k;""",
        f"""SELECT DISTINCT A.k, w > 0 AS up, {BUCKET.replace("ts)", "B.ts)")} FROM A, B WHERE A.k = B.k AND {NEAR}""",
    ),
    Case(
        "semi_then_join",
        "LEFT SEMI JOIN, then join",
        """CREATE VIEW Met AS SELECT A.k, A.v, A.ts FROM A [RANGE 5 SECONDS] LEFT SEMI JOIN B [RANGE 2 SECONDS] ON A.k = B.k;
           INSERT INTO Out SELECT v, x FROM Met [RANGE 2 SECONDS], C [RANGE 3 SECONDS] WHERE v % 7 = x % 7;""",
        f"""SELECT v, x FROM (SELECT A.* FROM A SEMI JOIN B ON A.k = B.k AND {NEAR}) AS A, C
            WHERE v % 7 = x % 7 AND C.ts BETWEEN A.ts - INTERVAL 3 SECONDS AND A.ts + INTERVAL 2 SECONDS""",
    ),
    Case(
        "four_stages",
        "join, GROUP BY, GROUP BY another key, join with a table",
        """CREATE VIEW Pairs AS SELECT A.k, v, w, A.ts FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS] WHERE A.k = B.k;
           CREATE VIEW Sums AS SELECT v % 5 AS m, sum(w) AS s FROM Pairs [RANGE 10 SECONDS, WA ts] GROUP BY v % 5;
           CREATE VIEW Signs AS SELECT CAST(s % 3 AS INT) AS r, count(*) AS n FROM Sums [RANGE 30 SECONDS, WA window_start] GROUP BY 1;
           INSERT INTO Out SELECT name, n FROM Signs, Names WHERE r = Names.k;""",
        f"""SELECT name, n FROM (SELECT s % 3 AS r, count(*) AS n, time_bucket(INTERVAL 30 SECONDS, window_start) AS b FROM (
              SELECT v % 5 AS m, sum(w) AS s, {BUCKET.replace("ts)", "A.ts)")} FROM A, B WHERE A.k = B.k AND {NEAR} GROUP BY ALL
            ) GROUP BY ALL) JOIN '${{tables}}/names.csv' AS names ON r = names.k""",
    ),
    Case(
        "union_join_aggregate",
        "union, join, GROUP BY",
        """INSERT INTO Out SELECT P.k, count(*) AS n [RANGE 10 SECONDS, WA Q.ts]
           FROM A UNION B [RANGE 2 SECONDS] AS P, C [RANGE 2 SECONDS] AS Q WHERE P.k = Q.k GROUP BY P.k HAVING count(*) > 1;""",
        f"""SELECT P.k, count(*) AS n, {BUCKET.replace("ts)", "Q.ts)")} FROM (FROM A UNION ALL FROM B) AS P, C AS Q
            WHERE P.k = Q.k AND Q.ts BETWEEN P.ts - INTERVAL 2 SECONDS AND P.ts + INTERVAL 2 SECONDS GROUP BY ALL HAVING count(*) > 1""",
    ),
    Case(
        "view_of_union",
        "a view read by two queries",
        """CREATE VIEW Both AS SELECT k, v, ts FROM A UNION ALL SELECT k, w, ts FROM B;
           INSERT INTO One SELECT max(v) AS top FROM Both [RANGE 10 SECONDS];
           INSERT INTO Two SELECT x.k, x.v, y.v AS u FROM Both [RANGE 1 SECOND] AS x, Both [NOW] AS y WHERE x.k = y.k AND x.v < y.v;""",
        {
            "One": f"SELECT max(v) AS top, {BUCKET} FROM (FROM A UNION ALL FROM B) GROUP BY ALL",
            "Two": """SELECT x.k, x.v, y.v AS u FROM (FROM A UNION ALL FROM B) AS x, (FROM A UNION ALL FROM B) AS y
                WHERE x.k = y.k AND x.v < y.v AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 1 SECOND""",
        },
    ),
    Case(
        "aggregate_with_itself",
        "join of GROUP BYs",
        """CREATE VIEW Counts AS SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k;
           INSERT INTO Out SELECT x.k, x.n, y.n AS before FROM Counts AS x, Counts AS y
           WHERE x.k = y.k AND x.window_start = y.window_end;""",
        f"SELECT x.k, x.n, y.n AS before FROM ({COUNTS}) AS x, ({COUNTS}) AS y WHERE x.k = y.k AND x.window_start = y.window_end",
    ),
    Case(
        "cross_join",
        "join without equal keys",
        "INSERT INTO Out SELECT v, w FROM A [RANGE 1 SECOND] CROSS JOIN B [NOW];",
        "SELECT v, w FROM A, B WHERE B.ts BETWEEN A.ts AND A.ts + INTERVAL 1 SECOND",
    ),
]
