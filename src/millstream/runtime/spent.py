"""Where the time of a run goes: tasks measure their own parts, and what is left of a micro-batch is Spark's."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

READ, WORK, STATE, SINK, TRANSFER, SPARK = "read", "work", "state", "sink", "transfer", "spark"
OURS = (READ, WORK, STATE, SINK)
"""Reading and ingest, the operators, state taken up and written, results written and committed."""
PARTS = (*OURS, TRANSFER, SPARK)
"""Transfer: blocks handed between the JVM and Python. Spark: planning, logs, scheduling, shuffle."""


class Watch:
    """Laps of one process; `lap` gives the time since the last one to a part."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}
        self.last = time.perf_counter()

    def lap(self, part: str) -> None:
        now = time.perf_counter()
        self.parts[part] = self.parts.get(part, 0.0) + now - self.last
        self.last = now

    def pause(self) -> None:
        """What has passed since the last lap belongs to nobody here."""
        self.last = time.perf_counter()


@dataclass(frozen=True)
class Spent:
    """What one task tells: seconds by part, and which worker it ran in."""

    stage: int
    worker: str
    parts: Mapping[str, float]


@dataclass(frozen=True)
class BatchTime:
    """The seconds of one micro-batch; its parts add up to them."""

    seconds: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    began: float = 0.0
    """When it was decided what it takes, in seconds since 1970."""

    @property
    def ours(self) -> float:
        return sum(self.parts.get(part, 0.0) for part in OURS)

    def share(self, part: str) -> float:
        return self.parts.get(part, 0.0) / self.seconds if self.seconds else 0.0


def begin_of(report: Mapping[str, Any]) -> float:
    """When the sources had told what a micro-batch takes, by Spark's report of it."""
    waited = float(report["durationMs"].get("latestOffset", 0)) / 1000
    return datetime.fromisoformat(report["timestamp"]).timestamp() + waited


def batch_time(seconds: float, spent: Iterable[Spent], driver: float, began: float = 0.0) -> BatchTime:
    """The parts of a micro-batch that took so many seconds.

    Stages run one after the other, and a stage lasts as long as its busiest worker; so the parts are those of the busiest worker of each
    stage, added up, and what the driver took to commit. The rest is Spark's.
    """
    by_worker: dict[tuple[int, str], dict[str, float]] = {}
    for each in spent:
        found = by_worker.setdefault((each.stage, each.worker), {})
        for part, taken in each.parts.items():
            found[part] = found.get(part, 0.0) + taken
    busiest: dict[int, dict[str, float]] = {}
    for (stage, _), parts in by_worker.items():
        if sum(parts.values()) > sum(busiest.get(stage, {}).values()):
            busiest[stage] = parts
    total = dict.fromkeys(PARTS, 0.0)
    for parts in (*busiest.values(), {SINK: driver}):
        for part, taken in parts.items():
            total[part] += taken
    measured = sum(total.values())
    # Clocks of several processes: should they have more than there was, everything shrinks alike.
    scale = min(1.0, seconds / measured) if measured else 1.0
    total = {part: taken * scale for part, taken in total.items()}
    total[SPARK] = max(0.0, seconds - sum(total.values()))
    return BatchTime(seconds, total, began)
