"""Rates over the last seconds of a run."""

from __future__ import annotations

import time
from collections import deque

RECENT = 10.0
"""Seconds that a recent rate looks back."""


class Meter:
    """Counts of tuples in and out as they were; `rates` gives tuples per second over the last seconds."""

    def __init__(self) -> None:
        self.seen: deque[tuple[float, int, int]] = deque([(time.monotonic(), 0, 0)])

    def rates(self, tuples_in: int, tuples_out: int, now: float | None = None) -> tuple[float, float]:
        now = time.monotonic() if now is None else now
        if now - self.seen[-1][0] >= RECENT / 50:
            self.seen.append((now, tuples_in, tuples_out))
        while len(self.seen) > 2 and now - self.seen[1][0] >= RECENT:
            self.seen.popleft()
        since, first_in, first_out = self.seen[0]
        passed = now - since
        return ((tuples_in - first_in) / passed, (tuples_out - first_out) / passed) if passed > 0 else (0.0, 0.0)
