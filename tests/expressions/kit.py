"""What the tests of expressions share: one batch with the awkward values, and short ways to compile and evaluate."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import sqlglot

from millstream.core.types import TIMESTAMP
from millstream.expressions import Compiled, compile_expression

NAN = float("nan")
BATCH = pa.record_batch(
    {
        "i": pa.array([1, None, -7, 2**63 - 1]),
        "j": pa.array([2, 3, 0, 1], pa.int32()),
        "x": pa.array([1.5, NAN, None, -0.0]),
        "y": pa.array([NAN, NAN, 1.0, 0.0]),
        "s": pa.array(["añb", "  Hi ", None, ""]),
        "t": pa.array([0, -1, None, 1_700_000_000_123_456]).cast(TIMESTAMP),
        "d": pa.array([0, -1, None, 19_000], pa.int32()).cast(pa.date32()),
        "b": pa.array([True, False, None, True]),
        "m": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal("99999999.99")], pa.decimal128(10, 2)),
    }
)


def compiled(text: str, schema: pa.Schema = BATCH.schema) -> Compiled:
    return compile_expression(sqlglot.parse_one(text, read="spark"), schema)


def values(text: str, batch: pa.RecordBatch = BATCH) -> list[Any]:
    """The values as Python objects: microseconds for times and intervals, the word NaN for NaN."""
    array = compiled(text, batch.schema).evaluate(batch)
    if pa.types.is_timestamp(array.type) or pa.types.is_duration(array.type):
        array = array.cast(pa.int64())
    return ["NaN" if v != v else v for v in array.to_pylist()]
