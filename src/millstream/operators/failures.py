"""What happens to tuples that make an expression fail: they become dead letters, the others go on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.letters import DeadLetter, as_json


def take(batch: pa.RecordBatch, rows: npt.NDArray[np.int64] | None) -> pa.RecordBatch:
    return batch if rows is None else batch.take(pa.array(rows))


def group_letters(origin: str, groups: pa.RecordBatch, reason: str) -> list[DeadLetter]:
    """Letters about groups, which are shown by their keys and windows."""
    return failure_letters(origin, groups, [(row, reason) for row in range(groups.num_rows)])


def failure_letters(origin: str, batch: pa.RecordBatch, failures: list[tuple[int, str]]) -> list[DeadLetter]:
    return [DeadLetter(stream=origin, kind="error", reason=reason, content=as_json(batch, row)) for row, reason in failures]
