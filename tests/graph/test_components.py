"""Components against a naive closure, and shares of time by weight."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.graph.components import Components
from millstream.graph.graph import Vertex
from millstream.runtime.local.scheduler import Component, Scheduler


@given(st.lists(st.lists(st.integers(0, 30), max_size=2), max_size=20))
def test_connected_parts(inputs: list[list[int]]) -> None:
    vertices = [Vertex(n, cast(Any, None), tuple(i % n for i in before) if n else ()) for n, before in enumerate(inputs)]
    reached = {v.number: {v.number} for v in vertices}
    for _ in vertices:
        for v in vertices:
            for producer in v.inputs:
                both = reached[v.number] | reached[producer]
                for number in both:
                    reached[number] = both
    found = Components(vertices[:7])
    found.add(vertices[7:])
    assert all(found.of(v.number) == min(reached[v.number]) for v in vertices)


@pytest.mark.parametrize("weights", [(1, 1), (3, 1), (1, 2, 5)])
def test_shares_of_time_follow_the_weights(weights: tuple[int, ...]) -> None:
    parts = [Component([], weight) for weight in weights]
    scheduler = Scheduler(parts)
    for number in range(4000):
        chosen = scheduler.turns()[0]
        scheduler.ran(chosen, 1 + number % 3, [])
    total = sum(part.used for part in parts)
    for part in parts:
        assert part.used / total == pytest.approx(part.weight / sum(weights), abs=0.01)


def test_who_has_slept_gets_its_share_from_now_on_and_not_what_it_missed() -> None:
    busy, sleepy = Component([]), Component([])
    scheduler = Scheduler([busy, sleepy])
    for _ in range(1000):
        scheduler.ran(busy, 1, [sleepy])
    turns = []
    for _ in range(100):
        chosen = scheduler.turns()[0]
        turns.append(chosen)
        scheduler.ran(chosen, 1, [])
    assert 45 <= turns.count(busy) <= 55
