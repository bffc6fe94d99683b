"""The Python API: a session holds declarations, handles build queries, a query runs."""

from __future__ import annotations

from millstream.session.handle import Grouped, StreamHandle
from millstream.session.query import Plan, Query
from millstream.session.session import Session

__all__ = ["Grouped", "Plan", "Query", "Session", "StreamHandle"]
