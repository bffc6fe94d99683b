"""Refuse plans whose state could never be let go, and say what is missing."""

from __future__ import annotations

from sqlglot import exp

from millstream.errors import PlanProblem
from millstream.plan.nodes import Aggregate, Distinct, Join, Node


def check(plan: Node) -> Node:
    for node in plan.walk():
        if isinstance(node, Aggregate):
            _check_aggregate(node)
        elif isinstance(node, Distinct):
            _check_distinct(node)
        elif isinstance(node, Join) and not node.static:
            _check_join(node)
        elif isinstance(node, Join):
            _check_table_join(node)
    return plan


def _check_aggregate(node: Aggregate) -> None:
    if node.window is not None or node.axis is not None or node.punctuated:
        return
    groups = ", ".join(f"`{name}`" for name, _ in node.groups if not name.startswith("__")) or "no column"
    times = [c for c in node.input.progressing if not c.startswith("__")]
    hint = "add a window such as [RANGE 1 MINUTE], group by a progressing column"
    hint += f" (`{sorted(times)[0]}`)" if times else ""
    raise PlanProblem(
        f"the groups of this GROUP BY ({groups}) would never close: there is no window, and no group column is punctuated or progressing",
        hint=hint + ", or declare PUNCTUATE ON a group column of the stream",
    )


def _check_distinct(node: Distinct) -> None:
    if node.window is None and not (node.input.progressing & set(node.keys)) and not any(s <= set(node.keys) for s in node.input.punctuated):
        raise PlanProblem("SELECT DISTINCT over a stream would remember every tuple for ever", hint="add a window such as [RANGE 1 MINUTE]")


def _check_join(node: Join) -> None:
    lefts = {e.name for e, _ in node.keys if isinstance(e, exp.Column)}
    rights = {e.name for _, e in node.keys if isinstance(e, exp.Column)}
    left_ends = any(b.high is not None for b in node.bands) or any(s <= rights for s in node.right.punctuated)
    right_ends = any(b.low is not None for b in node.bands) or any(s <= lefts for s in node.left.punctuated)
    if left_ends and right_ends:
        return
    side = "left" if not left_ends else "right"
    if not left_ends and not right_ends:
        side = "left and right"
    raise PlanProblem(
        f"the state of this join could never be purged: tuples of the {side} input would wait for partners for ever",
        hint="give both inputs a window such as A [RANGE 5 MINUTES], compare their times in WHERE, or declare PUNCTUATE ON the join column",
    )


def _check_table_join(node: Join) -> None:
    if node.left.time is None and not node.left.progressing:
        raise PlanProblem("a table can not be the left side of a join with a stream", hint="put the stream first")
