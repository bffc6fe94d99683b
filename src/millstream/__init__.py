"""Continuous SQL over streams that carry their own progress, in one process or on Spark."""

from __future__ import annotations

import sys

TYPE_CHECKING = (
    False  # that of `typing`, whose import takes most of the time in which an interrupt shows a traceback
)

DEPTH = 10_000
"""Calls within calls: an expression of 400 additions takes some 1,600, a plan of 200 views some 3,000."""

# Also in each worker, because expressions are evaluated there.
sys.setrecursionlimit(max(sys.getrecursionlimit(), DEPTH))

__version__ = "0.1.0"

if TYPE_CHECKING:
    from millstream import errors, testing
    from millstream.errors import MillstreamError
    from millstream.io import ListSource, MemorySink
    from millstream.session import Query, Session, StreamHandle

__all__ = ["ListSource", "MemorySink", "MillstreamError", "Query", "Session", "StreamHandle", "__version__", "errors", "testing"]

_HOMES = {
    "ListSource": "millstream.io",
    "MemorySink": "millstream.io",
    "MillstreamError": "millstream.errors",
    "Query": "millstream.session",
    "Session": "millstream.session",
    "StreamHandle": "millstream.session",
}


def __getattr__(name: str) -> object:
    """Names are imported when they are first used, so that `import millstream` takes no time."""
    import importlib

    if name in ("errors", "testing"):
        return importlib.import_module(f"millstream.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'millstream' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
