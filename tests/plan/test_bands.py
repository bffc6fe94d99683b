"""Bands that follow from others: joins over chains of bands are let go, in whichever order the streams stand in FROM."""

from __future__ import annotations

import random

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.pipeline import Pipeline
from millstream.plan.nodes import Band, Join
from tests.oracle.buckets import run_hosted
from tests.oracle.watch import watched

START, SECOND = 1_767_225_600_000_000, 1_000_000
EXAMPLES = max(1, settings.default.max_examples // 4)
CLAUSES = "(k BIGINT, n BIGINT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 2 SECONDS ETS NONE WITH (connector = 'list')"


def chain(names: str, ends: dict[str, tuple[str, int, int]]) -> str:
    """Each stream but the first is near one of those before it, and so many seconds before and behind it."""
    found = f"FROM {names[0]}"
    for name in names[1:]:
        near, low, high = ends[name]
        first, last = (f"{near}.ts {'-' if end < 0 else '+'} INTERVAL {abs(end)} SECONDS" for end in (low, high))
        found += f" JOIN {name} ON {name}.k = {near}.k AND {name}.ts BETWEEN {first} AND {last}"
    return found


def pipeline(query: str, more: str = "") -> Pipeline:
    made = Pipeline()
    streams = "".join(f"CREATE STREAM {name} {CLAUSES};" for name in "ABCD")
    made.add_text(f"{more}{streams} CREATE SINK Out WITH (connector = 'memory'); CREATE SINK Other WITH (connector = 'memory'); {query}")
    return made


REFUSED_BEFORE = chain("ABCD", {"B": ("A", 0, 60), "C": ("B", -20, 20), "D": ("A", -30, 0)})


def test_a_stream_may_be_near_one_that_the_last_join_did_not_speak_of() -> None:
    """The join with C compares B alone; A moves on by what follows: -20 <= c - a <= 80."""
    (plan,) = pipeline(f"INSERT INTO Out SELECT A.n {REFUSED_BEFORE}").plans()
    joins = [node for node in plan.walk() if isinstance(node, Join)]
    second = next(join for join in joins if {"ts", "ts_1"} <= set(join.left.schema.names) and "ts_2" in join.right.schema.names)
    assert Band("ts", "ts_2", -20 * SECOND, 80 * SECOND) in second.bands


def test_where_nothing_bounds_a_time_it_is_refused_as_before() -> None:
    with pytest.raises(ms.MillstreamError, match="could never be purged"):
        pipeline("INSERT INTO Out SELECT A.n FROM A JOIN B ON A.k = B.k AND B.ts >= A.ts JOIN C ON C.k = A.k AND C.ts <= B.ts")


def test_one_query_that_needs_another_order_does_not_change_that_of_others() -> None:
    """The tree joins D and C first, which nothing bounds in the one query; the other has windows."""
    alone = ", ".join(f"{name} [RANGE 5 SECONDS]" for name in "ABCD")
    equal = "A.k = B.k AND B.k = C.k AND C.k = D.k"
    windows = f"INSERT INTO Other SELECT A.n FROM {alone} WHERE {equal};"
    stuck = chain("ABCD", {"B": ("A", 0, 9), "C": ("A", 0, 9), "D": ("B", 0, 9)})
    tree = "SET join.tree = '(((4 3) 2) 1)';"
    both = pipeline(f"{windows} INSERT INTO Out SELECT A.n {stuck};", tree).plans()
    assert both[0] == pipeline(windows, tree).plans()[0]
    assert both[0] != pipeline(windows).plans()[0]
    assert both[1] == pipeline(f"INSERT INTO Out SELECT A.n {stuck};", "SET join.tree = 'written';").plans()[0]


@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**40))
def test_property_chains_of_bands_equal_a_batch_engine(seed: int) -> None:
    chance = random.Random(seed)
    names = "ABCD"[: chance.choice([3, 4, 4])]
    ends = {}
    for place, name in enumerate(names[1:], 1):
        low = chance.randint(-8, 8)
        ends[name] = (chance.choice(names[:place]), low, low + chance.randint(0, 8))
    query = chain(names, ends)
    shown = ", ".join(f"{name}.n AS {name}" for name in names)
    rows = {}
    for name in names:
        time, rows[name] = 0, []
        for n in range(chance.choice([5, 30, 50])):
            time += chance.choice([0, 0, 1, 2])
            rows[name].append((chance.randint(1, 3), n, max(time - chance.choice([0, 0, 1, 2]), 0)))
    connection = duckdb.connect()
    for name in names:
        connection.execute(f"CREATE TABLE {name} (k BIGINT, n BIGINT, ts TIMESTAMP)")
        connection.executemany(f"INSERT INTO {name} VALUES (?, ?, make_timestamp(? * 1000000))", rows[name])
    expected = sorted(connection.execute(f"SELECT {shown} {query}").fetchall())
    tree = chance.choice(["auto", "written", "right-deep", "bushy", "m-join"])
    more = f"SET feedback.trial = {chance.choice([0, 8192])}; SET join.tree = '{tree}';"
    made = pipeline(f"INSERT INTO Out SELECT {shown} {query}", more)
    inputs = {name: [(k, n, START + SECOND * time) for k, n, time in rows[name]] for name in names}
    with watched() as watch:
        cuts = {"batch": chance.choice([1, 7, 100]), "files": dict.fromkeys(names, 3)}
        result = run_hosted(made, inputs, buckets=chance.choice([1, 3]), chance=chance, watch=watch, **cuts)
        assert not watch.left_over()
    assert sorted(tuple(row.values()) for row in result.to_arrow("Out").to_pylist()) == expected
