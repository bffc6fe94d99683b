"""Random queries answer while their streams run: each row is out before the end, and no state is left."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.cases import ALL, Case
from tests.oracle.liveness import check, live, make_live, on_spark
from tests.oracle.queries import Query, expanded
from tests.oracle.streams import SECOND, StreamSpec
from tests.oracle.test_found import row

EXAMPLES = max(1, settings.default.max_examples // 8)
SEEDS = st.integers(0, 2**63)


@pytest.mark.parametrize("family", ALL)
@settings(max_examples=EXAMPLES)
@given(seed=SEEDS)
def test_each_row_is_out_before_the_end_in_one_process(family: str, seed: int) -> None:
    case = make_live(random.Random(seed), family)
    check(case, live(case))


@pytest.mark.parametrize("family", ALL)
@settings(max_examples=max(1, EXAMPLES // 3))
@given(seed=SEEDS, buckets=st.sampled_from([1, 2, 3, 5]))
def test_each_row_is_out_before_the_end_over_buckets(family: str, seed: int, buckets: int) -> None:
    chance = random.Random(seed)
    case = make_live(chance, family)
    check(case, live(case, buckets=buckets, chance=chance))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("family", ALL)
@settings(max_examples=10 * EXAMPLES)
@given(seed=SEEDS, buckets=st.sampled_from([0, 0, 0, 1, 2, 3, 5]))
def test_each_row_is_out_before_the_end_thorough(family: str, seed: int, buckets: int) -> None:
    chance = random.Random(seed)
    case = make_live(chance, family)
    check(case, live(case, buckets=buckets, chance=chance))


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", range(20))
def test_each_row_is_out_before_the_end_on_spark(number: int, spark: object) -> None:
    """Marks move by heartbeats alone here, as the data is much older than the clock."""
    family = [family for family in ALL if family not in ("rows", "closed")][number]
    chance = random.Random(f"{family} on Spark")
    cases = (make_live(chance, family, clocks=False) for _ in itertools.count())
    case = next(case for case in cases if case.expected(0))
    check(case, on_spark(case))


COUNT = "SELECT k AS k, count(*) AS n FROM A GROUP BY k"
ROWS = "SELECT count(*) AS n FROM A [ROWS 2]"
NUMBERED = expanded("A_numbered", 2, 2, "number", times=False)
FULL = f"SELECT count(*) AS n, window_start, window_end FROM {NUMBERED} GROUP BY ALL"
EXCEPTIONS = {
    "rows": Case((StreamSpec("A", rows=(row(1), row(2), row(3))),), (Query(ROWS, FULL),), families=("rows",)),
    "cluster": Case(
        (StreamSpec("A", declared=("clustered",), rows=(row(1, 1), row(2, 2))),),
        (Query(COUNT, COUNT),),
        families=("closed",),
    ),
    "null": Case(
        (StreamSpec("A", declared=("unique",), rows=(row(1, None), row(2, 2))),),
        (Query(COUNT, COUNT),),
        families=("closed",),
    ),
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_what_is_excepted_waits_and_nothing_else_does(name: str) -> None:
    case = EXCEPTIONS[name]
    result = live(case)
    assert len(result.rows()) == len(case.expected(0)) - 1
    assert result.status.state_rows == 1
    check(case, result)
    with (
        patch("tests.oracle.liveness.EXCEPTED", ()),
        pytest.raises(AssertionError, match="1 of 2 rows are not out"),
    ):
        check(case, result)
    other = replace(result, tables={"Out0": result.tables["Out0"].slice(1)})
    with pytest.raises(AssertionError, match="rows are not out"):
        check(case, other)
    more = replace(result, status=replace(result.status, state_rows=2))
    with pytest.raises(AssertionError, match="2 tuples and groups are held, 1 may be"):
        check(case, more)


LONG = 20 * 365 * 86_400
"""Seconds that are further than any window of a query below."""
BEAT = ("beat",)
LATE_SLEEPER = Case(
    (
        StreamSpec("A", rows=(row(11, 2, i=-3), row(11, 2, i=1))),
        StreamSpec("B", punctuations=BEAT, rows=(row(-13, 2), row(LONG, 0, "beat"))),
        StreamSpec("C", punctuations=BEAT, rows=(row(LONG, 0, "beat"),)),
    ),
    (
        Query(
            "SELECT a.ts AS at, b.ts AS bt, c.ts AS ct FROM A [RANGE 1 SECOND] AS a, B [RANGE 10 SECONDS] AS b,"
            " C [RANGE 3 SECONDS] AS c WHERE a.k = b.k AND a.k = c.k",
            "SELECT a.ts, b.ts, c.ts FROM A AS a, B AS b, C AS c WHERE false",
        ),
    ),
    batch=1,
    tree="m-join",
    trial=0,
    families=("many",),
    now=12 * SECOND,
)
CLOSED = tuple(row(16, k, "close") for k in range(8))
LAST_SLEEPER = Case(
    (
        StreamSpec("A", slack=2 * SECOND, punctuations=("close",), rows=(row(1, 1, i=2), *CLOSED)),
        StreamSpec("B", punctuations=BEAT, rows=(row(LONG, 0, "beat"),)),
        StreamSpec("C", declared=("unique",), rows=(row(0, 7, i=0),)),
    ),
    (
        Query(
            "SELECT a.ts AS at, b.ts AS bt, c.ts AS ct FROM B [RANGE 1 SECOND] AS a,"
            " (SELECT DISTINCT k, i, ts FROM A) [RANGE 1 MICROSECOND] AS b,"
            " (SELECT DISTINCT k, i, ts FROM C) [RANGE 1 MINUTE] AS c WHERE a.i = b.i AND a.i = c.k",
            "SELECT a.ts, b.ts, c.ts FROM A AS a, B AS b, C AS c WHERE false",
        ),
    ),
    batch=100,
    order="in-order",
    trial=3,
    families=("many",),
    now=17 * SECOND,
)


@pytest.mark.parametrize("case", [LATE_SLEEPER, LAST_SLEEPER], ids=["late", "last"])
def test_what_sleeps_and_what_is_kept_for_it_go_with_the_last_mark(case: Case) -> None:
    check(case, live(case))
