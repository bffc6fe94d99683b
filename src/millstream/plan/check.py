"""Refuse plans whose state could never be let go, and say what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from millstream.core.types import SEQUENCE, is_hidden
from millstream.errors import PlanProblem
from millstream.language import place_of, text_of
from millstream.plan.nodes import Aggregate, Distinct, Filter, Join, Node, Project, Scan, Sort
from millstream.plan.rules.transform import bottom_up
from millstream.plan.window import Window

WINDOW = "a window such as [RANGE 1 MINUTE]"
N = TypeVar("N", bound=Node)
NOT_NULL = "pass over the nulls with WHERE ... IS NOT NULL, or use a time that is never null"
PROMISE = "PUNCTUATE ON, UNIQUE or CLUSTERED BY"


def check(plan: Node) -> Node:
    # From the streams on: what is wrong there is the cause of what follows.
    for node in reversed([*plan.walk()]):
        if isinstance(node, Aggregate):
            _check_aggregate(node)
        elif isinstance(node, Distinct):
            _check_distinct(node)
        elif isinstance(node, Join) and not node.static:
            _check_join(node)
        elif isinstance(node, Sort):
            _check_sort(node)
    return plan


def _check_aggregate(node: Aggregate) -> None:
    if node.axis is not None or node.punctuated:
        return
    if node.window is not None:
        _check_window(node.window, node)
        return
    reason = _reason(node, lambda other: other.axis is not None or bool(other.punctuated))
    if node.nulls:
        reason = f"{_named(min(node.nulls.values()), node.input)} may be null, and no mark passes null", NOT_NULL
    if reason is None:
        for _, expression in node.groups:
            _check_time_in(expression, node)
    place = next((found for _, e in node.groups if (found := place_of(e)) is not None), None)
    groups = ", ".join(f"`{name}`" for name, _ in node.groups if not is_hidden(name)) or "computed" if node.groups else "no column"
    parts = sorted({", ".join(sorted(s)) for s in node.input.punctuated if len(s) > 1})
    pairs = f" (only the values of {' and of '.join(f'({p})' for p in parts)} together)" if parts else ""
    missing, way_out = reason or (
        f"there is no window, and no group column is punctuated{pairs} or progressing",
        f"add {WINDOW}, {_by_time(node)}, or declare {PROMISE} a group column of the stream",
    )
    said = f"the groups of this GROUP BY ({groups}) would never close: {missing}"
    raise PlanProblem(said, hint=way_out, place=place)


def _check_time_in(expression: exp.Expr, node: Aggregate) -> None:
    """Refuse `date_format(ts, 'yyyy')`: the expression does not progress, its column does."""
    for part in expression.find_all(exp.Column):
        if part.name in node.input.closing:
            text = text_of(expression).replace("`", "")
            said = f"`{text}` does not progress, though `{part.name}` does"
            raise PlanProblem(
                f"the groups of this GROUP BY would never close: {said}",
                hint=f"group by CAST({part.name} AS DATE) or date_trunc('HOUR', {part.name}), which progress",
                place=place_of(expression),
            )


def _by_time(node: Aggregate) -> str:
    """The way to close groups by a column, which an input may have to show first."""
    if node.lacks:
        adds = [f"add `{time}` to the select list of {name}" for name, time in node.lacks]
        return f"{' and '.join(adds)} and group by it"
    return f"group by a progressing column{_times(node)}"


def _check_window(window: Window, node: Aggregate | Distinct) -> None:
    if window.attribute in node.input.progressing:
        return
    name = _named(window.attribute, node.input)
    missing = "it is not a progressing column", f"name one with WA{_times(node)}"
    missing = _reason(node, lambda other: window.attribute in other.input.progressing) or missing
    said = f"windows over {name} would never close: {missing[0]}"
    raise PlanProblem(said, hint=missing[1], place=window.place)


def _check_distinct(node: Distinct) -> None:
    keys = set(node.keys)
    if any(s <= keys for s in node.input.punctuated):
        return
    if node.window is not None:
        _check_window(node.window, node)
        return
    if node.input.closing & keys:
        return
    missing, way_out = "", f"add {WINDOW}"
    if nulls := sorted(node.input.nullable & keys):
        missing, way_out = f": {_named(nulls[0], node.input)} may be null, and no mark passes null", NOT_NULL
    elif reason := _reason(node, lambda other: any(s <= keys for s in other.input.punctuated)):
        missing, way_out = f": {reason[0]}", reason[1]
    raise PlanProblem(
        f"SELECT DISTINCT over a stream would remember every tuple for ever{missing}", hint=way_out
    )


def _check_join(node: Join) -> None:
    left_ends, right_ends = node.let_go
    if left_ends and right_ends:
        return
    side = "left and right" if not left_ends and not right_ends else "left" if not left_ends else "right"
    parts = [e for pair in node.keys for e in pair] + list(node.condition)
    other = {"left": "the right input", "right": "the left input"}.get(side, "both inputs")
    promise = f", or declare {PROMISE} the join column of {other}" if node.keys else ""
    where = "WHERE" if node.kind == "inner" else "ON"
    times = f"compare their times in {where}, such as B.ts BETWEEN A.ts AND A.ts + INTERVAL 5 MINUTES"
    way_out = f"give both inputs a window such as A [RANGE 5 MINUTES], or {times}{promise}"
    ends = [(input_, name) for b in node.bands for input_, name in ((node.left, b.left), (node.right, b.right))]
    still = [_named(name, input_) for input_, name in ends if name not in input_.progressing]
    because = f", because {still[0]} is not a progressing column" if still else ""
    if reason := _reason(node, lambda other: all(other.let_go)):
        because, way_out = f": {reason[0]}", reason[1]
    raise PlanProblem(
        f"the state of this join could never be purged: "
        f"tuples of the {side} input would wait for partners for ever{because}",
        hint=way_out,
        place=next((found for e in parts if (found := place_of(e)) is not None), None),
    )


def _check_sort(node: Sort) -> None:
    first, descending, _ = node.keys[0]
    if first in node.input.closing and not descending:
        return
    missing, way_out = "", "the first column of ORDER BY must be a progressing time in ascending order"
    if first in node.input.nullable:
        missing, way_out = ": it may be null, and no mark passes null", NOT_NULL
    elif reason := _reason(node, lambda other: first in other.input.closing and not descending):
        missing, way_out = f": {reason[0]}", reason[1]
    raise PlanProblem(
        f"an endless stream can not be sorted by `{first}`{missing}", hint=way_out, place=node.place
    )


def _reason(node: N, accepted: Callable[[N], bool]) -> tuple[str, str] | None:
    """The first of `REASONS` without which the node would be accepted: what is wrong, and the way out."""
    for change, wrong, way_out in REASONS:
        changed = node.with_inputs([bottom_up(child, change) for child in node.inputs])
        if changed != node and accepted(changed):  # type: ignore[arg-type]
            return wrong, way_out
    return None


def _unsorted(node: Node) -> Node:
    return node.input if isinstance(node, Sort) else node


def _told(node: Node) -> Node:
    return replace(node, windowed=False) if isinstance(node, Join) else node


def _matched(node: Node) -> Node:
    kind = {"left": "inner", "anti": "semi"}.get(node.kind) if isinstance(node, Join) else None
    return node if kind is None else replace(node, kind=kind)  # type: ignore[call-arg]


REASONS: tuple[tuple[Callable[[Node], Node], str, str], ...] = (
    (
        _unsorted,
        "ORDER BY in a sub-query keeps no promise but the progress of its first column",
        "leave ORDER BY out there: only the results of the whole query are read in order",
    ),
    (
        _told,
        "with `join.algorithm = 'window'` the join below hears of no closed value",
        "leave the setting out, or SET join.algorithm = 'punctuated-window'",
    ),
    (
        _matched,
        "the LEFT or ANTI JOIN below promises nothing of it, "
        "because tuples without a partner may come out later",
        "use a column that its left side closes, or a time of it that ON compares, or write an inner join",
    ),
)


def _named(name: str, node: Node) -> str:
    """The name that the query has for a column; a projection may have hidden it, or added a number."""
    while isinstance(node, (Filter, Join, Project)):
        source = dict(node.columns).get(name) if isinstance(node, Project) else None
        if isinstance(source, exp.Column) and (
            is_hidden(name) or name.removeprefix(f"{source.name}_").isdigit()
        ):
            name = source.name
        node = next((child for child in node.inputs if name in child.schema.names), node.inputs[0])
    if name == SEQUENCE:
        return "the arrival numbers"
    return "the later time of a join" if is_hidden(name) else f"`{name}`"


def _times(node: Node) -> str:
    """The times of the streams below, for a hint."""
    names = sorted({n.stream.time for n in node.walk() if isinstance(n, Scan) and not is_hidden(n.stream.time)})
    return f" (`{'`, `'.join(names)}`)" if names else ""
