"""The logical plan: nodes that check themselves, so that a plan that exists is valid."""

from __future__ import annotations

from millstream.plan.nodes.aggregate import Aggregate, Call, Distinct
from millstream.plan.nodes.base import Expression, Node
from millstream.plan.nodes.join import Band, Join
from millstream.plan.nodes.simple import Filter, Project, Sort, Union, Windowed
from millstream.plan.nodes.streams import Insert, Scan, TableScan

__all__ = [
    "Aggregate",
    "Band",
    "Call",
    "Distinct",
    "Expression",
    "Filter",
    "Insert",
    "Join",
    "Node",
    "Project",
    "Scan",
    "Sort",
    "TableScan",
    "Union",
    "Windowed",
]
