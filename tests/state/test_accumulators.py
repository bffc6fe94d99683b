"""Every aggregate over every type against Python, in pieces, merged, masked, journalled and compacted."""

from __future__ import annotations

import random
from decimal import Decimal
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millstream.errors import DataProblem, TypeProblem
from millstream.state.accumulators import VARIANCES, AccumulatorSpec
from millstream.state.group_table import GroupTable
from tests.state.naive import aggregate
from tests.state.samples import KEY_TYPES, array_of, values_of

EXACT = [(function, kind) for kind in KEY_TYPES for function in ("count", "min", "max")]
EXACT += [(function, pa.bool_()) for function in ("bool_and", "bool_or", "every", "any", "some")]
NUMBERS = [(f, k) for f in ("sum", "avg") for k in (pa.int8(), pa.int32(), pa.uint8(), pa.decimal128(10, 2), pa.decimal128(5, 0))]
REALS = [(f, k) for f in ("sum", "avg", *VARIANCES) for k in (pa.float32(), pa.float64(), pa.int16(), pa.decimal128(10, 2))]


def same(found: Any, expected: Any, exact: bool) -> bool:
    if found is None or expected is None:
        return found is expected
    if isinstance(expected, float) and isnan(expected):
        return isnan(found)
    return found == expected if exact or expected in (inf, -inf) else abs(found - expected) <= 1e-9 * abs(expected) + 1e-12


def finite(array: pa.Array) -> pa.Array:
    """Variances of infinities are nobody's business."""
    values = [None if value is None or value in (inf, -inf) or value != value else value for value in values_of(array)]
    return pa.array(values, type=array.type)


@pytest.mark.parametrize(("function", "kind"), [*EXACT, *NUMBERS, *REALS], ids=str)
def test_against_python(function: str, kind: pa.DataType) -> None:
    rng = random.Random(5)
    spec = AccumulatorSpec(function, kind)
    schema = pa.schema([("k", pa.int64())])
    table, journalled = GroupTable(schema, [spec]), GroupTable(schema, [spec], journal=True)
    partial = [GroupTable(schema, [spec]) for _ in range(3)]
    segments: list[bytes] = []
    groups_of: dict[int, list[Any]] = {}
    for step in range(25):
        size = rng.choice([0, 1, 5, 60])
        values = array_of(kind, size, rng, 0.3)
        if function in VARIANCES:
            values = finite(values)
        keys = [rng.randrange(8) + 20 * (step // 10) for _ in range(size)]
        mask = np.array([rng.random() < 0.8 for _ in range(size)], dtype=np.bool_) if step % 2 else None
        for each in (table, journalled, rng.choice(partial)):
            groups, _ = each.upsert([pa.array(keys, type=pa.int64())], np.zeros(size, dtype=np.int64))
            each.update(0, groups, values, mask)
        segment = journalled.changes()
        segments += [(step, segment.data)] if segment is not None else []
        for i, (key, value) in enumerate(zip(keys, values_of(values), strict=True)):
            kept = groups_of.setdefault(key, [])
            if value is not None and (mask is None or mask[i]):
                kept.append(value)
    merged, restored = GroupTable(schema, [spec]), GroupTable(schema, [spec])
    for each in partial:
        batch, axis, _ = each.result(each.alive())
        groups, _ = merged.upsert(batch.columns, axis)
        state = each.state(0, each.alive())
        assert pa.schema([(f.name, c.type) for f, c in zip(spec.state_schema, state, strict=True)]) == spec.state_schema
        merged.merge(0, groups, state)
    restored.restore(segments)
    exact = function not in VARIANCES and (not pa.types.is_floating(spec.result_type) or function in ("min", "max"))
    scale = spec.result_type.scale if pa.types.is_decimal(spec.result_type) else 0
    for each in (table, journalled, merged, restored):
        batch, _, (result,) = each.result(each.alive())
        result.validate(full=True)
        assert result.type == spec.result_type
        found = dict(zip(batch.column(0).to_pylist(), values_of(result), strict=True))
        assert found.keys() == groups_of.keys()
        for key, kept in groups_of.items():
            assert same(found[key], aggregate(function, kept, scale), exact), (key, kept)


def one_group(function: str, array: pa.Array) -> Any:
    table = GroupTable(pa.schema([]), [AccumulatorSpec(function, array.type)])
    groups, _ = table.upsert([], np.zeros(len(array), dtype=np.int64))
    table.update(0, groups, array)
    return table.result(table.alive())[2][0].to_pylist()[0]


def test_sums_pass_through_what_does_not_fit() -> None:
    most = 2**63 - 1
    assert one_group("sum", pa.array([most, most, -most, -5])) == most - 5
    assert one_group("sum", pa.array([-(2**63), -(2**63), 2**62] + [2**62] * 3)) == 0
    assert one_group("sum", pa.array([2**64 - 1, 0], type=pa.uint64()).slice(1)) == 0
    assert one_group("avg", pa.array([most] * 10)) == pytest.approx(float(most))
    assert one_group("avg", pa.array([-(2**63)] * 10)) == pytest.approx(-float(2**63))
    assert one_group("avg", pa.array([2**64 - 1] * 3, type=pa.uint64())) == pytest.approx(float(2**64))


@pytest.mark.parametrize("values", [[2**63 - 1, 1], [-(2**63), -1]])
def test_a_sum_that_does_not_fit_says_what_to_do(values: list[int]) -> None:
    with pytest.raises(DataProblem, match="CAST the argument of sum to DECIMAL"):
        one_group("sum", pa.array(values))


def test_decimal_totals_are_exact_to_the_last_digit() -> None:
    kind = pa.decimal128(38, 0)
    most, least = Decimal("9" * 38), Decimal("-" + "9" * 38)
    assert one_group("sum", pa.array([most, most, most, least, least, Decimal(-1)], type=kind)) == Decimal("9" * 37 + "8")
    with pytest.raises(DataProblem, match=r"does not fit DECIMAL\(38,0\)"):
        one_group("sum", pa.array([most, Decimal(1)], type=kind))
    with pytest.raises(DataProblem, match="does not fit DECIMAL"):
        one_group("sum", pa.array([least] * 5, type=kind))
    large = Decimal("9" * 33)
    assert one_group("avg", pa.array([large] * 7, type=kind)) == large
    assert one_group("avg", pa.array([Decimal("0.01"), Decimal("0.00"), Decimal("0.00")], type=pa.decimal128(3, 2))) == Decimal("0.003333")


@pytest.mark.parametrize(
    ("total", "count", "expected"), [(1, 32, "0.0313"), (-1, 32, "-0.0313"), (1, 2**5 * 3, "0.0104"), (3, 2, "1.5000")]
)
def test_averages_round_half_away_from_zero(total: int, count: int, expected: str) -> None:
    values = [Decimal(total)] + [Decimal(0)] * (count - 1)
    for kind in (pa.decimal128(5, 0), pa.decimal128(30, 0)):
        assert str(one_group("avg", pa.array(values, type=kind))) == expected


def test_float_sums_are_compensated() -> None:
    assert one_group("sum", pa.array([1e100, 1.0, -1e100])) == 1.0
    assert one_group("sum", pa.array([0.1] * 1_000_000)) == pytest.approx(100_000.0, rel=1e-15)
    assert one_group("sum", pa.array([inf, 1.0, -3.0])) == inf
    assert isnan(one_group("sum", pa.array([inf, -inf])))
    with np.errstate(all="raise"):
        assert one_group("sum", pa.array([1e308, 1e308])) == one_group("avg", pa.array([1e308, 1e308])) == inf
    assert one_group("max", pa.array([1.0, nan, 2.0])) != one_group("min", pa.array([1.0, nan, 2.0])) == 1.0


def test_texts_replaced_for_ever_take_no_more_room() -> None:
    table = GroupTable(pa.schema([]), [AccumulatorSpec("max", pa.string())])
    for step in range(5000):
        groups, _ = table.upsert([], np.zeros(1, dtype=np.int64))
        table.update(0, groups, pa.array([f"{step:08}"]))
    assert table.result(table.alive())[2][0].to_pylist() == ["00004999"]
    assert table.nbytes < 150_000


def test_types_of_results() -> None:
    def kind(function: str, of: pa.DataType | None) -> pa.DataType:
        return AccumulatorSpec(function, of).result_type

    assert kind("count", None) == kind("COUNT", pa.string()) == kind("sum", pa.int8()) == pa.int64()
    assert kind("sum", pa.float32()) == kind("avg", pa.int64()) == kind("stddev", pa.decimal128(5, 2)) == pa.float64()
    assert kind("sum", pa.decimal128(10, 2)) == pa.decimal128(20, 2)
    assert kind("sum", pa.decimal128(30, 2)) == pa.decimal128(38, 2)
    assert kind("avg", pa.decimal128(10, 2)) == pa.decimal128(14, 6)
    assert kind("avg", pa.decimal128(38, 36)) == pa.decimal128(38, 38)
    assert kind("max", pa.timestamp("us", tz="UTC")) == pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("sum", pa.string()),
        ("median", pa.int64()),
        ("avg", None),
        ("bool_and", pa.int64()),
        ("min", pa.list_(pa.int8())),
        ("sum", pa.null()),
    ],
)
def test_what_does_not_exist(function: str, kind: pa.DataType | None) -> None:
    with pytest.raises(TypeProblem):
        AccumulatorSpec(function, kind)
