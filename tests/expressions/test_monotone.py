"""Expressions known to be monotone never decrease, and their `apply` is what the evaluator computes."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.types import MAX_TIME, MIN_TIME, TIMESTAMP, from_axis, to_axis
from millstream.expressions import evaluate_guarded, monotone
from tests.expressions.kit import compiled

SCHEMA = pa.schema({"ts": TIMESTAMP, "i": pa.int64(), "k": pa.int32(), "d": pa.date32(), "s": pa.string(), "x": pa.float64()})

FOLLOWED = [
    "ts",
    "(ts) as w",
    "ts + interval 5 minutes",
    "interval 1 hour + ts",
    "ts - interval 90 seconds",
    "to_date(ts)",
    "cast(ts as date)",
    *(
        f"date_trunc('{unit}', ts)"
        for unit in ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
    ),
    "unix_timestamp(ts)",
    "unix_seconds(ts)",
    "unix_millis(ts)",
    "unix_micros(ts)",
    "cast(ts as bigint)",
    "year(ts)",
    "year(d)",
    "trunc(d, 'MM')",
    "i",
    "k + 1",
    "i - 10",
    "i * 3",
    "3 * i",
    "i div 7",
    "floor(i / 7)",
    "floor(k)",
    "cast(k as bigint)",
    "cast(i as timestamp)",
    "timestamp_millis(i)",
    "cast(d as timestamp)",
    "d + 1",
    "date_add(d, 3)",
    "date_sub(d, 2)",
    "d + interval 2 days",
    "d - interval 3 hours",
    "date_trunc('month', d)",
    "date_trunc('hour', ts + interval 30 minutes) - interval 1 day",
    "unix_micros(ts) div 60000000 * 60",
    "floor(unix_timestamp(ts) / 300) * 300",
    "try_cast(ts as date)",
    "try_cast(ts as bigint)",
    "unix_seconds(ts) div 100000000000",
]


@pytest.mark.parametrize("text", FOLLOWED)
@given(data=st.data())
def test_apply_is_the_evaluator_and_never_decreases(text: str, data: st.DataObject) -> None:
    found = monotone(sqlglot.parse_one(text, read="spark"), SCHEMA)
    assert found is not None
    kind = SCHEMA.field(found.column).type
    reach = {"ts": 10**16, "i": 2**62, "k": 2**31 - 1, "d": 100_000}[found.column]
    points = sorted(data.draw(st.lists(st.integers(-reach, reach) | st.integers(-20, 20), min_size=1, max_size=12)))
    column = from_axis(pa.array(points, pa.int64()).to_numpy(), kind)
    batch = pa.record_batch({found.column: column})
    one = compiled(text, SCHEMA)
    assert one.columns == {found.column} and found.kind == one.type
    (values,), kept, _ = evaluate_guarded([one], batch)
    rows = range(len(points)) if kept is None else kept.tolist()
    computed = to_axis(values).tolist()
    assert [found.apply(points[row]) for row in rows] == computed
    assert computed == sorted(computed)


@pytest.mark.parametrize("text", FOLLOWED)
def test_the_ends_of_time_stay_and_it_pickles(text: str) -> None:
    found = pickle.loads(pickle.dumps(monotone(sqlglot.parse_one(text, read="spark"), SCHEMA)))
    assert found.apply(MIN_TIME) == MIN_TIME and found.apply(MAX_TIME) == MAX_TIME


@pytest.mark.parametrize(
    "text",
    [
        "-i",
        "10 - i",
        "i * -1",
        "i div -2",
        "i % 5",
        "i * k",
        "i + k",
        "ts + interval 1 month",
        "hour(ts)",
        "month(ts)",
        "s",
        "x",
        "length(s)",
        "5",
        "abs(i)",
        "if(i > 0, i, 0)",
        "i / 2",
        "d - ts",
        "pmod(i, 3)",
        "floor(i / -2)",
        "nothing",
        "date_format(ts, 'yyyy')",
    ],
)
def test_what_may_decrease_is_not_followed(text: str) -> None:
    assert monotone(sqlglot.parse_one(text, read="spark"), SCHEMA) is None


@pytest.mark.parametrize(
    "text",
    [
        "unix_seconds(ts) * 0",
        "i * 0",
        "unix_seconds(ts) div 1000000000000",
        "floor(unix_seconds(ts) / 1000000000000)",
        "try_cast(unix_micros(ts) as int)",
        "try_cast(ts as int)",
        "try_cast(i as timestamp)",
    ],
)
def test_what_stays_as_it_is_or_may_be_null_is_not_followed(text: str) -> None:
    assert monotone(sqlglot.parse_one(text, read="spark"), SCHEMA) is None


@pytest.mark.parametrize("text", FOLLOWED)
@given(mark=st.integers(-(10**17), 10**17) | st.integers(-10_000, 3_000_000_000))
def test_reaching_is_the_smallest_value_that_leads_to_a_mark(text: str, mark: int) -> None:
    rule = monotone(sqlglot.parse_one(text, read="spark"), SCHEMA)
    assert rule is not None
    least = rule.reaching(mark)
    if least is None:
        assert rule.apply(2**62) < mark
    else:
        assert rule.apply(least) >= mark and (least == -(2**62) or rule.apply(least - 1) < mark)
