"""Carry only the columns that someone further on reads."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from millstream.core.types import is_hidden
from millstream.plan.nodes import Aggregate, Distinct, Filter, Insert, Join, Node, Project, Scan, Sort, TableScan, Union
from millstream.plan.rules.transform import columns_of
from millstream.plan.scope import column


def prune_columns(plan: Node) -> Node:
    needed = {name for name in plan.schema.names if not is_hidden(name)}
    return _prune(plan, needed)


@singledispatch
def _prune(node: Node, needed: set[str]) -> Node:
    raise TypeError(f"no pruning rule for {type(node).__name__}")


def _only(node: Node, needed: set[str]) -> Node:
    """A projection to the needed columns, where that drops any; one stays, since a batch without columns counts nothing."""
    names = [name for name in node.schema.names if name in needed] or [node.time or node.schema.names[0]]
    if len(names) == len(node.schema.names):
        return node
    time = node.time if node.time in names else None
    return Project(node, tuple((name, column(name)) for name in names), time)


@_prune.register
def _(node: Insert, needed: set[str]) -> Node:
    return replace(node, input=_only(_prune(node.input, needed), needed))


@_prune.register
def _(node: Scan, needed: set[str]) -> Node:
    # The time stays: the gate behind the source tells late tuples by it.
    return _only(node, needed | {node.stream.time})


@_prune.register
def _(node: TableScan, needed: set[str]) -> Node:
    return _only(node, needed)


@_prune.register
def _(node: Filter, needed: set[str]) -> Node:
    return replace(node, input=_prune(node.input, needed | columns_of(node.predicate)))


@_prune.register
def _(node: Project, needed: set[str]) -> Node:
    columns = tuple((name, e) for name, e in node.columns if name in needed) or node.columns[:1]
    below = set().union(*(columns_of(e) for _, e in columns))
    time = node.time_column if node.time_column in dict(columns) else None
    return Project(_prune(node.input, below), columns, time)


@_prune.register
def _(node: Union, needed: set[str]) -> Node:
    return Union(tuple(_only(_prune(member, set(needed)), needed) for member in node.members))


@_prune.register
def _(node: Join, needed: set[str]) -> Node:
    below = set(needed)
    for expression in node.condition:
        below |= columns_of(expression)
    for a, b in node.keys:
        below |= columns_of(a) | columns_of(b)
    for band in node.bands:
        below |= {band.left, band.right}
    stamped = node.time is not None and node.time in needed
    if stamped:
        below |= {str(node.left.time), str(node.right.time)}
    left = _only(_prune(node.left, below & set(node.left.schema.names)), below)
    right = _only(_prune(node.right, below & set(node.right.schema.names)), below)
    keep = tuple(name for name in node.schema.names if name in needed) or node.schema.names[:1]
    return replace(node, left=left, right=right, stamped=stamped, keep=tuple(keep))


@_prune.register
def _(node: Aggregate, needed: set[str]) -> Node:
    calls = tuple(call for call in node.calls if call.name in needed)
    below = {node.window.attribute} if node.window is not None else set()
    for _, expression in node.groups:
        below |= columns_of(expression)
    for call in calls:
        below |= columns_of(call.argument) if call.argument is not None else set()
    return replace(node, input=_only(_prune(node.input, below), below), calls=calls)


@_prune.register
def _(node: Distinct, needed: set[str]) -> Node:
    below = set(node.keys) | ({node.window.attribute} if node.window is not None else set())
    return replace(node, input=_only(_prune(node.input, below), below))


@_prune.register
def _(node: Sort, needed: set[str]) -> Node:
    return replace(node, input=_prune(node.input, needed | {name for name, _ in node.keys}))
