"""Sort holds tuples until the low-water mark passes them, then lets them go in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.block import Block, empty_batch
from millstream.core.punctuation import Range
from millstream.core.types import MAX_TIME, Order, to_axis
from millstream.operators.contract import Config, Container, Due, Needs, Output, UnaryOperator
from millstream.state.row_window import RowWindow


@dataclass(frozen=True)
class Sort(Config):
    """Punctuation unblocks it (paper 004, section 5.5); the first key is a progressing column, ascending."""

    input: pa.Schema
    keys: tuple[Order, ...]

    @property
    def schema(self) -> pa.Schema:
        return self.input

    @property
    def needs(self) -> Needs:
        return Needs(keys=((),), linear="purge")

    @property
    def label(self) -> str:
        return "sort " + ", ".join(key.text("desc") for key in self.keys)

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        return ((Due(0, attribute, mark),),) if attribute == self.keys[0].name else ()

    def build(self, journal: bool = False) -> RunningSort:
        return RunningSort(self, journal)


class RunningSort(UnaryOperator):
    def __init__(self, config: Sort, journal: bool) -> None:
        self.needs = config.needs
        self.axis = config.keys[0].name
        self.keys = config.keys
        self.empty = empty_batch(config.input)
        self.rows = RowWindow(config.input, journal=journal)

    @property
    def state(self) -> tuple[Container, ...]:
        return (self.rows,)

    def handle(self, block: Block, out: Output) -> None:
        if len(block):
            axis = to_axis(block.batch.column(self.axis), MAX_TIME)
            self.rows.insert(block.batch, np.zeros(len(block), dtype=np.uint64), axis, axis)
        for punctuation in block.punctuations:
            if punctuation.is_end:
                self._release(MAX_TIME, out)
            elif punctuation.is_linear and punctuation.patterns[0][0] == self.axis:
                pattern = punctuation.patterns[0][1]
                assert isinstance(pattern, Range)
                self._release(pattern.high, out)
            elif punctuation.is_linear:
                continue  # a tuple that waits here may still break it
            elif len(self.rows) and punctuation.matches(self.rows.take(self.rows.alive_rows())).any():
                continue
            out.put(self.empty, [punctuation])

    def due(self) -> Iterator[Due]:
        if (first := self.rows.earliest) < MAX_TIME:
            yield Due(0, self.axis, first + 1)

    def _release(self, mark: int, out: Output) -> None:
        rows = self.rows.alive_rows() if mark == MAX_TIME else self.rows.expire(mark)
        if len(rows):
            out.put(in_order(self.rows.take(rows), self.keys))
            self.rows.discard(rows)


def in_order(batch: pa.RecordBatch, keys: Sequence[Order]) -> pa.RecordBatch:
    """The tuples sorted by all keys. Nulls stand where each key says, and NaN is above every number."""
    columns: dict[str, pa.Array] = {}
    order: list[tuple[str, str]] = []
    for number, key in enumerate(keys):
        column = batch.column(key.name)
        if column.null_count or pa.types.is_floating(column.type):
            columns[f"rank {number}"] = _ranks(column, key)
            order.append((f"rank {number}", "ascending"))
        columns[f"value {number}"] = column
        order.append((f"value {number}", "descending" if key.descending else "ascending"))
    return batch.take(pc.sort_indices(pa.RecordBatch.from_pydict(columns), sort_keys=order))


def _ranks(column: pa.Array, key: Order) -> pa.Array:
    """0 for what comes before the values, 1 for a NaN before the numbers, 2 for a value, 3 and 4 behind."""
    ranks = np.full(len(column), 2, dtype=np.int8)
    if pa.types.is_floating(column.type):
        ranks[np.isnan(column.fill_null(0).to_numpy(zero_copy_only=False))] = 1 if key.descending else 3
    ranks[column.is_null().to_numpy(zero_copy_only=False)] = 0 if key.nulls_first else 4
    return pa.array(ranks)
