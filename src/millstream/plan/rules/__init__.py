"""The rewrite rules in the order in which they run; rule, module and test share a name."""

from __future__ import annotations

from collections.abc import Callable

from millstream.plan.nodes import Node
from millstream.plan.rules.merge_projections import merge_projections
from millstream.plan.rules.prune_columns import prune_columns
from millstream.plan.rules.push_predicates import push_predicates
from millstream.plan.rules.recognise_joins import recognise_joins
from millstream.plan.rules.recognise_windows import recognise_windows

RULES: tuple[Callable[[Node], Node], ...] = (
    recognise_windows,
    push_predicates,
    recognise_joins,
    prune_columns,
    merge_projections,
)


def rewrite(plan: Node) -> Node:
    for rule in RULES:
        plan = rule(plan)
    return plan
