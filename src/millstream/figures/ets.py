"""Figures 7a, 7b and 8 of paper 000: what enabling timestamps do for latency, idle-waiting and memory."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.figures.simulation import Costs, Outcome, Simulation, poisson

STREAM = "CREATE STREAM {name} (arrived BIGINT, x DOUBLE) {time};"
QUERY = "SELECT arrived, x FROM Fast WHERE x < 0.95 UNION ALL SELECT arrived, x FROM Slow WHERE x < 0.95"
FAST, SLOW = 50.0, 0.05
"""Tuples a second."""
RATES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Periodic enabling timestamps a second."""


@dataclass(frozen=True)
class Line:
    """One line of the figures: a scenario, and its outcome by rate of periodic timestamps (one point where that plays no part)."""

    name: str
    points: tuple[tuple[float, Outcome], ...]

    @property
    def only(self) -> Outcome:
        return self.points[0][1]


def scenario(ets: str, *, latent: bool = False, seconds: float, seed: int = 1, promises: str = "tuples", costs: Costs = Costs()) -> Outcome:  # noqa: B008
    """The graph of paper 000, Figure 4: a selection on each stream, then a union in order of time."""
    text = f"SET execution.order = 'in-order'; SET execution.limit = 1; SET execution.promises = '{promises}';"
    for name in ("Fast", "Slow"):
        time = "TIMESTAMP LATENT" if latent else f"TIMESTAMP INTERNAL AS ts {ets if name == 'Slow' or ets == 'ETS NONE' else ''}"
        text += STREAM.format(name=name, time=time)
    simulation = Simulation(text, QUERY, costs=costs, seed=seed)
    return simulation.play({"Fast": poisson(FAST, seconds, seed), "Slow": poisson(SLOW, seconds, seed + 1)}, seconds)


def lines(seconds: float = 600.0, seed: int = 1, rates: tuple[float, ...] = RATES) -> list[Line]:
    """A: no timestamps, B: periodic ones in the slow stream, C: on demand, D: latent time, for which nothing waits."""
    periodic = []
    for rate in rates:
        period = max(1, round(1_000_000 / rate))
        periodic.append((rate, scenario(f"ETS EVERY {period} MICROSECONDS", seconds=min(seconds, max(60.0, 60_000 / rate)), seed=seed)))
    return [
        Line("A: none", ((0.0, scenario("ETS NONE", seconds=seconds, seed=seed)),)),
        Line("B: periodic", tuple(periodic)),
        Line("C: on demand", ((0.0, scenario("ETS ON DEMAND", seconds=seconds, seed=seed)),)),
        Line("D: latent", ((0.0, scenario("", latent=True, seconds=seconds, seed=seed)),)),
    ]
