"""What a silent source may promise: three policies, three kinds of time."""

from __future__ import annotations

import pytest

from millstream.core.types import MIN_TIME
from millstream.pipeline import Pipeline
from millstream.plan.catalog import Stream
from millstream.progress.ets import enabling_timestamp

SECOND = 1_000_000


def stream(clauses: str) -> Stream:
    pipeline = Pipeline()
    pipeline.add_text(f"CREATE STREAM S (a INT, ts TIMESTAMP) {clauses} WITH (path = 's', format = 'csv');")
    found = pipeline.catalog.relations.need("S")
    assert isinstance(found, Stream)
    return found


def test_external_time_goes_on_from_the_last_tuple_less_the_skew() -> None:
    s = stream("TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW 2 SECONDS")
    # A mark of 100 s arrived at 1000 s by the clock; at 1007 s its source is at 107 s, give or take two.
    assert enabling_timestamp(s, 100 * SECOND, 1000 * SECOND, 1007 * SECOND, MIN_TIME, None) == 105 * SECOND
    assert enabling_timestamp(s, 100 * SECOND, 1000 * SECOND, 1002 * SECOND, MIN_TIME, None) is None  # no more than the mark itself
    assert enabling_timestamp(s, 100 * SECOND, 1000 * SECOND, 1007 * SECOND, 105 * SECOND, None) is None  # no more than the last one
    assert enabling_timestamp(s, MIN_TIME, 0, 1007 * SECOND, MIN_TIME, None) is None  # nothing is known of its time yet


def test_internal_time_is_the_clock() -> None:
    s = stream("TIMESTAMP INTERNAL AS ts")
    assert enabling_timestamp(s, MIN_TIME, 0, 1007 * SECOND, MIN_TIME, None) == 1007 * SECOND


def test_every_makes_one_a_period() -> None:
    s = stream("TIMESTAMP BY ts ORDERED ETS EVERY 5 SECONDS SKEW 0 SECONDS")
    made, last = [], MIN_TIME
    for now in range(1000, 1021):
        mark = enabling_timestamp(s, 100 * SECOND, 1000 * SECOND, now * SECOND, last, None)
        if mark is not None:
            last = mark
            made.append(mark // SECOND)
    assert made == [101, 106, 111, 116]


@pytest.mark.parametrize("kind", ["TIMESTAMP BY ts ORDERED", "TIMESTAMP INTERNAL AS ts"])
def test_none_makes_none(kind: str) -> None:
    assert enabling_timestamp(stream(f"{kind} ETS NONE"), 0, 0, 1007 * SECOND, MIN_TIME, None) is None


def test_without_a_skew_no_tuple_as_old_as_those_before_is_late() -> None:
    s = stream("TIMESTAMP BY ts ORDERED")
    # Files land once a minute: their oldest tuples were 61 s old when they came.
    lag = 61 * SECOND
    assert enabling_timestamp(s, 999 * SECOND, 1000 * SECOND, 1050 * SECOND, MIN_TIME, lag) is None
    assert enabling_timestamp(s, 999 * SECOND, 1000 * SECOND, 1070 * SECOND, MIN_TIME, lag) == 1009 * SECOND
    assert enabling_timestamp(s, 999 * SECOND, 1000 * SECOND, 1070 * SECOND, MIN_TIME, None) is None


def test_history_that_is_read_again_does_not_follow_the_clock() -> None:
    s = stream("TIMESTAMP BY ts ORDERED")
    year = 365 * 24 * 3600 * SECOND
    assert enabling_timestamp(s, 999 * SECOND, year, year + 7200 * SECOND, MIN_TIME, year) is None
