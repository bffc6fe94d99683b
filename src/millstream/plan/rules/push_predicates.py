"""Move each condition as near to its source as it may go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from millstream.plan.nodes import Aggregate, Filter, Join, Node, Project, Scan, TableScan, Union
from millstream.plan.rules.transform import bottom_up, columns_of, duplicates_none, substitute


def push_predicates(plan: Node) -> Node:
    """Filters sink through projections, unions and joins; what needs both sides becomes the join's condition."""
    return bottom_up(plan, _change)


def _change(node: Node) -> Node:
    if isinstance(node, Filter):
        return _sunk(node.input, node.predicate) or node
    if isinstance(node, Join):
        return _sink_condition(node)
    return node


def _sink(node: Node, predicate: exp.Expr) -> Node:
    """The node with the predicate as near to the sources as it may go."""
    return _sunk(node, predicate) or Filter(node, predicate)


def _sunk(node: Node, predicate: exp.Expr) -> Node | None:
    """The node with the predicate somewhere below it; None where it can not go there."""
    needed = columns_of(predicate)
    if isinstance(node, Filter):
        # A filter that can go no deeper stays on top, so that queries over one view share the view's own filter.
        above: list[Filter] = []
        below: Node = node
        while isinstance(below, Filter):
            above.append(below)
            below = below.input
        sunk = _sunk(below, predicate)
        if sunk is not None:
            for filtered in reversed(above):
                sunk = replace(filtered, input=sunk)
        return sunk
    if isinstance(node, Project):
        meanings = {name: e for name, e in node.columns if name in needed}
        if len(meanings) == len(needed) and _worth(node, predicate, meanings):
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
    return None


def _worth(node: Project, predicate: exp.Expr, meanings: Mapping[str, exp.Expr]) -> bool:
    """True when the predicate costs no more below, or computes columns once more and spares an operator work."""
    computed = {name for name, e in meanings.items() if not isinstance(e, exp.Column)}
    if not computed:
        return True
    below: Node = node.input
    while isinstance(below, (Filter, Project)):
        below = below.input
    return not isinstance(below, (Scan, TableScan)) and duplicates_none([predicate], computed)


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
