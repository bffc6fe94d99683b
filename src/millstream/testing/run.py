"""Run a session over lists instead of its sources, and get what its sinks would have got."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from millstream.core.clock import Clock
from millstream.core.letters import DeadLetter
from millstream.core.types import is_hidden
from millstream.errors import NameProblem, TypeProblem
from millstream.io import ListSource, MemorySink
from millstream.pipeline import Pipeline
from millstream.plan import nodes
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime.launch import Launch, Status, run_local, run_spark

Rows = Any
"""A list of dictionaries, a list of tuples in column order, or an Arrow table."""


@dataclass
class Result:
    """What a run gave: tables by sink name, dead letters, and the final status."""

    tables: dict[str, pa.Table]
    letters: list[DeadLetter] = field(default_factory=list)
    status: Status = field(default_factory=Status)

    def rows(self, sink: str | None = None) -> list[dict[str, Any]]:
        """The tuples of one sink (of the only one, when there is one), as dictionaries."""
        if sink is None:
            if len(self.tables) != 1:
                raise NameProblem(f"there are {len(self.tables)} sinks", hint="say which: " + ", ".join(self.tables))
            sink = next(iter(self.tables))
        return self.tables[sink].to_pylist()  # type: ignore[no-any-return]


def run(
    session: Any,
    inputs: Mapping[str, Rows],
    *,
    runtime: str | None = None,
    batch: int | None = None,
    clock: Clock | None = None,
    buckets: int | None = None,
    files: Mapping[str, int] | None = None,
) -> Result:
    """Feed each stream its list (a missing one is empty), run to the end, and collect every sink.

    `batch` cuts the lists into blocks of that many tuples, `files` says into how many units a stream's list is cut:
    neither changes an answer.
    """
    pipeline: Pipeline = getattr(session, "pipeline", session)
    runtime = runtime or getattr(session, "runtime", "local")
    sinks: dict[str, MemorySink] = {}
    letters: list[DeadLetter] = []
    queries = []
    streams: dict[str, Stream] = {}
    for entry in pipeline.catalog.relations:
        if isinstance(entry, Stream):
            given = _given(inputs, entry.name)
            count = (files or {}).get(entry.name, 1)
            streams[entry.name] = replace(entry, source=ListSource(entry.name, entry.read_schema, _units(entry, given, count)))
    for name in inputs:
        if name.lower() not in {s.lower() for s in streams}:
            raise NameProblem.unknown("stream", name, streams)
    for query in pipeline.queries:
        sink = sinks.setdefault(query.sink.name, MemorySink(query.sink.name))
        bound = _with_streams(query, streams)
        queries.append(nodes.Insert(bound.inputs[0], SinkEntry(query.sink.name, {}, None, sink)))
    copy = Pipeline(pipeline.catalog, pipeline.settings, queries)
    with tempfile.TemporaryDirectory(prefix="millstream-test-") as directory:
        launch = Launch.prepare(copy)
        launch.letters = _Collector(directory, letters)  # type: ignore[assignment]
        old = {name: pipeline.settings.get(name) for name in ("execution.batch", "execution.buckets")}
        try:
            if batch is not None:
                launch.settings.set("execution.batch", batch)
            if buckets is not None:
                launch.settings.set("execution.buckets", buckets)
            status = run_local(launch, clock=clock) if runtime == "local" else run_spark(launch)
        finally:
            for name, value in old.items():
                launch.settings.set(name, value)
    tables = {q.sink.name: sinks[q.sink.name].to_arrow() for q in queries}
    for q in queries:
        if tables[q.sink.name] is None or not tables[q.sink.name].schema.names:
            tables[q.sink.name] = pa.schema([f for f in q.schema if not is_hidden(f.name)]).empty_table()
    return Result(tables, letters, status)


class _Collector:
    """Dead letters as a list."""

    def __init__(self, path: str, letters: list[DeadLetter]) -> None:
        self.path = path
        self.letters = letters

    def put(self, letters: list[DeadLetter]) -> None:
        self.letters += letters

    def writer(self, part: str, epoch: int) -> _Collector:
        return self

    def close(self) -> None:
        return None

    def commit(self, epoch: int, parts: object) -> None:
        return None


def _given(inputs: Mapping[str, Rows], name: str) -> Rows:
    return next((rows for key, rows in inputs.items() if key.lower() == name.lower()), [])


def _units(stream: Stream, rows: Rows, count: int) -> list[pa.RecordBatch]:
    schema = stream.read_schema
    if isinstance(rows, pa.Table):
        table = rows.select(schema.names).cast(schema)
    else:
        columns: dict[str, list[Any]] = {name: [] for name in schema.names}
        for row in rows:
            values = row if isinstance(row, Mapping) else dict(zip(schema.names, row, strict=True))
            for name in values:
                if name not in columns:
                    raise NameProblem.unknown("column", name, schema.names, within=stream.name)
            for name in schema.names:
                columns[name].append(values.get(name))
        try:
            arrays = [pa.array(columns[f.name], type=f.type) for f in schema]
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise TypeProblem(f"a value for {stream.name} does not fit its column: {error}") from None
        table = pa.Table.from_arrays(arrays, schema=schema)
    batches = pa.RecordBatch.from_arrays([c.combine_chunks() for c in table.columns], schema=schema)
    size = -(-batches.num_rows // max(count, 1)) or 1
    return [batches.slice(at, size) for at in range(0, batches.num_rows, size)]


def _with_streams(node: nodes.Node, streams: Mapping[str, Stream]) -> nodes.Node:
    if isinstance(node, nodes.Scan):
        return nodes.Scan(streams[node.stream.name])
    inputs = [_with_streams(child, streams) for child in node.inputs]
    return node.with_inputs(inputs) if inputs else node
