"""Handles build the plans that SQL gives, and tell mistakes where they are made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import millstream as ms
from tests.api.kit import new_session

Build = Callable[[ms.Session], ms.StreamHandle]


def a(session: ms.Session) -> ms.StreamHandle:
    return session.stream("A")


def b(session: ms.Session) -> ms.StreamHandle:
    return session.stream("B")


SAME: list[tuple[str, Build]] = [
    ("SELECT * FROM A", a),
    ("SELECT k, v * 2 AS w FROM A", lambda s: a(s).select("k", w="v * 2")),
    ("SELECT k, v * 2 AS w FROM A", lambda s: a(s).select("k", "v * 2 AS w")),
    ("SELECT * FROM A WHERE v > 1 AND k = 2", lambda s: a(s).where("v > 1").where("k = 2")),
    (
        "SELECT k, count(*) AS n FROM A [RANGE 1 MINUTE] WHERE v > 100 GROUP BY k",
        lambda s: a(s).where("v > 100").window("1 minute").group_by("k").agg(n="count(*)"),
    ),
    (
        "SELECT k, count(*) AS n FROM A [RANGE 1 MINUTE] WHERE v > 100 GROUP BY k",
        lambda s: a(s).window("1 minute").where("v > 100").group_by("k").agg(n="count(*)"),
    ),
    (
        "SELECT k % 2 AS p, max(v) AS m, avg(v) AS a FROM A [RANGE 1 MINUTE SLIDE 10 SECONDS, WA ts] GROUP BY k % 2",
        lambda s: a(s).window("1 minute", "10 seconds", on="ts").group_by("k % 2 AS p").agg(m="max(v)", a="avg(v)"),
    ),
    ("SELECT count(*) AS n FROM A [ROWS 100 SLIDE 10]", lambda s: a(s).window(100, 10).agg(n="count(*)")),
    ("SELECT k, count(*) AS n FROM C GROUP BY k", lambda s: s.stream("C").group_by("k").agg(n="count(*)")),
    ("SELECT DISTINCT k FROM A [RANGE 1 MINUTE]", lambda s: a(s).window("1 minute").distinct("k")),
    ("SELECT DISTINCT * FROM A [RANGE 1 MINUTE]", lambda s: a(s).window("1 minute").distinct()),
    ("SELECT * FROM A ORDER BY ts", lambda s: a(s).order_by("ts")),
    ("SELECT k FROM Big", lambda s: s.stream("Big").select("k")),
    (
        "SELECT A.k, A.v, B.v AS bv FROM A [RANGE 5 SECONDS], B [RANGE 3 SECONDS] WHERE A.k = B.k",
        lambda s: a(s).window("5 seconds").join(b(s).window("3 seconds"), on="A.k = B.k").select("A.k", "A.v", bv="B.v"),
    ),
    (
        "SELECT A.k, A.v, B.v AS bv FROM A [RANGE 5 SECONDS], B [NOW] WHERE A.v > 1 AND B.v < 3 AND A.k = B.k",
        lambda s: (
            a(s).window("5 seconds").where("v > 1").join(b(s).where("v < 3").window("now"), on="A.k = B.k").select("A.k", "A.v", bv="B.v")
        ),
    ),
    (
        "SELECT A.k, B.v FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 5 SECONDS] ON A.k = B.k",
        lambda s: a(s).window("5 seconds").join(b(s).window("5 seconds"), on="A.k = B.k", how="left").select("A.k", "B.v"),
    ),
    (
        "SELECT A.k FROM A [RANGE 5 SECONDS] LEFT SEMI JOIN B [RANGE 5 SECONDS] ON A.k = B.k",
        lambda s: a(s).window("5 seconds").join(b(s).window("5 seconds"), on="A.k = B.k", how="semi").select("A.k"),
    ),
    (
        "SELECT A.k FROM A [RANGE 5 SECONDS] LEFT ANTI JOIN (SELECT * FROM B WHERE v < 3) [RANGE 5 SECONDS] AS B ON A.k = B.k",
        lambda s: a(s).window("5 seconds").join(b(s).where("v < 3").window("5 seconds"), on="A.k = B.k", how="anti").select("A.k"),
    ),
    ("SELECT A.ts, T.name FROM A, T WHERE A.k = T.k", lambda s: a(s).join(s.stream("T"), on="A.k = T.k").select("A.ts", "T.name")),
    (
        "SELECT x.k, count(*) AS n [RANGE 1 MINUTE] FROM A [RANGE 5 SECONDS] AS x, A [NOW] AS y WHERE x.k = y.k GROUP BY x.k",
        lambda s: (
            a(s)
            .alias("x")
            .window("5 seconds")
            .join(a(s).alias("y").window("now"), on="x.k = y.k")
            .window("1 minute")
            .group_by("x.k")
            .agg(n="count(*)")
        ),
    ),
    (
        "SELECT k, count(*) AS n FROM A UNION ALL B [RANGE 1 MINUTE] GROUP BY k",
        lambda s: a(s).union(b(s)).window("1 minute").group_by("k").agg(n="count(*)"),
    ),
    (
        "SELECT k, max(v) AS m FROM (SELECT k, v, ts FROM A) [RANGE 1 MINUTE] AS A WHERE v > 1 GROUP BY k",
        lambda s: a(s).select("k", "v", "ts").where("v > 1").window("1 minute").group_by("k").agg(m="max(v)"),
    ),
]


@pytest.mark.parametrize(("text", "build"), SAME, ids=[text for text, _ in SAME])
def test_a_handle_gives_the_plan_of_the_sql(text: str, build: Build) -> None:
    session = new_session()
    written = session.sql(text)
    assert isinstance(written, ms.StreamHandle)
    assert build(session)._bound() == written._bound()
    assert build(session).explain() == written.explain()
    assert build(session).schema == written.schema


def test_handles_are_values(tmp_path: object) -> None:
    session = new_session()
    bids = session.stream("A")
    some = bids.where("v > 1")
    some.where("k = 2").window("1 minute")
    assert "filter v > 1" in some.explain()
    assert "k = 2" not in some.explain()
    assert "filter" not in bids.explain()


def test_a_handle_is_typed() -> None:
    handle = new_session().stream("a").select("k", cents="CAST(v * 100 AS INT)")
    assert handle.columns == ["k", "cents"]
    assert repr(handle) == "<Stream a: k BIGINT, cents INT>"


MISTAKES: dict[str, tuple[Build, type[ms.MillstreamError], str]] = {
    "column": (lambda s: a(s).where("vv > 1"), ms.errors.NameProblem, "no column `vv` in A; did you mean `v`?"),
    "stream": (lambda s: s.stream("AA"), ms.errors.NameProblem, "no stream, table or view `AA`; did you mean `A`?"),
    "expression": (lambda s: a(s).where("v >"), ms.errors.SyntaxProblem, "in `v >`: something is missing"),
    "condition": (lambda s: a(s).where("v + 1"), ms.errors.TypeProblem, "a condition must be BOOLEAN"),
    "columns": (lambda s: a(s).select("k, v"), ms.errors.PlanProblem, "`k, v` is more than one column"),
    "no columns": (lambda s: a(s).select(), ms.errors.PlanProblem, "a query without columns"),
    "no calls": (lambda s: a(s).window("1 s").agg(), ms.errors.PlanProblem, "a query without columns"),
    "a call without a name": (
        lambda s: a(s).window("1 s").group_by("k").agg("max(v)"),
        ms.errors.TypeProblem,
        "each aggregate needs a name; write agg(n='count(*)')",
    ),
    "no order": (lambda s: a(s).order_by(), ms.errors.PlanProblem, "order_by has no column"),
    "window": (lambda s: a(s).window("5 parsecs"), ms.errors.SyntaxProblem, "in `[RANGE 5 parsecs]`: `parsecs` is no unit of time"),
    "two windows": (lambda s: a(s).window("1 s").window("1 s"), ms.errors.PlanProblem, "`A` has a window already"),
    "table": (lambda s: s.stream("T").window("1 s"), ms.errors.PlanProblem, "a window can not stand on a table"),
    "join": (lambda s: a(s).join(b(s), how="full"), ms.errors.UnsupportedProblem, "there is no full join; how is one of inner,"),
    "self join": (lambda s: a(s).join(a(s)), ms.errors.PlanProblem, "`A` stands in FROM twice"),
    "sequence": (lambda s: a(s).seq(b(s), mode="recent"), ms.errors.UnsupportedProblem, "SEQ patterns are not supported yet"),
    "union": (lambda s: a(s).union(s.stream("C").select("k")), ms.errors.TypeProblem, "the sides of UNION ALL have 3 and 1 columns"),
    "sink": (lambda s: a(s).insert_into("Aut"), ms.errors.NameProblem, "no sink `Aut`; did you mean `Out`?"),
    "no window": (lambda s: a(s).group_by("k").agg(n="count(*)").insert_into("Out"), ms.errors.PlanProblem, "the groups of this GROUP BY"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_without_a_false_place(name: str) -> None:
    build, kind, message = MISTAKES[name]
    with pytest.raises(kind) as told:
        build(new_session())
    assert str(told.value).startswith(message)
