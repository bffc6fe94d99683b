"""What each operator has done so far, how long its queue is, and how long tuples have waited there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SECOND = 1_000_000


@dataclass(frozen=True)
class OperatorMetrics:
    """How one operator does, for people and machines; times are in seconds."""

    number: int
    name: str
    """As EXPLAIN GRAPH shows it."""
    steps: int
    busy: float
    """In its steps."""
    idle: float
    """The share of the run's time in which tuples waited inside for another input (idle-waiting)."""
    queue: int
    """Tuples before it, and those that wait inside."""
    peak: int
    latency: float | None
    """From the moment that a tuple comes into the queue until it has been worked on, on the mean; None before the first."""
    tuples_in: int
    tuples_out: int
    selectivity: float | None
    """Tuples out for each one in."""
    punctuations_in: int
    punctuations_out: int
    slept: int = 0
    """Tuples that nobody further on needed when they came: they were not joined."""
    woken: int = 0
    """Those of them that were needed later."""


@dataclass(slots=True)
class Gauge:
    """Counters of one operator; times are in microseconds of the executor's clock, and of tuples added up."""

    steps: int = 0
    busy: int = 0
    tuples_in: int = 0
    tuples_out: int = 0
    punctuations_in: int = 0
    punctuations_out: int = 0
    queued: int = 0
    """How long the tuples taken had been in the buffers before."""
    worked: int = 0
    """How long the steps took that they were taken in."""
    held: int = 0
    """How long tuples have waited inside for another input."""
    idle: int = 0
    """How long it has not worked while there were such (idle-waiting)."""
    waiting: int = 0
    since: int = 0
    """When so many began to wait."""
    queue: int = 0
    peak: int = 0
    slept: int = 0
    woken: int = 0

    @property
    def selectivity(self) -> float:
        """Tuples out for each one in."""
        return self.tuples_out / self.tuples_in if self.tuples_in else 1.0

    @property
    def cost(self) -> float:
        """Microseconds for a tuple."""
        return self.busy / self.tuples_in if self.tuples_in else 0.0

    def note_step(self, took: int, tuples: int, punctuations: int, queued: int) -> None:
        self.steps += 1
        self.busy += took
        self.tuples_in += tuples
        self.punctuations_in += punctuations
        self.queued += queued
        self.worked += took * tuples

    def note_waiting(self, waiting: int, began: int, ended: int) -> None:
        """After a step between these times: so many tuples wait inside from now on. Whoever works does not idle-wait."""
        if self.waiting:
            self.idle += began - self.since
            self.held += (ended - self.since) * self.waiting
        self.waiting, self.since = waiting, ended

    def idle_until(self, now: int) -> int:
        return self.idle + (now - self.since if self.waiting else 0)

    def add(self, other: Gauge) -> None:
        """What was counted elsewhere; who waits is another matter (see `Totals`)."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def metrics(self, number: int, name: str, lifetime: int, now: int) -> OperatorMetrics:
        """In a run that has lasted so long."""
        held = self.held + (now - self.since) * self.waiting
        return OperatorMetrics(
            number,
            name,
            steps=self.steps,
            busy=self.busy / SECOND,
            idle=min(1.0, self.idle_until(now) / lifetime) if lifetime > 0 else 0.0,
            queue=self.queue,
            peak=max(self.peak, self.queue),
            latency=(self.queued + self.worked + held) / self.tuples_in / SECOND if self.tuples_in else None,
            tuples_in=self.tuples_in,
            tuples_out=self.tuples_out,
            selectivity=self.tuples_out / self.tuples_in if self.tuples_in else None,
            punctuations_in=self.punctuations_in,
            punctuations_out=self.punctuations_out,
            slept=self.slept,
            woken=self.woken,
        )


_COUNTS = ("steps", "busy", "tuples_in", "tuples_out", "punctuations_in", "punctuations_out", "queued", "worked", "slept", "woken")

Told = tuple[int | None, Iterable[tuple[int, Gauge]]]
"""A bucket (None: a task that reads sources), and the gauges of its operators since it told last."""


class Totals:
    """The gauges of all buckets of a run added up, in the user's process.

    Time goes on between micro-batches, so who waits is counted here, from the end of one micro-batch to the end of the next.
    """

    def __init__(self) -> None:
        self.gauges: dict[int, Gauge] = {}
        self._queues: dict[int, dict[int, int]] = {}

    def take(self, told: Iterable[Told], now: int) -> None:
        """What a micro-batch has to tell. Its peak is that of all buckets together, were they at theirs at the same time."""
        peaks: dict[int, dict[int, int]] = {}
        for bucket, gauges in told:
            for number, gauge in gauges:
                total = self.gauges.setdefault(number, Gauge())
                total.add(gauge)
                if bucket is None:  # it has read a piece to the end; nothing is left, and other tasks work at other times
                    total.peak = max(total.peak, gauge.peak)
                else:
                    self._queues.setdefault(number, {})[bucket] = gauge.queue
                    peaks.setdefault(number, {})[bucket] = gauge.peak
        for number, of in peaks.items():
            total, queues = self.gauges[number], self._queues[number]
            total.queue = sum(queues.values())
            total.peak = max(total.peak, sum((queues | of).values()))
            total.note_waiting(total.queue, now, now)

    def metrics(self, names: Mapping[int, str], lifetime: int, now: int) -> list[OperatorMetrics]:
        """Of the operators that are there: of one that has gone nobody asks any more."""
        return [self.gauges[number].metrics(number, names[number], lifetime, now) for number in sorted(self.gauges) if number in names]
