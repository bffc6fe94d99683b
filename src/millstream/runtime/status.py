"""How far a run is, and how it goes: the same for both runtimes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.runtime.gauges import OperatorMetrics
from millstream.runtime.spent import BatchTime


@dataclass
class Status:
    """How far a run is; the same for both runtimes."""

    tuples_in: dict[str, int] = field(default_factory=dict)
    tuples_out: int = 0
    written: dict[str, int] = field(default_factory=dict)
    """Tuples by sink."""
    letters: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    state_rows: int = 0
    state_bytes: int = 0
    seconds: float = 0.0
    batches: int = 0
    stopped: bool = False
    letters_path: str | None = None
    rate_in: float = 0.0
    """Tuples a second over the last 10 s, of all streams; `mean_in` is that of the whole run."""
    rate_out: float = 0.0
    behind: dict[str, float] = field(default_factory=dict)
    """Seconds from the low-water mark to the clock, of each stream that has no end."""
    batch: BatchTime = field(default_factory=BatchTime)
    """The last micro-batch on Spark."""
    spent: dict[str, float] = field(default_factory=dict)
    """Seconds of the run by part (see `BatchTime`), over all micro-batches."""
    remarks: list[str] = field(default_factory=list)
    """Lines that the user should read; none goes away again."""
    operators: list[OperatorMetrics] = field(default_factory=list)
    """In the order of the graph; on Spark those that have run so far."""

    @property
    def mean_in(self) -> float:
        return sum(self.tuples_in.values()) / self.seconds if self.seconds else 0.0

    @property
    def mean_out(self) -> float:
        return self.tuples_out / self.seconds if self.seconds else 0.0

    @property
    def late(self) -> int:
        return self.letters.get("late", 0)

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON; low-water marks that are none yet are null, those of streams that have ended are missing."""
        marks = {name: None if mark == MIN_TIME else mark for name, mark in self.marks.items() if mark != MAX_TIME}
        means = {"mean_in": self.mean_in, "mean_out": self.mean_out, "late": self.late}
        return {**asdict(self), "marks": marks, **means}
