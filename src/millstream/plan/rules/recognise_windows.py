"""Hand each `[RANGE ...]` to the aggregate, duplicate elimination or join that works in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import TIMESTAMP
from millstream.errors import PlanProblem
from millstream.plan.catalog import STAMP
from millstream.plan.nodes import Aggregate, Band, Distinct, Filter, Insert, Join, Node, Project, Scan, Sort, Union, Windowed
from millstream.plan.rules.transform import bottom_up, with_column
from millstream.plan.scope import column
from millstream.plan.select_list import fresh
from millstream.plan.window import Window


def recognise_windows(plan: Node) -> Node:
    return bottom_up(plan, _change, "_windows_recognised")


def _change(node: Node) -> Node:
    if isinstance(node, Windowed) and isinstance(node.input, Windowed):
        return replace(node, input=node.input.input)  # the outer window is the one the user wrote last
    if isinstance(node, Filter) and isinstance(node.input, Windowed):
        return Windowed(replace(node, input=node.input.input), node.input.window)
    if isinstance(node, Project) and isinstance(node.input, Windowed):
        return _through_project(node, node.input)
    if isinstance(node, Union):
        # A window inside one member of a union has no consumer of its own: the union's consumer has its window or none.
        return Union(tuple(m.input if isinstance(m, Windowed) else m for m in node.members))
    if isinstance(node, Aggregate) and isinstance(node.input, Windowed):
        return replace(node, input=node.input.input, window=consumed(node.input))
    if isinstance(node, Distinct) and isinstance(node.input, Windowed):
        return replace(node, input=node.input.input, window=consumed(node.input))
    if isinstance(node, Join):
        return _join(node)
    if isinstance(node, (Insert, Sort)) and isinstance(node.input, Windowed):
        return node.with_inputs([node.input.input])
    return node


def consumed(node: Windowed) -> Window:
    """The window as an aggregate works in it, in the units of its attribute."""
    if node.window.range == 0:
        raise PlanProblem("a window of length 0 holds nothing to aggregate", hint="[NOW] is for join inputs; write [RANGE ...]")
    kind = node.schema.field(node.window.attribute).type
    return node.window.in_days() if pa.types.is_date(kind) else node.window


def _through_project(node: Project, windowed: Windowed) -> Node:
    """Lift the window over the projection; its attribute goes along, hidden when the query does not show it."""
    attribute = windowed.window.attribute
    name = node.renames.get(attribute)
    columns = node.columns
    if name is None:
        name, number = "__wa", 0
        while name in dict(columns):
            number += 1
            name = f"__wa_{number}"
        columns = (*columns, (name, column(attribute)))
    project = Project(windowed.input, columns, node.time_column)
    return Windowed(project, replace(windowed.window, attribute=name))


def _join(node: Join) -> Node:
    """Every pair of inputs must lie within each other's range (semantics: Joins).

    `A [RANGE ta], B [RANGE tb]` joins when `-tb <= b.ts - a.ts <= ta`, an input without a window is unbounded.
    A table has no time: the window of the stream stays for whoever reads the join.
    """
    if node.windows is not None:
        return node
    if node.static and isinstance(node.left, Windowed):
        return Windowed(replace(node, left=node.left.input, windows=()), node.left.window)
    lefts, rights = join_windows(node.left), join_windows(node.right)
    bands, conditions = list(node.bands), list(node.condition)
    left = node.left.input if isinstance(node.left, Windowed) else node.left
    right = node.right.input if isinstance(node.right, Windowed) else node.right
    for a in lefts:
        for b in rights:
            if a.range < 0 and b.range < 0:
                continue
            left, right, band = _band(left, a, right, b)
            if a.optional or b.optional:
                schema = pa.schema([*left.schema, *right.schema])
                conditions.append(_unless_null(band, [w.attribute for w in (a, b) if w.optional], schema))
            else:
                bands.append(band)
    # What a left join adds may be null, and a semi or anti join adds nothing that further inputs could meet.
    added = {"inner": rights, "left": [replace(w, optional=True) for w in rights]}.get(node.kind, ())
    node = replace(node, left=left, right=right, condition=tuple(conditions), bands=tuple(bands))
    # A side that is a join has a stamp of its own from here on, if its times could not be compared before.
    return replace(node, windows=(*lefts, *added), stamp=fresh(STAMP, set(node.pair_schema.names)))


def _band(left: Node, a: Window, right: Node, b: Window) -> tuple[Node, Node, Band]:
    """Both sides, and the band between their times; a date beside a timestamp gets a column with its midnight."""
    kinds = [side.schema.field(window.attribute).type for side, window in ((left, a), (right, b))]
    if kinds[0] == kinds[1] == pa.date32():
        a, b = a.in_days(), b.in_days()
    elif kinds[0] != kinds[1]:
        left, a = _at_midnight(left, a, right)
        right, b = _at_midnight(right, b, left)
    low, high = -b.range if b.range >= 0 else None, a.range if a.range >= 0 else None
    return left, right, Band(a.attribute, b.attribute, low, high)


def _at_midnight(side: Node, window: Window, other: Node) -> tuple[Node, Window]:
    kind = side.schema.field(window.attribute).type
    if pa.types.is_integer(kind):
        raise PlanProblem(
            "a window on one input of a join needs a time on the other one, which has only an integer",
            hint="put the window behind the stream below, and then group",
        )
    if kind == TIMESTAMP:
        return side, window
    midnight = exp.cast(column(window.attribute), "timestamp", dialect="spark")
    made, name = with_column(side, midnight, {*side.schema.names, *other.schema.names})
    if side.time == window.attribute:
        made = replace(made, time_column=name)
    return made, replace(window, attribute=name)


def _unless_null(band: Band, names: list[str], schema: pa.Schema) -> exp.Expr:
    """The band as a condition that holds, too, when a left join found nobody to bind."""
    missing = [exp.Is(this=column(name), expression=exp.Null()) for name in names]
    return exp.or_(*missing, exp.and_(*band.conditions(schema)))


UNBOUNDED = -1
"""The range of an input without a window."""


def join_windows(node: Node) -> Sequence[Window]:
    """The windows of the streams below that are still to be met by other inputs of the same FROM clause."""
    if isinstance(node, Windowed):
        if node.window.slides:
            raise PlanProblem("SLIDE has no meaning on the input of a join", hint="leave it out, or put the window behind the select list")
        if node.window.rows:
            raise PlanProblem("a ROWS window can not stand on the input of a join", hint="use RANGE")
        return [node.window]
    if isinstance(node, Join):
        return node.windows or ()
    if isinstance(node, Filter):
        return join_windows(node.input)
    if node.time is not None and any(isinstance(n, Scan) for n in node.walk()):
        return [Window(node.time, UNBOUNDED, 1)]
    return ()
