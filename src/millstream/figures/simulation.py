"""A run of one query whose tuples arrive by a schedule, in virtual time with a declared cost for each step, or by the machine's clock."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.block import Block
from millstream.core.clock import Clock, ManualClock
from millstream.graph.execution import Execution
from millstream.io import ListSource, MemorySink
from millstream.operators.project import Project
from millstream.pipeline import Pipeline
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime.launch import Launch
from millstream.runtime.local.run import LocalRun

Times = npt.NDArray[np.int64]

SECOND = 1_000_000
ARRIVED = "arrived"
"""The column of each stream that tells when a tuple arrived, in microseconds; a result must carry it on."""
SPIN = 2_000
"""Microseconds before an arrival from which on the machine's clock is watched: sleep is not that exact."""


@dataclass(frozen=True)
class Costs:
    """Microseconds that a step of an operator takes.

    Equal for all operators by default, as in the analysis of paper 001, section 6. The time of a tuple is a part of it: only a
    punctuation that comes without a tuple costs anything. Projections cost nothing unless asked for: the papers' graphs have
    none, ours have one where columns are dropped.
    """

    tuple: int = 5
    punctuation: int = 5
    projection: int = 0
    """For a tuple or a punctuation."""


@dataclass(frozen=True)
class Outcome:
    """What a run showed; times in microseconds."""

    latencies: Times
    left: Times
    """When each result left."""
    peak: int
    """Tuples in all buffers together, at most."""
    held: int
    """Tuples and punctuations in all buffers together, at most."""
    idle: float
    """The greatest share of the time that an operator has idle-waited."""
    seconds: float
    steps: int

    @property
    def latency(self) -> float:
        """Mean, in milliseconds."""
        return float(self.latencies.mean()) / 1000 if len(self.latencies) else float("nan")

    @property
    def median(self) -> float:
        """In milliseconds: what the machine does beside hardly moves it."""
        return float(np.median(self.latencies)) / 1000 if len(self.latencies) else float("nan")

    def summary(self) -> dict[str, float]:
        return {
            "latency_ms": round(self.latency, 6),
            "median_ms": round(self.median, 6),
            "idle_share": round(self.idle, 8),
            "peak_tuples": self.peak,
            "peak_tuples_and_punctuations": self.held,
            "results": len(self.latencies),
            "steps": self.steps,
            "seconds": round(self.seconds, 3),
        }


def poisson(rate: float, seconds: float, seed: int) -> Times:
    """Arrival times of a Poisson process."""
    chance = np.random.default_rng(seed)
    gaps = chance.exponential(1 / rate, size=max(16, int(rate * seconds * 1.5 + 10 * np.sqrt(rate * seconds) + 16)))
    times = (np.cumsum(gaps) * SECOND).astype(np.int64)
    return times[times < seconds * SECOND]


def bursts(rate: float, size: int, seconds: float, seed: int) -> Times:
    """The same rate in bursts of so many simultaneous tuples."""
    return np.repeat(poisson(rate / size, seconds, seed), size)


class Time(Clock, Protocol):
    """A clock that a simulation can wait for."""

    def spend(self, cost: int) -> None:
        """A step that has been declared to cost this has been taken."""

    def wait(self, until: int) -> None: ...


class Virtual(ManualClock):
    """Moves by what was declared, so that a run can be repeated exactly."""

    def spend(self, cost: int) -> None:
        self.advance(cost)

    def wait(self, until: int) -> None:
        self.advance(max(1, until - self.now()))


class Real:
    """The machine's clock from 0 on; a step takes what it takes."""

    def __init__(self) -> None:
        self.start = time.perf_counter_ns()

    def now(self) -> int:
        return (time.perf_counter_ns() - self.start) // 1000

    def spend(self, cost: int) -> None: ...

    def wait(self, until: int) -> None:
        left = until - self.now()
        if left > SPIN:
            time.sleep((left - SPIN) / SECOND)


class Simulation:
    """One query over streams that a schedule feeds. In virtual time nothing depends on the machine."""

    def __init__(
        self,
        streams: str,
        query: str,
        *,
        costs: Costs = Costs(),  # noqa: B008 (it is frozen)
        seed: int = 0,
        real: bool = False,
        mute: str | None = None,
    ) -> None:
        """`mute`: operators with such a label pass on no promises, only tuples, as in a system without punctuations."""
        self.clock: Time = Real() if real else Virtual()
        self.costs = costs
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
        vertices = self.executor.network.vertices
        self.projections = {number for number in self.executor.operators if isinstance(vertices[number].config, Project)}
        if mute is not None:
            self._mute({number for number in self.executor.operators if vertices[number].config.label.startswith(mute)})
        policies = [feed.ingest.stream.ets for feed in self.run.feeds]
        self.periods = [ets.period for ets in policies if ets.policy == "every" and ets.period is not None]
        self.chances = {name: np.random.default_rng([seed, number]) for number, name in enumerate(self.sources)}
        """One for each stream: what its tuples are does not depend on when they are read."""
        self.latencies: list[Times] = []
        self.left: list[Times] = []
        self.steps = 0
        self.peak = 0

    def _mute(self, operators: set[int]) -> None:
        emit = self.executor.network.emit

        def tuples_only(vertex: int, block: Block) -> None:
            if vertex not in operators:
                emit(vertex, block)
            elif len(block):
                emit(vertex, Block(block.batch))

        setattr(self.executor.network, "emit", tuples_only)  # noqa: B010 (a method)

    def _spend(self, operator: int, tuples: int, punctuations: int) -> None:
        self.steps += 1
        project = operator in self.projections
        each = self.costs.projection if project else self.costs.tuple if tuples else self.costs.punctuation
        self.clock.spend(each * (tuples or bool(punctuations)))

    def _result(self, sink: int, block: Block) -> None:
        if len(block):
            now = self.clock.now()
            arrived = np.asarray(block.batch.column(ARRIVED))
            self.latencies.append(now - arrived)
            self.left.append(np.full(len(arrived), now))

    def play(self, arrivals: Mapping[str, Times], seconds: float, warm: float = 0.0) -> Outcome:
        """Feed the streams until then; results that leave while it is still warming up do not count."""
        taken = dict.fromkeys(arrivals, 0)
        end = int(seconds * SECOND)
        woke = 0  # by the machine's clock we may oversleep: then a tuple arrives when we are awake, not before
        while (now := self.clock.now()) < end:
            unread = 0
            for name, times in arrivals.items():
                at, upto = taken[name], int(np.searchsorted(times, now, side="right"))
                if upto > at:
                    self.sources[name].push(self._tuples(name, np.maximum(times[at:upto], woke)))
                    taken[name] = upto
                    unread += upto - at
            self.peak = max(self.peak, self.executor.book.rows + unread)
            before = self.steps
            if self.run.step() or self.steps > before:
                continue
            coming = [int(times[taken[name]]) for name, times in arrivals.items() if taken[name] < len(times)]
            beats = [now - now % period + period for period in self.periods]
            dues = [mark for mark in self._due() if mark > now]
            self.clock.wait(min([*coming, *beats, *dues, end]))
            woke = self.clock.now()
        return self._outcome(int(warm * SECOND))

    def _due(self) -> list[int]:
        """Times at which a timestamp would let something go: somebody should be awake then."""
        return [mark for need in self.run.demand.needs(self.executor.due()) for mark in need.values()]

    def _outcome(self, warm: int) -> Outcome:
        now = self.clock.now()
        idle = max((gauge.idle_until(now) for gauge in self.executor.gauges.values()), default=0) / now
        left = np.concatenate(self.left) if self.left else np.empty(0, dtype=np.int64)
        latencies = np.concatenate(self.latencies) if self.latencies else np.empty(0, dtype=np.int64)
        counts = left >= warm
        book = self.executor.book
        return Outcome(
            latencies[counts], left[counts], max(self.peak, book.peak), max(self.peak, book.most), idle, now / SECOND, self.steps
        )

    def _tuples(self, name: str, times: Times) -> pa.RecordBatch:
        """Their arrival where a column tells it, chance in [0, 1) elsewhere."""
        schema = self.sources[name].schema
        columns: list[Any] = []
        for field in schema:
            values = times if field.name == ARRIVED else self.chances[name].random(len(times))
            columns.append(pa.array(values).cast(field.type) if not pa.types.is_timestamp(field.type) else pa.array(times).view(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)
