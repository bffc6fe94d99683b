"""Under a clock that each step moves by a declared cost, latencies are exact (paper 001, section 6)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from millstream.runtime.execution import Execution
from tests.progress.live import Live

STREAMS = "".join(f"CREATE STREAM {name} (k BIGINT) TIMESTAMP LATENT;" for name in "AB")
COST = 1000


def latencies(strategy: str, burst: int, limit: int = 1) -> list[int]:
    """A burst of tuples at time 0 through a selection and a union, each of which takes COST for a tuple."""
    live = Live(STREAMS, "SELECT k FROM A WHERE k > 0 UNION ALL SELECT k FROM B WHERE k > 0", execution=Execution(strategy, limit))
    executor = live.run.stage.executor
    costly = {v.number for v in executor.network.vertices.values() if v.config.label.split()[0] in ("select", "union")}
    assert len(costly) == 3
    executor.on_step = lambda number, tuples, _: live.clock.advance(COST * tuples if number in costly else 0)
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
