"""The calendar against a list: any times, any order, marks that jump, stand still and go back."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.state.calendar import Calendar

TIMES = st.one_of(
    st.integers(-3, 3),
    st.integers(0, 2000),
    st.integers(1_700_000_000_000_000, 1_700_000_000_200_000),
    st.sampled_from([MIN_TIME, MIN_TIME + 1, MAX_TIME - 1, MAX_TIME, 0, -1, 255, 256, 65535, 65536]),
    st.integers(MIN_TIME, MAX_TIME),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(TIMES, max_size=8)),
        st.tuples(st.just("pop"), TIMES),
        st.tuples(st.just("kill"), st.integers(0, 40)),
        st.tuples(st.just("prolong"), st.lists(st.tuples(st.integers(0, 40), TIMES), max_size=8)),
        st.tuples(st.just("keep"), st.none()),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=300)
@given(STEPS)
def test_pop_gives_what_is_due(steps: list[tuple[str, object]]) -> None:
    calendar, alive = Calendar(), np.zeros(1000, dtype=np.bool_)
    rows: dict[int, int] = {}  # row -> time, alive and not popped
    for action, detail in steps:
        first = len(calendar)
        if action == "add":
            assert isinstance(detail, list)
            calendar.add(np.array(detail, dtype=np.int64))
            alive[first : first + len(detail)] = True
            rows.update({first + i: time for i, time in enumerate(detail)})
        elif action == "pop":
            assert isinstance(detail, int)
            due = [row for row, time in rows.items() if time < detail]
            assert calendar.pop(detail, alive).tolist() == due
            for row in due:
                del rows[row]
                alive[row] = False
        elif action == "kill" and detail in rows:
            del rows[detail]  # type: ignore[arg-type]
            alive[detail] = False
        elif action == "prolong":
            assert isinstance(detail, list)
            longer = [(row, time) for row, time in detail if row in rows]
            calendar.prolong(np.array([row for row, _ in longer], dtype=np.int64), np.array([time for _, time in longer], dtype=np.int64))
            for row, time in longer:
                rows[row] = max(rows[row], time)
        elif action == "keep":
            calendar.keep(np.array(list(rows), dtype=np.int64), len(rows) + 3)
            rows = dict(enumerate(rows.values()))
            alive[:] = False
            alive[: len(rows)] = True
        assert calendar.earliest(alive) == min(rows.values(), default=MAX_TIME)
        assert calendar.latest >= max((time for time in rows.values() if time < MAX_TIME), default=MIN_TIME)


def test_a_mark_that_creeps_through_a_crowd_beside_outliers() -> None:
    """The case that a calendar with one bucket width does badly: each row is still moved a few times only."""
    calendar = Calendar()
    times = np.concatenate([np.arange(50_000), MAX_TIME - 2 ** np.arange(60, dtype=np.int64)])
    calendar.add(times)
    alive = np.ones(len(times), dtype=np.bool_)
    assert sum(len(calendar.pop(mark, alive)) for mark in range(0, 50_001, 7)) == 7 * (50_000 // 7)


def test_an_aim_stays_until_it_is_reached() -> None:
    """Rows that keep coming do not move it, so it is reached some time."""
    calendar, alive = Calendar(), np.ones(100, dtype=np.bool_)
    calendar.add(np.array([5, 7]))
    assert calendar.aim == 7
    calendar.add(np.array([20]))
    assert calendar.aim == 7
    assert calendar.pop(8, alive).tolist() == [0, 1]
    assert calendar.aim == 20
