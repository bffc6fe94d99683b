"""What is known of a stream before it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """How much comes in a second."""

    tuples: float
    closings: float = 0.0
    """Values declared finished."""
    values: float = 0.0
    """Values that occur for the first time."""
    ahead: float = 0.0
    """Values that occur at once, before any is finished."""

    def values_until(self, seconds: float) -> float:
        return self.ahead + self.values * seconds
