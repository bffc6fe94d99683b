"""A checksum by which the answers of two sides can be compared, whatever the order of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def digest(answer: pa.Table) -> dict[str, Any]:
    """The number of rows and a checksum of their multiset; all columns must cast to int64."""
    total = np.zeros(answer.num_rows, dtype=np.uint64)
    for column in answer.columns:
        values = np.asarray(column.cast(pa.int64())).view(np.uint64)
        total = (total ^ values) * np.uint64(0x9E3779B97F4A7C15) + (values << np.uint64(7))
        total ^= total >> np.uint64(29)
    return {"answer_rows": answer.num_rows, "digest": f"{int(total.sum()):016x}"}
