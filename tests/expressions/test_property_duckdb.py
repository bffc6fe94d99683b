"""Random expressions give what DuckDB gives, tuple by tuple, in one block or in many."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.types import TIMESTAMP
from millstream.expressions import evaluate_guarded
from tests.expressions.generate import EDGES, batches, expressions, plain
from tests.expressions.kit import compiled

CONNECTION = duckdb.connect()


def in_duckdb(text: str, batch: pa.RecordBatch) -> list[Any]:
    """Timestamps go in without their zone: they are UTC on both sides."""
    names = batch.schema.names
    table = pa.table([c.cast(pa.timestamp("us")) if c.type == TIMESTAMP else c for c in batch.columns], names=names)
    CONNECTION.register("stream", table.append_column("row_", pa.array(range(batch.num_rows), pa.int64())))
    rows = CONNECTION.execute(f"select {text} from stream order by row_").fetchall()
    return [plain(row[0]) for row in rows]


def alike(ours: list[Any], theirs: list[Any]) -> bool:
    return len(ours) == len(theirs) and all(
        a == b or (isinstance(a, float) and isinstance(b, (float, int)) and math.isclose(a, b, rel_tol=1e-12))
        for a, b in zip(ours, theirs, strict=True)
    )


KINDS = expressions(2)


@pytest.mark.parametrize("kind", sorted(KINDS))
@given(data=st.data())
def test_random_expressions_agree_with_duckdb(kind: str, data: st.DataObject) -> None:
    spark, duck = data.draw(KINDS[kind])
    batch = data.draw(batches())
    one = compiled(spark, batch.schema)
    values = one.evaluate(batch)
    values.validate(full=True)
    assert values.type == one.type and len(values) == batch.num_rows
    ours = [plain(v) for v in values.to_pylist()]
    theirs = in_duckdb(duck, batch)
    assert alike(ours, theirs), f"{spark}\n{duck}\n{one.type}\n{ours}\n{theirs}"
    cut = data.draw(st.integers(0, batch.num_rows))
    parts = pa.concat_arrays([one.evaluate(batch[:cut]), one.evaluate(batch[cut:])])
    assert [plain(v) for v in parts.to_pylist()] == ours, "blocks change the answer"


@pytest.mark.parametrize(
    "operation", ["n + o", "n - o", "n * o", "- n", "abs(n)", "cast(n as int)", "n div o", "n % o", "cast(n as decimal(12,2))"]
)
@given(data=st.data())
def test_what_overflows_fails_alone_and_exactly_where_duckdb_fails(operation: str, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 9))
    cells = [data.draw(st.lists(st.none() | st.sampled_from(EDGES), min_size=size, max_size=size)) for _ in range(2)]
    batch = pa.record_batch([pa.array(c, pa.int64()) for c in cells], names=["n", "o"])
    duck = operation.replace("div o", "// nullif(o, 0)").replace("% o", "% nullif(o, 0)")
    (values,), kept, failures = evaluate_guarded([compiled(operation, batch.schema)], batch)
    kept_rows = list(range(size)) if kept is None else kept.tolist()
    theirs = in_duckdb(f"try({duck})", batch)
    if operation == "n % o":  # DuckDB refuses the smallest number modulo -1, which is 0
        theirs = [0 if pair == (-(2**63), -1) else found for pair, found in zip(zip(*cells, strict=True), theirs, strict=True)]
    assert [plain(v) for v in values.to_pylist()] == [theirs[row] for row in kept_rows]
    assert sorted([*kept_rows, *(row for row, _ in failures)]) == list(range(size))
    for row, reason in failures:
        assert theirs[row] is None and cells[0][row] is not None and ":" in reason
