"""Nodes that look at one tuple at a time, or hold tuples back only to sort them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import Order, columns_text, is_axis, is_hidden
from millstream.errors import Place, PlanProblem, TypeProblem
from millstream.expressions import compile_expression, monotone
from millstream.language import place_of, text_of
from millstream.language.durations import spell
from millstream.language.types import sql_type
from millstream.plan.nodes.base import Expression, Node, Unary, column_type
from millstream.plan.window import DAY, Window

MOST_WINDOWS = 1_000_000
"""Windows that one tuple may be in."""


@dataclass(frozen=True)
class Filter(Unary):
    """Keeps the tuples for which the predicate is true."""

    input: Node
    predicate: Expression

    def __post_init__(self) -> None:
        compiled = compile_expression(self.predicate, self.input.schema)
        if not (pa.types.is_boolean(compiled.type) or pa.types.is_null(compiled.type)):
            text = text_of(self.predicate).replace("`", "")
            kind = sql_type(compiled.type).sql("spark")
            raise TypeProblem(
                f"a condition must be BOOLEAN, `{text}` is {kind}",
                place=place_of(self.predicate),
                hint="write a comparison, such as x = 1",
            )

    @cached_property
    def nullable(self) -> frozenset[str]:
        """Nullable columns of the input, without x behind `x IS NOT NULL`."""
        test = self.predicate.this.unnest() if isinstance(self.predicate, exp.Not) else None
        named = (
            isinstance(test, exp.Is)
            and isinstance(test.expression, exp.Null)
            and isinstance(test.this, exp.Column)
        )
        return self.input.nullable - {test.this.name} if named and test is not None else self.input.nullable


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
        return pa.schema([(name, column_type(e, self.input.schema)) for name, e in self.columns])

    @cached_property
    def time(self) -> str | None:
        return self.time_column

    @cached_property
    def times(self) -> frozenset[str]:
        meaning = dict(self.columns).get(self.time_column) if self.time_column is not None else None
        same = isinstance(meaning, exp.Column) and meaning.name == self.input.time
        if same and all(name in self.renames for name in self.input.times):
            return frozenset(
                str(self.time) if name == self.input.time else self.renames[name] for name in self.input.times
            )
        return super().times

    @cached_property
    def renames(self) -> dict[str, str]:
        """Input columns that go on unchanged, with their new names."""
        return {e.name: name for name, e in reversed(self.columns) if isinstance(e, exp.Column)}

    @cached_property
    def followed(self) -> dict[str, str]:
        """Columns that never decrease in a column of the input, with that column."""
        rules = {name: monotone(expression, self.input.schema) for name, expression in self.columns}
        return {name: rule.column for name, rule in rules.items() if rule is not None}

    @cached_property
    def progressing(self) -> frozenset[str]:
        return frozenset(name for name, source in self.followed.items() if source in self.input.progressing)

    @cached_property
    def nullable(self) -> frozenset[str]:
        return frozenset(name for name, source in self.followed.items() if source in self.input.nullable)

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        plain = [(name, e.name) for name, e in self.columns if isinstance(e, exp.Column)]
        names = {c: [name for name, source in plain if source == c] for s in self.input.punctuated for c in s}
        return frozenset(frozenset(chosen) for s in self.input.punctuated for chosen in product(*(names[c] for c in s)))


@dataclass(frozen=True)
class Union(Node):
    """All tuples of several inputs with the same columns."""

    members: tuple[Node, ...]

    def __post_init__(self) -> None:
        first = self.members[0].schema
        for member in self.members[1:]:
            if member.schema != first:
                both = f"{columns_text(first)} and {columns_text(member.schema)}"
                raise TypeProblem(f"the inputs of a union differ: {both}")

    @cached_property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return Union(tuple(inputs))

    @cached_property
    def schema(self) -> pa.Schema:
        return self.members[0].schema

    @cached_property
    def time(self) -> str | None:
        times = {member.time for member in self.members}
        return times.pop() if len(times) == 1 else None

    @cached_property
    def progressing(self) -> frozenset[str]:
        return frozenset.intersection(*(member.progressing for member in self.members))

    @cached_property
    def nullable(self) -> frozenset[str]:
        return frozenset.union(*(member.nullable for member in self.members)) & self.progressing

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        return frozenset.intersection(*(member.punctuated for member in self.members))


@dataclass(frozen=True)
class Windowed(Unary):
    """Says that the consumer of this input works in windows; a rule hands the window to that consumer."""

    input: Node
    window: Window

    def __post_init__(self) -> None:
        window, kind = self.window, self.input.schema.field(self.window.attribute).type
        if window.slides and window.overlap > MOST_WINDOWS:
            said = f"each tuple would be in {window.overlap:,} windows"
            raise PlanProblem(said, hint="write a greater SLIDE")
        if window.rows:
            return
        name = "its time" if is_hidden(window.attribute) else f"`{window.attribute}`"
        length = spell(window.range)
        if pa.types.is_integer(kind):
            raise TypeProblem(
                f"a window of {length} needs a time, and {name} is an integer",
                hint=f"put [RANGE {length}] behind the stream below, and then group",
            )
        if not is_axis(kind):
            raise TypeProblem(f"a window needs a time, and {name} is {sql_type(kind).sql('spark')}")
        lengths = [window.range, *([window.slide] if window.slides else [])]
        if pa.types.is_date(kind) and (parts := [length for length in lengths if length % DAY]):
            raise TypeProblem(
                f"{name} is a DATE, and {spell(parts[0])} is not a number of whole days",
                hint="write RANGE and SLIDE in whole days, or put the window on a TIMESTAMP, such as WA ts",
            )


@dataclass(frozen=True)
class Sort(Unary):
    """Tuples in order, let go as the low-water mark of the first key passes them."""

    input: Node
    keys: tuple[Order, ...]
    place: Place | None = field(default=None, compare=False, metadata={"fact": False})

    @cached_property
    def progressing(self) -> frozenset[str]:
        """The first key alone: a tuple that waits may break a promise on any other column."""
        return self.input.progressing & {self.keys[0].name}

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        return frozenset()
