"""Streams and tables where they enter a plan, and results where they leave it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import SEQUENCE
from millstream.plan.catalog import SinkEntry, Stream, Table
from millstream.plan.nodes.base import Node, Unary


@dataclass(frozen=True)
class Scan(Node):
    """The tuples of a declared stream."""

    stream: Stream
    streaming = True

    @cached_property
    def schema(self) -> pa.Schema:
        return self.stream.schema

    @cached_property
    def time(self) -> str | None:
        return self.stream.time

    @cached_property
    def progressing(self) -> frozenset[str]:
        return frozenset({self.stream.time, SEQUENCE})

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        return frozenset(frozenset(columns) for columns in self.stream.closings if self.stream.time not in columns)  # closed for good


@dataclass(frozen=True)
class TableScan(Node):
    """The rows of a static table."""

    table: Table

    @cached_property
    def schema(self) -> pa.Schema:
        return self.table.columns


@dataclass(frozen=True)
class Insert(Unary):
    """The results of a query on their way to a sink."""

    input: Node
    sink: SinkEntry
    written: exp.Expr | None = field(compare=False, default=None)
    """The query as written, to bind it again when something that it reads is replaced."""
