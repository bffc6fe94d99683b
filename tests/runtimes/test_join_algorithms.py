"""The three physical joins keep different state, tell different things, and give one answer."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.core.punctuation import Punctuation
from millstream.errors import PlanProblem
from millstream.operators.contract import Output
from millstream.operators.running_join import RunningJoin
from millstream.state.group_table import GroupTable
from millstream.state.rings import Rings


def streams(names: str) -> str:
    return "".join(
        f"""CREATE STREAM {name} (k BIGINT, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts ORDERED PUNCTUATE ON (k) WHEN closed ETS NONE
            WITH (connector = 'list'); """
        for name in names
    )


STREAMS = streams("AB")
SINK = "CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out "
PAIRS = "SELECT A.k AS k, A.ts AS a, B.ts AS b FROM A [RANGE 10 SECONDS] AS A, B [RANGE 10 SECONDS] AS B WHERE A.k = B.k"
COUNTS = PAIRS.replace("A.k AS k, A.ts AS a, B.ts AS b", "A.k AS k, count(*) AS n") + " GROUP BY A.k"


def at(second: int) -> str:
    return f"2026-01-01 12:00:{second:02d}"


def live(algorithm: str, query: str) -> ms.testing.Live:
    session = ms.Session("local")
    session.sql(f"SET join.algorithm = '{algorithm}'; {STREAMS} {SINK} {query}")
    return ms.testing.Live(session)


def push(run: ms.testing.Live, *rows: tuple[str, int, int, bool]) -> None:
    for stream, k, second, closed in rows:
        run.push(stream, [(k, closed, at(second))])


KEPT = {"window": [2, 3, 3, 1], "punctuated": [2, 1, 1, 2], "punctuated-window": [2, 1, 1, 1]}


@pytest.mark.parametrize(("algorithm", "kept"), KEPT.items())
def test_what_lets_go(algorithm: str, kept: list[int]) -> None:
    run = live(algorithm, PAIRS)
    seen = []
    push(run, ("A", 1, 0, False), ("B", 1, 1, False))
    seen.append(run.state_rows)
    push(run, ("A", 1, 2, True), ("B", 1, 3, False))  # no more of A: B's tuple goes, and the next one is not kept
    seen.append(run.state_rows)
    push(run, ("B", 2, 3, True))
    seen.append(run.state_rows)
    push(run, ("B", 3, 20, False), ("A", 5, 20, False), ("A", 5, 21, True))  # time has passed all that was before
    push(run, ("B", 9, 21, True))
    seen.append(run.state_rows - 1)  # A's tuple of value 5
    run.end()
    assert sorted((row["k"], row["b"].second) for row in run.rows()) == [(1, 1), (1, 3)]
    assert seen == kept


@pytest.mark.parametrize("algorithm", ["auto", "punctuated-window"])
def test_a_group_comes_out_the_moment_its_value_is_finished(algorithm: str) -> None:
    run = live(algorithm, COUNTS)
    push(run, ("A", 1, 0, False), ("A", 2, 0, False), ("B", 1, 1, False), ("B", 1, 2, False), ("B", 2, 2, False))
    push(run, ("A", 1, 3, True), ("A", 2, 3, True))
    assert run.rows() == []
    push(run, ("B", 1, 4, True))  # regular: both sides have closed it
    assert [(row["k"], row["n"]) for row in run.rows()] == [(1, 2)]
    push(run, ("B", 3, 11, False))  # early: A has closed 2, and A's last tuple of it leaves the window
    assert [(row["k"], row["n"]) for row in run.rows()] == [(1, 2), (2, 1)]


def test_what_is_still_to_be_told_is_known_after_a_restart() -> None:
    """A journal does not tell which rows belong to finished values."""
    run = live("auto", COUNTS)
    push(run, ("A", 1, 0, False), ("B", 1, 1, False), ("A", 1, 2, True))
    executor = run._run.stage.executor
    (join,) = [o for o in executor.operators.values() if isinstance(o, RunningJoin)]
    assert join.rows[0].tied == 1
    join.rows[0]._rings, join.rows[0].ringed = Rings(), False
    push(run, ("B", 3, 11, False))
    assert [(row["k"], row["n"]) for row in run.rows()] == [(1, 1)]


def test_auto_chooses_by_what_the_streams_declare() -> None:
    def label(text: str) -> str:
        session = ms.Session("local")
        session.sql(text)
        return next(line for line in session.explain("graph").splitlines() if " join" in line)

    plain = STREAMS.replace("PUNCTUATE ON (k) WHEN closed", "")
    assert "inner join on" in label(f"{plain} {SINK} {PAIRS}")
    assert "inner punctuated-window join on" in label(f"{STREAMS} {SINK} {PAIRS}")
    assert "inner punctuated join on" in label(f"{STREAMS} {SINK} {PAIRS.replace(' [RANGE 10 SECONDS]', '')}")
    assert "inner join on" in label(f"SET join.algorithm = 'window'; {STREAMS} {SINK} {PAIRS}")


def test_a_promise_behind_the_end_of_an_input() -> None:
    """Over arcs one may come so: the end is among the tuples, and the promise is not."""
    times = "A.ts < B.ts AND B.ts < A.ts + INTERVAL 5 SECONDS"
    run = live("auto", f"SELECT A.k AS k FROM A, B [RANGE 10 SECONDS] AS B WHERE A.k = B.k AND {times}")
    (join,) = [o for o in run._run.stage.executor.operators.values() if isinstance(o, RunningJoin)]
    out = Output()
    join._punctuate(0, Punctuation.end(), out)
    join._punctuate(0, Punctuation.linear(join.config.bands[0].left, 7), out)
    assert join._right_bound() > 7


@pytest.mark.parametrize("window", ["", " [RANGE 1 HOUR]"])
@pytest.mark.parametrize("condition", ["A.k = B.k AND A.k = C.k AND A.k = D.k", "A.k = B.k AND B.k = C.k AND C.k = D.k"])
def test_a_join_of_four_lets_go_and_tells(condition: str, window: str) -> None:
    """Whichever stream closes a value last: then nothing of it is left in any of the joins, and its group is out."""
    session = ms.Session("local")
    sources = ", ".join(f"{name}{window} AS {name}" for name in "ABCD")
    session.sql(f"{streams('ABCD')} {SINK} SELECT A.k AS k, count(*) AS n FROM {sources} WHERE {condition} GROUP BY A.k")
    run = ms.testing.Live(session)
    for k, order in enumerate(("ABCD", "DCBA", "BDAC", "CADB")):
        for name in "ABCD":
            push(run, (name, k, k, False), (name, k, k, False))
        kept = [run.state_rows]
        for name in order:
            assert len(run.rows()) == k
            push(run, (name, k, k, True))
            kept.append(run.state_rows)
        assert kept[0] > 8 and kept[-1] == 0 and kept == sorted(kept, reverse=True)
        assert [(row["k"], row["n"]) for row in run.rows()[k:]] == [(k, 2**4)]


@pytest.mark.parametrize("window", ["", " [RANGE 1 HOUR]"])
@pytest.mark.parametrize("kind", ["STRING", "BIGINT"])
def test_values_that_both_sides_have_closed_are_forgotten(kind: str, window: str) -> None:
    """What a join remembers follows the open values, whether they are neighbours or not."""
    session = ms.Session("local")
    query = f"SELECT A.k AS k, count(*) AS n FROM A{window} AS A, B{window} AS B WHERE A.k = B.k GROUP BY A.k"
    session.sql(f"{STREAMS.replace('BIGINT', kind)} {SINK} {query}")
    run = ms.testing.Live(session)
    (join,) = [o for o in run._run.stage.executor.operators.values() if isinstance(o, RunningJoin)]
    sizes = []
    for first in range(0, 20_000, 1000):
        keys = [37 * number if kind == "BIGINT" else f"auction {number}" for number in range(first, first + 1000)]
        for name in "AB":
            run.push(name, [(k, closed, at(1)) for k in keys for closed in (False, True)])
        run.push("A", [(k, True, at(1)) for k in keys])  # once more, which nobody needs to hear
        sizes.append(join.registers.nbytes)
    assert [row["n"] for row in run.rows()] == [1] * 20_000
    assert run.state_rows == 0
    assert sizes[-1] < 2 * sizes[1]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, closed, count(*) AS n FROM A GROUP BY k, closed",
        "SELECT k, count(*) AS n FROM A [RANGE 1 HOUR] GROUP BY k",
        "SELECT DISTINCT k, closed FROM A",
    ],
)
def test_finished_values_are_found_without_a_look_at_all_groups(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ms.Session("local")
    session.sql(f"{streams('A')} {SINK} {query}")
    run = ms.testing.Live(session)
    run.push("A", [(k, False, at(0)) for k in range(100)])
    monkeypatch.setattr(GroupTable, "alive", lambda self: pytest.fail("looked at all groups"))
    run.push("A", [(7, True, at(1)), (70, True, at(1))])
    assert run.state_rows == 98


def live_pairs() -> ms.testing.Live:
    """Two columns of P are compared with one of A."""
    session = ms.Session("local")
    pairs = """CREATE STREAM P (i BIGINT, j BIGINT, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
        PUNCTUATE ON (i, j) WHEN closed ETS NONE WITH (connector = 'list'); """
    session.sql(f"{streams('A')} {pairs} {SINK} SELECT A.k AS k FROM A, P WHERE A.k = P.i AND A.k = P.j")
    run = ms.testing.Live(session)
    return run


def test_a_column_that_stands_twice_among_the_keys() -> None:
    """That no (1, 2) will come says nothing about 2."""
    run = live_pairs()
    push(run, ("A", 2, 0, False))
    for closed in ([(1, 2)], [(2, 1)], [(2, 3), (3, 2)]):
        run.push("P", [(i, j, True, at(1)) for i, j in closed])
    run.push("P", [(2, 2, False, at(2))])
    assert run.rows() == [{"k": 2}]
    run.push("P", [(2, 2, True, at(3))])
    assert run.state_rows == 1  # P's tuple waits for A to close it
    push(run, ("A", 2, 4, True))
    assert run.state_rows == 0


@pytest.mark.parametrize("on", ["(k) WHEN closed", "(k <= k) WHEN closed", "(k IN (k, k)) WHEN closed"])
@pytest.mark.parametrize("kinds", [("INT", "BIGINT"), ("BIGINT", "SMALLINT"), ("INT", "DOUBLE"), ("INT", "DECIMAL(12,2)")])
@pytest.mark.parametrize("grouped", "AB")
def test_keys_of_different_types(kinds: tuple[str, str], on: str, grouped: str) -> None:
    """Promises follow a cast that loses nothing, there and back."""
    if "<=" in on and kinds[1][:3] in ("DOU", "DEC"):
        return  # these have no ranges
    declared = "".join(streams(name).replace("BIGINT", kind).replace("(k) WHEN closed", on) for name, kind in zip("AB", kinds, strict=True))
    session = ms.Session("local")
    session.sql(f"{declared} {SINK} SELECT {grouped}.k AS k, count(*) AS n FROM A, B WHERE A.k = B.k GROUP BY {grouped}.k")
    run = ms.testing.Live(session)
    for k in (1, 2, 300):
        push(run, ("A", k, 0, False), ("B", k, 0, False), ("B", k, 0, False))
        assert run.state_rows == 4
        push(run, ("A", k, 1, True), ("B", k, 1, True))
        assert run.state_rows == 0
        assert [row["n"] for row in run.rows()][-1:] == [2]
    assert len(run.rows()) == 3


def test_a_cast_that_loses_something_carries_no_promise() -> None:
    session = ms.Session("local")
    with pytest.raises(PlanProblem, match="could never be purged"):
        session.sql(f"{streams('A')} {streams('B').replace('BIGINT', 'DOUBLE')} {SINK} SELECT A.k AS k FROM A, B WHERE A.k = B.k")
        session.explain("graph")


def test_pairs_of_which_the_other_side_has_one_column() -> None:
    """Of a list of pairs only (2, 2) says something of A's k."""
    run = live_pairs()
    push(run, ("A", 1, 0, False), ("A", 2, 0, False))
    run.push("P", [(1, 2, True, at(1)), (2, 2, True, at(1)), (2, 1, True, at(1))])
    assert run.state_rows == 1
    run.push("P", [(1, 1, False, at(2))])
    assert run.rows() == [{"k": 1}]


def test_an_algorithm_that_would_keep_everything_is_not_taken() -> None:
    def label(algorithm: str, declared: str, window: str) -> str:
        session = ms.Session("local")
        session.sql(f"SET join.algorithm = '{algorithm}'; {declared} {SINK} {PAIRS.replace(' [RANGE 10 SECONDS]', window)}")
        return next(line for line in session.explain("graph").splitlines() if " join" in line)

    plain = STREAMS.replace("PUNCTUATE ON (k) WHEN closed", "")
    assert "inner punctuated join on" in label("window", STREAMS, "")
    assert "inner join on" in label("punctuated", plain, " [RANGE 1 HOUR]")
    assert "inner join on" in label("window", STREAMS, " [RANGE 1 HOUR]")
    assert "inner punctuated join on" in label("punctuated", STREAMS, " [RANGE 1 HOUR]")
