"""The logical plan: nodes that check themselves, so that a plan that exists is valid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import SEQUENCE, is_axis, is_hidden
from millstream.errors import PlanProblem, TypeProblem
from millstream.expressions import compile_expression, monotone
from millstream.language import place_of
from millstream.language.types import sql_type
from millstream.plan.catalog import STAMP, SinkEntry, Stream, Table
from millstream.plan.window import WINDOW_END, WINDOW_START, Window, end_names
from millstream.state.accumulators import AccumulatorSpec

Expression = exp.Expr


@dataclass(frozen=True)
class Node:
    """One step of a plan. `schema` names every column once; `time` is the default progressing one."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(value for f in fields(self) if isinstance(value := getattr(self, f.name), Node))

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        names = [f.name for f in fields(self) if isinstance(getattr(self, f.name), Node)]
        return replace(self, **dict(zip(names, inputs, strict=True)))

    @cached_property
    def schema(self) -> pa.Schema:
        raise NotImplementedError

    @property
    def time(self) -> str | None:
        return None

    @cached_property
    def progressing(self) -> frozenset[str]:
        """Columns on which low-water marks are promised to move on."""
        return frozenset()

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        """Sets of columns whose values may be declared finished."""
        return frozenset()

    def walk(self) -> Iterator[Node]:
        yield self
        for node in self.inputs:
            yield from node.walk()


class _Unary(Node):
    """Shared by nodes that keep their input's columns."""

    input: Node

    @cached_property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def time(self) -> str | None:
        return self.input.time

    @cached_property
    def progressing(self) -> frozenset[str]:
        return self.input.progressing

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        return self.input.punctuated


@dataclass(frozen=True)
class Scan(Node):
    """The tuples of a declared stream."""

    stream: Stream

    @cached_property
    def schema(self) -> pa.Schema:
        return self.stream.schema

    @property
    def time(self) -> str | None:
        return self.stream.time

    @cached_property
    def progressing(self) -> frozenset[str]:
        return frozenset({self.stream.time, SEQUENCE})

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        sets = (frozenset(p.columns) - {self.stream.time} for p in self.stream.punctuate)
        return frozenset(s for s in sets if s)


@dataclass(frozen=True)
class TableScan(Node):
    """The rows of a static table."""

    table: Table

    @cached_property
    def schema(self) -> pa.Schema:
        return self.table.columns


@dataclass(frozen=True)
class Filter(_Unary):
    """Keeps the tuples for which the predicate is true."""

    input: Node
    predicate: Expression

    def __post_init__(self) -> None:
        compiled = compile_expression(self.predicate, self.input.schema)
        if not (pa.types.is_boolean(compiled.type) or pa.types.is_null(compiled.type)):
            text = self.predicate.sql("spark").replace("`", "")
            raise TypeProblem(f"a condition must be BOOLEAN, `{text}` is {sql_type(compiled.type)}", place=place_of(self.predicate))


@dataclass(frozen=True)
class Project(Node):
    """Computes named columns; `time` names the one among them that goes on as default progressing attribute."""

    input: Node
    columns: tuple[tuple[str, Expression], ...]
    time_column: str | None = None

    def __post_init__(self) -> None:
        names = [name for name, _ in self.columns]
        if len(set(names)) != len(names):
            raise PlanProblem(f"two columns have the same name in {names}")
        _ = self.schema

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, compile_expression(e, self.input.schema).type) for name, e in self.columns])

    @property
    def time(self) -> str | None:
        return self.time_column

    @cached_property
    def renames(self) -> dict[str, str]:
        """Input columns that go on unchanged, with their new names."""
        return {e.name: name for name, e in reversed(self.columns) if isinstance(e, exp.Column)}

    @cached_property
    def progressing(self) -> frozenset[str]:
        found = set()
        for name, expression in self.columns:
            rule = monotone(expression, self.input.schema)
            if rule is not None and rule.column in self.input.progressing:
                found.add(name)
        return frozenset(found)

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        return frozenset(
            frozenset(self.renames[c] for c in columns) for columns in self.input.punctuated if all(c in self.renames for c in columns)
        )


@dataclass(frozen=True)
class Union(Node):
    """All tuples of several inputs with the same columns."""

    members: tuple[Node, ...]

    def __post_init__(self) -> None:
        first = self.members[0].schema
        for member in self.members[1:]:
            if member.schema != first:
                raise TypeProblem(f"the inputs of a union differ: {_columns(first)} and {_columns(member.schema)}")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return Union(tuple(inputs))

    @cached_property
    def schema(self) -> pa.Schema:
        return self.members[0].schema

    @property
    def time(self) -> str | None:
        times = {member.time for member in self.members}
        return times.pop() if len(times) == 1 else None

    @cached_property
    def progressing(self) -> frozenset[str]:
        return frozenset.intersection(*(member.progressing for member in self.members))

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        return frozenset.intersection(*(member.punctuated for member in self.members))


@dataclass(frozen=True)
class Windowed(_Unary):
    """Says that the consumer of this input works in windows; a rule hands the window to that consumer."""

    input: Node
    window: Window

    def __post_init__(self) -> None:
        if not is_axis(self.input.schema.field(self.window.attribute).type):
            raise TypeProblem(f"a window needs a time or an integer, `{self.window.attribute}` is neither")


@dataclass(frozen=True)
class Band:
    """`low <= right - left <= high` between a column of either side, ends included; None leaves an end open."""

    left: str
    right: str
    low: int | None
    high: int | None

    def __str__(self) -> str:
        return f"{self.low} <= {self.right} - {self.left} <= {self.high}"


@dataclass(frozen=True)
class Join(Node):
    """One logical join for every physical one: equal keys, bands between times, and a condition on what is left.

    `kind` is inner, left, semi or anti. Semi and anti joins give the columns of the left side only.
    The default progressing attribute of an inner or left join is the later of both times.
    """

    left: Node
    right: Node
    kind: str = "inner"
    condition: tuple[Expression, ...] = ()
    keys: tuple[tuple[Expression, Expression], ...] = ()
    bands: tuple[Band, ...] = ()
    windows: tuple[Window, ...] | None = None
    """How far its streams reach towards further inputs of the same FROM clause; None until the windows are recognised."""
    stamp: str = STAMP
    """A hidden name for the later of both times, which neither side uses."""
    stamped: bool = True
    """False when nobody reads the later of both times."""
    keep: tuple[str, ...] | None = None
    """The columns that someone reads; None for all."""

    def __post_init__(self) -> None:
        both = set(self.left.schema.names) & set(self.right.schema.names)
        if both:
            raise PlanProblem(f"both sides of a join have a column {sorted(both)}")

    @cached_property
    def pair_schema(self) -> pa.Schema:
        """Left and right columns side by side: what conditions are written over."""
        return pa.schema([*self.left.schema, *self.right.schema])

    @property
    def time(self) -> str | None:
        if self.kind in ("semi", "anti"):
            return self.left.time
        if self.static:
            return self.left.time
        if not self.stamped or self.left.time is None or self.right.time is None:
            return None
        alike = self.left.schema.field(self.left.time).type == self.right.schema.field(self.right.time).type
        return self.stamp if alike else None

    @property
    def static(self) -> bool:
        """True when the right side is a table."""
        return not any(isinstance(node, Scan) for node in self.right.walk())

    @cached_property
    def schema(self) -> pa.Schema:
        schema = self.pair_schema if self.kind in ("inner", "left") else self.left.schema
        if self.time == self.stamp:
            schema = schema.append(pa.field(self.stamp, self.left.schema.field(str(self.left.time)).type))
        return schema if self.keep is None else pa.schema([schema.field(name) for name in self.keep])

    @cached_property
    def progressing(self) -> frozenset[str]:
        if self.static:
            return self.left.progressing
        # A time of one side moves on when the band ties it to the other side's low-water mark.
        lefts = {band.left for band in self.bands if band.high is not None}
        rights = {band.right for band in self.bands if band.low is not None}
        found = lefts | rights
        if self.time == self.stamp and (self.kind == "inner" or lefts):
            found.add(self.stamp)
        return frozenset(c for c in found if c in self.schema.names)

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        if self.static:
            return self.left.punctuated
        left = {e.name for e, _ in self.keys if isinstance(e, exp.Column)}
        right = {e.name for _, e in self.keys if isinstance(e, exp.Column)}
        same = {a.name: b.name for a, b in self.keys if isinstance(a, exp.Column) and isinstance(b, exp.Column)}
        back = {b: a for a, b in same.items()}
        found = {s for s in self.left.punctuated if s <= left} | {s for s in self.right.punctuated if s <= right}
        found |= {frozenset(same[c] for c in s) for s in found if all(c in same for c in s)}
        found |= {frozenset(back[c] for c in s) for s in found if all(c in back for c in s)}
        return frozenset(s for s in found if all(c in self.schema.names for c in s))


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

    @cached_property
    def group_schema(self) -> pa.Schema:
        return pa.schema([(name, compile_expression(e, self.input.schema).type) for name, e in self.groups])

    @cached_property
    def schema(self) -> pa.Schema:
        fields_ = list(self.group_schema)
        for call in self.calls:
            argument = None if call.argument is None else compile_expression(call.argument, self.input.schema).type
            fields_.append(pa.field(call.name, AccumulatorSpec(call.function, argument).result_type))
        return pa.schema(fields_ + window_fields(self.window, self.input))

    @property
    def time(self) -> str | None:
        if self.window is not None:
            return WINDOW_START
        return next((name for name, _ in self.groups if name in self.progressing), None)

    @cached_property
    def progressing(self) -> frozenset[str]:
        found = {WINDOW_START, WINDOW_END} if self.window is not None else set()
        axis = self.axis
        if axis is not None:
            found.add(axis)
        return frozenset(found)

    @cached_property
    def axis(self) -> str | None:
        """The group column by which groups close when there is no window: the first progressing one."""
        if self.window is not None:
            return None
        for name, expression in self.groups:
            rule = monotone(expression, self.input.schema)
            if rule is not None and rule.column in self.input.progressing:
                return name
        return None

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        names = {e.name: name for name, e in self.groups if isinstance(e, exp.Column)}
        return frozenset(frozenset(names[c] for c in s) for s in self.input.punctuated if all(c in names for c in s))


@dataclass(frozen=True)
class Distinct(_Unary):
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

    @property
    def time(self) -> str | None:
        if self.window is not None:
            return self.ends[0]
        return self.input.time if self.input.time in self.keys else None

    @cached_property
    def progressing(self) -> frozenset[str]:
        kept = frozenset(c for c in self.input.progressing if c in self.keys)
        return kept | set(self.ends) if self.window is not None else kept


@dataclass(frozen=True)
class Sort(_Unary):
    """Tuples in order, let go as the low-water mark of the first key passes them."""

    input: Node
    keys: tuple[tuple[str, bool], ...]
    """(column, descending)"""

    def __post_init__(self) -> None:
        first, descending = self.keys[0]
        if descending or first not in self.input.progressing:
            raise PlanProblem(
                f"an endless stream can not be sorted by `{first}`",
                hint="the first column of ORDER BY must be a progressing time in ascending order",
            )


@dataclass(frozen=True)
class Insert(_Unary):
    """The results of a query on their way to a sink."""

    input: Node
    sink: SinkEntry


def window_fields(window: Window | None, source: Node, ends: tuple[str, str] = (WINDOW_START, WINDOW_END)) -> list[pa.Field]:
    if window is None:
        return []
    kind = pa.int64() if window.rows else source.schema.field(window.attribute).type
    return [pa.field(name, kind) for name in ends]


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)
