"""The ends of a query graph: where a stream comes in and where results go out."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from millstream.operators.contract import Config, Needs, Operator
from millstream.plan.catalog import SinkEntry, Stream


@dataclass(frozen=True)
class Enter(Config):
    """The tuples of a stream; the runtime puts them in."""

    stream: Stream

    @property
    def schema(self) -> pa.Schema:
        return self.stream.schema

    @property
    def label(self) -> str:
        return f"source {self.stream.name}"

    def build(self, journal: bool = False) -> Operator:
        raise TypeError("a source is fed by the runtime")


@dataclass(frozen=True)
class Deliver(Config):
    """The results of a query; the runtime takes them out."""

    input: pa.Schema
    sink: SinkEntry
    number: int
    progressing: tuple[str, ...] = field(default=(), metadata={"fact": False})
    """The columns of time on which low-water marks reach the sink."""

    @property
    def schema(self) -> pa.Schema:
        return self.input

    @property
    def needs(self) -> Needs:
        return Needs()

    @property
    def label(self) -> str:
        return f"sink {self.sink.name}"

    def build(self, journal: bool = False) -> Operator:
        raise TypeError("a sink is emptied by the runtime")
