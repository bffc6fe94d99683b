"""Refuse plans whose state could never be let go, and say what is missing."""

from __future__ import annotations

from sqlglot import exp

from millstream.core.types import is_hidden
from millstream.errors import PlanProblem
from millstream.language import place_of, text_of
from millstream.plan.explain import meanings
from millstream.plan.nodes import Aggregate, Distinct, Join, Node, Scan
from millstream.plan.window import Window

WINDOW = "a window such as [RANGE 1 MINUTE]"
PROMISE = "PUNCTUATE ON, UNIQUE or CLUSTERED BY"


def check(plan: Node) -> Node:
    for node in plan.walk():
        if isinstance(node, Aggregate):
            _check_aggregate(node)
        elif isinstance(node, Distinct):
            _check_distinct(node)
        elif isinstance(node, Join) and not node.static:
            _check_join(node)
    return plan


def _check_aggregate(node: Aggregate) -> None:
    if node.axis is not None or node.punctuated:
        return
    if node.window is not None:
        _check_window(node.window, node)
        return
    for _, expression in node.groups:
        _check_time_in(expression, node)
    place = next((found for _, e in node.groups if (found := place_of(e)) is not None), None)
    groups = ", ".join(f"`{name}`" for name, _ in node.groups if not is_hidden(name)) or "computed" if node.groups else "no column"
    parts = sorted({", ".join(sorted(s)) for s in node.input.punctuated if len(s) > 1})
    pairs = f" (only the values of {' and of '.join(f'({p})' for p in parts)} together)" if parts else ""
    raise PlanProblem(
        f"the groups of this GROUP BY ({groups}) would never close: there is no window, "
        f"and no group column is punctuated{pairs} or progressing",
        hint=f"add {WINDOW}, {_by_time(node)}, or declare {PROMISE} a group column of the stream",
        place=place,
    )


def _check_time_in(expression: exp.Expr, node: Aggregate) -> None:
    """Refuse `date_format(ts, 'yyyy')`: the expression does not progress, its column does."""
    for part in expression.find_all(exp.Column):
        if part.name in node.input.progressing:
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
    if window.attribute not in node.input.progressing:
        name = meanings(node.input).get(window.attribute, window.attribute)
        over = "the later time of a join" if is_hidden(name) else f"`{name}`"
        raise PlanProblem(
            f"windows over {over} would never close: it is not a progressing column",
            hint=f"name one with WA{_times(node)}",
            place=window.place,
        )


def _check_distinct(node: Distinct) -> None:
    keys = set(node.keys)
    if node.input.progressing & keys or any(s <= keys for s in node.input.punctuated):
        return
    if node.window is not None:
        _check_window(node.window, node)
        return
    raise PlanProblem("SELECT DISTINCT over a stream would remember every tuple for ever", hint=f"add {WINDOW}")


def _check_join(node: Join) -> None:
    lefts, rights = node.heard
    left_ends = any(b.high is not None for b in node.bands) or any(s <= rights for s in node.right.punctuated)
    right_ends = any(b.low is not None for b in node.bands) or any(s <= lefts for s in node.left.punctuated)
    if left_ends and right_ends:
        return
    side = "left and right" if not left_ends and not right_ends else "left" if not left_ends else "right"
    parts = [e for pair in node.keys for e in pair] + list(node.condition)
    other = {"left": "the right input", "right": "the left input"}.get(side, "both inputs")
    promise = f", or declare {PROMISE} the join column of {other}" if node.keys else ""
    raise PlanProblem(
        f"the state of this join could never be purged: tuples of the {side} input would wait for partners for ever",
        hint=f"give both inputs a window such as A [RANGE 5 MINUTES], or compare their times in WHERE{promise}",
        place=next((found for e in parts if (found := place_of(e)) is not None), None),
    )


def _times(node: Node) -> str:
    """The times of the streams below, for a hint."""
    names = sorted({n.stream.time for n in node.walk() if isinstance(n, Scan) and not is_hidden(n.stream.time)})
    return f" (`{'`, `'.join(names)}`)" if names else ""
