"""Nodes that fold tuples into groups: aggregation and duplicate elimination."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import is_hidden
from millstream.expressions import monotone
from millstream.plan.nodes.base import Expression, Node, Unary, column_type
from millstream.plan.window import WINDOW_END, WINDOW_START, Window, end_names
from millstream.state.accumulators import AccumulatorSpec


@dataclass(frozen=True)
class Call:
    """One aggregate call: function, argument (None for `count(*)`), distinct."""

    name: str
    function: str
    argument: Expression | None
    distinct: bool = False


@dataclass(frozen=True)
class Aggregate(Node):
    """One tuple per group and window; its columns are the groups, the calls and the window's ends."""

    input: Node
    groups: tuple[tuple[str, Expression], ...]
    calls: tuple[Call, ...]
    window: Window | None = None
    lacks: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """Inputs that do not show the time of their streams, and that time: for messages."""

    @cached_property
    def group_schema(self) -> pa.Schema:
        return pa.schema([(name, column_type(e, self.input.schema)) for name, e in self.groups])

    @cached_property
    def schema(self) -> pa.Schema:
        fields_ = list(self.group_schema)
        for call in self.calls:
            argument = None if call.argument is None else column_type(call.argument, self.input.schema)
            fields_.append(pa.field(call.name, AccumulatorSpec(call.function, argument).result_type))
        return pa.schema(fields_ + window_fields(self.window, self.input))

    @cached_property
    def time(self) -> str | None:
        return WINDOW_START if self.window is not None else self.axis

    @cached_property
    def progressing(self) -> frozenset[str]:
        """The ends of the window, and group columns; the windowed column itself gives way to the ends."""
        if self.window is None:
            return frozenset(self.moving)
        moves = self.window.attribute in self.input.progressing
        own = frozenset(self.moving) - {self.window.attribute}
        return own | {WINDOW_START, WINDOW_END} if moves else own

    @cached_property
    def nullable(self) -> frozenset[str]:
        return self.progressing & set(self.nulls)

    @cached_property
    def axis(self) -> str | None:
        """The group column by which groups close when there is no window: the first that lets all go."""
        return next((n for n in self.moving if n not in self.nulls), None) if self.window is None else None

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """The group columns that progress."""
        return tuple(name for name, source in self._followed.items() if source in self.input.progressing)

    @cached_property
    def nulls(self) -> dict[str, str]:
        """The group columns that progress and may be null, with the columns of the input that they follow."""
        return {name: source for name, source in self._followed.items() if source in self.input.nullable}

    @cached_property
    def _followed(self) -> dict[str, str]:
        rules = {name: monotone(expression, self.input.schema) for name, expression in self.groups}
        return {name: rule.column for name, rule in rules.items() if rule is not None}

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        names = {e.name: name for name, e in self.groups if isinstance(e, exp.Column)}
        return frozenset(frozenset(names[c] for c in s) for s in self.input.punctuated if all(c in names for c in s))


@dataclass(frozen=True)
class Distinct(Unary):
    """Each different tuple once per window (once altogether where a column progresses)."""

    input: Node
    window: Window | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        """The visible columns, and the window's ends where there is a window."""
        return pa.schema([f for f in self.input.schema if f.name in self.keys] + window_fields(self.window, self.input, self.ends))

    @cached_property
    def ends(self) -> tuple[str, str]:
        return end_names(self.keys)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.input.schema if not is_hidden(f.name))

    @cached_property
    def time(self) -> str | None:
        if self.window is not None:
            return self.ends[0]
        return self.input.time if self.input.time in self.keys else None

    @cached_property
    def times(self) -> frozenset[str]:
        """Times of the input, unless one of them is dropped; a window has times of its own."""
        if self.window is None and self.time is not None and self.input.times <= set(self.keys):
            return self.input.times
        return frozenset() if self.time is None else frozenset([self.time])

    @cached_property
    def progressing(self) -> frozenset[str]:
        kept = frozenset(c for c in self.input.progressing if c in self.keys)
        moves = self.window is not None and self.window.attribute in self.input.progressing
        return kept | set(self.ends) if moves else kept

    @cached_property
    def nullable(self) -> frozenset[str]:
        return frozenset(c for c in self.input.nullable if c in self.keys)


def window_fields(window: Window | None, source: Node, ends: tuple[str, str] = (WINDOW_START, WINDOW_END)) -> list[pa.Field]:
    if window is None:
        return []
    kind = pa.int64() if window.rows else source.schema.field(window.attribute).type
    return [pa.field(name, kind) for name in ends]
