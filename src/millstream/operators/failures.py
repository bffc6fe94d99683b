"""What happens to tuples that make an expression fail: they become dead letters, the others go on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.letters import DeadLetter


def take(batch: pa.RecordBatch, rows: npt.NDArray[np.int64] | None) -> pa.RecordBatch:
    return batch if rows is None else batch.take(pa.array(rows))


def as_json(batch: pa.RecordBatch, row: int) -> str:
    """One tuple as JSON, for a person to read; hidden columns are left out."""
    values = {n: _python(batch.column(n)[row]) for n in batch.schema.names if not n.startswith("__")}
    return json.dumps(values, default=str)


def _python(value: pa.Scalar) -> Any:
    """Times beyond the years that Python knows as the numbers they are."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return value.value


def failure_letters(origin: str, batch: pa.RecordBatch, failures: list[tuple[int, str]]) -> list[DeadLetter]:
    return [DeadLetter(stream=origin, kind="error", reason=reason, content=as_json(batch, row)) for row, reason in failures]
