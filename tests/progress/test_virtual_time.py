"""Under a clock that each step moves by a declared cost, latencies are exact (paper 001, section 6)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from millstream.graph.execution import Execution
from millstream.runtime.gauges import Gauge
from tests.progress.live import Live

STREAMS = "".join(f"CREATE STREAM {name} (k BIGINT) TIMESTAMP LATENT;" for name in "AB")
COST = 1000


IN_ORDER = "SET execution.order = 'in-order';" + STREAMS.replace("LATENT", "INTERNAL AS ts")


def latencies(strategy: str, burst: int, limit: int = 1, *, streams: str = STREAMS, arcs: bool = False) -> list[int]:
    """A burst of tuples at time 0 through a selection and a union, each of which takes COST for a tuple, or else for a punctuation."""
    columns = "k, ts" if "ts" in streams else "k"
    query = f"SELECT {columns} FROM A WHERE k > 0 UNION ALL SELECT {columns} FROM B WHERE k > 0"
    live = Live(streams, query, execution=Execution(strategy, limit, arcs))
    executor = live.run.stage.executor
    costly = {v.number for v in executor.network.vertices.values() if v.config.label.split()[0] in ("select", "union", "in-order")}
    assert len(costly) == 3

    def spend(number: int, tuples: int, punctuations: int) -> None:
        live.clock.advance(COST * (tuples or min(punctuations, 1)) if number in costly else 0)

    executor.on_step = spend
    seen: list[int] = []
    live.run.stage.on_result = lambda sink, block: seen.extend([live.clock.now()] * len(block))
    live.push("A", *((k,) for k in range(1, burst + 1)))
    while live.run.step():
        pass
    assert len(seen) == burst
    return seen


@pytest.mark.parametrize("burst", [1, 2, 7, 40])
def test_a_burst_of_n_takes_what_the_paper_says(burst: int) -> None:
    deep, broad = latencies("depth-first", burst), latencies("breadth-first", burst)
    assert Fraction(sum(deep), burst) == (burst + 1) * COST
    assert Fraction(sum(broad), burst) == Fraction(3 * burst + 1, 2) * COST


def test_batches_lie_between_both() -> None:
    deep, broad = latencies("depth-first", 40), latencies("breadth-first", 40)
    batched = latencies("depth-first", 40, limit=10)
    assert sum(deep) < sum(batched) < sum(broad)
    assert latencies("depth-first", 40, limit=40) == [80 * COST] * 40  # one step each: nobody sees a result before


@pytest.mark.parametrize("burst", [2, 7, 40])
def test_depth_first_a_timestamp_comes_in_the_midst_of_a_burst_and_breadth_first_behind_it(burst: int) -> None:
    deep, broad = (latencies(strategy, burst, streams=IN_ORDER) for strategy in ("depth-first", "breadth-first"))
    # The first tuple waits and calls for a timestamp, which takes two steps; the second is there before it.
    assert deep == [6 * COST] * 2 + [(2 * n + 2) * COST for n in range(3, burst + 1)]
    assert broad == [(2 * burst + 2) * COST] * burst


def test_over_an_arc_it_comes_a_step_earlier() -> None:
    assert latencies("depth-first", 7, streams=IN_ORDER, arcs=True) == [4 * COST] + [(2 * n + 1) * COST for n in range(2, 8)]


def test_whoever_works_does_not_idle_wait() -> None:
    gauge = Gauge()
    gauge.note_waiting(True, 0, 10)
    gauge.note_waiting(True, 30, 45)  # more came that must wait
    gauge.note_waiting(False, 100, 120)
    assert gauge.idle_until(500) == (30 - 10) + (100 - 45)
