"""The figures of the papers in small: the same seed gives the same numbers, and the claims hold in their direction."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.figures.drawing import draw
from millstream.figures.ets import every, scenario
from millstream.figures.query_graph import RATES_15, RATES_16, burst_latency, burstiness, exact, nested
from millstream.figures.report import Curve, Picture, level
from millstream.figures.simulation import Costs, Outcome, bursts, poisson

QUICK = (50.0, 0.5)
"""More slow tuples than in the paper, so that a few seconds show some."""


def of(ets: str, seconds: float = 6.0, **options: object) -> Outcome:
    return scenario(ets, seconds=seconds, rates=QUICK, **options)  # type: ignore[arg-type]


def test_arrivals_have_their_rate() -> None:
    assert len(poisson(50.0, 100.0, 1)) == pytest.approx(5000, rel=0.05)
    times = bursts(1000.0, 20, 10.0, 1)
    assert len(times) == pytest.approx(10_000, rel=0.2)
    assert (np.unique(times, return_counts=True)[1] == 20).all()


@pytest.mark.parametrize("promises", ["tuples", "arcs"])
def test_a_run_can_be_repeated_exactly(promises: str) -> None:
    one, other = (of("ETS ON DEMAND", 4.0, promises=promises) for _ in range(2))
    assert len(one.latencies) > 120
    assert one.summary() == other.summary()
    assert (one.latencies == other.latencies).all() and (one.left == other.left).all()
    assert not np.array_equal(one.left, of("ETS ON DEMAND", 4.0, promises=promises, seed=2).left)


def test_latency_idle_waiting_and_queues_of_the_four_scenarios() -> None:
    none, demand, latent = of("ETS NONE"), of("ETS ON DEMAND"), of("", latent=True)
    slow, fast = of(every(10)), of(every(100))
    assert none.latency > slow.latency > fast.latency > demand.latency > latent.latency
    assert none.latency > 10_000 * demand.latency
    assert none.idle > 0.9 > slow.idle > fast.idle > 0.1
    assert 0 < demand.idle < 0.001
    assert latent.idle == 0
    assert none.held > slow.held > fast.held > demand.held
    # 4 steps against 2, of 5 us each: nothing else is in it but the rare tuple that comes while another is at work.
    assert demand.latency == pytest.approx(0.020, rel=0.01)
    assert latent.latency == pytest.approx(0.010, rel=0.01)
    assert of("ETS ON DEMAND", promises="arcs").latency == pytest.approx(0.015, rel=0.01)


def test_costs_are_what_was_declared() -> None:
    dear = of("ETS ON DEMAND", 4.0, costs=Costs(tuple=10, punctuation=3, projection=1))
    # Projection, selection and union for the tuple, and the same for its timestamp.
    assert np.median(dear.latencies) == (1 + 10 + 10) + (1 + 3 + 3)


def test_a_burst_takes_what_the_theory_says() -> None:
    assert [exact("depth-first", n) for n in (1, 10, 30)] == [2, 11, 31]
    assert [exact("breadth-first", n) for n in (1, 10, 30)] == [2, 15.5, 45.5]


@pytest.mark.parametrize("ets", ["", "ETS ON DEMAND"])
def test_bursts_are_worse_breadth_first(ets: str) -> None:
    deep, broad = ([burst_latency(s, n, ets=ets, seconds=0.4, seed=1).latency for n in (1, 20)] for s in ("depth-first", "breadth-first"))
    assert deep[0] == broad[0] < deep[1] < broad[1]


def test_arcs_are_cheaper_the_more_operators_they_pass() -> None:
    def gap(selections: int) -> float:
        runs = [nested("ETS ON DEMAND", way, selections=selections, rates=RATES_15, seconds=3.0, seed=1) for way in ("tuples", "arcs")]
        assert len(runs[0].latencies) == len(runs[1].latencies) > 80
        return runs[0].latency / runs[1].latency

    assert 1 < gap(1) < gap(4)


@pytest.mark.slow
def test_a_slide_makes_the_output_bursty_where_the_aggregate_says_nothing_else() -> None:
    def at(slide: int, ets: str, mute: bool) -> float:
        return burstiness(nested(ets, "arcs", slide=slide, rates=RATES_16, seconds=0.8, seed=1, mute=mute))

    assert at(160_000, "ETS NONE", True) > 2 * at(40_000, "ETS NONE", True)
    assert at(160_000, "ETS ON DEMAND", False) < 1.25 * at(40_000, "ETS ON DEMAND", False) < 3


def test_by_the_machines_clock_latencies_are_real() -> None:
    run = scenario("ETS ON DEMAND", seconds=1.5, rates=QUICK, real=True)
    assert len(run.latencies) > 5
    assert run.seconds >= 1.5
    assert 0.05 < run.median < 500  # no operator of ours takes a tuple in less; the machine may be busy


@pytest.mark.parametrize("bars", [False, True])
def test_pictures_are_drawn(bars: bool, tmp_path: object) -> None:
    curves = (level("A: none", 5000.0), level("C", 0.02)) if bars else (level("A: none", 5000.0), Curve("B", (0.1, 10.0), (100.0, 1.0)))
    path = draw(Picture("x", "A title", curves, "x", "y", log_x=not bars, log_y=True, bars=bars), str(tmp_path))
    with open(path, "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
