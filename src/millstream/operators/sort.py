"""Sort holds tuples until the low-water mark passes them, then lets them go in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.core.block import Block, empty_batch
from millstream.core.punctuation import Range
from millstream.core.types import MAX_TIME, to_axis
from millstream.operators.contract import Config, Container, Due, Needs, Output, UnaryOperator
from millstream.state.row_window import RowWindow


@dataclass(frozen=True)
class Sort(Config):
    """Punctuation unblocks it (paper 004, section 5.5); the first key is a progressing column, ascending."""

    input: pa.Schema
    keys: tuple[tuple[str, bool], ...]

    @property
    def schema(self) -> pa.Schema:
        return self.input

    @property
    def needs(self) -> Needs:
        return Needs(keys=((),), linear="purge")

    @property
    def label(self) -> str:
        return "sort " + ", ".join(f"{name}{' desc' if descending else ''}" for name, descending in self.keys)

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        return ((Due(0, attribute, mark),),) if attribute == self.keys[0][0] else ()

    def build(self, journal: bool = False) -> RunningSort:
        return RunningSort(self, journal)


class RunningSort(UnaryOperator):
    def __init__(self, config: Sort, journal: bool) -> None:
        self.needs = config.needs
        self.axis = config.keys[0][0]
        self.order = [(name, "descending" if descending else "ascending") for name, descending in config.keys]
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
            out.put(self.rows.take(rows).sort_by(self.order))
            self.rows.discard(rows)
