"""The select list: stars spelled out, and a name for every column."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from millstream.core.types import HIDDEN, is_hidden
from millstream.errors import SyntaxProblem, UnsupportedProblem
from millstream.language import place_of
from millstream.plan.scope import Scope


def expand_stars(items: list[exp.Expr], scope: Scope) -> list[exp.Expr]:
    expanded: list[exp.Expr] = []
    for item in items:
        star = (
            item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else None
        )
        if star is None:
            expanded.append(item)
            continue
        if any(star.args.get(k) for k in ("except_", "replace", "rename", "except")):
            hint = "name the columns"
            raise UnsupportedProblem("* EXCEPT is not supported", place=place_of(item), hint=hint)
        relations = scope.relations
        if isinstance(item, exp.Column) and item.table:
            relations = [r for r in relations if r.alias.lower() == item.table.lower()]
            if not relations:
                scope.column(exp.column("*", table=item.table))
        for relation in relations:
            expanded += [
                exp.alias_(exp.column(outer, table=relation.alias, quoted=True), outer, quoted=True) for outer, _ in relation.visible
            ]
    return expanded


def output_name(item: exp.Expr) -> str:
    if isinstance(item, exp.Alias):
        return str(item.alias)
    if isinstance(item, exp.Column):
        return str(item.name)
    return item.sql("spark").lower()


def unique_names(outputs: list[tuple[str, exp.Expr]]) -> list[tuple[str, exp.Expr]]:
    taken: set[str] = set()
    unique = []
    for name, expression in outputs:
        if is_hidden(name):
            raise SyntaxProblem(f"`{name}`: names that begin with {HIDDEN} are the engine's own", place=place_of(expression))
        name = fresh(name, taken)
        taken.add(name)
        unique.append((name, expression))
    return unique


def fresh(name: str, taken: Iterable[str]) -> str:
    """`name`, or `name_1`, `name_2`, ...: the first one that differs from those taken by more than its case."""
    known = {other.lower() for other in taken}
    found, number = name, 0
    while found.lower() in known:
        number += 1
        found = f"{name}_{number}"
    return found
