"""Next-operator-selection rules: small functions that say, after a step, which operator comes next (paper 001, section 2.3).

A strategy is a tuple of rules; the first that has something to say decides. The state table gives each operator its
strategy, in the variant for its place in the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class View(Protocol):
    """What a rule may look at: the operator that has just run, or to which execution came back."""

    @property
    def current(self) -> int: ...

    @property
    def yields(self) -> bool:
        """Its output buffer holds something."""

    @property
    def more(self) -> bool:
        """Its input buffers hold something that it can take."""

    @property
    def succ(self) -> int:
        """The consumer whose turn it is; asked only when it yields."""

    @property
    def pred(self) -> int:
        """The producer of an empty input; asked only where there is one."""

    @property
    def begun(self) -> bool:
        """True when the operator has taken tuples since it became the current one."""

    @property
    def full(self) -> bool:
        """It has taken as many tuples as a batch may have since it became the current one."""

    @property
    def behind(self) -> int | None:
        """Another branch of the fork before it that can run and has more left to take."""


class Next(NamedTuple):
    """Where execution goes on, and whether the operator there runs or only its rules are looked at."""

    operator: int
    runs: bool


EXIT = Next(-1, False)
"""Back to the scheduler."""

Rule = Callable[[View], Next | None]


def forward(view: View) -> Next | None:
    """If it yields, on to its successor."""
    return Next(view.succ, True) if view.yields else None


def encore(view: View) -> Next | None:
    """If there is more, once again."""
    return Next(view.current, True) if view.more else None


def encore_within_batch(view: View) -> Next | None:
    """If there is more and the batch is not full, once again."""
    return Next(view.current, True) if not view.full and view.more else None


def take_turns(view: View) -> Next | None:
    """On to a branch of the same fork that has taken less, once the batch is over and handed on."""
    if view.begun and (view.yields or not view.full):
        return None
    return None if (branch := view.behind) is None else Next(branch, True)


def backtrack(view: View) -> Next | None:
    """Back to its predecessor, whose rules say what comes next."""
    return Next(view.pred, False)


def leave(view: View) -> Next | None:
    """Exit: there is nothing more to do here."""
    return EXIT


@dataclass(frozen=True)
class Strategy:
    """An order of rules, and the short name under which the state table shows it."""

    short: str
    rules: tuple[Rule, ...]
    paths: bool = False
    """True where it runs paths only: the graph is broken where paths meet or part."""

    def at(self, *, source: bool, sink: bool) -> tuple[Rule, ...]:
        """The variant for a place in the graph: a sink's results are taken by somebody else, and a source has nobody before it."""
        kept = [rule for rule in self.rules if not (sink and rule is forward)]
        return tuple(leave if source and rule is backtrack else rule for rule in kept)


STRATEGIES = {
    "depth-first": Strategy("DFS", (forward, take_turns, encore, backtrack)),
    "breadth-first": Strategy("BFS", (encore, forward, backtrack)),
    "round-robin": Strategy("RR", (encore, forward, leave), paths=True),
}
"""By the name that SET execution.strategy takes."""

BATCHED = Strategy("DFS", (take_turns, encore_within_batch, forward, backtrack))
"""Depth-first, k tuples at a time."""


def select(rules: tuple[Rule, ...], view: View) -> Next:
    """What the first rule with something to say says."""
    for rule in rules:
        found = rule(view)
        if found is not None:
            return found
    return EXIT


def rule_name(rule: Rule) -> str:
    """As the paper names it."""
    names: dict[Rule, str] = {
        forward: "Forward",
        take_turns: "Turns",
        encore: "Encore",
        backtrack: "Backtrack",
        leave: "Exit",
    }
    return names.get(rule, "Encore within a batch")


def strategy_of(name: str, limit: int | None) -> Strategy:
    """By the name that SET execution.strategy takes, and the tuples that an operator may take at a time."""
    return BATCHED if name == "depth-first" and limit is not None else STRATEGIES[name]
