"""Who is wanted, against a dictionary."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millstream.feedback.wanted import Wanted

hashes = st.lists(st.integers(0, 40).map(lambda n: (n * 0x9E3779B97F4A7C15) % 2**64), max_size=30)
steps = st.lists(st.tuples(st.sampled_from(["come", "go", "ask"]), hashes), max_size=30)


@given(steps=steps)
def test_property_wanted_counts_partners_and_remembers_who_sleeps(steps: list[tuple[str, list[int]]]) -> None:
    wanted, there, asleep = Wanted(), Counter[int](), set[int]()
    for what, values in steps:
        array = np.array(values, dtype=np.uint64)
        if what == "come":
            woken = wanted.come(array, np.ones(len(array), dtype=np.bool_))
            assert sorted(woken.tolist()) == sorted(asleep & set(values))
            asleep -= set(values)
            there.update(values)
        elif what == "go":
            gone = list((Counter(values) & there).elements())
            there.subtract(gone)
            wanted.go(np.array(gone, dtype=np.uint64), np.ones(len(gone), dtype=np.bool_))
        else:
            assert wanted.ask(array).tolist() == [there[value] > 0 for value in values]
            asleep |= {value for value in values if not there[value]}
        assert wanted.asleep == len(asleep)


def test_rows_that_are_not_valid_are_nobodys_partners() -> None:
    wanted = Wanted()
    wanted.come(np.array([1, 2], dtype=np.uint64), np.array([True, False]))
    assert wanted.ask(np.array([1, 2], dtype=np.uint64)).tolist() == [True, False]


def test_memory_of_values_that_have_gone_comes_back() -> None:
    wanted = Wanted()
    for n in range(200):
        array = np.arange(1000 * n, 1000 * n + 1000, dtype=np.uint64)
        wanted.come(array, np.ones(1000, dtype=np.bool_))
        wanted.go(array, np.ones(1000, dtype=np.bool_))
    assert wanted.nbytes < 1_000_000
