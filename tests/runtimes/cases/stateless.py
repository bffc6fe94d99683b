"""Queries without state: each tuple for itself."""

from __future__ import annotations

from tests.runtimes.case import AB_TUPLES, Case, at

CASES = [
    Case("where", "SELECT and WHERE", "INSERT INTO Out SELECT * FROM A WHERE v > 10 AND k <> 3;", "FROM A WHERE v > 10 AND k <> 3"),
    Case(
        "expressions",
        "expressions in the select list",
        """INSERT INTO Out SELECT k + 1 AS k1, v * 2 - k AS d, v / 4 AS q, v DIV 4 AS whole, v % 7 AS m, abs(v) AS a,
           CASE WHEN v > 50 THEN 'high' WHEN v > 0 THEN 'low' ELSE 'none' END AS level,
           CAST(v AS STRING) AS s, v BETWEEN 0 AND 20 AS near FROM A;""",
        """SELECT k + 1 AS k1, v * 2 - k AS d, v / 4 AS q, CAST(trunc(v / 4) AS BIGINT) AS whole, v % 7 AS m, abs(v) AS a,
           CASE WHEN v > 50 THEN 'high' WHEN v > 0 THEN 'low' ELSE 'none' END AS level,
           CAST(v AS VARCHAR) AS s, v BETWEEN 0 AND 20 AS near FROM A""",
    ),
    Case(
        "times_in_expressions",
        "expressions in the select list",
        """INSERT INTO Out SELECT date_trunc('MINUTE', ts) AS m, ts + INTERVAL 90 SECONDS AS later, hour(ts) AS h, unix_seconds(ts) AS u,
           CAST(ts AS DATE) AS d FROM A;""",
        """SELECT date_trunc('minute', ts) AS m, ts + INTERVAL 90 SECONDS AS later, CAST(hour(ts) AS INT) AS h,
           CAST(epoch(ts) AS BIGINT) AS u, CAST(ts AS DATE) AS d FROM A""",
    ),
    Case(
        "same_names", "two columns of one name", "INSERT INTO Out SELECT k, v AS k, v AS k FROM A;", "SELECT k, v AS k_1, v AS k_2 FROM A"
    ),
    Case("nothing_left", "SELECT and WHERE", "INSERT INTO Out SELECT k FROM A WHERE v > 1000;", "SELECT k FROM A WHERE v > 1000"),
    Case(
        "union_all",
        "UNION ALL",
        "INSERT INTO Out SELECT k, v, ts FROM A UNION ALL SELECT k, w, ts FROM B;",
        "SELECT k, v, ts FROM A UNION ALL SELECT k, w, ts FROM B",
    ),
    Case(
        "union_chain",
        "FROM A UNION B UNION C",
        "INSERT INTO Out SELECT * FROM A UNION B UNION ALL C;",
        "FROM A UNION ALL FROM B UNION ALL FROM C",
    ),
    Case(
        "union_of_types",
        "UNION ALL",
        "INSERT INTO Out SELECT k AS n FROM A UNION ALL SELECT w / 2 AS n FROM B;",
        "SELECT CAST(k AS DOUBLE) AS n FROM A UNION ALL SELECT w / 2 FROM B",
    ),
    Case(
        "union_with_itself",
        "UNION ALL",
        "INSERT INTO Out SELECT k, v FROM A WHERE k = 1 UNION ALL SELECT k, v FROM A WHERE v > 0;",
        "SELECT k, v FROM A WHERE k = 1 UNION ALL SELECT k, v FROM A WHERE v > 0",
    ),
    Case(
        "subquery",
        "sub-query in FROM",
        "INSERT INTO Out SELECT d + 1 AS e FROM (SELECT k, v * 2 AS d FROM A WHERE k < 3) AS S WHERE d > 0;",
        "SELECT v * 2 + 1 AS e FROM A WHERE k < 3 AND v > 0",
    ),
    Case(
        "view",
        "CREATE VIEW",
        "CREATE VIEW Big AS SELECT k, v FROM A WHERE v > 20; INSERT INTO Out SELECT v, k FROM Big WHERE k < 4;",
        "SELECT v, k FROM A WHERE v > 20 AND k < 4",
    ),
    Case("sort", "ORDER BY a progressing time", "INSERT INTO Out SELECT ts, k, v FROM A ORDER BY ts, k DESC, v;", "SELECT ts, k, v FROM A"),
    Case(
        "sort_by_place",
        "ORDER BY a progressing time",
        "INSERT INTO Out SELECT k, v * 2 AS d, ts FROM A ORDER BY 3, 2 DESC;",
        "SELECT k, v * 2 AS d, ts FROM A",
    ),
    Case(
        "table_join",
        "join with a table: inner",
        "INSERT INTO Out SELECT A.k, A.v, Names.name FROM A, Names WHERE A.k = Names.k AND A.v > 0;",
        "SELECT A.k, A.v, name FROM A JOIN '${tables}/names.csv' AS n ON A.k = n.k WHERE v > 0",
    ),
    Case(
        "table_join_with_time",
        "join with a table: inner",
        "INSERT INTO Out SELECT A.ts, A.v * N.factor AS f FROM A JOIN Names AS N ON A.k = N.k AND A.v > N.factor;",
        "SELECT A.ts, v * factor AS f FROM A JOIN '${tables}/names.csv' AS n ON A.k = n.k AND v > factor",
    ),
    Case(
        "table_first",
        "join with a table: inner",
        "INSERT INTO Out SELECT N.name, A.ts FROM Names AS N JOIN A ON A.k = N.k;",
        "SELECT name, ts FROM A JOIN '${tables}/names.csv' AS n ON A.k = n.k",
    ),
    Case(
        "table_left",
        "join with a table: LEFT",
        "INSERT INTO Out SELECT A.k, A.ts, N.name FROM A LEFT JOIN Names AS N ON A.k = N.k;",
        "SELECT A.k, A.ts, name FROM A LEFT JOIN '${tables}/names.csv' AS n ON A.k = n.k",
    ),
    Case(
        "table_semi",
        "join with a table: LEFT SEMI",
        "INSERT INTO Out SELECT k, v, ts FROM A LEFT SEMI JOIN Names AS N ON A.k = N.k;",
        "SELECT k, v, ts FROM A WHERE k IN (1, 2, 5)",
    ),
    Case(
        "table_anti",
        "join with a table: LEFT ANTI",
        "INSERT INTO Out SELECT k, v, ts FROM A LEFT ANTI JOIN Names AS N ON A.k = N.k;",
        "SELECT k, v, ts FROM A WHERE k NOT IN (1, 2, 5)",
    ),
    Case(
        "table_of_view",
        "join with a table: inner",
        "CREATE VIEW Few AS SELECT k AS key, upper(name) AS big FROM Names WHERE factor > 0; "
        "INSERT INTO Out SELECT A.ts, Few.big FROM A JOIN Few ON A.k = Few.key;",
        "SELECT A.ts, upper(name) AS big FROM A JOIN '${tables}/names.csv' AS n ON A.k = n.k WHERE factor > 0",
    ),
    Case("empty_stream", "streams without a tuple", "INSERT INTO Out SELECT k, v FROM A WHERE v > 0;", "SELECT k, v FROM A", inputs={}),
    Case(
        "empty_side_of_union",
        "streams without a tuple",
        "INSERT INTO Out SELECT * FROM A UNION B;",
        "FROM B",
        inputs={"B": AB_TUPLES["B"]},
        streams="""
CREATE STREAM A (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 5 SECONDS;
CREATE STREAM B (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
""",
    ),
    Case(
        "nulls_in_where",
        "SELECT and WHERE",
        "INSERT INTO Out SELECT k, v FROM A WHERE v > 0 OR k IS NULL;",
        "SELECT k, v FROM A WHERE v > 0 OR k IS NULL",
        inputs={"A": [(None, None, at(0)), (1, None, at(1)), (None, 5, at(1)), (2, -1, at(2)), (2, 1, at(2))]},
    ),
    Case(
        "deep_expressions",
        "long expressions, such as 400 additions and 1,000 conditions with OR",
        f"INSERT INTO Out SELECT k, {' + '.join(['max(v)'] * 400)} AS s FROM A [RANGE 1 HOUR] GROUP BY k "
        f"HAVING {' OR '.join(f'k = {number}' for number in range(1000))};",
        """SELECT k, CAST(400 * max(v) AS INT) AS s, TIMESTAMP '2024-05-01 12:00:00' AS window_start,
        TIMESTAMP '2024-05-01 13:00:00' AS window_end FROM A GROUP BY k""",
    ),
]
