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
    ],
)
def test_bands_at_the_edge(condition: str, low: int, high: int) -> None:
    """`low <= b.ts - a.ts <= high`, ends included."""
    assert join(condition).bands == (Band("ts", "ts_1", low, high),)


def test_days_are_counted_in_days() -> None:
    left, right = (f"(SELECT k, to_date(ts) AS day FROM {name})" for name in "AB")
    assert join("a.day <= b.day + INTERVAL 1 DAY AND b.day - 2 <= a.day", left, right).bands == (Band("day", "day_1", -1, 2),)


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
