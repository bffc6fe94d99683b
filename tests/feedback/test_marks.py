"""Pairs that are not made: that they are many in random joins, and what happens when two patterns have one hash."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

from millstream.feedback.nodes import Node
from millstream.feedback.sleepers import Sleepers
from millstream.feedback.watch import Watch
from millstream.operators.join_links import Epoch
from millstream.operators.join_marks import PATTERN, Marks, Pattern
from millstream.state.keys import hash_columns, hash_rows
from millstream.state.row_window import RowWindow
from tests.feedback.test_multiway import joins, make, run
from tests.feedback.test_paper import Play


def test_random_joins_leave_pairs_and_make_some_of_them_later() -> None:
    """Or the property tests would say nothing about them."""
    spared = made = 0
    for seed in range(20):
        case = make(random.Random(seed), "ABC")
        case = replace(case, edges=(("A", "B"), ("A", "C"), ("B", "C")))
        answer, _, live = run(case, "SET feedback.trial = 0;", "((A B) C)")
        assert answer == case.expected()
        spared += sum(join.patterns.slept for join in joins(live))
        made += sum(join.patterns.woken for join in joins(live))
    assert spared > 50
    assert 10 < made < spared


def marks_of(rows: list[tuple[int, int]], others: list[tuple[int, int]]) -> Marks:
    """Tuples (k, x) and (k, y), all of them there; pairs are known by x and y."""
    windows = []
    for name, values in (("x", rows), ("y", others)):
        batch = pa.record_batch({"k": pa.array([k for k, _ in values], pa.int64()), name: pa.array([v for _, v in values], pa.int64())})
        window = RowWindow(batch.schema, keys=("k",))
        window.number()
        always = np.zeros(len(values), dtype=np.int64)
        window.insert(batch, hash_rows(batch, ("k",))[0], always, always, always + 100)
        windows.append(window)
    watch = Watch(Node(("x", "y"), ("x", "y"), 2), 1, 0)
    pattern = Pattern(watch, ((0, "x"), (1, "y")))
    join = SimpleNamespace(rows=tuple(windows), patterns=Sleepers(PATTERN, False), epoch=Epoch())
    return Marks(pattern, join, join)  # type: ignore[arg-type]


def hashed(*pairs: tuple[int, int]) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    x, y = (pa.array([pair[side] for pair in pairs], pa.int64()) for side in (0, 1))
    left, right = (hash_columns([column])[0].view(np.int64) for column in (x, y))
    return hash_columns([x, y])[0], (left, right)


def test_a_pattern_whose_hash_another_one_has_is_made() -> None:
    marks = marks_of([(1, 5), (1, 6)], [(1, 7), (1, 8)])
    marks.rows[0]._next_serial = marks.rows[1]._next_serial = 0  # they are about to come
    hashes, parts = hashed((5, 7), (6, 8), (5, 7))
    hashes[1] = hashes[0]
    expiry = np.array([10, 20, 30])
    assert marks.leave(hashes, parts, expiry, 0).tolist() == [False, True, False]
    assert marks.leave(hashes[1:2], (parts[0][1:2], parts[1][1:2]), expiry[1:2], 0).tolist() == [True]  # also when the first one is known
    assert (len(marks.patterns), marks.patterns.slept) == (1, 2)
    marks.rows[0].count_from(2)
    marks.claim(hashes[:1])
    ((left, right),) = marks.claimed()
    assert (left.tolist(), right.tolist()) == ([0], [0])
    assert list(marks.claimed()) == []


def test_what_is_claimed_has_to_be_noted_again() -> None:
    marks = marks_of([(1, 5)], [(1, 7)])
    hashes, parts = hashed((5, 7))
    for _ in range(2):
        assert not marks.leave(hashes, parts, np.array([10]), 0).any()
        assert len(marks.patterns) == 1
        marks.claim(hashes)
        assert len(marks.patterns) == 0
        assert list(marks.claimed()) == []  # both were there before


def test_a_pattern_lasts_as_long_as_its_latest_pair() -> None:
    marks = marks_of([(1, 5)], [(1, 7)])
    hashes, parts = hashed((5, 7))
    for until in (10, 1000, 500):
        marks.leave(hashes, parts, np.array([until]), 0)
    assert marks.patterns.expired(1000) is None
    assert marks.patterns.expired(2000) is not None


def test_of_pairs_that_are_too_old_nothing_is_known() -> None:
    """A younger one of the same values has to be noted."""
    marks = marks_of([(1, 5)], [(1, 7)])
    hashes, parts = hashed((5, 7), (6, 8))
    marks.leave(hashes, parts, np.array([99, 900]), 100)
    assert len(marks.patterns) == 1
    marks.leave(hashes[:1], (parts[0][:1], parts[1][:1]), np.array([101]), 100)
    assert len(marks.patterns) == 2


def test_where_one_side_is_empty_nothing_is_known() -> None:
    marks = marks_of([(1, 5)], [(1, 7)])
    hashes, parts = hashed((5, 7))
    marks.leave(hashes, parts, np.array([10]), 0)
    assert not marks.forget()
    marks.rows[1].discard(np.array([0]))
    assert marks.forget()
    marks.leave(hashes, parts, np.array([10]), 0)
    assert len(marks.patterns) == 1


def test_after_a_restart_arrivals_are_numbered_behind_the_patterns() -> None:
    """Tuples that came and went between two checkpoints leave no number behind; pairs of later ones would count as made."""
    marks = marks_of([(1, 5)] * 7, [(1, 7)])
    hashes, parts = hashed((5, 7))
    marks.leave(hashes, parts, np.array([10]), 0)
    for window in marks.rows:
        window._next_serial = 0
    marks.refresh()
    assert marks.now == 7


def test_a_column_that_is_compared_with_two() -> None:
    """It stands twice in the pattern."""
    query = """SELECT A.name AS a, B.name AS b, C.name AS c FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], C [RANGE 5 MINUTES]
    WHERE A.k = B.k AND A.x = C.x AND A.x = C.z AND B.y = C.y"""
    play = Play({"A": "k x", "B": "k y", "C": "x z y"}, query, "SET join.tree = '((A B) C)';")
    play.push(0, {"c1": (1, 1, 9), "c2": (9, 9, 1), "a1": (1, 1)})
    assert play.push(1, {"b1": (1, 1)}) == ["<mark, (x=1, y=1)> Op2 to Op1"]
    assert play.push(2, {"c3": (1, 1, 1)}) == ["<unmark, (x=1, y=1)> Op2 to Op1"]
    assert play.results() == {"a1b1c3"}
    table = {"x": [1, 2], "z": [1, 2], "y": [1, 1]}
    query = """SELECT A.name AS a, B.name AS b FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], R
    WHERE A.k = B.k AND A.x = R.x AND A.x = R.z AND B.y = R.y"""
    play = Play({"A": "k x", "B": "k y"}, query, table=table)
    play.push(0, {"a1": (1, 1), "b1": (1, 1)})
    assert play.results() == {"a1b1"}
