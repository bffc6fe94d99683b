"""The guard is what a gate must see of each tuple to tell whether it is late, whatever the query has kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from millstream.core.types import HIDDEN, SEQUENCE
from millstream.graph.cut import INGEST, Crossing, Cut
from millstream.graph.graph import Vertex
from millstream.operators.contract import Config
from millstream.operators.edges import Enter
from millstream.plan.catalog import Stream

PREFIX = HIDDEN + "gate_"


def guarded(stream: Stream) -> tuple[str, ...]:
    """The time where low-water marks move; the columns that value punctuations close, with arrival numbers for the report."""
    heartbeat = any(p.columns == (stream.time,) for p in stream.punctuate)
    timed = stream.timestamp.kind == "external" and (stream.timestamp.order != "punctuated" or heartbeat)
    values = stream.closed_columns
    names = [stream.time] if timed or stream.time in values else []
    return tuple(dict.fromkeys([*names, *values, *([SEQUENCE] if values else [])]))


class Guard:
    """How the guarded columns of a stream arrive at one crossing: under names of the query, or hidden ones of their own."""

    def __init__(self, stream: Stream, path: Sequence[Config], schema: pa.Schema) -> None:
        self.stream = stream
        self.columns = {c: unchanged(c, path, schema) or PREFIX + c for c in guarded(stream)}
        extra = [pa.field(name, stream.schema.field(c).type) for c, name in self.columns.items() if name == PREFIX + c]
        self.passed = schema.names
        self.schema = pa.schema([*schema, *extra])
        self.source_schema = pa.schema([stream.schema.field(c) for c in self.columns])

    @classmethod
    def at(cls, cut: Cut, crossing: Crossing) -> Guard:
        path = cut.path(crossing.producer)
        source = path[0].config
        assert isinstance(source, Enter)
        schema = path[-1].config.schema if crossing.consumer is not None else pa.schema([])
        return cls(source.stream, [v.config for v in path[1:]], schema)

    def view(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The guarded columns under the source's names."""
        return pa.RecordBatch.from_arrays([batch.column(name) for name in self.columns.values()], schema=self.source_schema)

    def without(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The tuples as the query wants them."""
        return batch if len(self.schema) == len(self.passed) else batch.select(self.passed)


def unchanged(column: str, path: Sequence[Config], schema: pa.Schema) -> str | None:
    """The name under which a column of the source comes out of a path of operators as it was, if it does."""
    for name in schema.names:
        found = {name: name}
        for config in reversed(path):
            step = config.source_columns(found.values())
            if step is None:
                break
            found = {name: step[found[name]]}
        else:
            if found[name] == column:
                return str(name)
    return None


def with_guard(batch: pa.RecordBatch, stream: Stream) -> pa.RecordBatch:
    """The tuples of a source with copies of their guarded columns, which are not really copied."""
    for column in guarded(stream):
        batch = batch.append_column(pa.field(PREFIX + column, batch.schema.field(column).type), batch.column(column))
    return batch


def carrying(vertices: Sequence[Vertex], stream: Stream) -> list[Vertex]:
    """The operators of an ingest part, changed so that guarded columns go through them."""
    columns = guarded(stream)
    names = tuple(PREFIX + c for c in columns)
    schemas: dict[int, pa.Schema] = {}
    changed = []
    for v in vertices:
        if isinstance(v.config, Enter):
            schemas[v.number] = pa.schema([*v.config.schema, *(pa.field(PREFIX + c, stream.schema.field(c).type) for c in columns)])
        else:
            v = Vertex(v.number, v.config.carrying(schemas[v.inputs[0]], names), v.inputs)
            schemas[v.number] = v.config.schema
        changed.append(v)
    return changed


def reporters(cut: Cut) -> Mapping[str, int]:
    """For each stream the one crossing whose gate reports late tuples: where values can be closed, one that all tuples reach."""
    found: dict[str, int] = {}
    for crossing in cut.crossings:
        if crossing.from_stage == INGEST:
            path = cut.path(crossing.producer)
            source = path[0].config
            assert isinstance(source, Enter)
            if not source.stream.closed_columns or all(v.config.keeps_all for v in path[1:]):
                found.setdefault(source.stream.name, crossing.number)
    return found
