"""Pairs of a join: which candidates really match, and how a result looks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.block import empty_batch
from millstream.core.letters import DeadLetter
from millstream.core.types import from_axis, to_axis
from millstream.expressions import compile_expression, guarded_mask
from millstream.operators.failures import failure_letters
from millstream.operators.join import Join

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class PairMaker:
    """Checks candidates of equal hash for equal keys and the rest of the condition, and builds results."""

    def __init__(self, config: Join) -> None:
        self.config = config
        self.schema = config.schema
        self.none = empty_batch(config.schema)
        self.letters: list[DeadLetter] = []
        """Pairs whose condition could not be computed: they do not match."""
        self.condition = None
        if config.condition is not None:
            self.condition = compile_expression(config.condition, config.pair_schema)

    def check(
        self, left: pa.RecordBatch, right: pa.RecordBatch, probes: Int64s, rows: Int64s, exact: bool
    ) -> tuple[Int64s, Int64s, pa.RecordBatch]:
        """Keep the candidates that match; `exact` says that equal hashes prove equal keys."""
        pairs = pa.RecordBatch.from_arrays([*left.columns, *right.columns], schema=self.config.pair_schema)
        mask = None
        if not exact and self.config.left_keys:
            mask = np.ones(pairs.num_rows, dtype=np.bool_)
            for a, b in zip(self.config.left_keys, self.config.right_keys, strict=True):
                mask &= same_keys(pairs.column(a), pairs.column(b))
        if self.condition is not None:
            found, failures = guarded_mask(self.condition, pairs)
            if failures:
                self.letters += failure_letters(self.config.origin, pairs, failures)
            mask = found if mask is None else mask & found
        if mask is None or mask.all():
            return probes, rows, pairs
        return probes[mask], rows[mask], pairs.filter(pa.array(mask))

    def take_letters(self) -> list[DeadLetter]:
        letters, self.letters = self.letters, []
        return letters

    def output(self, pairs: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [self._stamp(pairs) if self._is_stamp(name) else pairs.column(name) for name in self.config.output]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def alone(self, left: pa.RecordBatch) -> pa.RecordBatch:
        """Left tuples that found nobody: nulls stand for the right side."""
        names = set(self.config.left.names)
        arrays = []
        for name in self.config.output:
            if name in names:
                arrays.append(left.column(name))
            elif self._is_stamp(name):
                assert self.config.stamp is not None
                arrays.append(left.column(self.config.stamp[1]))
            else:
                arrays.append(pa.nulls(left.num_rows, type=self.schema.field(name).type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _is_stamp(self, name: str) -> bool:
        return self.config.stamp is not None and name == self.config.stamp[0]

    def _stamp(self, pairs: pa.RecordBatch) -> pa.Array:
        assert self.config.stamp is not None
        name, left, right = self.config.stamp
        later = np.maximum(to_axis(pairs.column(left)), to_axis(pairs.column(right)))
        return from_axis(later, self.schema.field(name).type)


def same_keys(a: pa.Array, b: pa.Array) -> Mask:
    """Equal as keys are: NaN is equal to NaN, null to nothing."""
    same = pc.equal(a, b)
    if pa.types.is_floating(a.type):
        same = pc.or_(same, pc.and_(pc.is_nan(a), pc.is_nan(b)))
    return np.asarray(pc.fill_null(same, False).to_numpy(zero_copy_only=False), dtype=np.bool_)
