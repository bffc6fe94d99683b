"""What one operator has done so far, and how long it has waited."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Gauge:
    """Counters of one operator; times are in microseconds of the executor's clock."""

    steps: int = 0
    busy: int = 0
    tuples_in: int = 0
    tuples_out: int = 0
    punctuations_in: int = 0
    punctuations_out: int = 0
    idle: int = 0
    """How long it has not worked while tuples waited inside for another input (idle-waiting)."""
    idle_since: int | None = None

    @property
    def selectivity(self) -> float:
        """Tuples out for each one in."""
        return self.tuples_out / self.tuples_in if self.tuples_in else 1.0

    @property
    def cost(self) -> float:
        """Microseconds for a tuple."""
        return self.busy / self.tuples_in if self.tuples_in else 0.0

    def note_waiting(self, waits: bool, began: int, ended: int) -> None:
        """After a step between these times: whoever works does not idle-wait."""
        if self.idle_since is not None:
            self.idle += began - self.idle_since
        self.idle_since = ended if waits else None

    def idle_until(self, now: int) -> int:
        return self.idle + (now - self.idle_since if self.idle_since is not None else 0)
