"""What every logical node is: columns named once, a default time, and what progress it can count on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from millstream.errors import UnsupportedProblem
from millstream.expressions import compile_expression
from millstream.expressions.intervals import CALENDAR
from millstream.language import place_of

Expression = exp.Expr


def column_type(expression: Expression, schema: pa.Schema) -> pa.DataType:
    """The type of a column that is computed so; intervals of months have no column."""
    kind: pa.DataType = compile_expression(expression, schema).type
    if kind == CALENDAR:
        raise UnsupportedProblem(
            "an interval of months can not be a column",
            place=place_of(expression),
            hint="add it to a time, such as ts + INTERVAL 1 MONTH, or select the number of months",
        )
    return kind


@dataclass(frozen=True)
class Node:
    """One step of a plan. `schema` names every column once; `time` is the default progressing one."""

    def __init_subclass__(cls) -> None:
        cls.__hash__ = Node.__hash__  # type: ignore[method-assign]  # a dataclass keeps one that is there

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: rules look plans up at every level, and a plan may be deep."""
        return hash((type(self), *(getattr(self, f.name) for f in fields(self) if f.compare)))

    @cached_property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(value for f in fields(self) if isinstance(value := getattr(self, f.name), Node))

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        names = [f.name for f in fields(self) if isinstance(getattr(self, f.name), Node)]
        return replace(self, **dict(zip(names, inputs, strict=True)))

    @cached_property
    def schema(self) -> pa.Schema:
        raise NotImplementedError

    @cached_property
    def time(self) -> str | None:
        return None

    @cached_property
    def times(self) -> frozenset[str]:
        """The columns whose latest is `time`, which may be the only one."""
        return frozenset() if self.time is None else frozenset([self.time])

    @cached_property
    def progressing(self) -> frozenset[str]:
        """Columns on which low-water marks are promised to move on."""
        return frozenset()

    @cached_property
    def nullable(self) -> frozenset[str]:
        """The progressing columns that may be null. No mark passes null, so tuples of null stay."""
        return frozenset()

    @property
    def closing(self) -> frozenset[str]:
        """Progressing columns whose marks let go of every tuple some day."""
        return self.progressing - self.nullable

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        """Sets of columns whose values may be declared finished."""
        return frozenset()

    @cached_property
    def streaming(self) -> bool:
        """True when a stream is read below."""
        return any(node.streaming for node in self.inputs)

    def walk(self) -> Iterator[Node]:
        """The node and all below it, each before its inputs."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.inputs)


class Unary(Node):
    """Shared by nodes that keep their input's columns."""

    input: Node

    @cached_property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @cached_property
    def time(self) -> str | None:
        return self.input.time

    @cached_property
    def times(self) -> frozenset[str]:
        return self.input.times

    @cached_property
    def progressing(self) -> frozenset[str]:
        return self.input.progressing

    @cached_property
    def nullable(self) -> frozenset[str]:
        return self.input.nullable

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        return self.input.punctuated
