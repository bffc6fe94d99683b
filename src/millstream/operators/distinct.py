"""Distinct lets the first of equal tuples through, once per window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millstream.core.block import Block, empty_batch
from millstream.core.punctuation import Punctuation, Range
from millstream.core.types import MAX_TIME, to_axis
from millstream.kernels.windows import expand_windows
from millstream.operators.aggregate import BEYOND, beyond_calendar, matching, timed, window_ends, window_marks
from millstream.operators.contract import Config, Container, Due, Needs, Output, UnaryOperator
from millstream.operators.failures import group_letters
from millstream.plan.window import Window, end_names
from millstream.state.group_table import GroupTable


@dataclass(frozen=True)
class Distinct(Config):
    """Dupelim (paper 004, section 5.4): punctuation purges what is remembered and passes on."""

    input: pa.Schema
    columns: tuple[str, ...]
    window: Window | None = None
    axis: str | None = None
    origin: str = ""

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [self.input.field(c) for c in self.columns]
        if self.window is not None:
            kind = self.input.field(self.window.attribute).type
            fields += [pa.field(name, kind) for name in self.ends]
        return pa.schema(fields)

    @cached_property
    def ends(self) -> tuple[str, str]:
        return end_names(self.columns)

    @property
    def needs(self) -> Needs:
        return Needs(keys=(self.columns,), linear="purge", value="purge")

    @property
    def label(self) -> str:
        return f"distinct {', '.join(self.columns)}" + (f" window {self.window}" if self.window else "")

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        if self.window is not None and attribute in self.ends:
            start = mark if attribute == self.ends[0] else mark - self.window.range
            return ((Due(0, self.window.attribute, self.window.opening(start)),),)
        return ((Due(0, attribute, mark),),) if attribute in self.columns else ()

    def build(self, journal: bool = False) -> RunningDistinct:
        return RunningDistinct(self, journal)


class RunningDistinct(UnaryOperator):
    def __init__(self, config: Distinct, journal: bool) -> None:
        self.config = config
        self.needs = config.needs
        self.stretch = config.window.stretch if config.window is not None else MAX_TIME
        self.schema = config.schema
        self.empty = empty_batch(config.schema)
        self.table = GroupTable(pa.schema([config.input.field(c) for c in config.columns]), (), journal=journal)

    @property
    def state(self) -> tuple[Container, ...]:
        return (self.table,)

    def handle(self, block: Block, out: Output) -> None:
        for start in range(0, len(block), self.stretch):
            self._pass(block.batch.slice(start, self.stretch), out)
        for punctuation in block.punctuations:
            self._purge(punctuation, out)

    def _pass(self, batch: pa.RecordBatch, out: Output) -> None:
        window = self.config.window
        if window is not None:
            batch = timed(batch, window.attribute)
        columns = [batch.column(c) for c in self.config.columns]
        if window is not None:
            rows, axis = expand_windows(to_axis(batch.column(window.attribute)), window.range, window.slide)
            columns = [c.take(pa.array(rows)) for c in columns] if window.range != window.slide else columns
        elif self.config.axis is not None:
            axis = to_axis(batch.column(self.config.axis), MAX_TIME)
        else:
            axis = np.zeros(batch.num_rows, dtype=np.int64)
        _, first = self.table.upsert(columns, axis)
        ends = (
            []
            if window is None
            else window_ends(window, axis[first], self.schema.field(self.config.ends[0]).type)
        )
        made = pa.RecordBatch.from_arrays(
            [*(c.take(pa.array(first)) for c in columns), *ends], schema=self.schema
        )
        beyond = beyond_calendar(ends)
        if beyond is not None:
            out.letters += group_letters(self.config.origin, made.filter(pa.array(beyond)), BEYOND)
            made = made.filter(pa.array(~beyond))
        out.put(made)

    def due(self) -> Iterator[Due]:
        window, axis, last = self.config.window, self.config.axis, self.table.latest
        if last == MAX_TIME:
            return
        if window is not None:
            yield Due(0, window.attribute, window.closing(last))
        elif axis is not None:
            yield Due(0, axis, last + 1)

    def _purge(self, punctuation: Punctuation, out: Output) -> None:
        window = self.config.window
        passed = [punctuation]
        if punctuation.is_end:
            self.table.discard(self.table.alive())
        elif punctuation.is_linear and window is not None and punctuation.patterns[0][0] == window.attribute:
            pattern = punctuation.patterns[0][1]
            assert isinstance(pattern, Range)
            first_open = window.first_open(pattern.high)
            self.table.discard(self.table.expire(first_open))
            passed = window_marks(window, first_open, self.config.ends)
            if window.attribute in self.config.columns:
                passed.append(punctuation)
        elif punctuation.is_linear and punctuation.patterns[0][0] == self.config.axis:
            pattern = punctuation.patterns[0][1]
            assert isinstance(pattern, Range)
            self.table.discard(self.table.expire(min(pattern.high, MAX_TIME)))
        elif {name for name, _ in punctuation.patterns} <= set(self.config.columns):
            self.table.discard(matching(self.table, punctuation, timeless=window is None and self.config.axis is None))
        else:
            passed = []
        out.put(self.empty, passed)
