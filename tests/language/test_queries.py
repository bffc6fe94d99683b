"""Windows, chains and joins: each spelling, what it becomes, and that its print parses to the same query."""

from __future__ import annotations

import pytest
from sqlglot import exp

from millstream.errors import Place
from millstream.language import parse, parse_expression, parse_query, place_of, window_of

MINUTE = 60_000_000


def windows(query):
    return {
        node.alias_or_name: (w.kind, w.range, w.slide, w.attribute.sql() if w.attribute else None)
        for node in query.find_all(exp.Table, exp.Subquery)
        if (w := window_of(node))
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Auction [RANGE 12 HOURS] AS A, Bid [NOW] AS B", {"A": ("range", 720 * MINUTE, None, None), "B": ("now", 0, None, None)}),
        ("A [RANGE 5 MINUTES]", {"A": ("range", 5 * MINUTE, None, None)}),
        ("A [RANGE 5 MINUTES] a", {"a": ("range", 5 * MINUTE, None, None)}),
        ("Bid AS B [RANGE 5 SECONDS]", {"B": ("range", 5_000_000, None, None)}),
        ("Bid B [RANGE 5s]", {"B": ("range", 5_000_000, None, None)}),
        ("A [ROWS 100 SLIDE 10]", {"A": ("rows", 100, 10, None)}),
        ("A [RANGE 1 MINUTE SLIDE 30 SECONDS]", {"A": ("range", MINUTE, MINUTE // 2, None)}),
        ("A [RANGE 3 MIN, WA ts]", {"A": ("range", 3 * MINUTE, None, "ts")}),
        ("A [WA ts, RANGE 3 min]", {"A": ("range", 3 * MINUTE, None, "ts")}),
        ("A [WA timestamp RANGE 3min]", {"A": ("range", 3 * MINUTE, None, "timestamp")}),
        ("A [RANGE 1 min, SLIDE 1 min, WA M1.ts]", {"A": ("range", MINUTE, MINUTE, "M1.ts")}),
        ("A [RANGE 0 SECONDS]", {"A": ("range", 0, None, None)}),
        ("(SELECT k FROM A) [RANGE 1 MINUTE] AS x", {"x": ("range", MINUTE, None, None)}),
        ("(SELECT k FROM A [NOW]) x [RANGE 1 MINUTE]", {"A": ("now", 0, None, None), "x": ("range", MINUTE, None, None)}),
        ("(A [RANGE 1 MINUTE]) AS x", {"x": ("range", MINUTE, None, None)}),
        ("`my stream` [NOW]", {"my stream": ("now", 0, None, None)}),
        ("A [NOW] LEFT JOIN B [RANGE 1 MIN] ON A.k = B.k", {"A": ("now", 0, None, None), "B": ("range", MINUTE, None, None)}),
        ("A [NOW] JOIN B b [ROWS 3] USING (k, l)", {"A": ("now", 0, None, None), "b": ("rows", 3, None, None)}),
        ("(A [NOW] JOIN B [ROWS 3] ON a = b)", {"A": ("now", 0, None, None), "B": ("rows", 3, None, None)}),
        ("M1 UNION ALL M2 [RANGE 1 MIN] AS m", {"m": ("range", MINUTE, None, None)}),
        ("M1 union M2 UNION M3 [RANGE 1 minute, SLIDE 1 minute, WA ts]", {"": ("range", MINUTE, MINUTE, "ts")}),
        ("(M1 UNION ALL M2) [RANGE 1 MIN] AS u", {"u": ("range", MINUTE, None, None)}),
        ("((M1 UNION ALL M2 [RANGE 1 MIN])) AS u", {"u": ("range", MINUTE, None, None)}),
    ],
)
def test_windows(source, expected):
    query = parse_query(f"SELECT * FROM {source} WHERE TRUE")
    assert windows(query) == expected
    round_trip(query)


def round_trip(query):
    assert query.copy() == query
    for pretty in (False, True):
        again = parse_query(query.sql(dialect="millstream", pretty=pretty))
        assert again == query and windows(again) == windows(query)
    assert "[" not in query.sql(dialect="spark"), "other dialects print the query without its windows"


@pytest.mark.parametrize(
    ("side", "kind", "spelling"),
    [
        (None, None, "JOIN"),
        (None, "INNER", "INNER JOIN"),
        ("LEFT", None, "LEFT JOIN"),
        ("LEFT", "OUTER", "LEFT OUTER JOIN"),
        ("LEFT", "SEMI", "LEFT SEMI JOIN"),
        ("LEFT", "ANTI", "LEFT ANTI JOIN"),
    ],
)
def test_joins(side, kind, spelling):
    (join,) = parse_query(f"SELECT * FROM A [RANGE 5 SECONDS] {spelling} B [RANGE 5 SECONDS] ON A.k = B.k").args["joins"]
    assert (join.args.get("side"), join.args.get("kind")) == (side, kind)
    assert window_of(join.this).range == 5_000_000 and join.args["on"].sql() == "A.k = B.k"


def test_a_chain_is_a_bag_union_of_whole_streams():
    query = parse_query("SELECT srcIP, count(*) FROM Main1 UNION Main2 [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY srcIP")
    chain = query.args["from_"].this
    assert isinstance(chain, exp.Subquery) and isinstance(chain.this, exp.Union) and chain.this.args["distinct"] is False
    assert chain.this.sql() == "SELECT * FROM Main1 UNION ALL SELECT * FROM Main2"
    assert query.args["group"].expressions[0].name == "srcIP" and window_of(chain).slide == MINUTE


def test_chains_beside_each_other():
    query = parse_query("SELECT * FROM A UNION B as M1, C UNION D as M2")
    assert [query.args["from_"].this.alias, query.args["joins"][0].this.alias] == ["M1", "M2"]
    query = parse_query("SELECT * FROM M1, M2 UNION C AS M3 WHERE M1.a = M3.a")
    assert query.args["from_"].this.name == "M1" and query.args["joins"][0].this.alias == "M3" and query.args["where"]


@pytest.mark.parametrize("right", ["SELECT b FROM B", "(SELECT b FROM B)", "VALUES (1)"])
def test_a_union_of_selects_stays_one(right):
    query = parse_query(f"SELECT a FROM A UNION ALL {right}")
    assert isinstance(query, exp.Union) and isinstance(query.this.args["from_"].this, exp.Table)


def test_a_window_after_the_select_list():
    query = parse_query("SELECT count(*) AS n [RANGE 5 min, SLIDE 1 min, WA ts] FROM M1 UNION M2 UNION C")
    window = window_of(query)
    assert (window.kind, window.range, window.slide, window.attribute.name) == ("range", 5 * MINUTE, MINUTE, "ts")
    assert len(query.expressions) == 1 and query.expressions[0].alias == "n"
    round_trip(query)
    outer = parse_query("SELECT x FROM (SELECT a AS x [NOW] FROM A) AS s")
    assert window_of(outer) is None and window_of(outer.args["from_"].this.this).kind == "now"


@pytest.mark.parametrize("index", ["x[0]", "x['range']", "x[`rows`]", "x[wa]", "m[range.a]", "x[y + 1]"])
def test_an_index_stays_an_index(index):
    query = parse_query(f"SELECT {index} FROM A")
    assert isinstance(query.expressions[0], exp.Bracket) and window_of(query) is None


def test_ctes_keep_their_windows():
    query = parse_query("WITH q AS (SELECT * FROM A [NOW]) SELECT * FROM q UNION B [RANGE 1 HOUR] AS z")
    assert windows(query) == {"A": ("now", 0, None, None), "z": ("range", 60 * MINUTE, None, None)}
    round_trip(query)


def test_names_keep_their_spelling():
    query = parse_query("SELECT SrcIP, `my Col` FROM `My Stream` AS M")
    assert [e.name for e in query.expressions] == ["SrcIP", "my Col"] and query.args["from_"].this.name == "My Stream"


def test_places_of_nodes():
    text = "SET a = 1;\nINSERT INTO Out\n  SELECT A.price + 1 AS p, lower(${col})\n  FROM A [RANGE 1 MIN]\n  WHERE closed AND A.x = 3"
    query = parse(text, variables={"col": "very_long_name"}, file="p.sql")[1].query
    assert place_of(query.expressions[0]) == Place(3, 10, 2, "p.sql")
    assert place_of(query.expressions[1]) == Place(3, 28, 2, "p.sql")
    assert place_of(query.expressions[1].this) == Place(3, 34, 2, "p.sql")
    assert place_of(query.args["from_"].this) == Place(4, 8, 2, "p.sql")
    assert place_of(window_of(query.args["from_"].this)) == Place(4, 10, 2, "p.sql")
    assert place_of(query.args["where"].this.expression) == Place(5, 20, 2, "p.sql")
    assert place_of(exp.column("x")) is None
    assert place_of(query.copy().args["from_"].this) == Place(4, 8, 2, "p.sql")


def test_expressions():
    assert parse_expression("price > 100 AND x[0] = 'a'").sql(dialect="millstream") == "price > 100 AND x[0] = 'a'"
    assert parse_expression("count(*) AS n").alias == "n"
