"""One operator for a join of many streams: no partial results are kept, routes are fixed or found, tuples without partners sleep."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.core.clock import ManualClock
from millstream.feedback import wanted
from millstream.operators.many_join import ManyJoin
from millstream.operators.running_many_join import RunningManyJoin
from millstream.pipeline import Pipeline
from millstream.runtime.status import Status
from millstream.testing import run as run_given
from tests.feedback.test_multiway import EXAMPLES, ONE, START, make, run
from tests.oracle.buckets import Host

SECOND = 1_000_000
THREE = """
CREATE STREAM A (ts TIMESTAMP, k BIGINT, x BIGINT) TIMESTAMP BY ts ETS NONE WITH (connector = 'list');
CREATE STREAM B (ts TIMESTAMP, k INT, y BIGINT) TIMESTAMP BY ts ETS NONE WITH (connector = 'list');
CREATE STREAM C (ts TIMESTAMP, y BIGINT, z BIGINT) TIMESTAMP BY ts ETS NONE WITH (connector = 'list');
CREATE SINK Out WITH (connector = 'memory');
"""


def many(sql: str) -> list[ManyJoin]:
    pipeline = Pipeline()
    pipeline.add_text(sql)
    return [v.config for v in pipeline.graph().vertices if isinstance(v.config, ManyJoin)]


def live(tree: str, where: str, *, more: str = "", windows: tuple[str, str, str] = ("[RANGE 10 SECONDS]",) * 3) -> ms.testing.Live:
    session = ms.Session("local")
    a, b, c = windows
    query = f"INSERT INTO Out SELECT A.x, B.y, C.z FROM A {a}, B {b}, C {c} WHERE {where}"
    session.sql(f"SET feedback.trial = 0; SET join.tree = '{tree}'; {more} {THREE} {query}")
    return ms.testing.Live(session)


def operator(running: ms.testing.Live) -> RunningManyJoin:
    (found,) = [o for o in running._run.stage.executor.operators.values() if isinstance(o, RunningManyJoin)]
    return found


def rows(running: ms.testing.Live) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in running.to_arrow("Out").to_pylist())


def at(seconds: int, *values: int | None) -> tuple[int | None, ...]:
    return (START + SECOND * seconds, *values)


@pytest.mark.parametrize("tree", ONE)
@pytest.mark.parametrize("feedback", ["true", "false"])
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**40))
def test_property_probes_and_nested_loops_answer_alike(tree: str, feedback: str, seed: int) -> None:
    chance = random.Random(seed)
    case = make(chance, "ABCD")
    for index in ("hash", "none"):
        answer, _, running = run(case, f"SET join.feedback = {feedback}; SET feedback.trial = 0; SET join.index = '{index}';", tree)
        assert answer == case.expected(), case
        assert running.state_rows == 0


@pytest.mark.parametrize("tree", ONE)
def test_only_tuples_of_the_streams_are_kept(tree: str) -> None:
    """A tree keeps what its lower join makes."""
    streams = {"A": [at(n, 1, n) for n in range(5)], "B": [at(n, 1, 7) for n in range(5)], "C": [at(n, 9, n) for n in range(5)]}
    kept = []
    for chosen in (tree, "left-deep"):
        running = live(chosen, "A.k = B.k AND B.y = C.y", more="SET join.feedback = false;")
        for name, tuples in streams.items():
            running.push(name, tuples)
        kept.append(running.state_rows)
    assert kept == [15, 40]


@pytest.mark.parametrize("tree", ONE)
def test_a_tuple_sleeps_until_its_partner_comes(tree: str) -> None:
    running = live(tree, "A.k = B.k AND B.y = C.y")
    halves = operator(running).halves
    assert halves is not None
    running.push("A", [at(1, 5, 50), at(1, 6, 60)])
    assert [len(sleepers) for sleepers in halves.asleep] == [2, 0, 0]
    running.push("B", [at(2, 5, 7)])
    assert [len(sleepers) for sleepers in halves.asleep] == [1, 1, 0]
    running.push("C", [at(3, 7, 70)])
    assert [len(sleepers) for sleepers in halves.asleep] == [1, 0, 0]
    assert rows(running) == [(50, 7, 70)]


@pytest.mark.parametrize("tree", ONE)
def test_time_lets_go_of_who_is_awake_and_who_sleeps(tree: str) -> None:
    running = live(tree, "A.k = B.k AND B.y = C.y")
    running.push("A", [at(1, 5, 50), at(1, 6, 60)])
    running.push("B", [at(2, 5, 7)])
    for name, values in (("A", (0, 0)), ("B", (1, 1)), ("C", (2, 2))):
        running.push(name, [at(60, *values)])
        running.end(name)
    assert running.state_rows == 0
    assert rows(running) == []


@pytest.mark.parametrize("tree", ONE)
def test_nulls_meet_nobody_and_what_is_left_is_compared(tree: str) -> None:
    where = "A.k = B.k AND B.y = C.y AND A.x + B.y < C.z AND A.k <> C.z"
    running = live(tree, where)
    running.push("A", [at(1, 5, 1), at(1, None, 1), at(2, 5, 100)])
    running.push("B", [at(1, 5, 7), at(1, 5, None), at(1, None, 7)])
    running.push("C", [at(1, 7, 70), at(1, None, 70), at(2, 7, 8), at(3, 7, 5), at(4, 7, 9)])
    assert rows(running) == [(1, 7, 9), (1, 7, 70)]


@pytest.mark.parametrize("tree", ONE)
def test_two_columns_of_one_stream_that_are_equal_to_one_of_another(tree: str) -> None:
    running = live(tree, "A.k = B.k AND A.k = B.y AND B.y = C.y")
    running.push("B", [at(1, 5, 5), at(1, 5, 6)])
    running.push("A", [at(1, 5, 1)])
    running.push("C", [at(1, 5, 1), at(1, 6, 2)])
    assert rows(running) == [(1, 5, 1)]


def test_routes_go_where_columns_connect() -> None:
    inputs = "A [RANGE 10 SECONDS], B [RANGE 10 SECONDS], C [RANGE 10 SECONDS]"
    query = f"SET join.tree = 'm-join'; {THREE} INSERT INTO Out SELECT A.x, B.y, C.z FROM {inputs} WHERE A.k = B.k AND B.y = C.y"
    (found,) = many(query)
    assert [found.path(start) for start in range(3)] == [(1, 2), (0, 2), (1, 0)]


def test_an_eddy_learns_where_little_comes_out() -> None:
    """A meets B a hundred times and C hardly ever: after a while it visits C first."""
    running = live("eddy", "A.k = B.k AND A.x = C.z", more="SET join.feedback = false;")
    running.push("B", [at(1, 5, n) for n in range(100)])
    running.push("C", [at(1, 0, 1000)])
    for n in range(20):
        running.push("A", [at(1, 5, n)])
    routes = operator(running).routes
    start = frozenset([0])
    assert routes.seen[start, 2].taken > routes.seen[start, 1].taken
    running.push("A", [at(1, 5, 1000)])
    assert len(rows(running)) == 100


def test_what_time_does_not_let_go_stays_a_tree() -> None:
    """Streams that close their keys, without windows."""
    streams = "".join(
        f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, x BIGINT) TIMESTAMP BY ts PUNCTUATE ON (k) WHEN x = 0 WITH (connector = 'list');"
        for name in "ABC"
    )
    sink = "CREATE SINK Out WITH (connector = 'memory');"
    query = "INSERT INTO Out SELECT A.x, B.x AS y, C.x AS z FROM A, B, C WHERE A.k = B.k AND B.k = C.k"
    assert many(f"SET join.tree = 'm-join'; {streams} {sink} {query}") == []


def test_unequal_windows_and_a_chain_of_bands() -> None:
    """A and C are not compared, but what is between them bounds how far they can be apart."""
    where = """A.k = B.k AND B.y = C.y AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 3 SECONDS
               AND C.ts BETWEEN B.ts - INTERVAL 1 SECOND AND B.ts + INTERVAL 2 SECONDS"""
    running = live("m-join", where, windows=("", "", ""))
    (found,) = [v.config for v in running._run.stage.executor.network.vertices.values() if isinstance(v.config, ManyJoin)]
    axes = [str(axis) for axis in found.axes]
    assert (found.reach[axes[0], axes[2]], found.reach[axes[2], axes[0]]) == (5 * SECOND, 1 * SECOND)
    running.push("A", [at(10, 5, 1)])
    running.push("B", [at(n, 5, 7) for n in range(8, 16)])
    running.push("C", [at(n, 7, n) for n in range(6, 20)])
    assert [z for *_, z in rows(running)] == sorted([z for b in (10, 11, 12, 13) for z in range(b - 1, b + 3)])


@pytest.mark.parametrize("tree", ["m-join", "((A B) C)"])
def test_who_slept_and_was_woken_is_counted(tree: str) -> None:
    running = live(tree, "A.k = B.k AND A.x = C.z")
    running.push("C", [at(1, 0, 7)])
    running.push("B", [at(1, 5, 1)])
    running.push("A", [at(1, 5, 8), at(1, 5, 9), at(1, 5, 7)])
    running.push("C", [at(2, 0, 8)])
    executor = running._run.stage.executor
    counted = [(each.slept, each.woken) for each in executor.metrics({}, 1) if each.slept]
    assert sum(slept for slept, _ in counted) >= 2 and sum(woken for _, woken in counted) >= 1
    assert [(each.slept, each.woken) for each in executor.metrics({}, 1) if each.slept] == counted
    assert len(rows(running)) == 2


@pytest.mark.parametrize("tree", ONE)
@pytest.mark.parametrize(("kind", "expected"), [("LEFT", [1, 1, 2]), ("LEFT SEMI", [1]), ("LEFT ANTI", [2])])
def test_joins_that_are_not_inner_stay_what_they_are(tree: str, kind: str, expected: list[int]) -> None:
    session = ms.Session("local")
    join = f"A [RANGE 9 SECONDS] JOIN B [RANGE 9 SECONDS] ON A.k = B.k {kind} JOIN C [RANGE 9 SECONDS] ON A.x = C.z"
    session.sql(f"SET join.tree = '{tree}'; {THREE} INSERT INTO Out SELECT A.x FROM {join}")
    running = ms.testing.Live(session)
    running.push("A", [at(0, 1, 1), at(0, 2, 2)])
    running.push("B", [at(0, 1, 11), at(0, 2, 12)])
    running.push("C", [at(0, 0, 1), at(0, 0, 1)])
    running.end()
    assert [x for (x,) in rows(running)] == expected


@pytest.mark.parametrize("tree", ONE)
def test_a_pair_that_fails_is_told_once(tree: str) -> None:
    """Though it meets every further tuple of C."""
    failing = "CAST(concat(CASE WHEN A.x = 4 THEN 'x' ELSE '1' END, CAST(B.y AS STRING)) AS BIGINT) > 0"
    running = live(tree, f"A.k = B.k AND B.y = C.y AND {failing}")
    running.push("A", [at(1, 5, 4), at(1, 5, 3)])
    running.push("B", [at(1, 5, 7)])
    for n in range(5):
        running.push("C", [at(2, 7, n)])
    assert [letter.kind for letter in running.letters] == ["error"]
    assert [x for x, *_ in rows(running)] == [3] * 5


@pytest.mark.parametrize("tree", ONE)
def test_silent_streams_let_go_what_waits_for_them(tree: str) -> None:
    """Their enabling timestamps are enough, though the stream of the tuples itself makes none."""
    clock = ManualClock(START)
    session = ms.Session("local")
    streams = "".join(f"CREATE STREAM {name} (k BIGINT) TIMESTAMP INTERNAL AS ts WITH (connector = 'list');" for name in "BC")
    first = "CREATE STREAM A (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts ORDERED ETS NONE WITH (connector = 'list');"
    inputs = "A [RANGE 10 SECONDS], B [RANGE 10 SECONDS], C [RANGE 10 SECONDS] WHERE A.k = B.k AND B.k = C.k"
    sink = "CREATE SINK Out WITH (connector = 'memory');"
    session.sql(f"SET join.tree = '{tree}'; {first} {streams} {sink} INSERT INTO Out SELECT A.k FROM {inputs}")
    running = ms.testing.Live(session, clock)
    running.push("A", [(START + n, n) for n in range(100)])
    running.advance("1 minute")
    assert running.state_rows == 0


@pytest.mark.parametrize("tree", ONE)
def test_after_a_restart_whoever_goes_has_been_counted(tree: str) -> None:
    """Sleepers that a heartbeat lets go right after a restart are not taken from counts that they are not in."""
    beating = "TIMESTAMP BY ts PUNCTUATE ON (ts) WHEN beat ETS NONE WITH (connector = 'list')"
    columns = {"A": "k BIGINT", "B": "k BIGINT, y BIGINT", "C": "y BIGINT"}
    streams = "".join(f"CREATE STREAM {name} (ts TIMESTAMP, {more}, beat BOOLEAN) {beating};" for name, more in columns.items())
    inputs = "A [RANGE 10 SECONDS], B [RANGE 10 SECONDS], C [RANGE 10 SECONDS] WHERE A.k = B.k AND B.y = C.y"
    given = {
        "A": [at(11, None, True), at(11, 1, False)],
        "B": [at(0, 1, 7, False), at(5, 1, 7, False)],
        "C": [at(11, None, True), at(11, 7, False)],
    }
    text = f"SET join.tree = '{tree}'; SET feedback.trial = 0; {streams} CREATE SINK Out WITH (connector = 'memory');"

    def hosted(launch: Any, **session: object) -> Status:
        host = Host(launch, 1, restarting := Restarting())
        taken = dict.fromkeys(given, 0)
        for number, name in enumerate("BBACAC"):
            restarting.now = number == 3  # before the second heartbeat, which lets the first B go
            unit = host._units(name)[taken[name]]
            taken[name] += 1
            host.micro_batch(list(host.program.ingest(host._stream(name), unit, 0)))
        for name in given:
            host.micro_batch(list(host.program.mark(host._stream(name), taken[name], None)))
        for writer in host.writers.values():
            writer.close()
        return Status()

    pipeline = Pipeline()
    pipeline.add_text(f"{text} INSERT INTO Out SELECT A.ts AS ta, B.ts AS tb, C.ts AS tc FROM {inputs}")
    with patch("millstream.testing.run.run_spark", hosted):
        found = run_given(pipeline, given, runtime="spark", batch=1, files={name: len(tuples) for name, tuples in given.items()})
    assert len(found.rows("Out")) == 1


class Restarting(random.Random):
    """Says when the host is to forget what it holds in memory."""

    def __init__(self) -> None:
        super().__init__(1)
        self.now = False

    def random(self) -> float:
        return 0.0 if self.now else 1.0


@pytest.mark.parametrize("feedback", ["true", "false"])
@pytest.mark.parametrize("tree", ["((A B) C)", "(A (B C))", *ONE])
def test_what_is_kept_beside_a_silent_stream_does_not_grow(tree: str, feedback: str) -> None:
    """Tuples come closer together than the window is wide, so the latest of them is always one that still waits."""
    session = ms.Session("local")
    streams = "".join(f"CREATE STREAM {name} (k BIGINT, n BIGINT) TIMESTAMP INTERNAL AS ts WITH (connector = 'list');" for name in "ABC")
    inputs = "A [RANGE 10 SECONDS], B [RANGE 10 SECONDS], C [RANGE 10 SECONDS] WHERE A.n = B.n AND A.k = C.k"
    sink = "CREATE SINK Out WITH (connector = 'memory');"
    choice = f"SET join.tree = '{tree}'; SET feedback.trial = 0; SET join.feedback = {feedback};"
    session.sql(f"{choice} {streams} {sink} INSERT INTO Out SELECT A.k FROM {inputs}")
    running = ms.testing.Live(session, ManualClock(START))
    most = 0
    for n in range(100):
        running.advance("1 second")
        running.push("A", [(1, n % 7)])
        running.push("B", [(1, 100 + n % 7)])
        most = max(most, running.state_rows)
    assert most < 60


def test_what_was_kept_for_a_sleeper_goes_with_it() -> None:
    session = ms.Session("local")
    streams = "".join(f"CREATE STREAM {name} (k BIGINT, n BIGINT) TIMESTAMP INTERNAL AS ts WITH (connector = 'list');" for name in "ABC")
    inputs = "A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 HOUR] WHERE A.n = B.n AND A.k = C.k"
    sink = "CREATE SINK Out WITH (connector = 'memory');"
    session.sql(f"SET join.tree = '((A B) C)'; SET feedback.trial = 0; {streams} {sink} INSERT INTO Out SELECT A.k FROM {inputs}")
    running = ms.testing.Live(session, ManualClock(START))
    running.push("C", [(1, 0)])
    running.push("A", [(99, 0)])  # C has no 99
    for n in range(50):
        running.advance("1 second")
        running.push("A", [(1, n)])
        running.push("B", [(0, -1)])
        assert running.state_rows < 10


def test_bands_that_are_very_wide() -> None:
    wide = "INTERVAL 26000000 DAYS"  # one bounds times, two together are further than any distance that does
    bands = f"B.ts BETWEEN A.ts - {wide} AND A.ts + {wide} AND C.ts BETWEEN B.ts - {wide} AND B.ts + {wide}"
    running = live("m-join", f"A.k = B.k AND B.y = C.y AND {bands}", windows=("", "", ""))
    running.push("A", [at(1, 5, 1)])
    running.push("B", [at(1, 5, 7)])
    running.push("C", [at(1, 7, 2)])
    assert rows(running) == [(1, 7, 2)]


@pytest.mark.parametrize("tree", ONE)
def test_a_late_block_wakes_all_that_wait_for_it(tree: str) -> None:
    """Nobody who comes later meets any of it, but those who have waited do: also by what is told after room was made for more."""
    session = ms.Session("local")
    session.sql(f"SET feedback.trial = 0; SET join.tree = '{tree}'; CREATE SINK Out WITH (connector = 'memory')")
    for name in "ABC":
        session.sql(f"CREATE STREAM {name} (k BIGINT, j BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE WITH (connector = 'list')")
    windows = ", ".join(f"{name} [RANGE 10 SECONDS]" for name in "ABC")
    session.sql(f"INSERT INTO Out SELECT A.k AS k FROM {windows} WHERE A.k = B.k AND A.j = C.j AND A.j = C.k")
    live = ms.testing.Live(session)
    live.push("B", [(-5, 0, START)])
    live.push("C", [(0, 0, START)])
    live.push("A", [(k, 0, START) for k in range(500)])
    live.push("C", [(0, -1, START + 100_000_000)])
    live.push("A", [(-1, -1, START + 100_000_000)])
    with patch.object(wanted, "SOME", 16):
        live.push("B", [(499 - k, 0, START) for k in range(2000)])
    live.end()
    assert sorted(row["k"] for row in live.rows()) == list(range(500))
