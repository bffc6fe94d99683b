"""The row store against lists of Python values, for every type."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from millstream.state.columns import Columns
from tests.state.naive import canonical
from tests.state.samples import ALL_TYPES, KEY_TYPES, array_of, values_of


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_append_take_keep(kind: pa.DataType, nulls: float) -> None:
    rng = random.Random(3)
    schema = pa.schema([("x", kind), ("n", pa.int64())])
    store, rows = Columns(schema), []
    given_back: list[tuple[pa.RecordBatch, list[str]]] = []
    for step in range(60):
        size = rng.choice([0, 1, 3, 40])
        batch = pa.RecordBatch.from_arrays([array_of(kind, size, rng, nulls), array_of(pa.int64(), size, rng, 0.0)], schema=schema)
        assert store.append(batch) == len(rows)
        rows += list(zip(values_of(batch.column(0)), values_of(batch.column(1)), strict=True))
        wanted = [rng.randrange(len(rows)) for _ in range(rng.choice([0, 1, 30]))] if rows else []
        if rows and step % 3 == 0:
            start = rng.randrange(len(rows))
            wanted = list(range(start, min(len(rows), start + 50)))
        taken = store.take(np.array(wanted, dtype=np.int64))
        taken.validate(full=True)
        assert taken.schema == schema
        expected = [repr(rows[i]) for i in wanted]
        given_back.append((taken, expected))
        if step % 10 == 9:
            kept = sorted(rng.sample(range(len(rows)), len(rows) // 2)) if step % 20 == 9 else []
            store.keep(np.array(kept, dtype=np.int64))
            rows = [rows[i] for i in kept]
        assert len(store) == len(rows)
    for taken, expected in given_back:  # what was given back never changes
        assert [repr(row) for row in zip(values_of(taken.column(0)), values_of(taken.column(1)), strict=True)] == expected


@pytest.mark.parametrize("kind", KEY_TYPES, ids=str)
def test_equal_is_equality_of_keys(kind: pa.DataType) -> None:
    rng = random.Random(4)
    for nulls in (0.0, 0.3):
        store = Columns(pa.schema([("x", kind)]))
        stored, other = array_of(kind, 60, rng, nulls), array_of(kind, 200, rng, nulls)
        store.append(pa.RecordBatch.from_arrays([stored], schema=store.schema))
        rows = np.array([rng.randrange(60) for _ in range(200)], dtype=np.int64)
        mine, theirs = values_of(stored), values_of(other)
        expected = [canonical(mine[row]) == canonical(value) for row, value in zip(rows, theirs, strict=True)]
        assert store.equal(rows, [other]).tolist() == expected


def test_no_columns_and_wrong_columns() -> None:
    assert Columns(pa.schema([])).take(np.arange(3)).num_rows == 3
    store = Columns(pa.schema([("x", pa.int64())]))
    with pytest.raises(TypeError, match="x is int32"):
        store.append(pa.record_batch({"x": pa.array([1], type=pa.int32())}))
    with pytest.raises(ValueError, match="0 columns"):
        store.append(pa.RecordBatch.from_struct_array(pa.array([{}], type=pa.struct([]))))


def test_memory_follows_what_is_kept() -> None:
    store = Columns(pa.schema([("x", pa.int64()), ("s", pa.string())]))
    batch = pa.record_batch({"x": pa.array(range(1000)), "s": pa.array(["0123456789"] * 1000)})
    for _ in range(100):
        store.append(batch)
        store.keep(np.arange(len(store) - 500, len(store)))
    assert store.nbytes < 3 * 500 * (8 + 8 + 10)
