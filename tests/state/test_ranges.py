"""Ranges against a set of integers."""

from __future__ import annotations

import numpy as np
import pytest
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


@given(st.lists(st.tuples(st.booleans(), st.frozensets(st.integers(0, 60), max_size=6)), max_size=30), st.integers(0, 4))
def test_property_what_nobody_asks_for_may_go(steps: list[tuple[bool, frozenset[int]]], least: int) -> None:
    """Of the values that were not taken away none is lost; those that never came are not there."""
    kept, came, left = Ranges(), set[int](), set[int]()
    before, ranges.LEAST = ranges.LEAST, least
    try:
        for grows, values in steps:
            array = np.array(sorted(values), dtype=np.int64)
            if grows:
                kept.grow(runs(array))
                came |= values
                left |= values
            else:
                kept.shrink(array)
                left -= values
            assert set(np.flatnonzero(kept.holds(np.arange(100)))) <= came
        fresh = set(range(70, 90))
        kept.grow(runs(np.array(sorted(fresh))))
        assert set(np.flatnonzero(kept.holds(np.arange(100)))) <= came | fresh
    finally:
        ranges.LEAST = before
    again = {value for grows, values in steps if not grows for value in values}  # these may be gone though they came back
    assert left - again <= set(np.flatnonzero(kept.holds(np.arange(100))))


@pytest.mark.parametrize("stride", [1, 7])
def test_values_that_come_and_go_need_little(stride: int) -> None:
    """A window of a thousand values over a million, whether they are neighbours or not."""
    kept, most = Ranges(), 0
    for start in range(0, 200_000, 1000):
        kept.grow(runs(stride * np.arange(start, start + 1000)))
        if start:
            kept.shrink(stride * np.arange(start - 1000, start))
        most = max(most, kept.nbytes)
    assert most < 100_000
    assert kept.holds(stride * np.arange(199_000, 200_000)).all()


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
