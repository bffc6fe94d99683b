"""How long one tuple takes through a graph of six operators in this process, from its source to its sink."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median, quantiles

import pyarrow as pa

from millstream.graph.execution import Execution
from millstream.io import ListSource, MemorySink
from millstream.pipeline import Pipeline
from millstream.plan.catalog import Stream
from millstream.runtime.launch import Launch
from millstream.runtime.local.run import LocalRun
from millstream.runtime.visible import visible

TUPLES = 10_000
ROUNDS = 10
"""Sides take turns, so that whatever else the machine does meets all of them."""
WARM = 1_000
STEPS = 100
"""A tuple that is not there after so many steps of a run will never be."""

# Behind each stream a projection (of the columns that are read) and a selection, then the union and a projection: six operators.
# A tuple passes four of them; with its source and its sink that makes six as well.
GRAPH = """
CREATE STREAM A (k BIGINT, x DOUBLE) {time};
CREATE STREAM B (k BIGINT, x DOUBLE) {time};
CREATE SINK Out WITH (connector = 'memory');
INSERT INTO Out SELECT k, x * 2 AS y FROM (SELECT * FROM A WHERE x < 0.95 UNION ALL SELECT * FROM B WHERE x < 0.95) AS both;
"""
INTERNAL, LATENT = "TIMESTAMP INTERNAL AS ts", "TIMESTAMP LATENT"
IN_ORDER = "SET execution.order = 'in-order';"
ARCS = "SET execution.promises = 'arcs';"

LATENT_SIDE = "latent time"
SIDES = {
    LATENT_SIDE: ("", LATENT),
    "out of order": ("", INTERNAL),
    "in order": (IN_ORDER, INTERNAL),
    "in order, arcs": (IN_ORDER + ARCS, INTERNAL),
    "in order, breadth-first": (IN_ORDER + "SET execution.strategy = 'breadth-first';", INTERNAL),
    "in order, round-robin": (IN_ORDER + "SET execution.strategy = 'round-robin';", INTERNAL),
}
"""By name the settings, and the time of both streams. Depth-first, and promises that go as tuples do, unless told otherwise."""


class Path:
    """A run that is stepped tuple by tuple; each goes to the stream whose turn it is, and finds the other one silent."""

    def __init__(self, side: str) -> None:
        settings, timestamps = SIDES[side]
        pipeline = Pipeline()
        pipeline.add_text(settings + GRAPH.format(time=timestamps))
        launch = Launch.prepare(_handed(pipeline))
        self.sources = [source for source in launch.sources.values() if isinstance(source, ListSource)]
        self.run = LocalRun(launch.graph, launch.sources, launch.sinks, execution=Execution.of(pipeline.settings))
        self.sink = launch.sinks[0].writer(visible(self.run.schemas[0]), "00000", None)
        self.run.writers[0] = self.sink
        self.tuple = pa.RecordBatch.from_pydict({"k": [1], "x": [0.5]}, schema=self.sources[0].schema)
        self.sent = 0

    @property
    def operators(self) -> int:
        return len(self.run.stage.executor.operators)

    def send(self) -> float:
        """One tuple: the seconds from the moment it is handed to its source until the sink has it."""
        source = self.sources[self.sent % len(self.sources)]
        self.sent += 1
        written, steps = self.run.progress.written, 0
        began = time.perf_counter()
        source.push(self.tuple)
        while written.get(0, 0) < self.sent and steps < STEPS:
            self.run.step()
            steps += 1
        took = time.perf_counter() - began
        if steps == STEPS:
            raise AssertionError("a tuple was lost")
        return took


def _handed(pipeline: Pipeline) -> Pipeline:
    for stream in list(pipeline.catalog.relations):
        assert isinstance(stream, Stream)
        object.__setattr__(stream, "source", ListSource(stream.name, stream.read_schema, ended=False))
    object.__setattr__(pipeline.catalog.sinks.need("Out"), "sink", MemorySink("Out"))
    return pipeline


@dataclass
class Latency:
    """What one side showed, in seconds."""

    name: str
    operators: int
    rounds: list[list[float]] = field(default_factory=list)

    @property
    def seconds(self) -> list[float]:
        return [took for each in self.rounds for took in each]

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def late(self) -> float:
        """The 99th percentile."""
        return quantiles(self.seconds, n=100)[98]

    @property
    def quietest(self) -> float:
        """The median of the fastest round, in which the machine did least else."""
        return min(median(each) for each in self.rounds)


def measure(tuples: int = TUPLES, rounds: int = ROUNDS, warm: int = WARM, tell: Callable[[str], None] = lambda text: None) -> list[Latency]:
    """So many tuples through each side, in rounds, after some that are not counted."""
    paths = {side: Path(side) for side in SIDES}
    for path in paths.values():
        for _ in range(warm):
            path.send()
    found = [Latency(side, path.operators) for side, path in paths.items()]
    for number in range(rounds):
        tell(f"round {number + 1} of {rounds}")
        for each in found:
            path = paths[each.name]
            each.rounds.append([path.send() for _ in range(max(2, tuples // rounds))])
    return found
