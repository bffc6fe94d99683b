"""When a watch is tried, and when it rests."""

from __future__ import annotations

import numpy as np

from millstream.feedback.nodes import Node
from millstream.feedback.watch import Watch

SOME = np.arange(1, 101, dtype=np.uint64)


def watching(partners: int, trial: int = 8192) -> Watch:
    """The first so many of `SOME` have a partner, and it is about to be tried."""
    watch = Watch(Node(("x",), ("x",)), 1, trial)
    watch.left = 0
    assert watch.rested(6.0) and not watch.rested(0.5)
    watch.left, watch.resting, watch.pauses = 0, False, 0
    watch.wanted.come(SOME[:partners], np.ones(partners, dtype=np.bool_), np.zeros(partners, dtype=np.int64))
    return watch


def test_where_all_have_partners_nothing_is_tried() -> None:
    watch = watching(partners=100)
    assert not watch.worth(SOME, makes=6.0, tuples=10_000)
    assert watch.resting and watch.asked == 0
    assert 0 < watch.left < 10_000  # it cost little to see that


def test_where_many_have_none_it_is_tried_if_blocks_are_large() -> None:
    assert watching(partners=50).worth(SOME, makes=6.0, tuples=10_000)
    assert not watching(partners=50).worth(SOME, makes=6.0, tuples=100)
    assert not watching(partners=50).worth(SOME, makes=1.0, tuples=10_000)


def test_a_short_trial_shows_by_itself() -> None:
    assert watching(partners=100, trial=20).worth(SOME, makes=6.0, tuples=10)


def test_a_trial_that_loses_is_over_early_and_one_that_earns_goes_on() -> None:
    poor, rich = watching(partners=100), watching(partners=0)
    for watch in (poor, rich):
        for _ in range(4):
            watch.ask(np.tile(SOME, 10), makes=6.0)
    assert poor.room == 0 and poor.poor()
    assert rich.room == 8192 - 4000 and not rich.poor()
