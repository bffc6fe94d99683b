"""Figures 8 to 12 of paper 002: what punctuations do for the state of a window join, its speed, and those who read its results."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.block import Block
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.figures.report import Claim, Curve, Options, Picture, Report
from millstream.graph.execution import Execution
from millstream.io.contract import Source
from millstream.operators.join import Join
from millstream.pipeline import Pipeline
from millstream.plan.cost import window_join_state
from millstream.runtime.launch import Launch
from millstream.runtime.local.run import LocalRun

STREAM = """CREATE STREAM {name} (k BIGINT, v BIGINT, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts ORDERED PUNCTUATE ON (k) WHEN closed
  WITH (connector = 'generator', pattern = '{pattern}', every = '10 milliseconds', tuples = {tuples}, seed = {seed}, unit = {unit}{more});
"""
QUERY = "SELECT A.k AS k, A.v AS a, B.v AS b FROM A{left} AS A, B{right} AS B WHERE A.k = B.k"
RATE = 100
"""Tuples a second of each stream."""
UNIT = 50
"""Rows that a stream hands over at a time: the join sees both streams take turns."""
SECOND = 1_000_000
PW, W, P = "punctuated-window", "window", "punctuated"
NAMES = {PW: "PWJoin", W: "WJoin", P: "PJoin"}
SECONDS = 60.0
REPEATS, RUNS = 7, 3
LONGER, AT_ONCE = 100, 32_768
"""Where speed is measured streams are so many times longer, and hand over so many rows at a time: they are never drained."""


@dataclass
class Sample:
    """How a join was doing when its streams had come so far."""

    time: float
    """Seconds of the streams."""
    state: int
    """Tuples that it keeps."""
    tuples: int
    """Put out so far."""
    punctuations: int
    """Values declared finished so far."""
    spent: float
    """Seconds of the processor."""


@dataclass
class Played:
    """One run of a join."""

    samples: list[Sample] = field(default_factory=list)
    streams: list[pa.Table] = field(default_factory=list)
    """What came."""

    @property
    def rate(self) -> float:
        """Results a second of work."""
        return self.samples[-1].tuples / self.samples[-1].spent

    def curve(self, name: str, value: str, over: str = "time") -> Curve:
        running = [sample for sample in self.samples if sample.time < self.samples[-1].time]  # at the end everything is let go
        return Curve(name, tuple(getattr(s, over) for s in running), tuple(float(getattr(s, value)) for s in running))

    def expected(self, window: float) -> list[float]:
        """The state by equation 1, at each sample."""
        made = []
        for sample in self.samples:
            until = pa.scalar(round(sample.time * SECOND))
            come = [table.filter(pc.less_equal(table["since"], until)) for table in self.streams]
            total = 0.0
            for own, other in (come, come[::-1]):
                closed, values = pc.sum(other["closed"]).as_py() or 0, len(pc.unique(own.filter(pc.invert(own["closed"]))["k"]))
                total += window_join_state(RATE, min(window, sample.time), closed, values)
            made.append(total)
        return made

    def state_after(self, seconds: float) -> float:
        """On average, from then on."""
        return float(np.mean([s.state for s in self.samples if s.time >= seconds]))


def play(
    algorithm: str,
    patterns: tuple[str, str],
    windows: tuple[float | None, float | None],
    *,
    seconds: float,
    seed: int,
    every: float = 2.0,
    unit: int = UNIT,
    irrelevant: bool = False,
) -> Played:
    """The join of two generated streams, looked at after each so many seconds of theirs."""
    more = ", irrelevant = true" if irrelevant else ""
    text = f"SET join.algorithm = '{algorithm}';"
    for number, (name, pattern) in enumerate(zip("AB", patterns, strict=True)):
        extra = more if not pattern.startswith("none") else ""
        text += STREAM.format(name=name, pattern=pattern, tuples=round(seconds * RATE), seed=seed + number, unit=unit, more=extra)
    left, right = ("" if w is None else f" [RANGE {round(w * 1000)} MILLISECONDS]" for w in windows)
    text += "CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out " + QUERY.format(left=left, right=right)
    pipeline = Pipeline()
    pipeline.add_text(text)
    launch = Launch.prepare(pipeline)
    run = LocalRun(launch.graph, launch.sources, launch.sinks, execution=Execution.of(pipeline.settings))
    watch = _Watch(run)
    start = min(source.recipe.start for source in launch.sources.values())  # type: ignore[attr-defined]
    played = Played(streams=[_read(source, start) for source in launch.sources.values()])
    due = every
    while not all(feed.ended for feed in run.feeds):
        began = time.process_time()
        run.step()
        watch.spent += time.process_time() - began
        come = min((feed.mark for feed in run.feeds if not feed.ended), default=MAX_TIME)
        while come > MIN_TIME and due <= min((come - start) / SECOND, seconds):
            played.samples.append(Sample(due, watch.state, watch.tuples, watch.punctuations, watch.spent))
            due += every
    played.samples.append(Sample(seconds, watch.state, watch.tuples, watch.punctuations, watch.spent))
    return played


def _read(source: Source, start: int) -> pa.Table:
    """All of a stream: keys, punctuations, and when they come."""
    at = source.initial()
    units = source.units(at, source.latest(at, 1 << 30))
    batches = [reading.batch for unit in units for reading in source.read(unit, 1 << 20)]
    table = pa.Table.from_batches(batches)
    return table.append_column("since", pc.subtract(table["ts"].cast(pa.int64()), pa.scalar(start)))


class _Watch:
    """Counts what a join puts out; results go nowhere."""

    def __init__(self, run: LocalRun) -> None:
        self.tuples = self.punctuations = 0
        self.spent = 0.0
        executor = run.stage.executor
        ((number, keys),) = [(n, v.config.left_keys) for n, v in executor.network.vertices.items() if isinstance(v.config, Join)]
        self.join: Any = executor.operators[number]
        emit = executor.network.emit

        def counted(vertex: int, block: Block) -> None:
            if vertex == number:
                self.tuples += len(block)
                self.punctuations += sum(p.count for p in block.punctuations if not p.is_end and p.patterns[0][0] in keys)
            emit(vertex, block)

        setattr(executor.network, "emit", counted)  # noqa: B010 (a method)
        run.stage.on_result = lambda sink, block: None

    @property
    def state(self) -> int:
        return sum(len(rows) for rows in self.join.rows)


def figures(options: Options) -> Report:
    """WJoin lets go by time alone, PJoin by finished values alone, PWJoin by both; the query, the streams and the code are the same."""
    seconds, seed = options.seconds or SECONDS, options.seed
    report = Report("punctuated-join", "Paper 002: window joins over punctuated streams")
    pair = ("punct-asc-100-40",) * 2
    states: dict[tuple[str, float], Played] = {}
    for window in (1.0, 5.0, 15.0):
        for algorithm in (PW, W):
            options.tell(f"8: {NAMES[algorithm]}, windows of {window:g} s")
            states[algorithm, window] = play(algorithm, pair, (window, window), seconds=seconds, seed=seed)
    _state(report, states)
    _speed(options, report, pair, seconds, seed)
    _told(options, report, seconds, seed)
    return report


def _state(report: Report, states: dict[tuple[str, float], Played]) -> None:
    curves = tuple(played.curve(f"{NAMES[algorithm]}-{window:g}", "state") for (algorithm, window), played in states.items())
    report.pictures.append(Picture("002-8", "Figure 8: tuples in the state", curves, "seconds of the streams", "tuples"))
    shares = {window: states[PW, window].state_after(window) / states[W, window].state_after(window) for window in (1.0, 5.0, 15.0)}
    told = ", ".join(f"{share:.0%} at {window:g} s" for window, share in shares.items())
    report.claims += [
        Claim("8", "PWJoin keeps less than WJoin", told, all(share < 1 for share in shares.values())),
        Claim("8", "the more so the larger the window", told, shares[15.0] < shares[5.0] < shares[1.0]),
        Claim("8", "less than half at 15 s", f"{shares[15.0]:.0%}", shares[15.0] < 0.5),
    ]
    played = states[PW, 15.0]
    expected, xs = played.expected(15.0), played.curve("", "state").xs
    report.pictures.append(
        Picture(
            "002-eq1",
            "Equation 1 and the state of PWJoin, windows of 15 s",
            (played.curve("measured", "state"), Curve("expected", xs, tuple(expected[: len(xs)]))),
            "seconds of the streams",
            "tuples",
        )
    )
    pairs = zip(played.samples[: len(xs)], expected, strict=False)  # at the end everything is let go
    ratios = [sample.state / wanted for sample, wanted in pairs if wanted > 0]
    close = all(0.8 <= ratio <= 1.25 for ratio in ratios)
    why = "it takes the values of a window to be spread over all that ever occurred; here they are the last few"
    report.claims.append(
        Claim("eq. 1", "measured state follows the cost model", f"{min(ratios):.2f} to {max(ratios):.2f}", close, "" if close else why)
    )


def _speed(options: Options, report: Report, pair: tuple[str, str], seconds: float, seed: int) -> None:
    """Sides take turns, each time in a new process: where its memory happens to lie makes a tenth of difference by itself.

    Of a process its best run counts, in which the machine did least else; of the pairs of processes the median.
    """
    cases: dict[str, Any] = {
        "5 s": dict(patterns=pair, windows=(5.0, 5.0)),
        "15 s": dict(patterns=pair, windows=(15.0, 15.0)),
        "irrelevant": dict(patterns=("punct-asc-30-40", "punct-random-30-40"), windows=(5.0, 5.0), irrelevant=True),
        "none": dict(patterns=("none-200", "none-200"), windows=(5.0, 5.0)),
    }
    found: dict[str, float] = {}
    for name, case in cases.items():
        rounds: list[tuple[Played, Played]] = []
        for number in range(REPEATS):
            options.tell(f"9, 10: {name}, round {number + 1} of {REPEATS}")
            sides = {a: _apart(a, **case, seconds=LONGER * seconds, seed=seed, unit=AT_ONCE) for a in ((PW, W), (W, PW))[number % 2]}
            rounds.append((sides[PW], sides[W]))
        found[name] = median(ours.rate / theirs.rate for ours, theirs in rounds)
        report.runs[f"speed {name}"] = {NAMES[a]: [round(sides[i].rate) for sides in rounds] for i, a in enumerate((PW, W))}
        if name != "none":
            best = [max((sides[i] for sides in rounds), key=lambda played: played.rate) for i in (0, 1)]
            curves = tuple(played.curve(NAMES[a], "tuples", "spent") for played, a in zip(best, (PW, W), strict=True))
            figure = "10" if name == "irrelevant" else "9"
            title = f"Figure {figure}: results over time, " + ("irrelevant punctuations" if figure == "10" else f"windows of {name}")
            report.pictures.append(Picture(f"002-{figure}-{name.replace(' ', '')}", title, curves, "seconds of work", "results"))
    report.claims += [
        Claim("9", "about as fast as WJoin at 5 s", f"{found['5 s']:.2f} times", found["5 s"] >= 0.9),
        Claim("9", "at least as fast at 15 s", f"{found['15 s']:.2f} times", found["15 s"] >= 1),
        Claim("10", "irrelevant punctuations cost at most 3 %", f"{found['irrelevant']:.3f} times", found["irrelevant"] >= 0.97),
        Claim("text", "without punctuations at most 2 % slower", f"{found['none']:.3f} times", found["none"] >= 0.98),
    ]


def _apart(algorithm: str, **case: Any) -> Played:
    """The best of some runs in a process of their own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as worker:
        return worker.submit(_best, algorithm, **case).result()


def _best(algorithm: str, **case: Any) -> Played:
    """The first run is left out, which reads or makes the kernels; so are the streams, which would be much to send."""
    runs = [play(algorithm, **case) for _ in range(1 + RUNS)][1:]
    return Played(max(runs, key=lambda played: played.rate).samples)


def _told(options: Options, report: Report, seconds: float, seed: int) -> None:
    pair = ("punct-asc-30-40", "punct-random-30-40")
    options.tell("11: PWJoin and PJoin")
    both = play(PW, pair, (1.0, 1.0), seconds=seconds, seed=seed, every=1.0)
    values = play(P, pair, (None, None), seconds=seconds, seed=seed, every=1.0)
    x, y = "seconds of the streams", "punctuations put out"
    curves = (both.curve("PWJoin", "punctuations"), values.curve("PJoin", "punctuations"))
    report.pictures.append(Picture("002-11", "Figure 11: punctuations put out", curves, x, y))
    half = len(both.samples) // 2
    ahead = sum(a.punctuations >= b.punctuations for a, b in zip(both.samples, values.samples, strict=True)) / len(both.samples)
    report.claims.append(
        Claim(
            "11",
            "PWJoin tells of finished values sooner than PJoin",
            f"{both.samples[half].punctuations} and {values.samples[half].punctuations} after half of the time; ahead in {ahead:.0%} of it",
            both.samples[half].punctuations > values.samples[half].punctuations and ahead >= 0.9,
        )
    )
    options.tell("12: punctuations on one side only")
    one = ("none-15000", "punct-asc-30-40")
    both = play(PW, one, (None, 5.0), seconds=seconds, seed=seed, every=1.0)
    values = play(P, one, (None, 5.0), seconds=seconds, seed=seed, every=1.0)
    curves = (both.curve("PWJoin", "punctuations"), values.curve("PJoin", "punctuations"))
    report.pictures.append(Picture("002-12", "Figure 12: punctuations on one side only", curves, x, y))
    before_end = values.samples[-2].punctuations
    steady = np.diff([s.punctuations for s in both.samples[6:-1]])
    report.claims += [
        Claim("12", "PJoin puts out none", f"{before_end} before the streams end", before_end == 0),
        Claim("12", "PWJoin a steady rate", f"{steady.mean():.1f} a second, at least {steady.min()}", bool(steady.min() > 0)),
    ]
