"""The one-pass look at arriving times against the obvious loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.types import MIN_TIME
from millstream.kernels.arrivals import follow

FIRST, LAST = -100, 100


def naive(times: list[int], mark: int, slack: int | None) -> tuple[int, int] | None:
    for t in times:
        if t < mark or not FIRST <= t <= LAST:
            return None
        if slack is not None:
            mark = max(mark, t - slack)
    return mark, min(times, default=LAST)


@given(st.lists(st.integers(-110, 110), max_size=12), st.sampled_from([MIN_TIME, -90, 0]), st.sampled_from([None, 0, 5, 50]))
def test_follow(times: list[int], mark: int, slack: int | None) -> None:
    assert follow(np.array(times, dtype=np.int64), mark, slack, FIRST, LAST) == naive(times, mark, slack)


@given(st.lists(st.integers(0, 100), max_size=12), st.sampled_from([0, 5, 50]))
def test_follow_in_order(times: list[int], slack: int) -> None:
    times.sort()
    assert follow(np.array(times, dtype=np.int64), MIN_TIME, slack, FIRST, LAST) == naive(times, MIN_TIME, slack)
