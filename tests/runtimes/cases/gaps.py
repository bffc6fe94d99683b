"""What is refused, with the message: parts of the language that are not built, and queries that no stream can answer."""

from __future__ import annotations

from tests.runtimes.case import refused

CASES = [
    refused(
        "seq",
        "SEQ patterns",
        "INSERT INTO Out SELECT * FROM SEQ(A AS a, B AS b) MODE RECENT WITHIN 1 HOUR;",
        "SEQ patterns are not supported yet",
    ),
    refused(
        "create_aggregate",
        "CREATE AGGREGATE",
        "CREATE AGGREGATE spread(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'mine:Spread';",
        "CREATE AGGREGATE is not supported yet",
    ),
    refused(
        "right_join", "RIGHT JOIN", "INSERT INTO Out SELECT v FROM A [NOW] RIGHT JOIN B [NOW] ON A.k = B.k;", "RIGHT JOIN is not supported"
    ),
    refused(
        "full_join", "FULL JOIN", "INSERT INTO Out SELECT v FROM A [NOW] FULL JOIN B [NOW] ON A.k = B.k;", "FULL JOIN is not supported"
    ),
    refused("natural_join", "NATURAL JOIN", "INSERT INTO Out SELECT v FROM A [NOW] NATURAL JOIN B [NOW];", "NATURAL JOIN is not supported"),
    refused("limit", "LIMIT", "INSERT INTO Out SELECT v FROM A LIMIT 3;", "LIMIT has no meaning on an endless stream"),
    refused("offset", "OFFSET", "INSERT INTO Out SELECT v FROM A OFFSET 3;", "OFFSET has no meaning on an endless stream"),
    refused(
        "union_distinct", "UNION without ALL", "INSERT INTO Out SELECT k FROM A UNION SELECT k FROM B;", "UNION removes duplicates for ever"
    ),
    refused(
        "intersect",
        "INTERSECT",
        "INSERT INTO Out SELECT k FROM A INTERSECT SELECT k FROM B;",
        "INTERSECT is not a query that can run on streams",
    ),
    refused("except", "EXCEPT", "INSERT INTO Out SELECT k FROM A EXCEPT SELECT k FROM B;", "EXCEPT is not a query that can run on streams"),
    refused("with", "WITH", "INSERT INTO Out WITH S AS (SELECT k FROM A) SELECT k FROM S;", "WITH is not supported, use CREATE VIEW"),
    refused(
        "in_subquery",
        "sub-queries in WHERE",
        "INSERT INTO Out SELECT k FROM A WHERE k IN (SELECT k FROM Names);",
        "sub-queries are only supported in FROM",
    ),
    refused(
        "over",
        "window functions: OVER",
        "INSERT INTO Out SELECT sum(v) OVER (PARTITION BY k) AS s FROM A;",
        "window functions (OVER) are not supported",
    ),
    refused(
        "rollup",
        "ROLLUP, CUBE, GROUPING SETS",
        "INSERT INTO Out SELECT k, count(*) AS n FROM A [RANGE 1 MINUTE] GROUP BY k WITH ROLLUP;",
        "only plain GROUP BY is supported",
    ),
    refused(
        "lateral_view",
        "LATERAL VIEW",
        "INSERT INTO Out SELECT x FROM A LATERAL VIEW explode(array(1, 2)) t AS x;",
        "LATERAL VIEW is not supported",
    ),
    refused(
        "median",
        "aggregates that are not in the list",
        "INSERT INTO Out SELECT median(v) AS m FROM A [RANGE 1 MINUTE];",
        "aggregate `median` is not supported",
    ),
    refused("star_except", "* EXCEPT", "INSERT INTO Out SELECT * EXCEPT (v) FROM A;", "* EXCEPT is not supported"),
    refused(
        "group_for_ever", "GROUP BY that never closes", "INSERT INTO Out SELECT k, count(*) AS n FROM A GROUP BY k;", "would never close"
    ),
    refused(
        "distinct_for_ever",
        "SELECT DISTINCT that never forgets",
        "INSERT INTO Out SELECT DISTINCT k FROM A;",
        "would remember every tuple for ever",
    ),
    refused("join_for_ever", "join that never forgets", "INSERT INTO Out SELECT v, w FROM A, B WHERE A.k = B.k;", "could never be purged"),
    refused(
        "sort_for_ever",
        "ORDER BY a column that does not progress",
        "INSERT INTO Out SELECT v FROM A ORDER BY v;",
        "an endless stream can not be sorted by `v`",
    ),
    refused(
        "null_for_ever",
        "GROUP BY, DISTINCT and ORDER BY a time that may be null",
        "INSERT INTO Out SELECT B.ts, count(*) AS n FROM A [NOW] LEFT JOIN B [NOW] ON A.k = B.k GROUP BY B.ts;",
        "may be null, and no mark passes null",
    ),
    refused(
        "window_above_a_sort",
        "a window above ORDER BY on another time",
        "INSERT INTO Out SELECT count(*) AS n FROM"
        " (SELECT ts, ts + INTERVAL 1 SECOND AS t2 FROM A ORDER BY t2) [RANGE 1 MINUTE];",
        "ORDER BY in a sub-query keeps no promise but the progress of its first column",
    ),
    refused(
        "window_above_a_left_join",
        "a window above LEFT JOIN on a time that ON does not compare",
        "INSERT INTO Out SELECT count(*) AS n FROM (SELECT A.ts AS ts FROM"
        " (SELECT k, ts, date_trunc('minute', ts) AS t2 FROM A) AS A LEFT JOIN B ON A.k = B.k"
        " AND B.ts BETWEEN A.t2 AND A.t2 + INTERVAL 1 MINUTE) [RANGE 1 MINUTE, WA ts];",
        "windows over `ts` would never close: it is not a progressing column",
    ),
    refused(
        "rows_in_a_join",
        "ROWS on the input of a join",
        "INSERT INTO Out SELECT v, w FROM A [ROWS 3], B [ROWS 3] WHERE A.k = B.k;",
        "a ROWS window can not stand on the input of a join",
    ),
    refused(
        "slide_in_a_join",
        "SLIDE on the input of a join",
        "INSERT INTO Out SELECT v, w FROM A [RANGE 3 SECONDS SLIDE 1 SECOND], B [NOW] WHERE A.k = B.k;",
        "SLIDE has no meaning on the input of a join",
    ),
    refused("table_alone", "a query that reads no stream", "INSERT INTO Out SELECT name FROM Names;", "stream"),
    refused(
        "left_of_table",
        "a table on the left of LEFT JOIN",
        "INSERT INTO Out SELECT name FROM Names LEFT JOIN A ON A.k = Names.k;",
        "a table can not be the left side of this join",
    ),
    refused("limit_of_union", "LIMIT", "INSERT INTO Out SELECT k FROM A UNION ALL SELECT k FROM B LIMIT 3;", "LIMIT"),
    refused(
        "order_of_union",
        "ORDER BY of a union",
        "INSERT INTO Out SELECT k, ts FROM A UNION ALL SELECT k, ts FROM B ORDER BY k;",
        "sorted by",
    ),
    refused(
        "right_anti",
        "RIGHT ANTI JOIN",
        "INSERT INTO Out SELECT w FROM A [NOW] RIGHT ANTI JOIN B [NOW] ON A.k = B.k;",
        "RIGHT",
    ),
    refused("sample", "TABLESAMPLE", "INSERT INTO Out SELECT k FROM A TABLESAMPLE (10 PERCENT);", "TABLESAMPLE"),
    refused("pivot", "PIVOT", "INSERT INTO Out SELECT * FROM A PIVOT (sum(v) FOR k IN (1, 2));", "PIVOT"),
    refused("version", "VERSION AS OF", "INSERT INTO Out SELECT k FROM A VERSION AS OF 3;", "VERSION"),
    refused("qualified", "names of catalogs and schemas", "INSERT INTO Out SELECT k FROM other.A;", "other"),
    refused("column_aliases", "names for columns after AS", "INSERT INTO Out SELECT * FROM A AS S(a, b, c);", "columns"),
    refused("distinct_on", "DISTINCT ON", "INSERT INTO Out SELECT DISTINCT ON (k) k, ts FROM A;", "DISTINCT ON"),
    refused(
        "random",
        "functions whose answer is not in the streams",
        "INSERT INTO Out SELECT k FROM A WHERE rand() > 0.5;",
        "rand is not supported",
    ),
]
