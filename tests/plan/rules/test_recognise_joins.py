"""The condition of a join is split into keys, bands between times, and the rest."""

from __future__ import annotations

import pytest

from millstream.plan.nodes import Band, Join
from millstream.plan.rules.push_predicates import push_predicates
from millstream.plan.rules.recognise_joins import recognise_joins
from tests.plan.kit import bound

SECOND = 1_000_000


def join(condition: str, left: str = "A", right: str = "B") -> Join:
    plan = recognise_joins(push_predicates(bound(f"SELECT a.k FROM {left} AS a JOIN {right} AS b ON {condition}")))
    return next(node for node in plan.walk() if isinstance(node, Join))


BOUND = "a.ts = b.ts"  # so that the query is not refused


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("a.ts = b.ts", 0, 0),
        ("a.ts BETWEEN b.ts - INTERVAL 2 SECONDS AND b.ts + INTERVAL 3 SECONDS", -3 * SECOND, 2 * SECOND),
        ("a.ts < b.ts AND b.ts <= a.ts + INTERVAL 1 SECOND", 1, SECOND),
        ("a.ts - INTERVAL 1 SECOND > b.ts AND b.ts >= a.ts - INTERVAL 1 MINUTE", -60 * SECOND, -SECOND - 1),
        ("b.ts + INTERVAL 1 SECOND >= a.ts AND b.ts < a.ts", -SECOND, -1),
        ("b.ts - a.ts BETWEEN INTERVAL -2 SECONDS AND INTERVAL 3 SECONDS", -2 * SECOND, 3 * SECOND),
        ("a.ts - b.ts <= INTERVAL 2 SECONDS AND INTERVAL 1 SECOND > b.ts - a.ts", -2 * SECOND, SECOND - 1),
        ("b.ts - (a.ts - INTERVAL 1 SECOND) BETWEEN INTERVAL 0 SECONDS AND INTERVAL 1 SECOND", -SECOND, 0),
        ("b.ts - a.ts BETWEEN SYMMETRIC INTERVAL 3 SECONDS AND INTERVAL -2 SECONDS", -2 * SECOND, 3 * SECOND),
        ("b.ts BETWEEN SYMMETRIC a.ts + INTERVAL 1 SECOND AND a.ts - INTERVAL 1 SECOND", -SECOND, SECOND),
    ],
)
def test_bands_at_the_edge(condition: str, low: int, high: int) -> None:
    """`low <= b.ts - a.ts <= high`, ends included."""
    assert join(condition).bands == (Band("ts", "ts_1", low, high),)


def test_days_are_counted_in_days() -> None:
    left, right = (f"(SELECT k, to_date(ts) AS day FROM {name})" for name in "AB")
    assert join("a.day <= b.day + INTERVAL 1 DAY AND b.day - 2 <= a.day", left, right).bands == (Band("day", "day_1", -1, 2),)


def test_a_difference_of_days_is_an_interval() -> None:
    left, right = (f"(SELECT k, to_date(ts) AS day FROM {name})" for name in "AB")
    made = join("b.day - a.day BETWEEN INTERVAL -1 DAY AND INTERVAL 48 HOURS", left, right)
    assert made.bands == (Band("day", "day_1", -1, 2),)
    assert join("b.day - a.day <= INTERVAL 36 HOURS AND a.day = b.day", left, right).condition != ()


def test_a_difference_of_integers_is_an_integer() -> None:
    left, right = (f"(SELECT k, unix_seconds(ts) AS u FROM {name})" for name in "AB")
    assert join("b.u - a.u BETWEEN -5 AND 7", left, right).bands == (Band("u", "u_1", -5, 7),)


def test_symmetric_ends_whose_order_depends_on_the_tuple_stay_a_condition() -> None:
    assert len(join(f"{BOUND} AND b.ts BETWEEN SYMMETRIC a.ts AND b.ts").condition) == 1


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("CAST(b.ts AS DATE) >= CAST(a.ts AS DATE) AND CAST(b.ts AS DATE) < CAST(a.ts AS DATE) + 2", 0, 1),
        ("CAST(b.ts AS DATE) - CAST(a.ts AS DATE) BETWEEN INTERVAL 0 DAYS AND INTERVAL 1 DAY", 0, 1),
        ("unix_seconds(b.ts) - unix_seconds(a.ts) BETWEEN -5 AND 7", -5, 7),
    ],
)
def test_expressions_make_bands_where_the_join_would_be_refused(condition: str, low: int, high: int) -> None:
    query = f"SELECT a.k FROM A AS a JOIN B AS b ON a.k = b.k AND {condition}"
    plan = recognise_joins(push_predicates(bound(query)), implied=True)
    made = next(node for node in plan.walk() if isinstance(node, Join))
    (band,) = made.bands
    assert (band.low, band.high) == (low, high)
    assert band.left in made.left.progressing and band.right in made.right.progressing
    assert made.condition == ()


def test_keys_rest_and_derived_times() -> None:
    found = join("a.k + 1 = b.k AND a.v < b.v AND date_trunc('hour', a.ts) = date_trunc('hour', b.ts)")
    assert tuple(e.sql("spark").replace("`", "") for e in found.keys[0]) == ("k + 1", "k_1")
    assert [e.sql("spark").replace("`", "") for e in found.condition] == ["v < v_1"]
    (band,) = found.bands
    assert (band.low, band.high) == (0, 0)
    assert band.left in found.left.progressing and band.right in found.right.progressing


def test_a_derived_time_meets_a_column_that_progresses() -> None:
    found = join("date_trunc('minute', a.ts) = b.window_start", "A", "(SELECT k, count(*) AS n FROM B [RANGE 1 MINUTE] GROUP BY k)")
    assert [(b.low, b.high) for b in found.bands] == [(0, 0)]


def test_times_of_different_kinds_make_no_band() -> None:
    found = join(f"{BOUND} AND to_date(a.ts) = date_trunc('day', b.ts)")
    assert [(b.left, b.right) for b in found.bands] == [("ts", "ts_1")]
