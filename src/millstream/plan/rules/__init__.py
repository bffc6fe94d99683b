"""The rewrite rules in the order in which they run; rule, module and test share a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millstream.plan import trees
from millstream.plan.nodes import Node
from millstream.plan.rules.merge_projections import merge_projections
from millstream.plan.rules.order_joins import RatesOf, order_joins
from millstream.plan.rules.prune_columns import prune_columns
from millstream.plan.rules.push_predicates import push_predicates
from millstream.plan.rules.recognise_joins import recognise_joins
from millstream.plan.rules.recognise_windows import recognise_windows
from millstream.plan.rules.unify_columns import unify_columns

AS_IT_IS, IMPLIED, AS_WRITTEN = range(3)
"""Levels: nothing is done for it; times move on also by bands that follow from others; and streams are joined as they stand in FROM."""
Rule = Callable[[Sequence[Node], "Choices"], list[Node]]


def each(rule: Callable[[Node], Node]) -> Rule:
    """A rule for one plan as a rule for all plans that run together."""
    return lambda plans, choices: [rule(plan) for plan in plans]


RULES: tuple[Rule, ...] = (
    each(recognise_windows),
    each(push_predicates),
    lambda plans, choices: [
        order_joins(plan, tree=choices.tree_of(n), rates_of=choices.rates_of) for n, plan in enumerate(plans)
    ],
    lambda plans, choices: [
        recognise_joins(plan, implied=choices.level(n) != AS_IT_IS, windowed=choices.windowed)
        for n, plan in enumerate(plans)
    ],
    each(unify_columns),
    lambda plans, choices: prune_columns(
        plans, in_order=choices.in_order
    ),  # over all plans, so that parts they share stay equal
    each(merge_projections),
)


@dataclass(frozen=True)
class Choices:
    """What was chosen for the plan, and what is known of the streams."""

    in_order: bool = False
    """Keep the times by which operators wait for order."""
    tree: str = trees.AUTO
    """How streams are joined two at a time."""
    rates_of: RatesOf = lambda stream: None
    windowed: bool = False
    """Let time alone let go of what joins keep, where it can."""
    levels: tuple[int, ...] = ()
    """For each plan, how far to go so that all that it keeps is let go some day."""

    def level(self, place: int) -> int:
        return self.levels[place] if self.levels else AS_IT_IS

    def tree_of(self, place: int) -> str:
        return trees.WRITTEN if self.level(place) == AS_WRITTEN else self.tree


def rewrite(plans: Sequence[Node], choices: Choices = Choices()) -> list[Node]:  # noqa: B008 (it is frozen)
    """All rules in their order."""
    for rule in RULES:
        plans = rule(plans, choices)
    return list(plans)
