"""A testing kit for users' own pipelines: feed lists of tuples, get lists of tuples."""

from __future__ import annotations

from millstream.core.clock import ManualClock
from millstream.testing.run import Result, run

__all__ = ["ManualClock", "Result", "run"]
