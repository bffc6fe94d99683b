"""The examples of paper 003, message by message.

Sub-tuples are asked about before they are joined, not after their first result: so nobody makes a1b1 in vain either.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import millstream as ms
from millstream.feedback.messages import Message
from millstream.operators.join_feedback import JoinFeedback

STREAM = "CREATE STREAM {name} ({columns}, name STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED {ets} WITH (connector = 'list');"

Table = dict[str, list[int | None]]


class Play:
    """A query that takes tuples one at a time, and tells what happened."""

    def __init__(
        self, streams: dict[str, str], query: str, settings: str = "", *, table: Table | None = None, ets: str = "ETS NONE"
    ) -> None:
        session = ms.Session("local")
        if table is not None:
            session.add_table("R", pa.table({name: pa.array(values, pa.int64()) for name, values in table.items()}))
        session.sql("SET feedback.trial = 0;" + settings)
        for name, columns in streams.items():
            session.sql(STREAM.format(name=name, columns=", ".join(f"{c} BIGINT" for c in columns.split()), ets=ets))
        session.sql(f"CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out {query}")
        self.live = ms.testing.Live(session)
        self.messages: list[Message] = []
        operators = self.live._run.stage.executor.operators
        self.joins: list[JoinFeedback] = [o.feedback for o in operators.values() if o.feedback is not None]
        for join in self.joins:
            join.listener = self.messages.append
        self.seen = 0

    def push(self, time: int, tuples: dict[str, tuple[int, ...]]) -> list[str]:
        """Tuples of one time, by name: the messages they lead to."""
        self.messages.clear()
        for name, values in tuples.items():
            self.live.push(name[0].upper(), [(*values, name, f"2026-01-01 00:{time // 60:02d}:{time % 60:02d}")])
        numbers = {join.number: f"Op{n + 1}" for n, join in enumerate(self.joins)}
        return [
            f"<{m.command}, {' '.join('(' + ', '.join(f'{k}={v}' for k, v in each) + ')' for each in m.values)}> "
            f"{numbers[m.consumer]} to {numbers[m.producer]}"
            for m in self.messages
        ]

    def results(self) -> set[str]:
        """Those that have come out since they were last asked for."""
        rows = self.live.rows()
        fresh, self.seen = rows[self.seen :], len(rows)
        found = {"".join(str(value) for value in row.values()) for row in fresh}
        assert len(found) == len(fresh)
        return found

    def stored(self, join: int, side: int) -> int:
        return len(self.joins[join].rows[side])


THREE = """SELECT A.name AS a, B.name AS b, C.name AS c
FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], C [RANGE 5 MINUTES] WHERE A.x = B.x AND A.y = C.y"""


@pytest.fixture
def table_one() -> Play:
    """Figure 1, with a tuple of C that matches nothing, or the empty sub-tuple would be the one that nobody needs."""
    play = Play({"A": "x y", "B": "x", "C": "y"}, THREE)
    assert play.push(0, {"c0": (7,)}) == []
    return play


def test_table_i_and_its_continuation(table_one: Play) -> None:
    play = table_one
    assert play.push(0, {"b1": (1,), "b2": (1,), "b3": (1,)}) == []
    assert play.push(1, {"a1": (1, 100)}) == ["<suspend, (y=100)> Op2 to Op1"]
    assert play.push(2, {"b4": (1,)}) == []
    assert play.push(3, {"a2": (1, 100)}) == []  # learned from a1
    assert (play.stored(0, 0), play.stored(0, 1), play.stored(1, 0)) == (0, 4, 0)
    assert play.results() == set()
    assert play.push(4, {"c1": (100,)}) == ["<resume, (y=100)> Op2 to Op1"]
    assert play.results() == {f"{a}{b}c1" for a in ("a1", "a2") for b in ("b1", "b2", "b3", "b4")}
    assert (play.stored(0, 0), play.stored(1, 0)) == (2, 8)
    # From now on they are as any other.
    assert play.push(5, {"b5": (1,)}) == []
    assert play.results() == {"a1b5c1", "a2b5c1"}
    assert play.push(6, {"c2": (100,)}) == []
    assert play.results() == {f"{a}{b}c2" for a in ("a1", "a2") for b in ("b1", "b2", "b3", "b4", "b5")}


def test_what_nobody_needed_in_time_is_forgotten(table_one: Play) -> None:
    play = table_one
    play.push(0, {"b1": (1,)})
    play.push(1, {"a1": (1, 100)})
    assert len(play.joins[0].asleep[0]) == 1
    play.push(302, {"c1": (7,)})
    assert len(play.joins[0].asleep[0]) == 0
    assert play.push(303, {"c2": (100,)}) == []
    assert play.results() == set()


def test_a_silent_stream_is_asked_how_far_it_is() -> None:
    """Nobody else waits for it: only what sleeps does, and the memory of it."""
    play = Play({"A": "x y", "B": "x", "C": "y"}, THREE, ets="")
    play.push(0, {"c0": (7,), "b1": (1,)})
    play.push(1, {"a1": (1, 100)})
    assert len(play.joins[0].asleep[0]) == 1
    play.live.advance("4 minutes")
    assert len(play.joins[0].asleep[0]) == 1
    play.live.advance("2 minutes")
    assert play.live.state_rows == 0


def test_an_empty_state_needs_nothing_at_all() -> None:
    """Demand-driven operator execution: the empty sub-tuple suspends both inputs of the producer."""
    play = Play({"A": "x y", "B": "x", "C": "y"}, THREE)
    assert play.push(0, {"b1": (1,)}) == ["<suspend, ()> Op2 to Op1"]
    assert play.push(1, {"a1": (1, 100)}) == []
    assert (play.stored(0, 0), play.stored(0, 1)) == (0, 0)
    assert play.push(2, {"c1": (100,)}) == ["<resume, ()> Op2 to Op1", "<resume, ()> Op2 to Op1"]  # of each input
    assert play.results() == {"a1b1c1"}


def test_figure_9b_what_a_table_does_not_have_is_dropped_for_good() -> None:
    query = "SELECT A.name AS a, B.name AS b FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], R WHERE A.x = B.x AND A.y = R.y"
    play = Play({"A": "x y", "B": "x"}, query, table={"y": [200, 300, None]})
    assert play.push(0, {"b1": (1,)}) == []
    assert play.push(1, {"a1": (1, 100), "a2": (1, 200)}) == []
    assert (play.stored(0, 0), len(play.joins[0].asleep[0])) == (1, 0)
    assert play.results() == {"a2b1"}


FIVE = """SELECT A.name AS a, B.name AS b, C.name AS c, D.name AS d, E.name AS e
FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], C [RANGE 5 MINUTES], D [RANGE 5 MINUTES], E [RANGE 5 MINUTES]
WHERE A.p = B.p AND C.q = D.q AND A.r = C.r AND A.x = E.x AND B.y = E.y AND C.z = E.z AND D.w = E.w"""


def test_figure_5_feedback_goes_past_the_operator_between() -> None:
    """Op1 = A B, Op2 = C D, Op3 = their join, Op4 = with E: who does not match E sleeps where it comes in."""
    streams = {"A": "p r x", "B": "p y", "C": "q r z", "D": "q w", "E": "x y z w"}
    play = Play(streams, FIVE, "SET join.tree = '(((A B) (C D)) E)';")
    assert play.push(0, {"e0": (9, 1, 9, 1)}) == []  # it matches b1 and d1
    assert play.push(0, {"d1": (1, 1)}) == []
    assert play.push(0, {"c1": (1, 1, 1)}) == ["<suspend, (z=1)> Op4 to Op2"]
    assert play.push(0, {"b1": (1, 1)}) == ["<suspend, ()> Op3 to Op1"]  # there is no C D yet
    assert play.push(1, {"a1": (1, 1, 1)}) == []
    assert play.results() == set()
    told = play.push(2, {"e1": (1, 1, 1, 1)})
    assert told[0] == "<resume, (z=1)> Op4 to Op2"
    assert set(told[1:]) == {"<resume, ()> Op3 to Op1"}
    assert play.results() == {"a1b1c1d1e1"}


TWO_PARTS = """SELECT A.name AS a, B.name AS b, C.name AS c
FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], C [RANGE 5 MINUTES] WHERE A.k = B.k AND A.x = C.x AND B.y = C.y"""


@pytest.fixture
def two_parts() -> Play:
    """Op1 = A B, Op2 = with C, where x = 1 and y = 1 have partners, though no common one."""
    play = Play({"A": "k x", "B": "k y", "C": "x y"}, TWO_PARTS, "SET join.tree = '((A B) C)';")
    assert play.push(0, {"c1": (1, 9), "c2": (9, 1)}) == []
    return play


def test_type_ii_pairs_are_not_made_of_parts_that_are_needed_with_others(two_parts: Play) -> None:
    play = two_parts
    assert play.push(1, {"a1": (1, 1)}) == []
    assert play.push(2, {"b1": (1, 1)}) == ["<mark, (x=1, y=1)> Op2 to Op1"]
    assert play.push(3, {"b2": (1, 9)}) == []
    assert play.results() == {"a1b2c1"}
    assert (play.stored(0, 0), play.stored(0, 1), play.stored(1, 0)) == (1, 2, 1)  # of the pairs only a1 b2
    assert play.push(4, {"b3": (1, 1), "a2": (1, 1)}) == []  # learned
    assert (play.stored(1, 0), len(play.joins[0].patterns)) == (2, 1)  # a2 b2
    assert play.results() == {"a2b2c1"}
    assert play.push(5, {"c3": (1, 1)}) == ["<unmark, (x=1, y=1)> Op2 to Op1"]
    assert play.results() == {f"{a}{b}c3" for a in ("a1", "a2") for b in ("b1", "b3")}
    assert (play.stored(1, 0), len(play.joins[0].patterns)) == (6, 0)
    assert play.push(6, {"b4": (1, 1)}) == []
    assert play.results() == {"a1b4c3", "a2b4c3"}


def test_type_ii_of_pairs_that_were_made_before_none_is_made_again(two_parts: Play) -> None:
    """Their partner has gone for some time; those that came meanwhile are the ones that are missing."""
    play = two_parts
    play.push(0, {"c3": (1, 1)})
    play.push(250, {"a1": (1, 1), "b1": (1, 1)})
    assert play.results() == {"a1b1c3"}
    play.push(310, {"a2": (2, 9), "b9": (3, 9), "c4": (1, 9), "c5": (9, 1)})  # c3 has gone
    assert play.push(320, {"b2": (1, 1)}) == ["<mark, (x=1, y=1)> Op2 to Op1"]
    assert play.push(330, {"c6": (1, 1)}) == ["<unmark, (x=1, y=1)> Op2 to Op1"]
    assert play.results() == {"a1b1c6", "a1b2c6"}


def test_type_ii_what_nobody_needed_in_time_is_forgotten(two_parts: Play) -> None:
    play = two_parts
    play.push(1, {"a1": (1, 1), "b1": (1, 1)})
    assert len(play.joins[0].patterns) == 1
    play.push(350, {"c3": (7, 7)})
    assert len(play.joins[0].patterns) == 0
    assert play.push(351, {"c4": (1, 1)}) == []
    assert play.results() == set()


def test_type_ii_a_silent_stream_is_asked_how_far_it_is() -> None:
    play = Play({"A": "k x", "B": "k y", "C": "x y"}, TWO_PARTS, "SET join.tree = '((A B) C)';", ets="")
    play.push(0, {"c1": (1, 9), "c2": (9, 1), "a1": (1, 1), "b1": (1, 1)})
    assert len(play.joins[0].patterns) == 1
    play.live.advance("4 minutes")
    assert len(play.joins[0].patterns) == 1
    play.live.advance("2 minutes")
    assert play.live.state_rows == 0


def test_figure_5_type_ii_past_the_operator_between() -> None:
    """Op4 has no partner for a1 and c1 together, so Op3 does not join what Op1 and Op2 make of them; with others it does."""
    streams = {"A": "p r x", "B": "p y", "C": "q r z", "D": "q w", "E": "x y z w"}
    query = FIVE.replace("AND B.y = E.y", "").replace("AND D.w = E.w", "")
    play = Play(streams, query, "SET join.tree = '(((A B) (C D)) E)';")
    play.push(0, {"e1": (1, 0, 9, 0), "e2": (9, 0, 1, 0)})
    play.push(0, {"d1": (1, 1), "c1": (1, 1, 1), "b1": (1, 1)})
    assert play.push(1, {"a1": (1, 1, 1)}) == ["<mark, (x=1, z=1)> Op4 to Op3"]
    assert play.push(2, {"c2": (1, 1, 9)}) == []
    assert play.results() == {"a1b1c2d1e1"}
    assert play.push(3, {"e3": (1, 0, 1, 0)}) == ["<unmark, (x=1, z=1)> Op4 to Op3"]
    assert play.results() == {"a1b1c1d1e3"}


def test_type_ii_pairs_that_a_table_does_not_have_are_never_made() -> None:
    query = "SELECT A.name AS a, B.name AS b FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], R WHERE A.k = B.k AND A.x = R.x AND B.y = R.y"
    play = Play({"A": "k x", "B": "k y"}, query, table={"x": [1, 2], "y": [2, 1]})
    play.push(0, {"a1": (1, 1), "b1": (1, 1), "b2": (1, 2), "a2": (1, 2)})
    assert play.joins[0].work.made == 2
    assert play.results() == {"a1b2", "a2b1"}
