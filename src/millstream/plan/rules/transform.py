"""Small tools for rules: bottom-up rewriting, and expressions over renamed columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping

from sqlglot import exp

from millstream.plan.nodes import Node, Project
from millstream.plan.scope import column


def bottom_up(node: Node, change: Callable[[Node], Node], mark: str = "") -> Node:
    """Rewrite the inputs first, then the node; unchanged nodes are kept as they are.

    With a `mark` the result is remembered as rewritten, and what has been is not looked at again.
    """
    if mark in vars(node):
        return node
    inputs = [bottom_up(child, change, mark) for child in node.inputs]
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs)
    node = change(node)
    if mark:
        vars(node)[mark] = True
    return node


def columns_of(expression: exp.Expr) -> set[str]:
    return {c.name for c in expression.find_all(exp.Column)}


def duplicates_none(expressions: Iterable[exp.Expr], names: Container[str]) -> bool:
    """True when none of these columns is used more than once: what they stand for is then written at most once."""
    uses = Counter(found.name for expression in expressions for found in expression.find_all(exp.Column))
    return all(count == 1 for name, count in uses.items() if name in names)


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
