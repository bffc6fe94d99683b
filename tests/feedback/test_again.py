"""Partial results that are not kept, but made again: one answer whenever that begins and ends, and next to nothing is stored."""

from __future__ import annotations

import random
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.core.clock import ManualClock
from millstream.feedback import watch as watches
from millstream.operators.join_again import Again
from millstream.pipeline import Pipeline
from tests.feedback.test_multiway import EXAMPLES, START, Case, joins, make, random_tree, run, times_of
from tests.feedback.test_paper import Play
from tests.oracle.buckets import run_hosted
from tests.oracle.watch import watched

LEFT, RIGHT = 0, 1
AB_CD = "SET join.tree = '((A B) (C D))';"
FOUR = {"A": "k x", "B": "k", "C": "x m", "D": "m"}


def select(reach: str = "5 MINUTES", more: str = "") -> str:
    inputs = ", ".join(f"{name} [RANGE {reach}]" for name in FOUR)
    return f"SELECT {', '.join(f'{name}.name AS {name}' for name in FOUR)} FROM {inputs} WHERE A.k = B.k AND A.x = C.x AND C.m = D.m {more}"


# -- by example ---------------------------------------------------------------------------------------------------


def test_what_is_made_in_full_is_not_kept() -> None:
    play = Play(FOUR, select(), AB_CD)
    play.push(0, {"c1": (5, 1), "c2": (6, 1), "d1": (1,), "d2": (1,)})
    play.push(1, {"b1": (7,), "a1": (7, 5)})
    assert play.results() == {"a1b1c1d1", "a1b1c1d2"}  # made again for those who came later
    play.push(2, {"d3": (1,)})
    assert play.results() == {"a1b1c1d3"}  # meets who is there
    play.push(3, {"b2": (7,), "a2": (7, 6)})
    assert play.results() == {f"a1b2c1d{n}" for n in (1, 2, 3)} | {f"a2b{m}c2d{n}" for m in (1, 2) for n in (1, 2, 3)}
    assert play.push(4, {"b3": (8,), "a3": (8, 9)}) == ["<suspend, (x=9)> Op3 to Op1"]
    assert play.push(5, {"c3": (9, 1)}) == ["<resume, (x=9)> Op3 to Op1"]
    assert play.results() == {f"a3b3c3d{n}" for n in (1, 2, 3)}  # who is woken by it does not look for it, too
    assert play.stored(2, RIGHT) == 0
    assert (play.stored(1, LEFT), play.stored(1, RIGHT)) == (3, 3)


def test_who_is_woken_meets_what_nobody_else_needs_any_more() -> None:
    """A, B and C have moved on, so d1 is not stored when it comes, and c1d1 cannot be made again: but a1 has waited for it."""
    play = Play(FOUR, select("10 SECONDS"), AB_CD)
    play.push(0, {"b1": (7,), "a1": (7, 5)})
    play.push(100, {"b2": (8,), "a2": (8, 6)})
    play.push(0, {"c1": (5, 1)})
    play.push(100, {"c2": (9, 9)})
    play.push(0, {"d1": (1,)})
    assert play.stored(1, RIGHT) == 0
    assert play.results() == {"a1b1c1d1"}


def test_it_lasts_as_long_as_it_may_be_asked_for() -> None:
    """Also where the inputs that it is made of have ended, and come to no more themselves."""
    play = Play(FOUR, select("10 SECONDS"), AB_CD)
    play.push(0, {"c1": (5, 1), "d1": (1,)})
    play.push(20, {"c2": (5, 2), "d2": (2,)})
    play.live.end("D")
    play.push(21, {"c3": (5, 2)})
    play.live.end("C")
    play.push(2, {"b1": (7,), "a1": (7, 5)})
    assert play.results() == {"a1b1c1d1"}
    play.push(25, {"b2": (7,), "a2": (7, 5)})
    assert play.results() == {"a2b2c2d2", "a2b2c3d2"}
    assert (play.stored(1, LEFT), play.stored(1, RIGHT)) == (2, 1)
    play.live.end("A")
    play.live.end("B")
    assert play.live.state_rows == 0


def test_silent_streams_that_might_ask_for_it_are_asked_how_far_they_are() -> None:
    play = Play(FOUR, select("10 SECONDS"), AB_CD, ets="")
    play.push(0, {"b1": (7,), "a1": (7, 6), "c1": (5, 1), "d1": (1,)})
    assert play.live.state_rows == 4
    for _ in range(3):
        play.live.advance("30 seconds")
    assert play.live.state_rows == 0


@pytest.mark.parametrize("trial", [0, 8192])
def test_what_fails_is_told_once(trial: int) -> None:
    failing = "AND CAST(concat(CASE WHEN C.m = 1 THEN 'x' ELSE '1' END, CAST(D.m AS STRING)) AS BIGINT) > 0"
    play = Play(FOUR, select(more=failing), f"{AB_CD} SET feedback.trial = {trial};")
    play.push(0, {"c1": (5, 1), "d1": (1,), "c2": (5, 2), "d2": (2,)})
    for time in range(1, 4):
        play.push(time, {f"b{time}": (time,), f"a{time}": (time, 5)})
    assert play.results() == {f"a{n}b{n}c2d2" for n in (1, 2, 3)}
    assert len(play.live.letters) == 1


def test_it_begins_where_few_ask_and_ends_where_many_do() -> None:
    session = ms.Session("local")
    session.sql(f"{AB_CD} SET feedback.trial = 2000; CREATE SINK Out WITH (connector = 'memory')")
    for name, columns in FOUR.items():
        shown = ", ".join(f"{column} BIGINT" for column in columns.split())
        session.sql(f"CREATE STREAM {name} ({shown}, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE WITH (connector = 'list')")
    session.sql(f"INSERT INTO Out {select('0 SECONDS').replace('.name AS', '.ts AS')}")
    live = ms.testing.Live(session, ManualClock(START))
    (again,) = [join.again for join in joins(live) if join.again is not None]
    spans = []
    for second in range(16):
        time, many = START + 1_000_000 * second, second >= 8
        live.push("C", [(n, n, time) for n in range(3000)])
        live.push("D", [(n, time) for n in range(3000)])
        for n in range(20 if many else 1):
            live.push("B", [(20 * second + n, time)])
            live.push("A", [(20 * second + n, n, time)])
        spans.append(again.span)
    kept = [span is None for span in spans]
    begun, ended = kept.index(False), kept.index(True, kept.index(False))
    assert 0 < begun < 8 < ended
    assert all(kept[ended:])
    assert live.rows()


# -- by chance ----------------------------------------------------------------------------------------------------


def moody(seed: int, mood: float) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """It begins and ends at any time, and watches stop counting soon."""
    chance = random.Random(seed)

    def pays(self: Again) -> bool | None:
        x = chance.random()
        return True if x < mood else False if x < 2 * mood else None

    return patch.multiple(Again, _pays=pays), patch.object(watches, "UNASKED", chance.choice([0, 5, 4096]))


def dense(r: random.Random, names: str) -> Case:
    """No stream is empty, and there are few values: much is asked for, and much of it is made later."""
    case, few, rows = make(r, names), r.choice([2, 3, 5]), dict[str, list[tuple[int, ...]]]()
    for name in names:
        time, rows[name] = 0, []
        for _ in range(r.choice([10, 20, 30]) if len(names) < 5 else 8):
            time += r.choice([0, 0, 1, 2])
            rows[name].append((max(time - r.choice([0, 0, 1, 2]), 0), *(r.randrange(few) for _ in names)))
    left, pieces = {name: len(rows[name]) for name in names}, []
    while any(left.values()):
        name = r.choice([n for n in names if left[n]])
        pieces.append((name, min(r.choice([1, 2, 5, 20]), left[name])))
        left[name] -= pieces[-1][1]
    return replace(case, rows=rows, pieces=tuple(pieces), ranges=tuple(r.choice([0, 1, 3, 6]) for _ in names))


def two_composites(r: random.Random, names: str) -> str:
    names = "".join(r.sample(names, len(names)))
    at = r.randrange(2, len(names) - 1)
    return f"({random_tree(r, list(names[:at]))} {random_tree(r, list(names[at:]))})"


@pytest.mark.parametrize("names", ["ABCD", "ABCDE", "ABCDEF"])
@settings(max_examples=2 * EXAMPLES)
@given(seed=st.integers(0, 2**40))
def test_property_it_may_begin_and_end_at_any_time(names: str, seed: int) -> None:
    chance = random.Random(seed)
    case, tree = dense(chance, names), two_composites(chance, names)
    trial, index = chance.choice([0, 1, 20]), chance.choice(["hash", "none"])
    changing, dozing = moody(seed, chance.choice([0.5, 0.1, 0.02]))
    with changing, dozing:
        answer, _, live = run(case, f"SET feedback.trial = {trial}; SET join.index = '{index}';", tree)
    assert answer == case.expected(), (tree, case)
    assert live.state_rows == 0


@pytest.mark.parametrize("names", ["ABCD", "ABCDEF"])
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**40), buckets=st.sampled_from([1, 2, 4]))
def test_property_the_answer_does_not_depend_on_the_buckets(names: str, seed: int, buckets: int) -> None:
    chance = random.Random(seed)
    case = dense(chance, names)
    pipeline = Pipeline()
    pipeline.add_text(f"SET feedback.trial = {chance.choice([0, 20])}; SET join.tree = '{two_composites(chance, names)}'; {case.sql}")
    inputs = {name: [(START + 1_000_000 * time, *values) for time, *values in case.rows[name]] for name in names}
    cuts = {"batch": chance.choice([1, 7, 100]), "files": dict.fromkeys(names, 3)}
    changing, dozing = moody(seed, chance.choice([0.5, 0.1, 0.02]))
    with watched() as watch, changing, dozing:
        result = run_hosted(pipeline, inputs, buckets=buckets, chance=chance, watch=watch, **cuts)
        assert not watch.left_over()
    assert times_of(result.to_arrow("Out")) == case.expected(), case


def test_random_joins_make_much_again() -> None:
    """Or the tests above would say nothing about it."""
    looked = handed = 0
    for seed in range(12):
        case = dense(random.Random(seed), "ABCD")
        answer, _, live = run(case, "SET feedback.trial = 0;", "bushy")
        assert answer == case.expected()
        agains = [join.again for join in joins(live) if join.again is not None]
        assert all(len(join.rows[RIGHT]) == 0 for join in joins(live) if join.again is not None)
        looked += sum(again.looked for again in agains)
        handed += sum(again.handed for again in agains)
    assert looked > 100
    assert handed > 200
