"""The figures of paper 003, small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from millstream.figures import feedback
from millstream.figures.feedback import BUSHY, HASHED, LEFT_DEEP, NESTED, Pair, Point, play
from millstream.figures.report import Options

SMALL = replace(BUSHY, streams=4, window=2, largest=12)


def pair(setting: Point, index: str, seconds: float = 600.0) -> Pair:
    without, with_feedback = (play(setting, feedback=on, index=index, seconds=seconds, seed=3) for on in (False, True))
    return Pair(without, with_feedback)


@pytest.mark.parametrize("index", [NESTED, HASHED])
@pytest.mark.parametrize("tree", ["bushy", "left-deep", "right-deep"])
def test_feedback_changes_no_answer(tree: str, index: str) -> None:
    both = pair(replace(SMALL, tree=tree), index)
    assert both.ref.results > 10
    assert (both.jit.results, both.jit.answer) == (both.ref.results, both.ref.answer)


def test_it_saves_work_and_memory() -> None:
    bushy, deep = pair(replace(BUSHY, window=10), NESTED, 1800), pair(replace(LEFT_DEEP, window=5), NESTED, 1200)
    assert bushy.probes > 10 and deep.probes > 10
    assert bushy.tuples > 0.1 and deep.tuples > 0.3


def test_the_columns_are_those_of_a_clique() -> None:
    assert replace(BUSHY, streams=4).columns("C") == ["AC", "BC", "CD"]


@pytest.mark.slow
def test_all_figures_are_drawn() -> None:
    report = feedback.figures(Options(seconds=300.0))
    assert {claim.figure for claim in report.claims} >= {str(n) for n in range(10, 18)}
    assert len(report.pictures) == 8 * 2 * 3
    assert next(claim for claim in report.claims if claim.says.startswith("the answer")).holds
