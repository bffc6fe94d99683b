"""Evaluate expressions so that a tuple that can not be computed costs that tuple only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.types import Int64s
from millstream.expressions.compile import Compiled
from millstream.expressions.node import FAILURES

Failure = tuple[int, str]


def evaluate_guarded(compiled: Sequence[Compiled], batch: pa.RecordBatch) -> tuple[list[pa.Array], Int64s | None, list[Failure]]:
    """The values of all expressions, the numbers of the tuples they belong to (None: all), and the tuples that failed with the reason.

    The first try is over the whole batch. Only when it fails is the batch halved, until the tuples at fault stand alone.
    """
    try:
        return [one.attempt(batch) for one in compiled], None, []
    except FAILURES:
        pass
    parts: list[list[pa.Array]] = []
    kept: list[Int64s] = []
    failures: list[Failure] = []
    pending = [(0, batch.num_rows)]
    while pending:
        start, stop = pending.pop()
        if stop - start == 1:
            reason = _reason(compiled, batch.slice(start, 1))
            if reason is not None:
                failures.append((start, reason))
                continue
        try:
            piece = batch.slice(start, stop - start)
            parts.append([one.attempt(piece) for one in compiled])
            kept.append(np.arange(start, stop, dtype=np.int64))
        except FAILURES:
            middle = (start + stop) // 2
            pending += [(middle, stop), (start, middle)]
    columns = [pa.concat_arrays([part[i] for part in parts]) if parts else pa.array([], one.type) for i, one in enumerate(compiled)]
    return columns, np.concatenate(kept) if kept else np.empty(0, np.int64), failures


def _reason(compiled: Sequence[Compiled], tuple_: pa.RecordBatch) -> str | None:
    """Why a single tuple fails, or None."""
    for one in compiled:
        try:
            one.attempt(tuple_)
        except FAILURES as error:
            return one.reason(error)
    return None


def guarded_mask(compiled: Compiled, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.bool_], list[Failure]]:
    """Where a condition is true, and the tuples for which it can not be computed; there it is not true."""
    (values,), kept, failures = evaluate_guarded([compiled], batch)
    mask = as_mask(values)
    if kept is None:
        return mask, failures
    whole = np.zeros(batch.num_rows, np.bool_)
    whole[kept] = mask
    return whole, failures


def predicate_mask(compiled: Compiled, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Where a condition is true; NULL is not."""
    return as_mask(compiled.evaluate(batch))


def as_mask(values: pa.Array) -> npt.NDArray[np.bool_]:
    """A boolean column as a mask; NULL reads as False."""
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.bool_)
    if values.null_count:
        values = values.fill_null(False)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.bool_)
