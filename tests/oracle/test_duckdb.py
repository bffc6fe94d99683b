"""Random queries over random streams give what DuckDB computes, however the streams are cut and hosted."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.cases import ALL, Case, draw, make_case
from tests.oracle.compositions import COMPOSITIONS

chances = st.randoms(use_true_random=False)
EXAMPLES = max(1, settings.default.max_examples // 8)


@pytest.mark.parametrize("family", ALL)
@settings(max_examples=EXAMPLES)
@given(chance=chances)
def test_oracle_one_process(family: str, chance: random.Random) -> None:
    """The answer, the letters, kept promises and empty state at the end."""
    case = make_case(chance, family)
    case.check(case.run())


@pytest.mark.parametrize("family", ALL)
@settings(max_examples=max(1, EXAMPLES // 2))
@given(chance=chances, buckets=st.sampled_from([1, 2, 3, 5]), seed=st.integers(0, 1000))
def test_oracle_buckets(family: str, chance: random.Random, buckets: int, seed: int) -> None:
    """The same over several buckets and stages, with state written and read back between micro-batches."""
    case = make_case(chance, family)
    case.check(case.host(buckets, random.Random(seed)))


@settings(max_examples=EXAMPLES)
@given(chance=chances, family=st.sampled_from(["scan", "window", "closed", "join"]))
def test_property_late_tuples_do_not_depend_on_the_cut(chance: random.Random, family: str) -> None:
    """One stream cut in every way: the same answer and the same letters."""
    case = make_case(chance, family, late=True)
    for batch, files in ((1, 1), (2, 5), (1 << 16, 3), (7, 7)):
        cut = Case(case.streams, case.queries, batch, files, 0)
        cut.check(cut.run())


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("family", ALL)
@settings(max_examples=20 * EXAMPLES)
@given(seed=st.integers(0, 2**63), buckets=st.sampled_from([0, 0, 1, 2, 3, 5]))
def test_oracle_thorough(family: str, seed: int, buckets: int) -> None:
    """By the seed: examples that hypothesis draws number by number shrink better, and take ten times as long."""
    chance = random.Random(seed)
    case = make_case(chance, family)
    case.check(case.host(buckets, chance) if buckets else case.run())


@pytest.mark.parametrize("family", COMPOSITIONS)
def test_most_compositions_are_accepted(family: str) -> None:
    """Families whose draws are nearly all refused would test nothing."""
    refusals = [draw(random.Random(seed), family).refusal() for seed in range(12)]
    assert refusals.count(None) >= 4, refusals
