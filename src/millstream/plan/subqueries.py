"""Sub-queries in conditions are refused with the join that says the same."""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from millstream.errors import UnsupportedProblem
from millstream.language import place_of


def refuse_subquery(nested: exp.Select, query: exp.Select) -> UnsupportedProblem:
    """The error for a SELECT that stands in a condition of another one."""
    step: exp.Expr | None = nested
    while step is not None and not isinstance(step, (exp.In, exp.Exists)):
        step = step.parent if step.parent is not query else None
    if step is None:
        return UnsupportedProblem(
            "sub-queries are only supported in FROM", place=place_of(nested), hint="write a join"
        )
    said = "IN (SELECT ...)" if isinstance(step, exp.In) else "EXISTS (SELECT ...)"
    negated = isinstance(step.parent, exp.Not) or (
        isinstance(step.parent, exp.Paren) and isinstance(step.parent.parent, exp.Not)
    )
    join = "LEFT ANTI JOIN" if negated else "LEFT SEMI JOIN"
    joined = _joined(step, nested, query)
    hint = f"write FROM ... {join} {joined}, with both sides in windows unless one is a table"
    return UnsupportedProblem(
        f"{said}: sub-queries are only supported in FROM", place=place_of(step), hint=hint
    )


def _joined(step: exp.Expr, nested: exp.Select, query: exp.Select) -> str:
    """`B ON A.k = B.k`: what stands behind JOIN, with the user's names where both sides are plain."""
    inner, outer = _only(nested), _only(query)
    if inner is None:
        return "... ON ..."
    if outer is not None and inner.alias_or_name.lower() == outer.alias_or_name.lower():
        inner = cast(exp.Table, exp.alias_(inner.copy(), "other", table=True))
    parts: list[exp.Expr] = []
    if isinstance(step, exp.In) and len(nested.expressions) == 1:
        column = nested.expressions[0].unalias()
        parts.append(exp.EQ(this=_qualified(step.this, outer), expression=_qualified(column, inner)))
    if where := nested.args.get("where"):
        parts.append(where.this.copy())
    condition = exp.and_(*parts, copy=False).sql("millstream") if parts else "..."
    return f"{inner.sql('millstream')} ON {condition}"


def _only(query: exp.Select) -> exp.Table | None:
    """The stream or table that a query reads, where it reads one by its name."""
    source = query.args.get("from_")
    table = source.this if source is not None and not query.args.get("joins") else None
    return table if isinstance(table, exp.Table) else None


def _qualified(column: exp.Expr, table: exp.Table | None) -> exp.Expr:
    if not isinstance(column, exp.Column) or column.table or table is None:
        return column.copy()
    return exp.column(column.this.copy(), table=table.alias_or_name)
