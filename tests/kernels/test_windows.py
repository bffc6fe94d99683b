"""Windows of a timestamp against the definition: w covers [w * slide, w * slide + range)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.kernels.windows import expand_windows

TIMES = st.lists(st.one_of(st.integers(-50, 50), st.integers(-(2**62), 2**62)), max_size=20)


@given(TIMES, st.integers(1, 12), st.integers(1, 12))
def test_every_window_that_covers_the_time(times: list[int], width: int, slide: int) -> None:
    positions, wids = expand_windows(np.array(times, dtype=np.int64), width, slide)
    expected = [
        (i, w)
        for i, time in enumerate(times)
        for w in range((time - width) // slide - 1, time // slide + 2)
        if w * slide <= time < w * slide + width
    ]
    assert list(zip(positions.tolist(), wids.tolist(), strict=True)) == expected


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="positive"):
        expand_windows(np.zeros(1, dtype=np.int64), 0, 1)
