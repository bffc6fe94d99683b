"""Queries that can not be run are refused, with the place and what to do about it."""

from __future__ import annotations

import pytest

from millstream.errors import MillstreamError
from tests.plan.kit import pipeline

# (query, the words at fault, part of the message)
REFUSED = [
    (
        "SELECT g, count(*) AS n FROM A GROUP BY g",
        "g",
        "would never close: there is no window, and no group column is punctuated or progressing",
    ),
    (
        "SELECT g, count(*) AS n FROM A GROUP BY g",
        "g",
        "add a window such as [RANGE 1 MINUTE], group by a progressing column (`ts`)",
    ),
    ("SELECT count(*) AS n FROM A", "", "(no column) would never close"),
    (
        "SELECT count(*) AS n FROM B [RANGE 2 DAYS, WA d]",
        "[RANGE",
        "windows over `d` would never close: it is not a progressing column; name one with WA (`ts`)",
    ),
    (
        "SELECT count(*) AS n FROM A [RANGE 1 MINUTE, WA g]",
        "[RANGE",
        "a window needs a time, and `g` is STRING",
    ),
    (
        "SELECT count(*) AS n FROM A [RANGE 1 MINUTE, WA k]",
        "[RANGE",
        "a window of 1 MINUTE needs a time, and `k` is an integer",
    ),
    (
        "SELECT sum(n) AS s FROM (SELECT year(ts) AS y, count(*) AS n FROM A GROUP BY year(ts)) [RANGE 7 DAYS]",
        "[RANGE",
        "`y` is an integer; put [RANGE 1 WEEK] behind the stream below, and then group",
    ),
    (
        "SELECT count(*) AS n FROM (SELECT count(*) AS n FROM A GROUP BY year(ts)) [RANGE 1 DAY]",
        "[RANGE",
        "and its time is an integer",
    ),
    (
        "SELECT x.n FROM (SELECT count(*) AS n FROM A GROUP BY year(ts)) AS x, B [RANGE 1 DAY] AS b WHERE x.n = b.k",
        "x.n",
        "a window on one input of a join needs a time on the other one, which has only an integer",
    ),
    (
        "SELECT count(*) AS n FROM B [RANGE 36 HOURS, WA d]",
        "[RANGE",
        "`d` is a DATE, and 36 HOURS is not a number of whole days; write RANGE",
    ),
    ("SELECT k FROM B [RANGE 1 DAY SLIDE 1 HOUR WA d]", "[RANGE", "and 1 HOUR is not a number of whole days"),
    (
        "SELECT A.k FROM A JOIN B ON A.k = B.k",
        "k = B.k",
        "tuples of the left and right input would wait for partners for ever",
    ),
    (
        "SELECT A.k FROM A [RANGE 5 SECONDS] JOIN B ON A.k = B.k",
        "k = B.k",
        "tuples of the right input would wait for partners for ever",
    ),
    (
        "SELECT A.k FROM A JOIN Bid ON A.k = Bid.auction",
        "k = Bid",
        "tuples of the right input would wait for partners for ever",
    ),
    (
        "SELECT A.k FROM A JOIN B ON A.k = B.k AND A.ts > B.ts",
        "k = B.k",
        "tuples of the right input would wait",
    ),
    (
        "SELECT k, count(*) AS n FROM G GROUP BY k",
        "k",
        "(`k`) would never close",
    ),  # a value up to a time is not finished
    (
        "SELECT G.k FROM G JOIN G AS H ON G.k = H.k",
        "k = H.k",
        "tuples of the left and right input would wait for partners for ever",
    ),
    (
        "SELECT DISTINCT k FROM G",
        "",
        "SELECT DISTINCT over a stream would remember every tuple for ever; add a window",
    ),
    (
        "SELECT DISTINCT g FROM A",
        "",
        "SELECT DISTINCT over a stream would remember every tuple for ever; add a window",
    ),
    ("SELECT g FROM A WHERE count(*) > 1", "count", "an aggregate can not stand in WHERE; use HAVING"),
    ("SELECT g FROM A GROUP BY count(*)", "count", "an aggregate can not stand in GROUP BY"),
    ("SELECT sum(count(*)) AS n FROM A [RANGE 1 SECOND]", "sum", "an aggregate can not stand inside another"),
    (
        "SELECT median(v) AS n FROM A [RANGE 1 SECOND]",
        "median",
        "aggregate `median` is not supported; there is avg",
    ),
    (
        "SELECT g, k, count(*) AS n FROM A [RANGE 1 SECOND] GROUP BY g",
        "k,",
        "column `k` is neither grouped nor aggregated; add it to GROUP BY",
    ),
    (
        "SELECT sum(k) OVER (PARTITION BY g) AS n FROM A",
        "sum",
        "window functions (OVER) are not supported; aggregate in a window",
    ),
    (
        "SELECT summ(v) AS x, g FROM A [RANGE 1 MINUTE] GROUP BY g",
        "summ",
        "no function `summ`; did you mean `sum`?",
    ),
    (
        "SELECT count(DISTINCT *) AS n FROM A [RANGE 1 SECOND]",
        "count",
        "count(DISTINCT ...) takes one column",
    ),
    ("SELECT CAST(v AS DECIMAL(x)) AS d FROM A", "v AS", "is not supported; the precision is 1 to 38"),
    ("SELECT pric FROM Bid", "pric", "no column `pric` in Bid; did you mean `price`?"),
    ("SELECT Bid.pric FROM Bid", "Bid.pric", "no column `pric` in Bid; did you mean `price`?"),
    ("SELECT X.price FROM Bid", "X.price", "no stream or alias `X`; there is `Bid`"),
    ("SELECT price FROM Bids", "Bids", "no stream, table or view `Bids`; did you mean `Bid`?"),
    ("SELECT ts FROM A [NOW], B [NOW]", "ts", "column `ts` is in A and B; write `A.ts` or `B.ts`"),
    (
        "SELECT A.k FROM A [RANGE 5 SECONDS SLIDE 1 SECOND], B [NOW] WHERE A.k = B.k",
        "A.k",
        "SLIDE has no meaning on the input of a join",
    ),
    (
        "SELECT A.k FROM A [ROWS 5], B [NOW] WHERE A.k = B.k",
        "A.k",
        "a ROWS window can not stand on the input of a join; use RANGE",
    ),
    ("SELECT count(*) AS n FROM A [NOW]", "count", "a window of length 0 holds nothing to aggregate"),
    (
        "SELECT count(*) AS n FROM A UNION ALL A [ROWS 3]",
        "[ROWS",
        "a ROWS window counts the arrival numbers of one stream",
    ),
    ("SELECT k FROM A WHERE k", "k", "a condition must be BOOLEAN, `k` is BIGINT; write a comparison"),
    ("SELECT k FROM A WHERE g", "g", "a condition must be BOOLEAN, `g` is STRING"),
    ("SELECT k FROM A WHERE k IN ()", "k IN", "IN takes at least one value, not an empty list"),
    (
        "SELECT a.k FROM A [NOW] AS a JOIN B [NOW] AS b ON a.k = b.k AND b.ts <= a.ts + '10 seconds'",
        "ts + '10",
        "+ does not take TIMESTAMP with STRING",
    ),
    (
        "SELECT k, count(*) AS n FROM A [RANGE 1 SECOND] GROUP BY ROLLUP (k)",
        "k)",
        "only plain GROUP BY is supported; write the group columns themselves",
    ),
    (
        "SELECT k, count(*) AS n FROM A [RANGE 1 SECOND] GROUP BY GROUPING SETS ((k), ())",
        "k), ()",
        "only plain GROUP BY is supported",
    ),
    ("SELECT k FROM A WHERE g > ts", "g > ts", "> does not take STRING with TIMESTAMP"),
    ("SELECT sum(g) AS n FROM A [RANGE 1 SECOND]", "sum", "there is no aggregate sum(STRING); CAST its argument to a number"),
    (
        "SELECT count(*) AS n FROM A [RANGE 30000 DAYS SLIDE 1 SECOND]",
        "[RANGE",
        "each tuple would be in 2,592,000,000 windows; write a greater SLIDE",
    ),
    ("SELECT count(*) AS n FROM A [ROWS 2000000 SLIDE 1]", "[ROWS", "each tuple would be in 2,000,000 windows"),
    ("SELECT k FROM A ORDER BY ts", "ts", "no column `ts`; there is `k`, or add `ts` to the select list"),
    (
        "SELECT A.k FROM A LEFT JOIN B ON A.k = B.k WHERE B.ts BETWEEN A.ts AND A.ts + INTERVAL 1 MINUTE",
        "k = B.k",
        "or compare their times in ON, such as B.ts BETWEEN A.ts AND A.ts + INTERVAL 5 MINUTES",
    ),
    (
        "SELECT A.k FROM A, B WHERE A.k = B.k AND abs(A.ts - B.ts) < INTERVAL 1 MINUTE",
        "k = B.k",
        "or compare their times in WHERE, such as B.ts BETWEEN A.ts AND A.ts + INTERVAL 5 MINUTES",
    ),
    (
        "SELECT a.k FROM A [NOW] AS a, B [NOW] AS b WHERE a.k = b.g",
        "k = b.g",
        "= does not take BIGINT with STRING",
    ),
    ("SELECT k FROM A ORDER BY k", "k", "an endless stream can not be sorted by `k`"),
    ("SELECT k, ts FROM A ORDER BY ts DESC", "ts DESC", "an endless stream can not be sorted by `ts`"),
    (
        "SELECT k FROM A UNION ALL SELECT k FROM B ORDER BY k",
        "k",
        "an endless stream can not be sorted by `k`",
    ),
    ("SELECT k FROM A LIMIT 5", "5", "LIMIT has no meaning on an endless stream"),
    ("SELECT k FROM A UNION ALL SELECT k FROM B LIMIT 5", "5", "LIMIT has no meaning on an endless stream"),
    ("SELECT k FROM A UNION SELECT k FROM B", "k FROM", "UNION removes duplicates for ever; write UNION ALL"),
    ("SELECT k, g FROM A UNION ALL SELECT k FROM B", "k, g", "the sides of UNION ALL have 2 and 1 columns"),
    ("SELECT g FROM A UNION ALL SELECT ts FROM B", "g FROM", "`g` of UNION ALL is STRING and TIMESTAMP"),
    ("SELECT k FROM A WHERE k IN (SELECT k FROM B)", "k IN", "only supported in FROM; write FROM"),
    ("SELECT label FROM T", "label", "a query must read FROM a stream"),
    ("SELECT count(*) AS n FROM T", "count", "a query must read FROM a stream"),
    (
        "SELECT count(*) AS n FROM T [RANGE 1 SECOND]",
        "[RANGE",
        "a window can not stand on a table; tables are read whole",
    ),
    (
        "SELECT k FROM A [RANGE 1 SECOND] GROUP BY 1.5",
        "1.5",
        "GROUP BY 1.5: there is no such place; a number in GROUP BY",
    ),
    ("SELECT k FROM A [RANGE 1 SECOND] GROUP BY 1e0", "1e0", "GROUP BY 1e0: there is no such place"),
    (
        "SELECT count(*) AS n FROM A [ROWS 99999999999999999999]",
        "99999999999999999999",
        "99999999999999999999 rows are more than any stream has; take a smaller number",
    ),
    (
        "SELECT count(*) AS n FROM A [ROWS 2 SLIDE 99999999999999999999]",
        "99999999999999999999",
        "more than any stream",
    ),
    (
        "SELECT INTERVAL 1 MONTH AS i FROM A",
        "i FROM",
        "an interval of months can not be a column; add it to a time",
    ),
    ("SELECT ts + i AS t FROM (SELECT ts, INTERVAL 1 MONTH AS i FROM A)", "ts, INT", "an interval of months"),
    (
        "SELECT count(*) AS n FROM A [RANGE 1 SECOND] GROUP BY INTERVAL 1 MONTH",
        "count",
        "an interval of months",
    ),
    ("SELECT count(DISTINCT INTERVAL 1 YEAR) AS n FROM A [RANGE 1 SECOND]", "count", "an interval of months"),
    (
        "SELECT T.label FROM T LEFT JOIN A ON T.id = A.k",
        "A ON",
        "a table can not be the left side of this join; put the stream first",
    ),
    ("SELECT A.k FROM A FULL JOIN B ON A.k = B.k", "B ON", "FULL JOIN is not supported; write a LEFT JOIN"),
    ("SELECT k FROM read_csv('a.csv')", "read_csv", "can not be read FROM; declare it before: CREATE STREAM"),
    ("SELECT k FROM 'in/a.csv'", "'in/a.csv'", "can not be read FROM; declare it before: CREATE STREAM"),
    (
        "SELECT T.k FROM A [NOW] JOIN (SELECT k, ts FROM B) [NOW] ON A.k = T.k",
        "T.k",
        "no stream or alias `T`; there is `A`; a sub-query has the name that AS gives it",
    ),
    ("SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE) FROM A", "TUMBLE_START", "write window_start"),
    ("SELECT strftime(ts, '%Y') FROM A", "strftime", "no function strftime; write date_format(ts"),
    ("SELECT A.k FROM A, A", "A", "`A` stands in FROM twice; give one of them another name with AS"),
    (
        "SELECT A.k, B.v FROM A [NOW] LEFT SEMI JOIN B [NOW] ON A.k = B.k",
        "B.v",
        "no stream or alias `B`; a SEMI or ANTI join gives the columns of its left side alone; write JOIN",
    ),
    ("SELECT k AS __x FROM A", "k AS", "names that begin with __ are the engine's own"),
    (
        "SELECT count(DISTINCT k, g) AS n FROM A [RANGE 1 SECOND]",
        "count",
        "count(DISTINCT ...) takes one column",
    ),
]


@pytest.mark.parametrize(("query", "where", "message"), REFUSED)
def test_refused(query: str, where: str, message: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        pipeline().add_text(f"INSERT INTO Out {query};")
    assert message in str(caught.value)
    place = caught.value.place
    assert place is not None
    assert place.line == 1
    text = f"INSERT INTO Out {query}"
    # A place is where the words at fault begin; the whole statement where a clause is missing altogether.
    assert text[place.column - 1 :].startswith(where if where else "INSERT"), text[place.column - 1 :]


def test_a_punctuation_needs_a_condition() -> None:
    text = "CREATE STREAM P (k BIGINT, price DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts\n  PUNCTUATE ON (k) WHEN price WITH (path = 'p');"
    with pytest.raises(MillstreamError) as caught:
        pipeline().add_text(text)
    assert str(caught.value).startswith(
        "statement 1, line 2, column 3: PUNCTUATE ... WHEN takes a condition, `price` is DOUBLE; compare it"
    )


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("CHECK (s >= 'a')", "`s` is STRING, which has no ranges here; a range needs an integer, a date or a timestamp"),
        ("CHECK (k IN ('a'))", "`'a'` is no value of a column of type BIGINT; CAST it"),
        ("CHECK (k BETWEEN 9 AND 3)", "no value of `k` passes this CHECK; look at its bounds"),
        ("CHECK (k > 1.5)", "`1.5` is no value of a column of type BIGINT"),
        ("CHECK (i > 1.5)", "`1.5` is no value of a column of type INT"),
        ("CHECK (s IN (1))", "`1` is no value of a column of type STRING"),
        ("CHECK (k IN (1, NULL))", "CHECK can not compare with NULL; null passes a CHECK anyway"),
        ("CHECK (d > 'soon')", "`'soon'` is no value of a column of type DATE"),
        ("PUNCTUATE ON (s < s) WHEN k = 1", "`s` is STRING, which has no ranges here"),
        ("PUNCTUATE ON (k <= s) WHEN k = 1", "`k` is BIGINT, and `s` is STRING; CAST it to the type of the column"),
        ("PUNCTUATE ON (s IN (k)) WHEN k = 1", "`s` is STRING, and `k` is BIGINT"),
    ],
)
def test_values_that_a_column_does_not_have(clause: str, message: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        columns = "k BIGINT, i INT, s STRING, d DATE, ts TIMESTAMP"
        pipeline().add_text(f"CREATE STREAM P ({columns}) TIMESTAMP BY ts {clause} WITH (path = 'p');")
    assert message in str(caught.value)
    assert caught.value.place is not None and caught.value.place.column > 70


@pytest.mark.parametrize("clause", ["UNIQUE (k)", "CLUSTERED BY (k)", "UNIQUE (g)"])
def test_declared_keys_close_groups(clause: str) -> None:
    made = pipeline()
    made.add_text(f"CREATE STREAM P (k BIGINT, g STRING, ts TIMESTAMP) TIMESTAMP BY ts {clause} WITH (path = 'p');")
    query = "INSERT INTO Out SELECT k, count(*) AS n FROM P GROUP BY k;"
    if "(k)" in clause:
        made.add_text(query)
        return
    with pytest.raises(MillstreamError, match="UNIQUE or CLUSTERED BY a group column"):
        made.add_text(query)
