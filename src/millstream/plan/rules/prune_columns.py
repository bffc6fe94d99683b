"""Carry only the columns that someone further on reads; a part that several queries share carries what any of them reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

from sqlglot import exp

from millstream.core.types import is_hidden
from millstream.plan.nodes import Aggregate, Distinct, Filter, Insert, Join, Node, Project, Scan, Sort, TableScan, Union
from millstream.plan.rules.transform import columns_of
from millstream.plan.scope import column

Names = set[str]


def prune_columns(plans: Sequence[Node], *, in_order: bool = False) -> list[Node]:
    """With `in_order` the times stay by which unions and joins wait for order, and by which their results are in order."""
    needed: dict[Node, Names] = {}
    nodes = _consumers_first(plans)
    for plan in plans:
        needed.setdefault(plan, set()).update(name for name in plan.schema.names if not is_hidden(name))
    for node in nodes:
        if in_order and _waits(node) and node.time in node.schema.names:
            needed[node].add(str(node.time))
        for child, names in zip(node.inputs, _wants(node, needed[node], in_order), strict=True):
            needed.setdefault(child, set()).update(names & set(child.schema.names))
    pruned: dict[Node, Node] = {}
    for node in reversed(nodes):
        wants = _wants(node, needed[node], in_order)
        inputs = [_only(pruned[child], names) for child, names in zip(node.inputs, wants, strict=True)]
        pruned[node] = _rebuilt(node, needed[node], inputs)
    return [pruned[plan] for plan in plans]


def _consumers_first(plans: Sequence[Node]) -> list[Node]:
    """Every different node once, after all nodes that read it."""
    done: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in done:
            for child in node.inputs:
                visit(child)
            done[node] = None

    for plan in plans:
        visit(plan)
    return list(done)[::-1]


def _only(node: Node, needed: Names) -> Node:
    """A projection to the needed columns, where that drops any; one stays, since a batch without columns counts nothing."""
    names = [name for name in node.schema.names if name in needed] or [node.time or node.schema.names[0]]
    if len(names) == len(node.schema.names):
        return node
    time = node.time if node.time in names else None
    return Project(node, tuple((name, column(name)) for name in names), time)


def _wants(node: Node, needed: Names, in_order: bool) -> list[Names]:
    asked = _asks(node, needed)
    if in_order and _waits(node):
        return [names | {str(child.time)} for child, names in zip(node.inputs, asked, strict=True)]
    return asked


def _waits(node: Node) -> bool:
    """Whether tuples wait for order before it, where they do."""
    joins = isinstance(node, Join) or (isinstance(node, Union) and node.time is not None)
    return joins and all(child.time in child.schema.names for child in node.inputs)


@singledispatch
def _asks(node: Node, needed: Names) -> list[Names]:
    """What a node must read of each input to give the needed columns."""
    return [set(needed) for _ in node.inputs]


@_asks.register
def _(node: Filter, needed: Names) -> list[Names]:
    return [needed | columns_of(node.predicate)]


@_asks.register
def _(node: Project, needed: Names) -> list[Names]:
    return [set().union(*(columns_of(e) for _, e in _kept(node, needed)))]


@_asks.register
def _(node: Join, needed: Names) -> list[Names]:
    below = set(needed)
    for expression in node.condition:
        below |= columns_of(expression)
    for a, b in node.keys:
        below |= columns_of(a) | columns_of(b)
    for band in node.bands:
        below |= {band.left, band.right}
    if _stamped(node, needed):
        below |= {str(node.left.time), str(node.right.time)}
    return [below, below]


@_asks.register
def _(node: Aggregate, needed: Names) -> list[Names]:
    below = {node.window.attribute} if node.window is not None else set()
    for _, expression in node.groups:
        below |= columns_of(expression)
    for call in node.calls:
        if call.name in needed and call.argument is not None:
            below |= columns_of(call.argument)
    return [below]


@_asks.register
def _(node: Distinct, needed: Names) -> list[Names]:
    return [set(node.keys) | ({node.window.attribute} if node.window is not None else set())]


@_asks.register
def _(node: Sort, needed: Names) -> list[Names]:
    return [needed | {key.name for key in node.keys}]


@singledispatch
def _rebuilt(node: Node, needed: Names, inputs: list[Node]) -> Node:
    return node.with_inputs(inputs)


@_rebuilt.register(Scan)
@_rebuilt.register(TableScan)
def _(node: Node, needed: Names, inputs: list[Node]) -> Node:
    return _only(node, needed)


@_rebuilt.register
def _(node: Insert, needed: Names, inputs: list[Node]) -> Node:
    return replace(node, input=_only(inputs[0], needed))


@_rebuilt.register
def _(node: Project, needed: Names, inputs: list[Node]) -> Node:
    columns = _kept(node, needed)
    return Project(inputs[0], columns, node.time_column if node.time_column in dict(columns) else None)


@_rebuilt.register
def _(node: Join, needed: Names, inputs: list[Node]) -> Node:
    keep = tuple(name for name in node.schema.names if name in needed) or tuple(node.schema.names[:1])
    return replace(node, left=inputs[0], right=inputs[1], stamped=_stamped(node, needed), keep=keep)


@_rebuilt.register
def _(node: Aggregate, needed: Names, inputs: list[Node]) -> Node:
    return replace(node, input=inputs[0], calls=tuple(call for call in node.calls if call.name in needed))


def _kept(node: Project, needed: Names) -> tuple[tuple[str, exp.Expr], ...]:
    return tuple((name, e) for name, e in node.columns if name in needed) or node.columns[:1]


def _stamped(node: Join, needed: Names) -> bool:
    return node.time is not None and node.time == node.stamp and node.time in needed
