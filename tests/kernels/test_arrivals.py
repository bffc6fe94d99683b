"""One-pass looks at what arrives against obvious loops: times, marker rows, and tuples that are promises."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.kernels.arrivals import follow
from millstream.kernels.markers import NEVER, first_cover, follow_keys
from millstream.kernels.verdicts import walk

FIRST, LAST = -100, 100


def naive(times: list[int], mark: int, slack: int | None) -> tuple[int, int, int] | None:
    at = -1
    for i, t in enumerate(times):
        if t < mark or not FIRST <= t <= LAST:
            return None
        if slack is not None and t - slack > mark:
            mark, at = t - slack, i
    return mark, min(times, default=LAST), at


@given(st.lists(st.integers(-110, 110), max_size=12), st.sampled_from([MIN_TIME, -90, 0]), st.sampled_from([None, 0, 5, 50]))
def test_follow(times: list[int], mark: int, slack: int | None) -> None:
    assert follow(np.array(times, dtype=np.int64), mark, slack, FIRST, LAST) == naive(times, mark, slack)


@given(st.lists(st.integers(0, 100), max_size=12), st.sampled_from([0, 5, 50]))
def test_follow_in_order(times: list[int], slack: int) -> None:
    times.sort()
    assert follow(np.array(times, dtype=np.int64), MIN_TIME, slack, FIRST, LAST) == naive(times, MIN_TIME, slack)


@given(st.lists(st.integers(-5, 30), max_size=12), st.lists(st.tuples(st.integers(-5, 30), st.integers(0, 9)), max_size=8))
def test_first_cover(values: list[int], ranges: list[tuple[int, int]]) -> None:
    values.sort()
    pairs = [(first, first + length) for first, length in ranges]
    wanted = [next((j for j, (first, last) in enumerate(pairs) if first <= value <= last), NEVER) for value in values]
    firsts, lasts = (np.array([pair[end] for pair in pairs], dtype=np.int64) for end in (0, 1))
    assert first_cover(np.array(values, dtype=np.int64), firsts, lasts).tolist() == wanted


@given(st.lists(st.tuples(st.booleans(), st.integers(-1, 3), st.integers(0, 9)), max_size=20))
def test_follow_keys(rows: list[tuple[bool, int, int]]) -> None:
    """A row is a closer of its group up to its time, or a tuple; group -1 is nobody's."""
    bounds, wanted = {0: 4}, []
    for closes, group, time in rows:
        wanted.append(time < bounds.get(group, MIN_TIME))
        if closes and group >= 0:
            bounds[group] = max(bounds.get(group, MIN_TIME), time)
    closers = [(at, group, time) for at, (closes, group, time) in enumerate(rows) if closes and group >= 0]
    until = np.array([4, MIN_TIME, MIN_TIME, MIN_TIME], dtype=np.int64)
    late = np.zeros(len(rows), dtype=np.bool_)
    at, closed, times = (np.array([c[i] for c in closers], dtype=np.int64) for i in range(3))
    groups, clock = (np.array([row[i] for row in rows], dtype=np.int64) for i in (1, 2))
    follow_keys(groups, clock, at, closed, times, until, late)
    assert late.tolist() == wanted
    assert until.tolist() == [bounds.get(group, MIN_TIME) for group in range(4)]


ROWS = st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 5), st.integers(0, 3), st.booleans(), st.integers(0, 9)), max_size=20)


@given(ROWS, st.integers(-1, 3), st.integers(0, 5))
def test_walk(rows: list[tuple[int, int, int, bool, int]], opened: int, horizon: int) -> None:
    """Two unique keys, of which -1 is none and the first counts for a while, and a cluster."""
    used: dict[tuple[int, int], int] = {}
    over: set[int] = set()
    current, wanted, starts = opened, [], []
    for one, two, cluster, late, time in rows:
        late |= used.get((0, one), -1) >= time or (1, two) in used or (cluster in over and cluster != current)
        wanted.append(late)
        starts.append(not late and cluster != current)
        if not late:
            used |= {key: max(used.get(key, -1), time + horizon) for key in ((0, one), (1, two)) if key[1] >= 0}
            if cluster != current:
                over.add(current)
                current = cluster
    codes = np.array([[row[i] for row in rows] for i in range(3)], dtype=np.int64).reshape(3, len(rows))
    found, begins, now = np.array([row[3] for row in rows], dtype=np.bool_), np.zeros((1, len(rows)), dtype=np.bool_), np.array([opened])
    times = np.array([row[4] for row in rows], dtype=np.int64)
    until = np.array([times + horizon + 1, np.full(len(rows), MAX_TIME)])
    walk(codes, 2, 6, found, now, begins, times, until)
    assert (found.tolist(), begins[0].tolist(), now.tolist()) == (wanted, starts, [current])
