"""A testing kit for users' own pipelines: feed lists of tuples, get lists of tuples."""

from __future__ import annotations

from millstream.core.clock import ManualClock
from millstream.io import ListSource, MemorySink
from millstream.testing.live import Live
from millstream.testing.run import Result, run

__all__ = ["ListSource", "Live", "ManualClock", "MemorySink", "Result", "run"]
