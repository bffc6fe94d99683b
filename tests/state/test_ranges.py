"""Ranges against a set of integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.state import ranges
from millstream.state.ranges import Ranges, runs

ENDS = st.tuples(st.integers(0, 60), st.integers(0, 8))


@given(st.lists(st.lists(ENDS, max_size=5), max_size=20), st.integers(0, 8))
def test_property_a_set_of_integers(batches: list[list[tuple[int, int]]], least: int) -> None:
    kept, wanted = Ranges(), set[int]()
    before, ranges.LEAST = ranges.LEAST, least
    try:
        for batch in batches:
            kept.grow((np.array([a for a, _ in batch], dtype=np.int64), np.array([a + n for a, n in batch], dtype=np.int64)))
            wanted |= {value for a, n in batch for value in range(a, a + n + 1)}
            assert set(np.flatnonzero(kept.holds(np.arange(100)))) == wanted
    finally:
        ranges.LEAST = before
    firsts, lasts = kept.ranges
    assert (firsts[1:] > lasts[:-1] + 1).all()
    assert sorted(value for a, b in zip(firsts, lasts, strict=True) for value in range(a, b + 1)) == sorted(wanted)


def test_the_ends_of_the_axis() -> None:
    kept = Ranges()
    kept.grow((np.array([MIN_TIME, MAX_TIME - 1]), np.array([MIN_TIME, MAX_TIME])))
    assert len(kept) == 2
    kept.grow((np.array([MIN_TIME + 1]), np.array([MAX_TIME - 2])))
    assert len(kept) == 1


def test_one_more_value_costs_no_copy_of_all() -> None:
    kept = Ranges()
    kept.grow(runs(np.arange(0, 2_000_000, 2)))
    whole = kept._all[0]
    for value in range(1, 200, 4):
        kept.grow(runs(np.array([value])))
    assert kept._all[0] is whole
    assert kept.holds(np.array([4, 5, 7])).tolist() == [True, True, False]
