"""A run under a virtual clock: tuples arrive by a schedule, each step costs what was declared, and we note what comes out when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.block import Block
from millstream.core.clock import ManualClock
from millstream.io import ListSource, MemorySink
from millstream.pipeline import Pipeline
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime.execution import Execution
from millstream.runtime.launch import Launch
from millstream.runtime.local.run import LocalRun

Times = npt.NDArray[np.int64]

SECOND = 1_000_000
ARRIVED = "arrived"
"""The column of each stream that tells when a tuple arrived, in microseconds; a result must carry it on."""


@dataclass(frozen=True)
class Costs:
    """Microseconds that an operator takes for a tuple, and for a punctuation."""

    tuple: int = 5
    punctuation: int = 5


@dataclass(frozen=True)
class Outcome:
    """What a run showed; times in microseconds."""

    latencies: Times
    left: Times
    """When each result left."""
    peak: int
    """Tuples in all buffers together, at most."""
    idle: float
    """The greatest share of the time that an operator has idle-waited."""
    seconds: float
    steps: int

    @property
    def latency(self) -> float:
        """Mean, in milliseconds."""
        return float(self.latencies.mean()) / 1000 if len(self.latencies) else float("nan")


def poisson(rate: float, seconds: float, seed: int) -> Times:
    """Arrival times of a Poisson process."""
    chance = np.random.default_rng(seed)
    gaps = chance.exponential(1 / rate, size=max(16, int(rate * seconds * 1.5 + 10 * np.sqrt(rate * seconds) + 16)))
    times = (np.cumsum(gaps) * SECOND).astype(np.int64)
    return times[times < seconds * SECOND]


class Simulation:
    """One query over streams that a schedule feeds. It can be repeated exactly: nothing depends on the machine's clock."""

    def __init__(self, streams: str, query: str, *, costs: Costs = Costs(), seed: int = 0) -> None:  # noqa: B008 (it is frozen)
        self.clock = ManualClock()
        self.costs = costs
        self.chance = np.random.default_rng(seed)
        pipeline = Pipeline()
        pipeline.catalog.sinks.add("Out", SinkEntry("Out", {}, None, MemorySink("Out")))
        self.sources: dict[str, ListSource] = {}
        pipeline.add_text(streams)
        for key, (name, entry) in list(pipeline.catalog.relations._entries.items()):
            if isinstance(entry, Stream):
                self.sources[name] = ListSource(name, entry.read_schema, ended=False)
                pipeline.catalog.relations._entries[key] = (name, replace(entry, source=self.sources[name]))
        pipeline.add_text(f"INSERT INTO Out {query};")
        launch = Launch.prepare(pipeline)
        self.run = LocalRun(launch.graph, launch.sources, launch.sinks, clock=self.clock, execution=Execution.of(pipeline.settings))
        self.executor = self.run.stage.executor
        self.executor.book.now = self.clock.now
        self.executor.on_step = self._spend
        self.run.stage.on_result = self._result
        policies = [feed.ingest.stream.ets for feed in self.run.feeds]
        self.periods = [ets.period for ets in policies if ets.policy == "every" and ets.period is not None]
        self.latencies: list[Times] = []
        self.left: list[Times] = []
        self.steps = 0
        self.peak = 0

    def _spend(self, operator: int, tuples: int, punctuations: int) -> None:
        self.steps += 1
        self.clock.advance(tuples * self.costs.tuple + punctuations * self.costs.punctuation)

    def _result(self, sink: int, block: Block) -> None:
        if len(block):
            now = self.clock.now()
            arrived = np.asarray(block.batch.column(ARRIVED))
            self.latencies.append(now - arrived)
            self.left.append(np.full(len(arrived), now))

    def play(self, arrivals: Mapping[str, Times], seconds: float) -> Outcome:
        """Feed the streams until then."""
        taken = dict.fromkeys(arrivals, 0)
        end = int(seconds * SECOND)
        while (now := self.clock.now()) < end:
            unread = 0
            for name, times in arrivals.items():
                at, upto = taken[name], int(np.searchsorted(times, now, side="right"))
                if upto > at:
                    self.sources[name].push(self._tuples(name, times[at:upto]))
                    taken[name] = upto
                    unread += upto - at
            self.peak = max(self.peak, self.executor.book.rows + unread)
            if self.run.step() or self.clock.now() > now:
                continue
            coming = [int(times[taken[name]]) for name, times in arrivals.items() if taken[name] < len(times)]
            beats = [now - now % period + period for period in self.periods]
            self.clock.advance(max(1, min([*coming, *beats, end]) - now))
        gauges = self.executor.gauges.values()
        idle = max((gauge.idle_until(self.clock.now()) for gauge in gauges), default=0) / self.clock.now()
        latencies = np.concatenate(self.latencies) if self.latencies else np.empty(0, dtype=np.int64)
        left = np.concatenate(self.left) if self.left else np.empty(0, dtype=np.int64)
        peak = max(self.peak, self.executor.book.peak)
        return Outcome(latencies, left, peak, idle, self.clock.now() / SECOND, self.steps)

    def _tuples(self, name: str, times: Times) -> pa.RecordBatch:
        """Their arrival where a column tells it, chance in [0, 1) elsewhere."""
        schema = self.sources[name].schema
        columns: list[Any] = []
        for field in schema:
            values = times if field.name == ARRIVED else self.chance.random(len(times))
            columns.append(pa.array(values).cast(field.type) if not pa.types.is_timestamp(field.type) else pa.array(times).view(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)
