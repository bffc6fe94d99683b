"""Small tools for rules: bottom-up rewriting, and expressions over renamed columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from millstream.plan.nodes import Node, Project
from millstream.plan.scope import column


def bottom_up(node: Node, change: Callable[[Node], Node]) -> Node:
    """Rewrite the inputs first, then the node; unchanged nodes are kept as they are."""
    inputs = tuple(bottom_up(child, change) for child in node.inputs)
    if inputs != node.inputs:
        node = node.with_inputs(inputs)
    return change(node)


def columns_of(expression: exp.Expr) -> set[str]:
    return {c.name for c in expression.find_all(exp.Column)}


def substitute(expression: exp.Expr, columns: Mapping[str, exp.Expr]) -> exp.Expr:
    """Replace column references by what they stand for."""

    def visit(node: exp.Expr) -> exp.Expr:
        return columns[node.name].copy() if isinstance(node, exp.Column) and node.name in columns else node

    return expression.transform(visit)


def with_column(side: Node, expression: exp.Expr, taken: set[str]) -> tuple[Project, str]:
    """The side with one more column, hidden, under a name that is not taken."""
    number = 0
    while (name := f"__axis_{number}") in taken:
        number += 1
    taken.add(name)
    columns = tuple((n, column(n)) for n in side.schema.names)
    return Project(side, (*columns, (name, expression)), side.time), name


def conjunction(parts: list[exp.Expr]) -> exp.Expr:
    return exp.and_(*parts, copy=True)
