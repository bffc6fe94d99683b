"""Wrong answers that random queries found once, each as small as it gets."""

# ruff: noqa: E501 - a query reads best on one line

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from millstream.kernels.windows import expand_windows
from millstream.testing import run
from tests.oracle import duck
from tests.oracle.cases import Case
from tests.oracle.queries import Query, expanded, views
from tests.oracle.streams import SECOND, StreamSpec
from tests.oracle.watch import watched

NAN = float("nan")


def row(ts: int | None, k: Any = 1, kind: str = "row", **others: Any) -> dict[str, Any]:
    """A tuple at a second."""
    empty = dict.fromkeys(("i", "x", "m", "s", "b", "d"))
    return {**empty, "k": k, "kind": kind, "ts": None if ts is None else ts * SECOND, **others}


def check(ours: str, duck: str, *streams: StreamSpec, files: int = 1, batch: int = 1 << 16, buckets: int = 0) -> None:
    case = Case(streams, (Query(ours, duck),), batch, files)
    case.check(case.host(buckets, random.Random(1)) if buckets else case.run())


def windowed(select: str, source: str, seconds: int, by: str) -> str:
    return f"SELECT {select}, window_start, window_end FROM {expanded(source, seconds * SECOND, seconds * SECOND)} GROUP BY {by}window_start, window_end"


@pytest.mark.parametrize("files", [1, 2, 3])
@pytest.mark.parametrize("query", ["SELECT i AS i FROM A", "SELECT i AS i FROM A WHERE i > 2", "SELECT i + 1 AS i FROM A"])
def test_late_tuples_are_found_although_the_query_drops_time_and_key(files: int, query: str) -> None:
    stream = StreamSpec(
        "A", rows=(row(10, i=1), row(11, 2, "close"), row(5, i=3), row(12, 2, i=4), row(12, i=5), row(12, i=6)), punctuations=("close",)
    )
    check(query, query, stream, files=files)


@pytest.mark.parametrize("files", [1, 4])
def test_a_tuple_of_a_closed_value_raises_the_mark_however_units_are_cut(files: int) -> None:
    stream = StreamSpec("A", rows=(row(1, 1, "close"), row(50, 1), row(10, 2), row(60, 2)), punctuations=("close",))
    check("SELECT ts AS ts FROM A", "SELECT ts FROM A", stream, files=files)


def test_the_punctuations_of_one_clause_are_no_tuples_for_another() -> None:
    stream = StreamSpec(
        "A", order="punctuated", rows=(row(1), row(2, 1, "close"), row(3, 1, "group"), row(4, 2)), punctuations=("group", "close")
    )
    check("SELECT k AS k FROM A", "SELECT k FROM A", stream)


@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("key", [NAN, -0.0])
def test_awkward_floats_are_closed_as_other_values_are(files: int, key: float) -> None:
    """In a list of values NaN was closed, alone it was not."""
    rows = (row(1, key), row(2, key, "close"), row(2, 5.0, "close"), row(3, key), row(4, 7.0))
    check(
        "SELECT k, count(*) AS n FROM A GROUP BY k",
        "SELECT k, count(*) FROM A GROUP BY k",
        StreamSpec("A", "DOUBLE", rows=rows, punctuations=("close",)),
        files=files,
    )


def test_a_stream_without_marks_makes_none() -> None:
    """Before the first heartbeat there is no mark at all, not one at the beginning of time."""
    stream = StreamSpec("A", order="punctuated", rows=(row(1), row(2)), punctuations=("beat",))
    check("SELECT count(*) AS n FROM A [RANGE 10 SECONDS]", windowed("count(*)", "A", 10, ""), stream)


LEFT = "SELECT a.k AS k, a.i AS i, a.ts AS ts, b.ts AS other, b.k AS bk FROM A{w} AS a LEFT JOIN B{w} AS b ON a.i = b.i"
BAND = " AND epoch_us(b.ts) - 1000000 <= epoch_us(a.ts) AND epoch_us(a.ts) <= epoch_us(b.ts) + 1000000"
OUTER = (
    StreamSpec("A", rows=tuple(row(t, t % 3, i=t % 2) for t in range(0, 60, 3))),
    StreamSpec("B", rows=tuple(row(t, t % 2, i=1) for t in range(0, 60, 9))),
)


def test_a_tuple_without_a_time_is_in_no_window() -> None:
    inner, duck = LEFT.format(w=" [RANGE 1 SECOND]"), LEFT.format(w="") + BAND
    rows = expanded(f"({duck})", 5 * SECOND, 5 * SECOND, "epoch_us(other)", " WHERE other IS NOT NULL")
    check(
        f"SELECT count(*) AS n FROM ({inner}) AS z [RANGE 5 SECONDS, WA other]",
        f"SELECT count(*), window_start, window_end FROM {rows} GROUP BY ALL",
        *OUTER,
    )


def test_groups_of_a_time_that_a_left_join_may_not_find() -> None:
    inner, duck = LEFT.format(w=" [RANGE 1 SECOND]"), LEFT.format(w="") + BAND
    some = "WHERE other IS NOT NULL"
    check(
        f"SELECT other, count(*) AS n FROM ({inner}) AS z {some} GROUP BY other",
        f"SELECT other, count(*) FROM ({duck}) {some} GROUP BY other",
        *OUTER,
    )


def test_tuples_are_sorted_by_a_time_that_a_left_join_may_not_find() -> None:
    inner, duck = LEFT.format(w=" [RANGE 1 SECOND]"), LEFT.format(w="") + BAND
    some = "WHERE other IS NOT NULL"
    case = Case(
        OUTER,
        (
            Query(
                f"SELECT other, i FROM ({inner}) AS z {some} ORDER BY other",
                f"SELECT other, i FROM ({duck}) AS z {some}",
                "other",
            ),
        ),
    )
    case.check(case.run())


@pytest.mark.parametrize("buckets", [2, 3, 5])
def test_a_left_join_is_not_spread_by_the_key_it_did_not_find(buckets: int) -> None:
    """Unmatched tuples lie in the buckets of their own keys: grouped by the other side's key they must move."""
    one, two = (
        LEFT.format(w=" [RANGE 1 SECOND]").replace("a.i = b.i", "a.k = b.k"),
        (LEFT.format(w="") + BAND).replace("a.i = b.i", "a.k = b.k"),
    )
    rows = expanded(f"({two})", 30 * SECOND, 30 * SECOND)
    check(
        f"SELECT bk, count(*) AS n FROM ({one}) AS z [RANGE 30 SECONDS, WA ts] GROUP BY bk",
        f"SELECT bk, count(*), window_start, window_end FROM {rows} GROUP BY ALL",
        *OUTER,
        buckets=buckets,
    )


def test_nobody_promises_that_no_null_comes_out_of_a_left_join() -> None:
    a = StreamSpec("A", rows=(row(1, None), row(2, 1), row(9, 2)), punctuations=("close",))
    b = StreamSpec("B", rows=(row(1, None, "close"), row(2, 1), row(9, 3)), punctuations=("close",))
    check(
        "SELECT a.k AS ak, b.k AS bk FROM A [NOW] AS a LEFT JOIN B [NOW] AS b ON a.k = b.k",
        "SELECT a.k, b.k FROM A AS a LEFT JOIN B AS b ON a.k = b.k AND a.ts = b.ts",
        a,
        b,
    )


@pytest.mark.parametrize("middle", ["JOIN T AS t ON a.i = t.id", "LEFT JOIN B [RANGE 1 SECOND] AS b ON a.k = b.k"])
def test_a_window_reaches_past_a_table_and_a_left_join(middle: str) -> None:
    duck = middle.replace(" [RANGE 1 SECOND]", "") + (BAND if "LEFT" in middle else "")
    check(
        f"SELECT a.ts AS at, c.ts AS ct FROM A [RANGE 5 SECONDS] AS a {middle} JOIN B [RANGE 2 SECONDS] AS c ON a.i = c.i",
        f"SELECT a.ts, c.ts FROM A AS a {duck} JOIN B AS c ON a.i = c.i AND epoch_us(c.ts) - 5000000 <= epoch_us(a.ts) AND epoch_us(a.ts) <= epoch_us(c.ts) + 2000000",
        *OUTER,
    )


def test_a_window_before_a_table_is_the_aggregate_s() -> None:
    rows = expanded("(SELECT a.*, t.label FROM A AS a JOIN T AS t ON a.i = t.id)", 10 * SECOND, 10 * SECOND)
    check(
        "SELECT t.label AS l, count(*) AS n FROM A [RANGE 10 SECONDS] AS a JOIN T AS t ON a.i = t.id GROUP BY t.label",
        f"SELECT label, count(*), window_start, window_end FROM {rows} GROUP BY ALL",
        *OUTER,
    )


def test_windows_over_windows_keep_both_pairs_of_ends() -> None:
    inner = "SELECT k, count(*) AS n FROM A [RANGE 5 SECONDS] GROUP BY k"
    duck = f"(SELECT k, count(*) AS n, window_start AS s, window_end AS e, window_start AS ts FROM {expanded('A', 5 * SECOND, 5 * SECOND)} GROUP BY ALL)"
    outer = expanded(duck, 20 * SECOND, 20 * SECOND)
    check(
        f"SELECT z.window_start AS s, count(*) AS c FROM ({inner}) AS z [RANGE 20 SECONDS] GROUP BY z.window_start",
        f"SELECT s, count(*), window_start, window_end FROM {outer} GROUP BY ALL",
        OUTER[0],
    )
    check(
        f"SELECT DISTINCT z.* FROM ({inner}) AS z [RANGE 20 SECONDS]",
        f"SELECT DISTINCT k, n, s, e, window_start, window_end FROM {outer}",
        OUTER[0],
    )


@pytest.mark.parametrize("buckets", [0, 2])
@pytest.mark.parametrize(("join", "duck"), [("JOIN", "JOIN"), ("LEFT JOIN", "LEFT JOIN"), ("LEFT ANTI JOIN", "ANTI JOIN")])
def test_a_windowed_distinct_is_joined_on_its_own_times(join: str, duck: str, buckets: int) -> None:
    """`window_start` is no later time of the tuples, so no band follows for it."""
    streams = (
        StreamSpec("A", rows=(row(0, 1), row(30, 1), row(50, 2))),
        StreamSpec("B", rows=(row(1, 1, i=10), row(31, 1, i=11), row(51, 2, i=12))),
    )
    columns = "d.k AS dk, d.ts AS dt" + ("" if "ANTI" in join else ", b.i AS i")
    near = "epoch_us(b.ts) BETWEEN epoch_us(d.ts) - 5000000 AND epoch_us(d.ts) + 5000000"
    for wa in ("", " WA ts"):
        check(
            f"SELECT {columns} FROM (SELECT DISTINCT k, ts FROM A [RANGE 1 MINUTE{wa}]) AS d {join} B AS b"
            " ON d.k = b.k AND b.ts BETWEEN d.ts - INTERVAL 5 SECONDS AND d.ts + INTERVAL 5 SECONDS",
            f"SELECT {columns} FROM (SELECT DISTINCT k, ts FROM A) AS d {duck} B AS b ON d.k = b.k AND {near}",
            *streams,
            buckets=buckets,
        )
    if join == "JOIN":
        check(
            "SELECT d.ts AS dt, b.ts AS bt FROM B AS b JOIN (SELECT DISTINCT k, ts FROM A [RANGE 1 MINUTE]) AS d"
            " ON d.k = b.k AND b.ts BETWEEN d.ts - INTERVAL 5 SECONDS AND d.ts + INTERVAL 5 SECONDS",
            f"SELECT d.ts AS dt, b.ts AS bt FROM (SELECT DISTINCT k, ts FROM A) AS d JOIN B AS b ON d.k = b.k AND {near}",
            *streams,
            buckets=buckets,
        )


def test_a_distinct_without_its_time_is_joined_on_the_ends_of_a_window_over_it() -> None:
    shifted = "SELECT DISTINCT k, x FROM (SELECT k, ts + INTERVAL 1 SECOND AS x FROM A)"
    ours = f"SELECT k, window_start AS w FROM (SELECT DISTINCT k FROM ({shifted}) [RANGE 10 SECONDS WA x])"
    duck = f"SELECT DISTINCT k, window_start AS w FROM {expanded(f'({shifted})', 10 * SECOND, 10 * SECOND, 'epoch_us(x)')}"
    check(
        f"SELECT d.k AS dk, b.i AS i FROM ({ours}) AS d JOIN B AS b ON d.k = b.k AND b.ts BETWEEN d.w AND d.w + INTERVAL 5 SECONDS",
        f"SELECT d.k AS dk, b.i AS i FROM ({duck}) AS d JOIN B AS b ON d.k = b.k AND epoch_us(b.ts) BETWEEN epoch_us(d.w) AND epoch_us(d.w) + 5000000",
        *OUTER,
    )


def test_a_union_in_order() -> None:
    query = "SELECT i, ts AS tt FROM A UNION ALL SELECT i, ts FROM B"
    case = Case(OUTER, (Query(query + " ORDER BY tt", query, "tt"),), 2, 3)
    case.check(case.run())


def test_days_apart_are_not_microseconds_apart() -> None:
    days = tuple(StreamSpec(name, rows=tuple(row(t * 86_400, i=t) for t in range(6))) for name in "AB")
    left, right = (f"(SELECT i, to_date(ts) AS day, ts FROM {name})" for name in "AB")
    where = "a JOIN {} AS b ON a.day <= b.day + INTERVAL 1 DAY AND b.day <= a.day + INTERVAL 1 DAY"
    ours = f"SELECT a.i AS ai, b.i AS bi FROM {left} AS {where.format(right)}"
    check(ours, ours.replace("to_date(ts)", "CAST(ts AS DATE)"), *days)


def test_parts_of_a_join_bring_hidden_times_that_do_not_meet() -> None:
    part = "(SELECT q.i AS i, q.ts AS ts FROM A{w} AS q LEFT JOIN B{w} AS r ON q.i = r.i{b})"
    text = "SELECT a.i AS i, b.ts AS bt, c.ts AS ct FROM {p} AS a, {p} AS b, {p} AS c WHERE a.ts = b.ts AND b.ts = c.ts AND a.ts = c.ts"
    band = " AND epoch_us(r.ts) - 1000000 <= epoch_us(q.ts) AND epoch_us(q.ts) <= epoch_us(r.ts) + 1000000"
    check(text.format(p=part.format(w=" [RANGE 1 SECOND]", b="")), text.format(p=part.format(w="", b=band)), *OUTER)


def test_a_window_over_a_join_goes_by_the_later_time() -> None:
    join = "SELECT a.ts AS ts, b.ts AS other FROM A{w} AS a JOIN B{w} AS b ON a.i = b.i{b}"
    duck = expanded(f"(SELECT greatest(ts, other) AS late FROM ({join.format(w='', b=BAND)}))", 5 * SECOND, 5 * SECOND, "epoch_us(late)")
    check(
        f"SELECT count(*) AS n FROM ({join.format(w=' [RANGE 1 SECOND]', b='')}) AS z [RANGE 5 SECONDS]",
        f"SELECT count(*), window_start, window_end FROM {duck} GROUP BY ALL",
        *OUTER,
    )


def test_decimal_and_integer_keys_meet() -> None:
    a = StreamSpec("A", "DECIMAL(12,0)", rows=(row(1, Decimal(3)), row(2, Decimal(4)), row(2, None)))
    b = StreamSpec("B", "INT", rows=(row(1, 3), row(2, 5), row(2, None)))
    check(
        "SELECT a.k AS ak, b.k AS bk FROM A [RANGE 9 SECONDS] AS a, B [RANGE 9 SECONDS] AS b WHERE a.k = b.k",
        "SELECT a.k, b.k FROM A AS a, B AS b WHERE a.k = b.k",
        a,
        b,
    )


def test_two_queries_into_one_sink_share_their_stream() -> None:
    case = Case((OUTER[0],), (), 2, 3)
    pipeline = case.pipeline()
    pipeline.add_text("CREATE SINK Both WITH (connector = 'memory');")
    pipeline.add_text("INSERT INTO Both SELECT k, i FROM VA WHERE i = 1; INSERT INTO Both SELECT k, i FROM VA WHERE k = 0;")
    with watched() as watch:
        result = run(pipeline, case.inputs(), batch=2, files={"A": 3})
    assert len(watch.stages) == 1
    wanted = duck.answer(
        {"A": OUTER[0].arrived()[0]}, "SELECT k, i FROM VA WHERE i = 1 UNION ALL SELECT k, i FROM VA WHERE k = 0", views(["A"])
    )
    assert duck.difference(duck.rows_of(result.tables["Both"]), wanted) is None


@pytest.mark.parametrize("buckets", [0, 2])
def test_a_column_that_stands_twice_among_the_keys_of_a_join(buckets: int) -> None:
    rows = [row(0, 1, i=1), row(0, 2, i=1), row(1, 1, "close"), row(2, 2, i=2), row(3, 2, "close"), row(4, 3, i=3)]
    streams = [StreamSpec(name, "BIGINT", "ordered", 0, ("close",), tuple(rows)) for name in "AB"]
    on = "a.k = b.k AND a.k = b.i"
    near = " AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 60000000"
    ours = f"SELECT a.k AS ak, b.ts AS bt FROM A [RANGE 1 MINUTE] AS a LEFT JOIN B [RANGE 1 MINUTE] AS b ON {on}"
    check(ours, f"SELECT a.k AS ak, b.ts AS bt FROM A AS a LEFT JOIN B AS b ON {on}{near}", *streams, files=3, batch=1, buckets=buckets)
    check(
        ours.replace("LEFT ", ""),
        f"SELECT a.k AS ak, b.ts AS bt FROM A AS a JOIN B AS b ON {on}{near}",
        *streams,
        files=3,
        batch=1,
        buckets=buckets,
    )


def test_a_key_that_is_closed_up_to_a_time_of_the_other_key() -> None:
    rows = [row(0, 1), row(1, 2), row(2, 1, "group"), row(3, 1), row(100_000, 1), row(200_000, 2, "group"), row(200_001, 2)]
    streams = [StreamSpec(name, "BIGINT", "ordered", 0, ("group",), tuple(rows)) for name in "AB"]
    query = "SELECT a.k AS ak, b.ts AS bt FROM A AS a JOIN B AS b ON a.k = b.k AND to_date(a.ts) = to_date(b.ts)"
    check(query, query.replace("to_date(", "date_trunc('day', "), *streams, batch=1)


@pytest.mark.parametrize("buckets", [0, 2])
def test_a_key_that_is_cast_to_another_decimal_than_that_of_the_other_side(buckets: int) -> None:
    amounts = ("20.30", "0.10", "10.00", "32.64", "16.50")
    rows = [row(second, second, m=Decimal(amount)) for second, amount in enumerate(amounts)]
    streams = [StreamSpec(name, "BIGINT", "ordered", 0, (), tuple(rows)) for name in "AB"]
    select, on = "SELECT a.k AS ak, b.k AS bk FROM A", "CAST(a.m AS DECIMAL(5, 0)) = b.m * 2"
    near = " AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 60000000"
    check(
        f"{select} [RANGE 1 MINUTE] AS a JOIN B [RANGE 1 MINUTE] AS b ON {on}",
        f"{select} AS a JOIN B AS b ON {on}{near}",
        *streams,
        buckets=buckets,
    )


@pytest.mark.parametrize("select", ["k, count(*) AS n, count(DISTINCT i) AS d", "DISTINCT k, i"])
def test_tuples_of_many_windows_are_cut_into_stretches(select: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.plan.window.PAIRS", 8)
    rows = tuple(row(second, second % 3, i=second % 2) for second in range(20))
    stream = StreamSpec("A", "BIGINT", "ordered", 0, (), rows)
    by = "" if select.startswith("DISTINCT") else " GROUP BY k"
    ours = f"SELECT {select} FROM A [RANGE 5 SECONDS SLIDE 1 SECOND]{by}"
    source = expanded("A", 5 * SECOND, SECOND)
    theirs = f"SELECT {select}, window_start, window_end FROM {source}"
    theirs += f"{by}, window_start, window_end" if by else ""
    taken: list[int] = []

    def expanding(ts: Any, *lengths: int) -> Any:
        taken.append(len(ts))
        return expand_windows(ts, *lengths)

    for name in ("aggregate", "distinct"):
        monkeypatch.setattr(f"millstream.operators.{name}.expand_windows", expanding)
    check(ours, theirs, stream)
    assert max(taken) == 1 and len(taken) == len(rows)
