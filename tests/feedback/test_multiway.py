"""Joins of many streams with demand feedback: the answer is that of DuckDB, however tuples interleave."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.core.clock import ManualClock
from millstream.operators.join_feedback import JoinFeedback
from millstream.pipeline import Pipeline
from tests.oracle.buckets import run_hosted
from tests.oracle.watch import watched

START = 1_767_225_600_000_000
Rows = list[tuple[int, ...]]
ONE = ("m-join", "eddy")
EXAMPLES = max(1, settings.default.max_examples // 8)


@dataclass(frozen=True)
class Case:
    """Streams A, B, ... with a time and a column for each other stream, pushed in random pieces."""

    names: str
    edges: tuple[tuple[str, str], ...]
    ranges: tuple[int, ...]
    rows: dict[str, Rows]
    pieces: tuple[tuple[str, int], ...]
    """Which stream goes on by how many tuples."""
    ends: tuple[str, ...]

    @property
    def sql(self) -> str:
        columns = "".join(f", {n.lower()} BIGINT" for n in self.names)
        clauses = f"(ts TIMESTAMP{columns}) TIMESTAMP BY ts SLACK 2 SECONDS ETS NONE WITH (connector = 'list')"
        streams = "".join(f"CREATE STREAM {n} {clauses};" for n in self.names)
        inputs = ", ".join(f"{n} [RANGE {r} SECONDS]" for n, r in zip(self.names, self.ranges, strict=True))
        query = f"INSERT INTO Out SELECT {self.shown} FROM {inputs} WHERE {self.equal}"
        return f"{streams} CREATE SINK Out WITH (connector = 'memory'); {query}"

    @property
    def shown(self) -> str:
        return ", ".join(f"{n}.ts AS t{n}" for n in self.names)

    @property
    def equal(self) -> str:
        return " AND ".join(f"{x}.{y} = {y}.{x}" for x, y in self.edges)

    def expected(self) -> list[tuple[Any, ...]]:
        connection = duckdb.connect()
        for name in self.names:
            columns = ", ".join(["ts BIGINT", *(f"{n.lower()} BIGINT" for n in self.names)])
            connection.execute(f"CREATE TABLE {name} ({columns})")
            if self.rows[name]:
                connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * (1 + len(self.names)))})", self.rows[name])
        reach = dict(zip(self.names, self.ranges, strict=True))
        bands = [f"{b}.ts - {a}.ts BETWEEN {-reach[b]} AND {reach[a]}" for i, a in enumerate(self.names) for b in self.names[i + 1 :]]
        where = " AND ".join([self.equal, *bands])
        return sorted(connection.execute(f"SELECT {self.shown} FROM {', '.join(self.names)} WHERE {where}").fetchall())


def make(r: random.Random, names: str) -> Case:
    edges = [(r.choice(names[:n]), names[n]) for n in range(1, len(names))]
    more = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if (a, b) not in edges]
    edges += [pair for pair in more if r.random() < r.choice([0.0, 0.2, 0.5])]
    domain = r.choice([2, 5, 12])
    rows: dict[str, Rows] = {}
    for name in names:
        time, rows[name] = 0, []
        for _ in range(r.choice([0, 5, 30, 60])):
            time += r.choice([0, 0, 1, 2])
            values = [r.randint(1, domain * r.choice([1, 1, 3])) for _ in names]
            rows[name].append((max(time - r.choice([0, 0, 1, 2]), 0), *values))
    left = {name: len(rows[name]) for name in names}
    pieces = []
    while any(left.values()):
        name = r.choice([n for n in names if left[n]])
        size = min(r.choice([1, 1, 2, 7, 30]), left[name])
        left[name] -= size
        pieces.append((name, size))
    ranges = tuple(r.choice([0, 1, 3, 10, 40]) for _ in names)
    ends = list(names)
    r.shuffle(ends)
    return Case(names, tuple(edges), ranges, rows, tuple(pieces), tuple(ends))


def run(case: Case, settings: str = "SET feedback.trial = 0;", tree: str = "auto") -> tuple[list[tuple[Any, ...]], int, ms.testing.Live]:
    session = ms.Session("local")
    session.sql(f"{settings} SET join.tree = '{tree}'; {case.sql}")
    live = ms.testing.Live(session)
    at, slept = dict.fromkeys(case.names, 0), 0
    for name, size in case.pieces:
        piece = case.rows[name][at[name] : at[name] + size]
        at[name] += size
        live.push(name, [(START + 1_000_000 * time, *values) for time, *values in piece])
        slept = max(slept, sum(len(sleepers) for join in joins(live) for sleepers in join.asleep))
    for name in case.ends:
        live.end(name)
    return times_of(live.to_arrow("Out")), slept, live


def times_of(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Seconds since the start."""
    times = [[(value.timestamp() * 1_000_000 - START) // 1_000_000 for value in column.to_pylist()] for column in rows.columns]
    return sorted(zip(*times, strict=True))


def random_tree(r: random.Random, names: list[str]) -> str:
    """Any shape, in any order."""
    if len(names) == 1:
        return names[0]
    r.shuffle(names)
    at = r.randrange(1, len(names))
    return f"({random_tree(r, names[:at])} {random_tree(r, names[at:])})"


def random_plan(r: random.Random, names: str) -> str:
    """A tree, or one operator for all."""
    return r.choice([random_tree(r, list(names)), random_tree(r, list(names)), *ONE])


def joins(live: ms.testing.Live) -> list[JoinFeedback]:
    return [o.feedback for o in live._run.stage.executor.operators.values() if o.feedback is not None]


@pytest.mark.parametrize("trial", [0, 3])
@pytest.mark.parametrize("names", ["ABC", "ABCD", "ABCDE"])
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**40))
def test_property_the_answer_is_that_of_a_batch_engine(names: str, trial: int, seed: int) -> None:
    chance = random.Random(seed)
    case, tree = make(chance, names), random_plan(chance, names)
    order = chance.choice(["out-of-order", "in-order"])
    answer, _, live = run(case, f"SET feedback.trial = {trial}; SET execution.order = '{order}';", tree)
    assert answer == case.expected(), (tree, case)
    assert live.state_rows == 0


def test_selective_streams_let_tuples_sleep() -> None:
    """Or the test above would say nothing."""
    slept = [run(make(random.Random(seed), "ABCD"))[1] for seed in range(20)]
    assert sum(count > 3 for count in slept) > 10, slept


@pytest.mark.parametrize("tree", ["((A B) C)", "(A (B C))", "m-join", "eddy"])
def test_in_order_results_come_in_order(tree: str) -> None:
    """By the latest of their times, though what was woken for them is older."""
    found = 0
    for seed in range(12):
        case = make(random.Random(seed), "ABC")
        answer, _, live = run(case, "SET feedback.trial = 0; SET execution.order = 'in-order';", tree)
        assert answer == case.expected()
        latest = [max(row.values()) for row in live.to_arrow("Out").to_pylist()]
        assert latest == sorted(latest)
        found += len(latest)
    assert found > 50


def test_it_can_be_turned_off() -> None:
    case = make(random.Random(1), "ABC")
    answer, slept, live = run(case, "SET join.feedback = false;")
    assert (answer, slept, joins(live)) == (case.expected(), 0, [])


@pytest.mark.parametrize("names", ["ABC", "ABCD", "ABCDE"])
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**40), buckets=st.sampled_from([1, 2, 3, 4, 6, 8]))
def test_property_the_answer_does_not_depend_on_the_buckets(names: str, seed: int, buckets: int) -> None:
    """With state written and read back between micro-batches, and whatever the streams have in common."""
    chance = random.Random(seed)
    case = make(chance, names)
    pipeline = Pipeline()
    pipeline.add_text(f"SET feedback.trial = {chance.choice([0, 3])}; SET join.tree = '{random_plan(chance, names)}'; {case.sql}")
    inputs = {name: [(START + 1_000_000 * time, *values) for time, *values in case.rows[name]] for name in names}
    cuts = {"batch": chance.choice([1, 7, 100]), "files": dict.fromkeys(names, 3)}
    with watched() as watch:
        result = run_hosted(pipeline, inputs, buckets=buckets, chance=chance, watch=watch, **cuts)
        assert not watch.left_over()
    assert times_of(result.to_arrow("Out")) == case.expected(), case


@pytest.mark.parametrize("seed", [18, 33, 139, 146])
def test_a_watch_does_not_begin_while_its_owner_wakes_somebody(seed: int) -> None:
    """It would not count the tuple that has just come, and what has come for that would sleep for ever."""
    case = make(random.Random(seed), "ABC")
    answer, _, _ = run(case, "SET feedback.trial = 20;", "((A B) C)")
    assert answer == case.expected()


def test_what_sleeps_for_two_consumers_beside_silent_streams_is_let_go() -> None:
    """a1 sleeps for want of C, a2 of D. When D moves on a1 goes, and with it all that sleeps for C, which is further behind: so does a2."""
    session = ms.Session("local")
    session.sql("SET feedback.trial = 0; SET join.tree = '(((A B) C) D)'; CREATE SINK Out WITH (connector = 'memory')")
    for name, columns, ets in (("A", "k x y", ""), ("B", "k", ""), ("C", "x", "ETS NONE"), ("D", "y", "ETS ON DEMAND SKEW 15 SECONDS")):
        shown = ", ".join(f"{column} BIGINT" for column in columns.split())
        session.sql(f"CREATE STREAM {name} ({shown}, ts TIMESTAMP) TIMESTAMP BY ts ORDERED {ets} WITH (connector = 'list')")
    windows = ", ".join(f"{name} [RANGE 10 SECONDS]" for name in "ABCD")
    session.sql(f"INSERT INTO Out SELECT A.k FROM {windows} WHERE A.k = B.k AND A.x = C.x AND A.y = D.y")
    live = ms.testing.Live(session, ManualClock(START))
    for name, time, *values in (("B", 0, 7), ("C", 0, 1), ("D", 0, 1), ("A", 1, 1, 2, 1), ("C", 8, 1), ("A", 9, 1, 1, 2), ("C", 12, 9)):
        live.clock.advance(max(0, START + 1_000_000 * time - live.clock.now()))
        live.push(name, [(*values, START + 1_000_000 * time)])
    assert sum(len(sleepers) for join in joins(live) for sleepers in join.asleep) == 2
    for _ in range(3):
        live.advance("1000 seconds")
    assert live.state_rows == 0


@pytest.mark.parametrize("column", ["A.ts", "B.ts"])
def test_silent_streams_are_asked_also_where_another_time_is_compared(column: str) -> None:
    """A tuple of A sleeps for want of C, which is compared with the time of B."""
    session = ms.Session("local")
    session.sql("SET feedback.trial = 0; CREATE SINK Out WITH (connector = 'memory')")
    for name, columns in {"A": "k BIGINT, x BIGINT", "B": "k BIGINT", "C": "x BIGINT"}.items():
        declared = f"CREATE STREAM {name} ({columns}, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW 1 SECOND"
        session.sql(f"{declared} WITH (connector = 'list')")
    pairs = f"(SELECT A.x AS x, {column} AS ts FROM A [RANGE 10 SECONDS], B [RANGE 10 SECONDS] WHERE A.k = B.k) AS p"
    session.sql(f"INSERT INTO Out SELECT p.x AS x FROM {pairs}, C WHERE p.x = C.x AND C.ts BETWEEN p.ts AND p.ts + INTERVAL 10 SECONDS")
    live = ms.testing.Live(session, ManualClock(START))
    live.push("C", [(1, START)])
    live.push("B", [(7, START)])
    live.push("A", [(7, 5, START)])
    assert sum(len(sleepers) for join in joins(live) for sleepers in join.asleep) == 1
    for _ in range(3):
        live.advance("1000 seconds")
    assert live.state_rows == 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("names", ["ABC", "ABCD", "ABCDE", "ABCDEF"])
@settings(max_examples=10 * EXAMPLES)
@given(seed=st.integers(0, 2**63), trial=st.sampled_from([0, 0, 1, 3, 20]))
def test_property_thorough(names: str, seed: int, trial: int) -> None:
    test_property_the_answer_is_that_of_a_batch_engine.hypothesis.inner_test(names, trial, seed)  # type: ignore[attr-defined]
