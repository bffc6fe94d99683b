"""UNION ALL by position: columns are named, cast and timed alike."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import SEQUENCE, is_hidden, type_name
from millstream.errors import MillstreamError, TypeProblem
from millstream.expressions import compile_expression
from millstream.language import place_of
from millstream.language.types import cast_to
from millstream.plan.catalog import STAMP
from millstream.plan.nodes import Node, Project, Union
from millstream.plan.scope import column


def make_union(members: list[Node], query: exp.Expr | None = None) -> Node:
    """A union by position: visible columns take the first member's names, times go along hidden when they differ."""
    place = place_of(query) if query is not None else None
    visible = [[f for f in m.schema if not is_hidden(f.name)] for m in members]
    if len({len(v) for v in visible}) > 1:
        raise TypeProblem(f"the sides of UNION ALL have {' and '.join(str(len(v)) for v in visible)} columns", place=place)
    names = [f.name for f in visible[0]]
    timed = all(m.time is not None for m in members)
    positions = {[f.name for f in v].index(m.time) if m.time in [f.name for f in v] else -1 for v, m in zip(visible, members, strict=True)}
    shared = timed and len(positions) == 1 and positions != {-1}
    types = [_common_type([v[i].type for v in visible], names[i], place) for i in range(len(names))]
    aligned: list[Node] = []
    for member, fields in zip(members, visible, strict=True):
        columns = [(name, _cast(column(f.name), f.type, kind)) for name, f, kind in zip(names, fields, types, strict=True)]
        time = None
        if shared:
            time = names[next(iter(positions))]
        elif timed:
            time = STAMP
            columns.append((STAMP, column(str(member.time))))
        if all(SEQUENCE in m.schema.names for m in members) and len(members) == 1:
            columns.append((SEQUENCE, column(SEQUENCE)))
        aligned.append(Project(member, tuple(columns), time))
    return Union(tuple(aligned))


def _common_type(types: list[pa.DataType], name: str, place: object) -> pa.DataType:
    if len(set(types)) == 1:
        return types[0]
    pair = pa.schema([(f"c{i}", t) for i, t in enumerate(types)])
    try:
        return compile_expression(exp.func("coalesce", *(column(f"c{i}") for i in range(len(types))), dialect="spark"), pair).type
    except MillstreamError:
        raise TypeProblem(
            f"column `{name}` of UNION ALL is {' and '.join(map(type_name, types))}",
            place=place,  # type: ignore[arg-type]
            hint="CAST one side to the type of the other",
        ) from None


def _cast(expression: exp.Expr, actual: pa.DataType, wanted: pa.DataType) -> exp.Expr:
    return expression if actual == wanted else cast_to(expression, wanted)
