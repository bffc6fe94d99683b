"""Where a join makes two columns equal, all that follows reads the first of them: so a promise about one speaks of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

import pyarrow as pa
from sqlglot import exp

from millstream.plan.bands import merged_bands
from millstream.plan.nodes import Aggregate, Filter, Join, Node, Project
from millstream.plan.rules.transform import substitute
from millstream.plan.scope import column

Same = dict[str, exp.Expr]
"""Columns that have the values of another one, and that other one."""


def unify_columns(plan: Node) -> Node:
    return _visit(plan)[0]


def _visit(node: Node) -> tuple[Node, Same]:
    visited = [_visit(child) for child in node.inputs]
    inputs = tuple(child for child, _ in visited)
    if inputs != node.inputs:
        node = node.with_inputs(inputs)
    return _unified(node, {name: other for _, same in visited for name, other in same.items()})


@singledispatch
def _unified(node: Node, same: Same) -> tuple[Node, Same]:
    """The node, reading one column where its input has several with the same values, and which of its own have."""
    return node, {}


@_unified.register
def _(node: Filter, same: Same) -> tuple[Node, Same]:
    return (replace(node, predicate=substitute(node.predicate, same)) if same else node), same


@_unified.register
def _(node: Project, same: Same) -> tuple[Node, Same]:
    columns = tuple((name, substitute(e, same)) for name, e in node.columns)
    return (replace(node, columns=columns) if same else node), _copies(columns, node.time_column)


@_unified.register
def _(node: Aggregate, same: Same) -> tuple[Node, Same]:
    groups = tuple((name, substitute(e, same)) for name, e in node.groups)
    if same and node.window is not None:
        node = replace(node, window=replace(node.window, attribute=_first(node.window.attribute, same)))
    calls = tuple(call if call.argument is None else replace(call, argument=substitute(call.argument, same)) for call in node.calls)
    return (replace(node, groups=groups, calls=calls) if same else node), _copies(groups)


@_unified.register
def _(node: Join, same: Same) -> tuple[Node, Same]:
    keys = tuple(dict.fromkeys((substitute(a, same), substitute(b, same)) for a, b in node.keys))
    if same:
        bands = merged_bands(
            [replace(b, left=_first(b.left, same), right=_first(b.right, same)) for b in node.bands]
        )
        node = replace(
            node,
            keys=keys,
            condition=tuple(substitute(part, same) for part in node.condition),
            bands=tuple(bands),
        )
    if node.kind != "inner":
        return node, {name: other for name, other in same.items() if name in node.schema.names}
    for a, b in keys:
        if not (isinstance(a, exp.Column) and isinstance(b, exp.Column)):
            continue
        kind = node.left.schema.field(a.name).type
        if kind != node.right.schema.field(b.name).type or pa.types.is_floating(kind):
            continue  # 0.0 equals -0.0, and looks different
        first, second = (same.get(e.name, e).name for e in (a, b))
        if first != second:
            same = {name: column(first) if other.name == second else other for name, other in same.items()} | {second: column(first)}
    return node, same


def _first(name: str, same: Same) -> str:
    return same[name].name if name in same else name


def _copies(columns: Sequence[tuple[str, exp.Expr]], time: str | None = None) -> Same:
    """Columns that are computed as the time is, or as one before them."""
    first = {e: name for name, e in columns if name == time}
    return {name: column(known) for name, e in columns if (known := first.setdefault(e, name)) != name and isinstance(e, exp.Column)}
