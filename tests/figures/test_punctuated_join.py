"""The joins of paper 002 over its streams, in small: same answers, less state, more told."""

from __future__ import annotations

import pytest

from millstream.figures.punctuated_join import PW, P, Played, W, play
from millstream.plan.cost import window_join_state

PAIR = ("punct-asc-30-40", "punct-random-30-40")


def of(algorithm: str, windows: tuple[float | None, float | None], patterns: tuple[str, str] = PAIR) -> Played:
    return play(algorithm, patterns, windows, seconds=20.0, seed=3, every=1.0)


def test_state_and_results() -> None:
    both, time = of(PW, (5.0, 5.0), ("punct-asc-100-40",) * 2), of(W, (5.0, 5.0), ("punct-asc-100-40",) * 2)
    assert [s.time for s in both.samples[:3]] == [1.0, 2.0, 3.0]
    assert both.samples[-1].tuples == time.samples[-1].tuples > 1000
    assert both.state_after(5.0) < 0.8 * time.state_after(5.0)
    assert time.state_after(5.0) == pytest.approx(window_join_state(100, 5.0) * 2, rel=0.3)
    assert all(0 < wanted <= 1000 for wanted in both.expected(5.0))


def test_what_is_told() -> None:
    both, values = of(PW, (1.0, 1.0)), of(P, (None, None))
    assert all(a.punctuations >= b.punctuations for a, b in zip(both.samples, values.samples, strict=True))
    assert both.samples[10].punctuations > values.samples[10].punctuations
    one = ("none-15000", "punct-asc-30-40")
    both, values = of(PW, (None, 5.0), one), of(P, (None, 5.0), one)
    assert values.samples[-2].punctuations == 0 < both.samples[-2].punctuations


def test_the_cost_model() -> None:
    assert window_join_state(100, 15) == 1500
    assert window_join_state(100, 15, closed=30, values=40) == 375
    assert window_join_state(100, 15, closed=50, values=40) == 0
