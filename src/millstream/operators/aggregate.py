"""Aggregate keeps one group per window and key, and lets a group out when nothing can join it any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.block import Block, empty_batch
from millstream.core.punctuation import Punctuation, Range
from millstream.core.types import MAX_TIME, from_axis, outside, to_axis
from millstream.kernels.windows import expand_windows
from millstream.operators.contract import Config, Container, Due, Needs, Output, UnaryOperator
from millstream.operators.failures import group_letters
from millstream.plan.window import WINDOW_END, WINDOW_START, Window, end_names
from millstream.state.accumulators import AccumulatorSpec
from millstream.state.closed import shape_of, values_of
from millstream.state.group_table import GroupTable
from millstream.state.numeric_totals import Overflow

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Call:
    """One aggregate over an input column (None counts tuples)."""

    name: str
    function: str
    column: str | None = None
    distinct: bool = False


@dataclass(frozen=True)
class Aggregate(Config):
    """Window-id aggregation (paper 004, Figures A-2 and A-3), closed by linear, group-wise and value punctuation.

    We depart from Figure A-3: every window that ends at or before the mark closes, because marks jump.
    `axis` is the group column that progresses when there is no window.
    Marks on the group columns in `moving`, beside it, close groups too.
    """

    input: pa.Schema
    groups: tuple[str, ...]
    calls: tuple[Call, ...]
    window: Window | None = None
    axis: str | None = None
    moving: tuple[str, ...] = ()
    origin: str = ""
    titles: tuple[str, ...] = ()
    """The group columns as the user wrote them, for letters."""
    flush_rows: int = field(default=1 << 16)

    @cached_property
    def specs(self) -> tuple[AccumulatorSpec, ...]:
        return tuple(AccumulatorSpec(c.function, None if c.column is None else self.input.field(c.column).type) for c in self.calls)

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [self.input.field(g) for g in self.groups]
        fields += [pa.field(c.name, s.result_type) for c, s in zip(self.calls, self.specs, strict=True)]
        if self.window is not None:
            kind = self.input.field(self.window.attribute).type
            fields += [pa.field(WINDOW_START, kind), pa.field(WINDOW_END, kind)]
        return pa.schema(fields)

    @property
    def needs(self) -> Needs:
        return Needs(keys=(self.groups,), linear="purge", value="purge")

    @property
    def label(self) -> str:
        calls = ", ".join(f"{c.function}({'distinct ' if c.distinct else ''}{c.column or '*'})" for c in self.calls)
        by = f" by {', '.join(self.groups)}" if self.groups else ""
        return f"aggregate {calls}{by}" + (f" window {self.window}" if self.window else "")

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        if self.window is not None and attribute in (WINDOW_START, WINDOW_END):
            start = mark if attribute == WINDOW_START else mark - self.window.range
            return ((Due(0, self.window.attribute, self.window.opening(start)),),)
        if self.window is not None and attribute == self.window.attribute:
            return ()  # what comes out are marks on the ends of windows
        return ((Due(0, attribute, mark),),) if attribute in self.groups else ()

    def build(self, journal: bool = False) -> RunningAggregate:
        return RunningAggregate(self, journal)


class RunningAggregate(UnaryOperator):
    def __init__(self, config: Aggregate, journal: bool) -> None:
        self.config = config
        self.needs = config.needs
        self.stretch = config.window.stretch if config.window is not None else MAX_TIME
        self.schema = config.schema
        self.empty = empty_batch(config.schema)
        keys = pa.schema([config.input.field(g) for g in config.groups])
        self.table = GroupTable(keys, config.specs, journal=journal)
        self.seen: dict[int, GroupTable] = {
            i: GroupTable(keys.append(config.input.field(str(c.column)).with_name("__value")), (), journal=journal)
            for i, c in enumerate(config.calls)
            if c.distinct
        }

    @property
    def state(self) -> tuple[Container, ...]:
        return (self.table, *self.seen.values())

    def handle(self, block: Block, out: Output) -> None:
        for start in range(0, len(block), self.stretch):
            self._update(block.batch.slice(start, self.stretch))
        for punctuation in block.punctuations:
            self._close(punctuation, out)

    def _update(self, batch: pa.RecordBatch) -> None:
        window = self.config.window
        if window is not None:
            batch = timed(batch, window.attribute)
        keys = [batch.column(g) for g in self.config.groups]
        positions: pa.Array | None = None
        if window is not None:
            rows, axis = expand_windows(to_axis(batch.column(window.attribute)), window.range, window.slide)
            if window.range != window.slide:
                positions = pa.array(rows)
                keys = [k.take(positions) for k in keys]
        elif self.config.axis is not None:
            axis = to_axis(batch.column(self.config.axis), MAX_TIME)  # no mark passes null: its group stays open to the end
        else:
            axis = np.zeros(batch.num_rows, dtype=np.int64)
        groups, _ = self.table.upsert(keys, axis)
        for i, call in enumerate(self.config.calls):
            values = None
            if call.column is not None:
                values = batch.column(call.column)
                values = values if positions is None else values.take(positions)
            if i in self.seen:
                assert values is not None
                _, first = self.seen[i].upsert([*keys, values], axis)
                self.table.update(i, groups[first], values.take(pa.array(first)))
            else:
                self.table.update(i, groups, values)

    def _close(self, punctuation: Punctuation, out: Output) -> None:
        if punctuation.is_end:
            self._expire(MAX_TIME, out)
            out.put(self.empty, [punctuation])
            return
        if punctuation.is_linear:
            ((attribute, pattern),) = punctuation.patterns
            assert isinstance(pattern, Range)
            window = self.config.window
            if window is not None and attribute == window.attribute:
                first_open = window.first_open(pattern.high)
                self._expire(first_open, out)
                out.put(self.empty, window_marks(window, first_open))
            elif attribute == self.config.axis:
                self._expire(pattern.high, out)
                out.put(self.empty, [punctuation])
            elif attribute in self.config.groups:
                self._close_matching(punctuation, None, out)
            return
        self._close_by_value(punctuation, out)

    def due(self) -> Iterator[Due]:
        window, axis, first = self.config.window, self.config.axis, self.table.earliest
        if first == MAX_TIME:
            return
        if window is not None:
            yield Due(0, window.attribute, window.closing(first))
        elif axis is not None:
            yield Due(0, axis, first + 1)
        for column in self.config.moving:
            least = int(to_axis(self.table.keys(self.table.alive()).column(column), MAX_TIME).min())
            if least < MAX_TIME:
                yield Due(0, column, least + 1)

    def _expire(self, mark: int, out: Output) -> None:
        """Every group below the mark comes out and is forgotten; windows in the order of time."""
        groups = self.table.expire(mark) if mark != MAX_TIME else self.table.alive()
        axis = self.table.axis(groups)
        if (axis[1:] < axis[:-1]).any():
            groups = groups[np.argsort(axis, kind="stable")]
        self._emit(groups, out)
        for table in self.seen.values():
            table.discard(table.expire(mark) if mark != MAX_TIME else table.alive())

    def _close_by_value(self, punctuation: Punctuation, out: Output) -> None:
        """A punctuation over group columns closes their groups; with a time below a mark, their windows up to there."""
        window = self.config.window
        patterns = dict(punctuation.patterns)
        bound = None
        if window is not None and window.attribute in patterns:
            pattern = patterns.pop(window.attribute)
            if not isinstance(pattern, Range) or pattern.low is not None or pattern.high is None or pattern.high_inclusive:
                return
            bound = window.first_open(pattern.high)
        if set(patterns) <= set(self.config.groups):
            self._close_matching(Punctuation.of(patterns), bound, out)

    def _close_matching(self, punctuation: Punctuation, bound: int | None, out: Output) -> None:
        for table in (self.table, *self.seen.values()):
            chosen = matching(table, punctuation, timeless=self.config.window is None and self.config.axis is None)
            if bound is not None:
                chosen = chosen[table.axis(chosen) < bound]
            if table is self.table:
                self._emit(chosen, out)
            else:
                table.discard(chosen)
        window = self.config.window
        if bound is not None and window is not None:
            below = Range(high=window.start(bound))
            punctuation = Punctuation.of({**dict(punctuation.patterns), WINDOW_START: below})
        out.put(self.empty, [punctuation])

    def _emit(self, groups: Int64s, out: Output) -> None:
        for at in range(0, len(groups), self.config.flush_rows):
            chunk = self._on_calendar(groups[at : at + self.config.flush_rows], out)
            while True:
                try:
                    keys, axis, results = self.table.result(chunk)
                    break
                except Overflow as problem:
                    self._refuse(chunk[problem.rows], str(problem), out)
                    chunk = chunk[~problem.rows]
            arrays = [*keys.columns, *results, *self._ends(axis)]
            out.put(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
        self.table.discard(groups)

    def _ends(self, axis: Int64s) -> list[pa.Array]:
        """Both ends of each window, where there are windows."""
        window = self.config.window
        return [] if window is None else window_ends(window, axis, self.schema.field(WINDOW_START).type)

    def _on_calendar(self, groups: Int64s, out: Output) -> Int64s:
        """The groups whose windows lie within the years that can be written; the others become letters."""
        beyond = beyond_calendar(self._ends(self.table.axis(groups)))
        if beyond is None:
            return groups
        self._refuse(groups[beyond], BEYOND, out)
        return groups[~beyond]

    def _refuse(self, groups: Int64s, reason: str, out: Output) -> None:
        """A letter for each group, with its keys and its window."""
        keys, ends = self.table.keys(groups), self._ends(self.table.axis(groups))
        names = [*self.config.titles, *end_names(self.config.titles)[: len(ends)]]
        out.letters += group_letters(
            self.config.origin, pa.record_batch([*keys.columns, *ends], names=names), reason
        )


def matching(table: GroupTable, punctuation: Punctuation, *, timeless: bool) -> Int64s:
    """The groups that a punctuation of key columns is about. Lists of values are looked up; ranges are compared with every group."""
    shape = shape_of(punctuation)
    if shape is None or shape[1] is not None:
        groups = table.alive()
        return groups[punctuation.matches(table.keys(groups))]
    names = table.key_schema.names
    if timeless and set(shape[0]) == set(names):
        values = values_of(punctuation, names, table.key_schema)
        found = table.lookup(values, np.zeros(len(values[0]), dtype=np.int64))
        return np.unique(found[found >= 0])
    return table.of(shape[0], values_of(punctuation, shape[0], table.key_schema))


def timed(batch: pa.RecordBatch, attribute: str) -> pa.RecordBatch:
    """The tuples that have a time: one without (a left join's) is in no window."""
    column = batch.column(attribute)
    return batch.filter(column.is_valid()) if column.null_count else batch


BEYOND = "the window reaches outside the years 1 to 9999"


def window_ends(window: Window, axis: Int64s, kind: pa.DataType) -> list[pa.Array]:
    """The columns of both ends of windows."""
    start = axis * window.slide
    return [from_axis(start, kind), from_axis(start + window.range, kind)]


def beyond_calendar(ends: list[pa.Array]) -> npt.NDArray[np.bool_] | None:
    """Mask of the windows that reach outside the calendar; None when none does."""
    if not ends or pa.types.is_integer(ends[0].type):
        return None
    early, late = (outside(end) for end in ends)
    return early if late is None else late if early is None else early | late


def window_marks(window: Window, first_open: int, ends: tuple[str, str] = (WINDOW_START, WINDOW_END)) -> list[Punctuation]:
    """No later result belongs to a window before the first open one."""
    start = window.start(first_open)
    return [Punctuation.linear(ends[0], start), Punctuation.linear(ends[1], start + window.range)]
