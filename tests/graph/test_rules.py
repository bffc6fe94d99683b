"""The next-operator-selection rules, one by one and in their orders."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from millstream.graph.rules import BATCHED, EXIT, STRATEGIES, Next, Rule, select


@dataclass
class Seen:
    yields: bool
    more: bool
    full: bool = False
    begun: bool = True
    behind: int | None = None
    current: int = 5
    succ: int = 6
    pred: int = 4


FORWARD, ENCORE, BACKTRACK = Next(6, True), Next(5, True), Next(4, False)


@pytest.mark.parametrize(
    ("strategy", "both", "yields", "more", "neither"),
    [
        ("depth-first", FORWARD, FORWARD, ENCORE, BACKTRACK),
        ("breadth-first", ENCORE, FORWARD, ENCORE, BACKTRACK),
        ("round-robin", ENCORE, FORWARD, ENCORE, EXIT),
    ],
)
def test_the_order_of_rules_is_the_strategy(strategy: str, both: Next, yields: Next, more: Next, neither: Next) -> None:
    rules = STRATEGIES[strategy].at(source=False, sink=False)
    assert [select(rules, Seen(y, m)) for y, m in ((True, True), (True, False), (False, True), (False, False))] == [
        both, yields, more, neither,
    ]  # fmt: skip


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_sink_never_goes_forward_and_a_source_never_back(strategy: str) -> None:
    sink = STRATEGIES[strategy].at(source=False, sink=True)
    assert select(sink, Seen(True, True)) == ENCORE
    assert select(sink, Seen(True, False)) == (EXIT if strategy == "round-robin" else BACKTRACK)
    source = STRATEGIES[strategy].at(source=True, sink=False)
    assert select(source, Seen(False, False)) == EXIT
    assert select(source, Seen(True, False)) == FORWARD
    assert select(STRATEGIES[strategy].at(source=True, sink=True), Seen(True, False)) == EXIT


def test_a_full_batch_moves_on() -> None:
    rules = BATCHED.at(source=False, sink=False)
    assert select(rules, Seen(True, True)) == ENCORE
    assert select(rules, Seen(True, True, full=True)) == FORWARD
    assert select(rules, Seen(False, True, full=True)) == BACKTRACK


TURN = Next(7, True)


@pytest.mark.parametrize("rules", [STRATEGIES["depth-first"].rules, BATCHED.rules])
def test_depth_first_a_branch_of_a_fork_that_is_behind_comes_next(rules: tuple[Rule, ...]) -> None:
    assert select(rules, Seen(False, True, full=True, behind=7)) == TURN
    assert select(rules, Seen(False, False, full=True, behind=7)) == TURN
    assert select(rules, Seen(False, True, begun=False, behind=7)) == TURN
    assert select(rules, Seen(True, True, full=True, behind=7)) == FORWARD
    assert select(rules, Seen(False, True, full=False, behind=7)) == ENCORE


@pytest.mark.parametrize("strategy", ["breadth-first", "round-robin"])
def test_other_strategies_finish_one_branch_first(strategy: str) -> None:
    assert select(STRATEGIES[strategy].rules, Seen(False, True, full=True, behind=7)) == ENCORE
