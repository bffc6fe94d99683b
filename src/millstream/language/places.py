"""Where in the user's text a node of a query stands."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from millstream.errors import Place

WRITTEN = "written"
"""The key of what the user wrote: the name of a function, or the expression behind a column of the engine."""


def written(function: exp.Expr) -> str:
    """The name of a function as the user wrote it: `max_by`, where the parser has `argmax`."""
    known = function.sql_name().lower() if isinstance(function, exp.Func) else function.key
    return str(function.meta.get(WRITTEN) or known)


def text_of(expression: exp.Expr) -> str:
    """The expression in Spark SQL, with what the user wrote in place of columns that the engine has named."""

    def visit(part: exp.Expr) -> exp.Expr:
        named = isinstance(part, exp.Column) and part.meta.get(WRITTEN)
        return exp.Var(this=named) if named else part

    return str(expression.transform(visit).sql("spark"))


def place_of(expression: exp.Expr, *, statement: int | None = None, file: str | None = None) -> Place | None:
    """The place of a node: its own, else of its first part that has one, else of the nearest node around it."""
    node: Any = expression
    while node is not None:
        places = [part.meta for part in node.walk() if part.meta.get("line")]
        if places:
            first = min(places, key=lambda meta: (meta["line"], meta["col"]))
            own = node.meta if node.meta.get("line") else first
            return Place(own["line"], own["col"], own.get("statement", statement), own.get("file", file))
        node = node.parent
    return None


def mark(expression: Any, statement: int, file: str | None) -> None:
    """Write the statement's number and file beside the line and column of every node, so that `place_of` needs the node only."""
    for node in expression.walk():
        if node.meta.get("line"):
            node.meta["statement"] = statement
            node.meta["file"] = file
