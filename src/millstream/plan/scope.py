"""A scope maps the names a query uses to the columns its relations carry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from millstream.core.types import is_hidden
from millstream.errors import NameProblem
from millstream.language import place_of


@dataclass
class Relation:
    """One entry of a FROM clause: an alias and its columns, each with the name it has inside the plan."""

    alias: str
    columns: dict[str, str]
    lacks: tuple[str, ...] = ()
    """The times of the streams below a view or a sub-query that shows no column which progresses."""

    @property
    def title(self) -> str:
        """The alias in messages."""
        return "the sub-query" if is_hidden(self.alias) else f"`{self.alias}`"

    def find(self, name: str) -> str | None:
        if name in self.columns:
            return self.columns[name]
        return next((inner for outer, inner in self.columns.items() if outer.lower() == name.lower()), None)

    @property
    def visible(self) -> list[tuple[str, str]]:
        return [(outer, inner) for outer, inner in self.columns.items() if not is_hidden(outer)]


@dataclass
class Scope:
    """The relations of one SELECT, and the columns that its aggregation adds."""

    relations: list[Relation] = field(default_factory=list)
    extra: dict[str, str] = field(default_factory=dict)
    unseen: list[str] = field(default_factory=list)
    """The right sides of semi and anti joins."""

    def names(self) -> list[str]:
        return [inner for relation in self.relations for inner in relation.columns.values()]

    def column(self, column: exp.Column) -> exp.Column:
        """The column as the plan knows it: one plain name, its place kept for messages."""
        name, table = column.name, column.table
        if table:
            relation = next((r for r in self.relations if r.alias.lower() == table.lower()), None)
            if relation is None:
                named = [r.alias for r in self.relations if not is_hidden(r.alias)]
                problem = NameProblem.unknown("stream or alias", table, named, place=place_of(column))
                if table.lower() in self.unseen:
                    way = "a SEMI or ANTI join gives the columns of its left side alone"
                    problem.hint = f"{way}; write JOIN to have those of both"
                    raise problem
                if len(named) < len(self.relations):
                    way = "a sub-query has the name that AS gives it, in Python alias()"
                    problem.hint = f"{problem.hint}; {way}" if problem.hint else way
                raise problem
            found = relation.find(name)
            if found is None:
                raise _unknown(column, [relation])
            return _named(column, found)
        matches = {inner for r in self.relations if (inner := r.find(name)) is not None}
        if not matches and name.lower() in self.extra:
            return _named(column, self.extra[name.lower()])
        if not matches:
            raise _unknown(column, self.relations, self.extra)
        if len(matches) > 1:
            owners = [r.alias for r in self.relations if r.find(name) is not None]
            hint = "write " + " or ".join(f"`{owner}.{name}`" for owner in owners)
            raise NameProblem(f"column `{name}` is in {' and '.join(owners)}", place=place_of(column), hint=hint)
        return _named(column, matches.pop())

    def resolve(self, expression: exp.Expr) -> exp.Expr:
        """The expression with every column resolved."""

        def visit(node: exp.Expr) -> exp.Expr:
            return self.column(node) if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star) else node

        return expression.transform(visit)


def _unknown(column: exp.Column, relations: Sequence[Relation], extra: Iterable[str] = ()) -> NameProblem:
    within = ", ".join(r.title.strip("`") for r in relations)
    known = [*_visible(relations), *extra]
    problem = NameProblem.unknown("column", column.name, known, within=within, place=place_of(column))
    for relation in relations:
        if column.name in relation.lacks:
            problem.hint = f"add `{column.name}` to the select list of {relation.title}"
    return problem


def _visible(relations: Iterable[Relation]) -> list[str]:
    return [outer for relation in relations for outer, _ in relation.visible]


def _named(column: exp.Column, name: str) -> exp.Column:
    identifier = exp.to_identifier(name, quoted=True)
    identifier.meta.update(column.this.meta)
    return exp.Column(this=identifier)


def column(name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True))
