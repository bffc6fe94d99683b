"""Move each condition as near to its source as it may go."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millstream.plan.nodes import Aggregate, Filter, Join, Node, Project, Union
from millstream.plan.rules.transform import bottom_up, columns_of, substitute


def push_predicates(plan: Node) -> Node:
    """Filters sink through projections, unions and joins; what needs both sides becomes the join's condition."""
    return bottom_up(plan, _change)


def _change(node: Node) -> Node:
    if isinstance(node, Filter):
        return _sink(node.input, node.predicate)
    if isinstance(node, Join):
        return _sink_condition(node)
    return node


def _sink(node: Node, predicate: exp.Expr) -> Node:
    needed = columns_of(predicate)
    if isinstance(node, Filter):
        sunk = _sink(node.input, predicate)
        # A filter that can go no deeper stays on top, so that queries over one view share the view's own filter.
        return Filter(node, predicate) if sunk == Filter(node.input, predicate) else replace(node, input=sunk)
    if isinstance(node, Project):
        meanings = dict(node.columns)
        if all(c in meanings for c in needed):
            return replace(node, input=_sink(node.input, substitute(predicate, meanings)))
    if isinstance(node, Union):
        return Union(tuple(_sink(member, predicate) for member in node.members))
    if isinstance(node, Aggregate):
        groups = {name: e for name, e in node.groups if isinstance(e, exp.Column)}
        if needed and needed <= set(groups):
            return replace(node, input=_sink(node.input, substitute(predicate, groups)))
    if isinstance(node, Join):
        if needed <= set(node.left.schema.names):
            return replace(node, left=_sink(node.left, predicate))
        if node.kind == "inner" and needed <= set(node.right.schema.names):
            return replace(node, right=_sink(node.right, predicate))
        if node.kind == "inner" and needed <= set(node.pair_schema.names):
            return replace(node, condition=(*node.condition, predicate))
    return Filter(node, predicate)


def _sink_condition(node: Join) -> Node:
    """Parts of ON that concern one side only go there, where that does not change who is unmatched."""
    left, right, kept = node.left, node.right, []
    for part in node.condition:
        needed = columns_of(part)
        if needed <= set(right.schema.names):
            right = _sink(right, part)
        elif node.kind in ("inner", "semi") and needed <= set(left.schema.names):
            left = _sink(left, part)
        else:
            kept.append(part)
    return replace(node, left=left, right=right, condition=tuple(kept))
