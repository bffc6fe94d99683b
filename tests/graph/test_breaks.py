"""Break points: chosen along the lower envelope of a path's progress, and memory falls faster by them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.graph.breaks import LEAST, fragments
from millstream.graph.execution import Execution
from tests.progress.live import Live

STEPS = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0, 2.0]), st.sampled_from([0.0, 1.0, 3.0, 20.0])), min_size=1, max_size=7)


def progress(steps: list[tuple[float, float]], leaves: bool) -> list[tuple[float, float]]:
    """(cost so far, size that is left) after each operator, for one tuple."""
    points, left, spent = [(0.0, 1.0)], 1.0, 0.0
    for number, (selectivity, cost) in enumerate(steps):
        spent += left * max(cost, LEAST)
        left *= selectivity
        points.append((spent, 0.0 if leaves and number == len(steps) - 1 else left))
    return points


@given(STEPS, st.booleans())
def test_each_fragment_frees_memory_faster_than_any_other_that_begins_where_it_does(steps: list[tuple[float, float]], leaves: bool) -> None:
    parts = fragments(range(len(steps)), lambda n: steps[n][0], lambda n: steps[n][1], leaves=leaves)
    assert [n for part in parts for n in part.operators] == list(range(len(steps)))
    for part in parts:
        first, last = part.operators[0], part.operators[-1]
        points = progress(steps[first:], leaves)
        slopes = [(1.0 - left) / spent if spent else 0.0 for spent, left in points[1:]]
        assert part.slope == pytest.approx(max(slopes)) == pytest.approx(slopes[last - first])


def test_a_filter_that_does_little_is_joined_to_one_that_does_much() -> None:
    selectivity, cost = {0: 0.9, 1: 0.1, 2: 1.0}.__getitem__, {0: 1.0, 1: 1.0, 2: 50.0}.__getitem__
    first, second = fragments([0, 1, 2], selectivity, cost, leaves=True)
    assert (first.operators, second.operators) == ((0, 1), (2,)) and first.slope > second.slope


def queued(breaks: str) -> tuple[float, list[int]]:
    """Tuples in buffers, over the time that a burst takes through a cheap filter and a dear union; and what comes out."""
    query = "SELECT k FROM (SELECT k FROM A WHERE k % 10 = 0 UNION ALL SELECT k FROM B) AS u WHERE k >= 0"
    streams = "".join(f"CREATE STREAM {name} (k BIGINT) TIMESTAMP LATENT;" for name in "AB")
    execution = Execution(limit=1, auto=breaks == "auto")
    live = Live(streams, query, execution=execution)
    executor = live.run.stage.executor
    executor.book.now = live.clock.now
    vertices = executor.network.vertices.values()
    costs = {v.number: 100 if "%" in v.config.label else 1000 if "union" in v.config.label else 10 for v in vertices}
    area: list[tuple[int, int]] = []

    def spend(number: int, tuples: int, _: int) -> None:
        live.clock.advance(costs[number] * tuples)
        area.append((live.clock.now(), executor.book.rows))

    executor.on_step = spend
    seen: list[int] = []
    live.run.stage.on_result = lambda sink, block: seen.extend(block.batch.column("k").to_pylist())
    live.push("A", *((k,) for k in range(2000)))
    while live.run.step():
        pass
    held = sum((later - now) * rows for (now, rows), (later, _) in pairwise(area))
    return held / live.clock.now(), sorted(seen)


def test_memory_falls_faster_with_chosen_break_points() -> None:
    deep, everything = queued("none")
    chosen, same = queued("auto")
    assert everything == same == list(range(0, 2000, 10))
    assert chosen < 0.8 * deep
