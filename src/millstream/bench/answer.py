"""A checksum by which the answers of two sides can be compared, whatever the order of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def digest(answer: pa.Table) -> dict[str, Any]:
    """The number of rows and a checksum of their multiset; columns are numbers, or times in any unit (Spark writes nanoseconds)."""
    total = np.zeros(answer.num_rows, dtype=np.uint64)
    for column in answer.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz))
        values = np.asarray(column.cast(pa.int64())).view(np.uint64)
        total = (total ^ values) * np.uint64(0x9E3779B97F4A7C15) + (values << np.uint64(7))
        total ^= total >> np.uint64(29)
    return {"answer_rows": answer.num_rows, "digest": f"{int(total.sum()):016x}"}
