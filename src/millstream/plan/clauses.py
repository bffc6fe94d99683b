"""The clauses that binding understands: any other that a query carries is refused, never passed over."""

from __future__ import annotations

from sqlglot import exp

from millstream.errors import UnsupportedProblem
from millstream.language import place_of

MESSAGES = {
    "limit": "LIMIT has no meaning on an endless stream",
    "offset": "OFFSET has no meaning on an endless stream",
    "qualify": "QUALIFY is not supported yet, aggregate in a window of the stream and join",
    "windows": "WINDOW clauses are not supported",
    "laterals": "LATERAL VIEW is not supported, unfold lists before they enter the stream",
    "pivots": "PIVOT is not supported",
    "sample": "TABLESAMPLE is not supported, filter with WHERE",
    "with_": "WITH is not supported, use CREATE VIEW",
    "connect": "CONNECT BY is not supported",
    "sort": "SORT BY is not supported, use ORDER BY",
    "cluster": "CLUSTER BY is not supported",
    "distribute": "DISTRIBUTE BY is not supported",
    "version": "VERSION, TIMESTAMP and SYSTEM_TIME AS OF are not supported, a table is read once, when a run begins",
    "columns": "names for columns after AS are not supported, name them in the select list",
    "on": "DISTINCT ON is not supported, aggregate in a window of the stream",
    "joins": "joins in parentheses are not supported, write a subquery",
    "db": "names of catalogs and schemas are not supported, write the last name alone",
}

_QUERY = {"order", "stream_window"}
UNDERSTOOD: dict[type[exp.Expr], set[str]] = {
    exp.Select: {"expressions", "from_", "joins", "where", "group", "having", "distinct", "hint", *_QUERY},
    exp.Union: {"this", "expression", *_QUERY},
    exp.Subquery: {"this", "alias", *_QUERY},
    exp.Table: {"this", "alias", "stream_window"},
    exp.TableAlias: {"this"},
    exp.Distinct: {"expressions"},
    exp.Join: {"this", "on", "using", "side", "kind", "method"},
}


def refuse_others(node: exp.Expr | None) -> None:
    """Raise when the node has a clause that nobody here would read."""
    if node is None:
        return
    known = UNDERSTOOD[type(node)]
    for clause, value in node.args.items():
        if value and clause not in known:
            first = value[0] if isinstance(value, list) else value
            message = MESSAGES.get(clause, f"{clause.strip('_').upper().replace('_', ' ')} is not supported")
            if clause == "db":
                message = f"`{node.args['db'].name}.{node.name}`: {message}"
            hint = None
            if isinstance(first, exp.With):
                hint = f"write CREATE VIEW {first.expressions[0].alias} AS SELECT ...; before this statement"
            elif isinstance(first, exp.Limit):
                rows = first.expression.sql("spark")
                shown = f"a console sink with limit = {rows} shows the first"
                hint = f"max(...) gives the greatest of a window, and {shown}"
            place = place_of(first if isinstance(first, exp.Expr) else node)
            raise UnsupportedProblem(message, place=place, hint=hint)
