"""A compiled expression: broadcasting, pickling, columns read, tuples that fail, constants and masks."""

from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import DataProblem, MillstreamError, PlanProblem
from millstream.expressions import evaluate_guarded, fold_constant, predicate_mask
from tests.expressions.kit import BATCH, compiled, values


def test_a_column_is_itself() -> None:
    assert compiled("x").evaluate(BATCH).buffers()[1].address == BATCH.column("x").buffers()[1].address


def test_constants_are_broadcast_to_the_length_of_the_batch() -> None:
    assert values("1 + 1", BATCH[:0]) == [] and values("1 + 1") == [2] * 4 and values("null") == [None] * 4


def test_columns_are_those_it_reads() -> None:
    assert compiled("if(b, I, 3) + length(s)").columns == {"b", "i", "s"}


def test_a_compiled_expression_survives_pickling() -> None:
    one = compiled("case when i > 0 then s || 'x' else date_format(t, 'yyyy') end")
    again = pickle.loads(pickle.dumps(one))
    assert again.type == one.type and again.columns == one.columns and again.evaluate(BATCH).equals(one.evaluate(BATCH))


def test_columns_of_other_widths_and_encodings_read_as_the_usual_types() -> None:
    batch = pa.record_batch(
        {
            "w": pa.array(["a", None, "a"]).dictionary_encode(),
            "l": pa.array(["a", "b", None], pa.large_string()),
            "z": pa.array([0, 1, None], pa.timestamp("ms")),
            "u": pa.array([1, 2, None], pa.uint32()),
        }
    )
    assert values("w = l", batch) == [True, None, None]
    assert values("unix_millis(z) + u", batch) == [1, 3, None]


@given(st.lists(st.one_of(st.none(), st.sampled_from(["1", "22", "x", "", "2147483648"])), max_size=40))
def test_exactly_the_failing_tuples_are_set_aside(cells: list[str | None]) -> None:
    batch = pa.record_batch({"s": pa.array(cells, pa.string())})
    (numbers, same), kept, failures = evaluate_guarded([compiled("cast(s as int)", batch.schema), compiled("s", batch.schema)], batch)
    bad = [row for row, cell in enumerate(cells) if cell in ("x", "", "2147483648")]
    good = [row for row in range(len(cells)) if row not in bad]
    assert [row for row, _ in failures] == bad
    assert same.to_pylist() == [cells[row] for row in good]
    assert numbers.to_pylist() == [None if cells[row] is None else int(str(cells[row])) for row in good]
    assert (kept is None) == (not bad) and (kept is None or (kept.dtype == np.int64 and kept.tolist() == good))


def test_the_reason_names_the_expression_and_the_value() -> None:
    _, _, failures = evaluate_guarded([compiled("i + 1"), compiled("cast(s as int)")], BATCH)
    assert failures[0] == (0, "CAST(s AS INT): 'añb' is no INT")
    with pytest.raises(DataProblem, match="overflow"):
        compiled("i + 1").evaluate(BATCH)


def test_a_constant_that_fails_only_fails_where_it_is_needed() -> None:
    assert values("if(j > 5, cast('x' as int), 1)") == [1] * 4
    columns, kept, failures = evaluate_guarded([compiled("cast('x' as int)")], BATCH)
    assert len(failures) == 4 and len(columns[0]) == 0 and kept is not None and len(kept) == 0
    assert values("cast('x' as int)", BATCH[:0]) == []


def test_null_is_not_true_in_a_mask() -> None:
    assert predicate_mask(compiled("i > 0"), BATCH).tolist() == [True, False, False, True]
    assert predicate_mask(compiled("null"), BATCH).tolist() == [False] * 4
    assert predicate_mask(compiled("true"), BATCH).tolist() == [True] * 4


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("'a' || 'b'", "ab"),
        ("interval 90 seconds", 90_000_000),
        ("interval '1 day' + interval 2 hours", 26 * 3_600_000_000),
        ("cast('5' as bigint)", 5),
        ("-1.5D", -1.5),
        ("null", None),
        ("date '2020-01-01' < date '2020-01-02'", True),
    ],
)
def test_constants_fold(text: str, value: object) -> None:
    assert fold_constant(sqlglot.parse_one(text, read="spark")) == value


@pytest.mark.parametrize("text", ["cast('x' as int)", "i + 1"])
def test_what_is_no_constant_is_refused(text: str) -> None:
    with pytest.raises(MillstreamError):
        fold_constant(sqlglot.parse_one(text, read="spark"))
    with pytest.raises(PlanProblem, match="has no value"):
        fold_constant(sqlglot.parse_one("cast('x' as int)", read="spark"))


@given(st.lists(st.decimals(min_value=-(10**15), max_value=10**15, places=3, allow_nan=False), max_size=20))
def test_a_decimal_becomes_the_nearest_float(decimals: list[Decimal]) -> None:
    batch = pa.record_batch({"m": pa.array(decimals, pa.decimal128(20, 3))})
    assert values("cast(m as double)", batch) == [float(value) for value in decimals]
    assert values("cast(m as float)", batch) == [float(np.float32(str(value))) for value in decimals]
