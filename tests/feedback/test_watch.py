"""When a watch is tried, and when it rests."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from millstream.feedback import watch as watches
from millstream.feedback.nodes import Node, lattice
from millstream.feedback.watch import Watch
from millstream.operators.join_reach import Reach
from millstream.runtime.feedback import LEVELS, watch_number
from tests.feedback.test_paper import Play

SOME = np.arange(1, 101, dtype=np.uint64)


def watching(partners: int, trial: int = 8192) -> Watch:
    """The first so many of `SOME` have a partner, and it is about to be tried."""
    watch = Watch(Node(("x",), ("x",)), 1, trial)
    watch.left = 0
    assert watch.rested(6.0) and not watch.rested(0.5)
    watch.left, watch.resting, watch.pauses = 0, False, 0
    watch.wanted.come(SOME[:partners], np.ones(partners, dtype=np.bool_), np.zeros(partners, dtype=np.int64))
    return watch


def test_where_all_have_partners_nothing_is_tried() -> None:
    watch = watching(partners=100)
    assert not watch.worth(SOME, makes=6.0, tuples=10_000)
    assert watch.resting and watch.asked == 0
    assert 0 < watch.left < 10_000  # it cost little to see that


def test_where_many_have_none_it_is_tried_if_blocks_are_large() -> None:
    assert watching(partners=50).worth(SOME, makes=6.0, tuples=10_000)
    assert not watching(partners=50).worth(SOME, makes=6.0, tuples=100)
    assert not watching(partners=50).worth(SOME, makes=1.0, tuples=10_000)


def test_a_short_trial_shows_by_itself() -> None:
    assert watching(partners=100, trial=20).worth(SOME, makes=6.0, tuples=10)


def test_a_trial_that_loses_is_over_early_and_one_that_earns_goes_on() -> None:
    poor, rich = watching(partners=100), watching(partners=0)
    for watch in (poor, rich):
        for _ in range(4):
            watch.ask(np.tile(SOME, 10), makes=6.0)
    assert poor.room == 0 and poor.poor()
    assert rich.room == 8192 - 4000 and not rich.poor()


def test_a_watch_that_nobody_asks_counts_nothing_until_somebody_does() -> None:
    with patch.object(watches, "UNASKED", 3):
        play = Play(
            {"A": "k x", "B": "k", "C": "x"},
            "SELECT A.name AS a, B.name AS b, C.name AS c FROM A [NOW], B [NOW], C [NOW] WHERE A.k = B.k AND A.x = C.x",
        )
        (watch,) = [watch for join in play.joins for watch in join.watches if watch.node.columns == ("x",)]
        for n in range(6):
            play.push(0, {f"c{n}": (n % 2,)})
        assert watch.dormant and not len(watch.wanted)
        play.push(0, {"b1": (1,)})
        assert play.push(0, {"a1": (1, 7)}) == ["<suspend, (x=7)> Op2 to Op1"]
        assert not watch.dormant
        for n in range(10, 16):  # somebody sleeps
            play.push(0, {f"c{n}": (2,)})
        assert not watch.dormant
        assert play.push(0, {"a2": (1, 0)}) == []
        assert play.push(0, {"c7": (7,)}) == ["<resume, (x=7)> Op2 to Op1"]
        assert play.results() == {"a1b1c7", "a2b1c0", "a2b1c2", "a2b1c4"}


def test_pairs_are_not_asked_about_while_somebody_is_woken_and_nothing_is_counted() -> None:
    """Also where a table is asked about the same pairs: who wakes a1 is not counted yet, so that a1b1 would not be needed."""
    query = """SELECT q.a AS a, q.b AS b, q.c AS c FROM (SELECT A.name AS a, B.name AS b, C.name AS c, A.u AS u, B.v AS v
        FROM A [RANGE 1 HOUR], B [RANGE 1 HOUR], C [RANGE 1 HOUR] WHERE A.k = B.k AND A.x = C.x AND B.y = C.y) AS q
        JOIN R ON q.u = R.u AND q.v = R.v"""
    tree = "SET join.tree = '((A B) C)';"
    with patch.object(watches, "UNASKED", 3):
        play = Play({"A": "k x u", "B": "k y v", "C": "x y"}, query, tree, table={"u": [1], "v": [1]})
        assert any(join.refused and join.marks is not None for join in play.joins)
        play.push(0, {"c0": (9, 7)})
        play.push(0, {"b1": (1, 7, 1)})
        play.push(0, {"a1": (1, 5, 1)})
        for n in range(1, 20):
            play.push(1, {f"c{n}": (1000, 1000)})
        assert [watch.dormant for join in play.joins for watch in join.watches if watch.node.level == 2] == [True]
        play.push(2, {"c20": (5, 7)})
        assert play.results() == {"a1b1c20"}


def test_each_watch_has_a_number_of_its_own_however_many_components_there_are() -> None:
    nodes = list(lattice({(f"c{n}", f"p{n}"): n for n in range(11)}, LEVELS))
    numbers = {watch_number(operator, place) for operator in range(3) for place in range(len(nodes))}
    assert len(numbers) == 3 * len(nodes) == 3 * 67


def test_a_join_keeps_its_own_progress_where_what_is_waited_for_cannot_be_learned() -> None:
    play = Play(
        {"A": "k x", "B": "k", "C": "x"},
        "SELECT A.name AS a, B.name AS b, C.name AS c FROM A [NOW], B [NOW], C [NOW] WHERE A.k = B.k AND A.x = C.x",
    )
    (join,) = [join for join in play.joins if join.fed is not None]
    before = join.progress
    with patch.object(Reach, "needed", side_effect=ValueError), pytest.raises(ValueError):
        join.waits.learn()
    assert join.progress == before
