"""Who is wanted, against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.feedback.wanted import Wanted

hashes = st.lists(st.integers(0, 40).map(lambda n: (n * 0x9E3779B97F4A7C15) % 2**64), max_size=30)
steps = st.lists(st.tuples(st.sampled_from(["come", "move", "ask"]), hashes, st.integers(-20, 60)), max_size=30)


@given(steps=steps)
def test_property_wanted_knows_who_has_a_partner_and_remembers_who_sleeps(steps: list[tuple[str, list[int], int]]) -> None:
    """Partners that come together expire one after the other."""
    wanted, until, asleep, bound = Wanted(), dict[int, int](), set[int](), MIN_TIME
    for what, values, time in steps:
        array = np.array(values, dtype=np.uint64)
        if what == "come":
            times = time + np.arange(len(values)) % 5
            woken = wanted.come(array, np.ones(len(array), dtype=np.bool_), times)
            assert sorted(woken.tolist()) == sorted(asleep & set(values))
            asleep -= set(values)
            for value, expiry in zip(values, times.tolist(), strict=True):
                until[value] = max(until.get(value, expiry), expiry)
        elif what == "move":
            bound = max(bound, time)
            wanted.move(bound)
        else:
            there = [value in until and until[value] >= bound for value in values]
            assert wanted.there(array).tolist() == there
            assert wanted.ask(array).tolist() == there
            asleep |= {value for value, found in zip(values, there, strict=True) if not found}
            assert wanted.sleeping(array).tolist() == [value in asleep for value in values]
        assert wanted.asleep == len(asleep)


def test_rows_that_are_not_valid_are_nobodys_partners() -> None:
    wanted = Wanted()
    wanted.come(np.array([1, 2], dtype=np.uint64), np.array([True, False]), np.zeros(2, dtype=np.int64))
    assert wanted.ask(np.array([1, 2], dtype=np.uint64)).tolist() == [True, False]


def test_partners_for_ever_stay_and_the_ends_of_time_are_times() -> None:
    wanted, one = Wanted(), np.array([1], dtype=np.uint64)
    assert wanted.ask(one).tolist() == [False]
    wanted.come(one, np.array([True]), np.array([MAX_TIME]))
    wanted.move(MAX_TIME)
    assert wanted.there(np.array([1, 2], dtype=np.uint64)).tolist() == [True, False]


def test_memory_of_values_that_have_gone_comes_back() -> None:
    wanted = Wanted()
    for n in range(200):
        array = np.arange(1000 * n, 1000 * n + 1000, dtype=np.uint64)
        wanted.come(array, np.ones(1000, dtype=np.bool_), np.full(1000, n))
        wanted.move(n)
    assert wanted.nbytes < 1_000_000
