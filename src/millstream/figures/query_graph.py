"""Figures 14a, 14b, 15a, 15b and 16 of paper 001: strategies, arcs for timestamps, and what a slide does to the output."""

from __future__ import annotations

import numpy as np

from millstream.figures.ets import IN_ORDER, STREAM, scenario
from millstream.figures.report import Claim, Curve, Options, Picture, Report, level
from millstream.figures.simulation import Costs, Outcome, Simulation, bursts, poisson

SECONDS = 20.0
RATES_14 = (1000.0, 0.5)
STRATEGIES = {"DFS": "depth-first", "BFS": "breadth-first"}
BURSTS = (1, 5, 10, 20, 50, 100)
BATCH = 10
RATES_15 = (50.0, 0.5, 0.5)
SELECTIONS = (1, 2, 4, 8)
"""How many stand behind each source; none of them is idle-waiting prone."""
RATES_16 = (500.0, 250.0, 250.0)
SLIDES = (5, 10, 20, 40, 80)
"""Tuples of the third stream, at its average rate."""
BIN = 20_000
"""Microseconds in which the output is counted."""
STEP = Costs().tuple

NAMES = ("One", "Two", "Three")


def burst_latency(strategy: str, size: int, *, ets: str = "", limit: int = 1, seconds: float, seed: int) -> Outcome:
    """The graph of Figure 1, in bursts; nothing is dropped, so that a burst of n stays one. Without `ets` time is latent."""
    text = f"SET execution.limit = {limit}; SET execution.strategy = '{strategy}';" + (IN_ORDER if ets else "")
    time = f"TIMESTAMP INTERNAL AS ts {ets}" if ets else "TIMESTAMP LATENT"
    text += "".join(STREAM.format(name=name, time=time) for name in ("Fast", "Slow"))
    columns = "arrived, x, ts" if ets else "arrived, x"
    query = f"SELECT {columns} FROM Fast WHERE x < 1 UNION ALL SELECT {columns} FROM Slow WHERE x < 1"
    arrivals = {"Fast": bursts(RATES_14[0], size, seconds, seed), "Slow": poisson(RATES_14[1], seconds, seed + 1)}
    return Simulation(text, query, seed=seed).play(arrivals, seconds)


def exact(strategy: str, size: int) -> float:
    """The mean latency of one burst at time 0, in steps; latent time."""
    text = f"SET execution.limit = 1; SET execution.strategy = '{strategy}';"
    text += "".join(STREAM.format(name=name, time="TIMESTAMP LATENT") for name in ("Fast", "Slow"))
    simulation = Simulation(text, "SELECT arrived, x FROM Fast WHERE x < 1 UNION ALL SELECT arrived, x FROM Slow WHERE x < 1")
    outcome = simulation.play({"Fast": np.zeros(size, dtype=np.int64)}, 1.0)
    assert len(outcome.latencies) == size
    return float(outcome.latencies.mean()) / STEP


def nested(
    ets: str,
    promises: str,
    *,
    selections: int = 1,
    slide: int = 20_000,
    rates: tuple[float, float, float],
    seconds: float,
    seed: int,
    mute: bool = False,
    real: bool = False,
) -> Outcome:
    """Three streams: selections on each, a union of two, and another one with an aggregate over the third that slides.

    The text that we have of the paper does not show its Figure 10; this is what it tells of it. A result of the aggregate has the
    time at which its slide ends, and is counted from then on.
    """
    text = f"{IN_ORDER} SET execution.limit = 1; SET execution.promises = '{promises}';"
    text += "".join(STREAM.format(name=name, time=f"TIMESTAMP INTERNAL AS ts {ets}") for name in NAMES)
    one, two, three = (_selections(name, selections) for name in NAMES)
    end = f"timestamp_micros((unix_micros(ts) DIV {slide} + 1) * {slide})"
    query = (
        f"SELECT arrived, x, ts FROM ({one} UNION ALL {two}) UNION ALL SELECT unix_micros(done) AS arrived, best AS x, done AS ts "
        f"FROM (SELECT max(x) AS best, {end} AS done FROM ({three}) GROUP BY done)"
    )
    arrivals = {name: poisson(rate, seconds, seed + at) for at, (name, rate) in enumerate(zip(NAMES, rates, strict=True))}
    simulation = Simulation(text, query, seed=seed, real=real, mute="aggregate" if mute else None)
    return simulation.play(arrivals, seconds, warm=1.0 if real else 0.0)


def _selections(name: str, count: int) -> str:
    """So many on top of each other; the first keeps 95 % of the tuples, the others all of them."""
    text = f"SELECT arrived, x, ts FROM {name} WHERE x < 0.95D"
    for number in range(1, count):
        text = f"SELECT arrived, x, ts FROM ({text}) WHERE x > -{number}"
    return text


def burstiness(outcome: Outcome) -> float:
    """The difference of the largest and the smallest count of results in 20 ms, by the mean."""
    whole = int(outcome.seconds * 1_000_000) // BIN
    counts = np.bincount(outcome.left // BIN, minlength=whole)[1 : whole - 1]
    return float((counts.max() - counts.min()) / counts.mean())


def figures(options: Options) -> Report:
    report = Report("query-graph", "Paper 001: the query graph model")
    seconds = options.seconds or SECONDS
    _figure_14a(options, report, seconds)
    _figure_14b(options, report, min(seconds, 2.0))
    _figure_15(options, report, seconds)
    _figure_16(options, report, min(seconds, 4.0))
    return report


def _figure_14a(options: Options, report: Report, seconds: float) -> None:
    found: dict[str, Outcome] = {}
    for how, ets in (("no ETS", "ETS NONE"), ("ETS", "ETS ON DEMAND")):
        for short, strategy in STRATEGIES.items():
            options.tell(f"14a: {short}, {how}")
            found[f"{short}, {how}"] = scenario(ets, seconds=seconds, seed=options.seed, strategy=strategy, rates=RATES_14)
    report.runs["14a"] = {name: outcome.summary() for name, outcome in found.items()}
    curves = tuple(level(name, outcome.latency) for name, outcome in found.items())
    report.pictures.append(Picture("001-14a", "Figure 14a: latency of DFS and BFS", curves, "", "latency, ms", log_y=True, bars=True))
    deep, broad = found["DFS, no ETS"].latency, found["BFS, no ETS"].latency
    drops = [found[f"{short}, no ETS"].latency / found[f"{short}, ETS"].latency for short in STRATEGIES]
    report.claims += [
        Claim("14a", "DFS and BFS are alike without ETS", f"{deep:,.0f} and {broad:,.0f} ms", abs(deep - broad) < 0.05 * deep),
        Claim("14a", "both drop by orders of magnitude with ETS", f"by {drops[0]:,.0f} and {drops[1]:,.0f} times", min(drops) >= 100),
    ]


def _figure_14b(options: Options, report: Report, seconds: float) -> None:
    lines = {
        "BFS, ETS": ("breadth-first", "ETS ON DEMAND", 1),
        "DFS, ETS": ("depth-first", "ETS ON DEMAND", 1),
        "BFS, latent": ("breadth-first", "", 1),
        f"DFS by {BATCH}, latent": ("depth-first", "", BATCH),
        "DFS, latent": ("depth-first", "", 1),
    }
    means: dict[str, tuple[float, ...]] = {}
    for name, (strategy, ets, limit) in lines.items():
        options.tell(f"14b: {name}")
        runs = [burst_latency(strategy, size, ets=ets, limit=limit, seconds=seconds, seed=options.seed) for size in BURSTS]
        means[name] = tuple(run.latency for run in runs)
    report.runs["14b"] = {name: dict(zip(map(str, BURSTS), ys, strict=True)) for name, ys in means.items()}
    curves = tuple(Curve(name, tuple(map(float, BURSTS)), ys) for name, ys in means.items())
    report.pictures.append(Picture("001-14b", "Figure 14b: latency against the size of bursts", curves, "tuples in a burst", "latency, ms"))
    for how in ("ETS", "latent"):
        deep, broad = (np.array(means[f"{short}, {how}"]) for short in STRATEGIES)
        grows = bool((np.diff(deep) > 0).all() and (np.diff(broad) > 0).all())
        ratios = broad[1:] / deep[1:]
        report.claims += [
            Claim("14b", f"latency grows with the burst, {how}", f"to {deep[-1]:.2f} and {broad[-1]:.2f} ms at {BURSTS[-1]}", grows),
            Claim("14b", f"BFS grows faster, {how}", f"{ratios[-1]:.2f} times DFS at {BURSTS[-1]}", bool((ratios > 1.05).all())),
        ]
    sizes = (1, 10, 100)
    deep_steps, broad_steps = ([exact(strategy, n) for n in sizes] for strategy in ("depth-first", "breadth-first"))
    report.claims += [
        Claim("theory", "DFS: a burst of n takes (n + 1) c", _steps(sizes, deep_steps), deep_steps == [n + 1 for n in sizes]),
        Claim(
            "theory", "BFS: a burst of n takes (1.5 n + 0.5) c", _steps(sizes, broad_steps), broad_steps == [1.5 * n + 0.5 for n in sizes]
        ),
    ]


def _steps(sizes: tuple[int, ...], found: list[float]) -> str:
    return ", ".join(f"n = {n}: {steps:g} c" for n, steps in zip(sizes, found, strict=True))


def _figure_15(options: Options, report: Report, seconds: float) -> None:
    seed = options.seed
    options.tell("15a: no ETS")
    none = nested("ETS NONE", "tuples", rates=RATES_15, seconds=2 * seconds, seed=seed)
    ways: dict[str, list[Outcome]] = {"tuples": [], "arcs": []}
    for count in SELECTIONS:
        for way, outcomes in ways.items():
            options.tell(f"15: {way}, {count} selections")
            outcomes.append(nested("ETS ON DEMAND", way, selections=count, rates=RATES_15, seconds=seconds, seed=seed))
    tuples, arcs = ([outcome.latency for outcome in ways[way]] for way in ("tuples", "arcs"))
    more = [slow / fast - 1 for slow, fast in zip(tuples, arcs, strict=True)]
    report.runs["15"] = {"none": none.summary()} | {
        f"{way}, {count} selections": outcome.summary()
        for way, outcomes in ways.items()
        for count, outcome in zip(SELECTIONS, outcomes, strict=True)
    }
    names = ("punctuation tuples", "TSM arcs")
    bars = (level("no ETS", none.latency), level(names[0], tuples[0]), level(names[1], arcs[0]))
    xs = tuple(map(float, SELECTIONS))
    report.pictures += [
        Picture("001-15a", "Figure 15a: latency with and without ETS", bars, "", "latency, ms", log_y=True, bars=True),
        Picture(
            "001-15b",
            "Figure 15b: punctuation tuples against TSM arcs",
            (Curve(names[0], xs, tuple(tuples)), Curve(names[1], xs, tuple(arcs))),
            "selections behind each source",
            "latency, ms",
        ),
    ]
    report.claims += [
        Claim(
            "15a",
            "both ways resolve idle-waiting",
            f"{none.latency / tuples[0]:,.0f} and {none.latency / arcs[0]:,.0f} times below",
            none.latency > 1000 * max(tuples[0], arcs[0]),
        ),
        Claim(
            "15b",
            "tuples cost more latency than arcs (paper: 14 %)",
            f"{more[0]:.1%} more",
            more[0] > 0,
            "on our graph; the paper's Figure 10 is not in the text",
        ),
        Claim(
            "15b",
            "the gap grows with the operators that are bypassed",
            ", ".join(f"{value:.0%} at {count}" for value, count in zip(more, SELECTIONS, strict=True)),
            more == sorted(more) and more[-1] > more[0],
        ),
    ]
    if options.real:
        found = {}
        for way in ("tuples", "arcs"):
            options.tell(f"15 by the clock: {way}")
            found[way] = nested("ETS ON DEMAND", way, selections=SELECTIONS[-1], rates=RATES_15, seconds=options.real, seed=seed, real=True)
        report.runs["15 real"] = {way: outcome.summary() for way, outcome in found.items()}
        slow, fast = (found[way].median for way in ("tuples", "arcs"))
        report.claims.append(
            Claim(
                "real", f"tuples cost more than arcs, {SELECTIONS[-1]} selections", f"median {slow:.2f} ms against {fast:.2f}", slow > fast
            )
        )


def _figure_16(options: Options, report: Report, seconds: float) -> None:
    lines = {
        "A: no ETS, silent aggregate": ("ETS NONE", True),
        "no ETS, promises of tuples go on": ("ETS NONE", False),
        "B: ETS on demand": ("ETS ON DEMAND", False),
    }
    found: dict[str, tuple[float, ...]] = {}
    for name, (ets, mute) in lines.items():
        options.tell(f"16: {name}")
        slides = [round(1_000_000 * slide / RATES_16[2]) for slide in SLIDES]
        runs = [nested(ets, "arcs", slide=slide, rates=RATES_16, seconds=seconds, seed=options.seed, mute=mute) for slide in slides]
        found[name] = tuple(burstiness(run) for run in runs)
    report.runs["16"] = {name: dict(zip(map(str, SLIDES), ys, strict=True)) for name, ys in found.items()}
    curves = tuple(Curve(name, tuple(map(float, SLIDES)), ys) for name, ys in found.items())
    report.pictures.append(
        Picture("001-16", "Figure 16: burstiness of the output", curves, "SLIDE, in tuples", "(max - min) / mean in 20 ms")
    )
    silent, ours, demand = found.values()
    report.claims += [
        Claim(
            "16",
            "burstiness grows with SLIDE without ETS, if results are all that an aggregate says",
            f"{silent[0]:.1f} to {silent[-1]:.1f}",
            list(silent) == sorted(silent) and silent[-1] > 2 * silent[0],
        ),
        Claim(
            "16",
            "the same, if it also passes on promises, as ours does",
            f"{ours[0]:.1f} to {ours[-1]:.1f}",
            ours[-1] > 2 * ours[0],
            "it promises the end of its slide as soon as a tuple has come, so a union does not wait for its result",
        ),
        Claim("16", "it is flat with ETS", f"{demand[0]:.1f} to {demand[-1]:.1f}", max(demand) < 1.25 * min(demand)),
    ]
