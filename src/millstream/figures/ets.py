"""Figures 7a, 7b and 8 of paper 000: what enabling timestamps do for latency, idle-waiting and memory."""

from __future__ import annotations

import math

from millstream.figures.report import Claim, Curve, Options, Picture, Report, level
from millstream.figures.simulation import Costs, Outcome, Simulation, poisson

STREAM = "CREATE STREAM {name} (arrived BIGINT, x DOUBLE) {time};"
SIDE = "SELECT arrived, x{time} FROM {name} WHERE x < 0.95D"
IN_ORDER = "SET execution.order = 'in-order';"
"""Nothing waits for latent time, whatever the order."""
FAST, SLOW = 50.0, 0.05
"""Tuples a second."""
RATES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Periodic enabling timestamps a second."""
REAL_RATES = (10.0, 100.0)
SECONDS = 600.0
ENOUGH = 120.0
"""Seconds after which a run is long enough where nothing waits for tuples of the slow stream."""

NONE, ON_DEMAND, LATENT = "A: none", "C: on demand", "D: latent"
EQUAL = Costs()


def scenario(
    ets: str,
    *,
    latent: bool = False,
    seconds: float,
    seed: int = 1,
    promises: str = "tuples",
    strategy: str = "depth-first",
    limit: int = 1,
    rates: tuple[float, float] = (FAST, SLOW),
    costs: Costs = EQUAL,
    real: bool = False,
) -> Outcome:
    """The graph of paper 000, Figure 4: a selection on each stream, then a union in order of time."""
    text = f"SET execution.strategy = '{strategy}'; SET execution.limit = {limit}; SET execution.promises = '{promises}';"
    text += "" if latent else IN_ORDER
    for name in ("Fast", "Slow"):
        time = "TIMESTAMP LATENT" if latent else f"TIMESTAMP INTERNAL AS ts {ets if name == 'Slow' or ets == 'ETS NONE' else ''}"
        text += STREAM.format(name=name, time=time)
    query = " UNION ALL ".join(SIDE.format(name=name, time="" if latent else ", ts") for name in ("Fast", "Slow"))
    simulation = Simulation(text, query, costs=costs, seed=seed, real=real)
    arrivals = {"Fast": poisson(rates[0], seconds, seed), "Slow": poisson(rates[1], seconds, seed + 1)}
    return simulation.play(arrivals, seconds, warm=1.0 if real else 0.0)


def every(rate: float) -> str:
    return f"ETS EVERY {max(1, round(1_000_000 / rate))} MICROSECONDS"


def figures(options: Options) -> Report:
    """A: no timestamps, B: periodic ones in the slow stream, C: on demand, D: latent time, for which nothing waits."""
    seconds, seed = options.seconds or SECONDS, options.seed
    short = min(seconds, ENOUGH)
    runs: dict[str, Outcome] = {}

    def run(
        name: str, ets: str, length: float = seconds, *, latent: bool = False, promises: str = "tuples", costs: Costs = EQUAL
    ) -> Outcome:
        options.tell(f"{name}: {length:.0f} s of virtual time")
        runs[name] = scenario(ets, latent=latent, seconds=length, seed=seed, promises=promises, costs=costs)
        return runs[name]

    none = run(NONE, "ETS NONE")
    demand = run(ON_DEMAND, "ETS ON DEMAND")
    latent = run(LATENT, "", latent=True)
    periodic = {rate: run(f"B: {rate:g}/s", every(rate), seconds if rate < 10 else short) for rate in RATES}
    arcs = run("C over arcs", "ETS ON DEMAND", short, promises="arcs")
    cheap = run("C, punctuations at half the cost", "ETS ON DEMAND", short, costs=Costs(tuple=10, punctuation=5))
    dear = run("D, the same", "", short, latent=True, costs=Costs(tuple=10, punctuation=5))
    report = Report("ets", "Paper 000: enabling timestamps", runs={name: outcome.summary() for name, outcome in runs.items()})
    report.pictures = pictures(none, periodic, demand, latent, arcs)
    report.claims = claims(none, periodic, demand, latent, arcs, cheap.latency / dear.latency)
    if options.real:
        _real(options, report)
    return report


def claims(none: Outcome, periodic: dict[float, Outcome], demand: Outcome, latent: Outcome, arcs: Outcome, cheap: float) -> list[Claim]:
    away, factor = demand.latency - latent.latency, demand.latency / latent.latency
    below, peaks = none.latency / demand.latency, none.held / max(demand.held, 1)
    by_rate = [outcome.latency for _, outcome in sorted(periodic.items())]
    held = {rate: outcome.held for rate, outcome in sorted(periodic.items())}
    rises = list(held.values())[-1] > min(held.values())
    at = 1 - (1 - math.exp(-0.475)) / 0.475
    bearable = 0.001 / demand.idle * EQUAL.punctuation if demand.idle else float("inf")
    return [
        Claim("7a", "A is four orders of magnitude above C", f"{none.latency:,.0f} ms, {below:,.0f} times", below >= 10_000),
        Claim("7a", "B falls as its rate grows", f"{by_rate[0]:,.0f} to {by_rate[-1]:.2f} ms", by_rate == sorted(by_rate, reverse=True)),
        Claim("7a", "B never reaches C", f"{min(by_rate) / demand.latency:.1f} times C at best", min(by_rate) > demand.latency),
        Claim(
            "7b",
            "C is within about 0.1 ms of D",
            f"{away:.3f} ms more than {latent.latency:.3f} ms",
            away <= 0.1,
            "in proportion to the cost of a step",
        ),
        Claim(
            "7b",
            "C is within 2 times D, timestamps going as tuples",
            f"{factor:.4f} times",
            factor <= 2,
            "a tuple and its timestamp take 4 steps, a latent tuple 2, and others queue behind; "
            f"{cheap:.2f} where a punctuation costs half a tuple",
        ),
        Claim(
            "7b",
            "C is within 2 times D, over arcs",
            f"{arcs.latency / latent.latency:.3f} times",
            arcs.latency <= 2 * latent.latency,
            "3 steps against 2",
        ),
        Claim("text", "the union idle-waits 99 % of the time in A", f"{none.idle:.2%}", none.idle >= 0.99),
        Claim(
            "text",
            "15 % in B at 100/s and above",
            ", ".join(f"{outcome.idle:.1%} at {rate:g}/s" for rate, outcome in sorted(periodic.items()) if rate >= 100),
            all(outcome.idle <= 0.155 for rate, outcome in periodic.items() if rate >= 100),
            f"at 100/s a tuple waits in {at:.1%} of the time by arithmetic: 1 - (1 - exp(-rT)) / rT with r = 47.5/s, T = 10 ms",
        ),
        Claim("text", "below 0.1 % in C", f"{demand.idle:.3%}", demand.idle < 0.001, f"holds up to {bearable:.1f} us a step"),
        Claim("8", "A queues thousands of tuples", f"{none.held:,}", none.held >= 1000),
        Claim("8", "C queues more than 100 times less", f"{demand.held}, {peaks:,.0f} times less", peaks >= 100),
        Claim(
            "8",
            "B falls, and rises again at high rates",
            ", ".join(f"{count} at {rate:g}/s" for rate, count in held.items() if rate in (0.1, 10.0, 100.0, 1000.0)),
            rises,
            "" if rises else "it does not rise: a source that is behind makes one timestamp, not one for each period it has missed",
        ),
    ]


def pictures(none: Outcome, periodic: dict[float, Outcome], demand: Outcome, latent: Outcome, arcs: Outcome) -> list[Picture]:
    rates = tuple(sorted(periodic))
    x, y = "periodic enabling timestamps a second", "latency, ms"

    def beside(value: str) -> tuple[Curve, ...]:
        a, c, d = (level(name, getattr(o, value)) for name, o in ((NONE, none), (ON_DEMAND, demand), (LATENT, latent)))
        return a, Curve("B: periodic", rates, tuple(getattr(periodic[rate], value) for rate in rates)), c, d

    lowest = (level(ON_DEMAND, demand.latency, 2), level("C over arcs", arcs.latency, 4), level(LATENT, latent.latency, 3))
    return [
        Picture("000-7a", "Figure 7a: average output latency", beside("latency"), x, y, log_x=True, log_y=True),
        Picture("000-7b", "Figure 7b: the lowest lines of 7a", lowest, "", y, bars=True),
        Picture("000-8", "Figure 8: peak total queue size", beside("held")[:3], x, "tuples and punctuations", log_x=True, log_y=True),
    ]


def _real(options: Options, report: Report) -> None:
    """The same by the machine's clock: shorter, and with fewer rates."""
    found: dict[str, Outcome] = {}
    wanted = [
        (NONE, "ETS NONE", False, "tuples"),
        (ON_DEMAND, "ETS ON DEMAND", False, "tuples"),
        ("C over arcs", "ETS ON DEMAND", False, "arcs"),
    ]
    wanted += [(f"B: {rate:g}/s", every(rate), False, "tuples") for rate in REAL_RATES] + [(LATENT, "", True, "tuples")]
    for name, ets, latent, promises in wanted:
        seconds = options.real * (LONGER if name == NONE else 1)
        options.tell(f"{name}: {seconds:.0f} s by the clock")
        found[name] = scenario(ets, latent=latent, seconds=seconds, seed=options.seed, promises=promises, real=True)
    report.runs["real"] = {name: outcome.summary() for name, outcome in found.items()}
    a, b, c, d = (found[name].median for name in (NONE, "B: 100/s", ON_DEMAND, LATENT))
    idle, bypassed = found[ON_DEMAND].idle, found["C over arcs"].idle
    report.claims += [
        Claim("real", "A is 10,000 times above C, in the median as all below", f"{a:,.0f} ms, {a / c:,.0f} times", a > 10_000 * c),
        Claim("real", "B never reaches C", f"{b / c:.1f} times C at 100/s", b > c),
        Claim("real", "C is within 2 times D", f"{c:.2f} ms against {d:.2f}: {c / d:.1f} times", c <= 2 * d, "" if c <= 2 * d else DEARER),
        Claim("real", "the union idle-waits below 0.1 % in C", f"{idle:.2%}; over arcs {bypassed:.2%}", idle < 0.001, _slow(idle)),
    ]
    curves = tuple(level(name, outcome.median) for name, outcome in found.items())
    report.pictures.append(
        Picture("000-7-real", "Figure 7 by the machine's clock", curves, "", "median latency, ms", log_y=True, bars=True)
    )


LONGER = 10
"""How much longer A runs by the machine's clock: its union waits for tuples that come every 20 s."""

DEARER = "a step of our union costs much more where it waits for order than where tuples pass"


def _slow(idle: float) -> str:
    if idle < 0.001:
        return ""
    return f"at 47.5 tuples/s that leaves 21 us a tuple for making and taking a timestamp; ours takes {idle / 47.5e-6:.0f}"
