"""The rewrite rules in the order in which they run; rule, module and test share a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millstream.plan.nodes import Node
from millstream.plan.rules.merge_projections import merge_projections
from millstream.plan.rules.prune_columns import prune_columns
from millstream.plan.rules.push_predicates import push_predicates
from millstream.plan.rules.recognise_joins import recognise_joins
from millstream.plan.rules.recognise_windows import recognise_windows
from millstream.plan.rules.unify_columns import unify_columns

Rule = Callable[[Sequence[Node]], list[Node]]


def each(rule: Callable[[Node], Node]) -> Rule:
    """A rule for one plan as a rule for all plans that run together."""
    return lambda plans: [rule(plan) for plan in plans]


RULES: tuple[Rule, ...] = (
    each(recognise_windows),
    each(push_predicates),
    each(recognise_joins),
    each(unify_columns),
    prune_columns,  # over all plans, so that parts they share stay equal
    each(merge_projections),
)


def rewrite(plans: Sequence[Node], *, in_order: bool = False) -> list[Node]:
    """All rules in their order; `in_order` keeps the times by which operators wait for order."""
    for rule in RULES:
        plans = prune_columns(plans, in_order=in_order) if rule is prune_columns else rule(plans)
    return list(plans)
