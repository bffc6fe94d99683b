"""Where the present comes from: the machine's clock, or one that is moved by hand."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Microseconds since the epoch, UTC."""


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1000


class ManualClock:
    """For tests and repeatable runs: time stands still until it is moved."""

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def advance(self, by: int) -> None:
        self._now += by
