"""Two projections on top of each other become one; one that changes nothing goes away."""

from __future__ import annotations

from sqlglot import exp

from millstream.plan.nodes import Node, Project
from millstream.plan.rules.transform import bottom_up, duplicates_none, substitute


def merge_projections(plan: Node) -> Node:
    return bottom_up(plan, _change)


def _change(node: Node) -> Node:
    if not isinstance(node, Project):
        return node
    inner = node.input
    if isinstance(inner, Project) and _cheap(node, inner):
        meanings = dict(inner.columns)
        merged = tuple((name, substitute(e, meanings)) for name, e in node.columns)
        return _change(Project(inner.input, merged, node.time_column))
    if (
        node.schema == inner.schema
        and all(isinstance(e, exp.Column) and e.name == name for name, e in node.columns)
        and node.time == inner.time
    ):
        return inner
    return node


def _cheap(outer: Project, inner: Project) -> bool:
    """Merging must not compute anything twice."""
    computed = {name for name, e in inner.columns if not isinstance(e, exp.Column)}
    return duplicates_none([e for _, e in outer.columns], computed)
