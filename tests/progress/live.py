"""A local run that is stepped by hand: streams are fed while it runs, and time stands still until it is moved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from millstream.core.clock import ManualClock
from millstream.core.letters import DeadLetter
from millstream.io import ListSource, MemorySink
from millstream.pipeline import Pipeline
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime.launch import Launch
from millstream.runtime.local.run import LocalRun
from millstream.runtime.visible import visible

SECOND = 1_000_000


class Live:
    """Streams of declared text, one query, and a sink in memory. Times are given in seconds."""

    def __init__(self, streams: str, query: str, now: int = 0, **options: Any) -> None:
        self.clock = ManualClock(now * SECOND)
        pipeline = Pipeline()
        pipeline.add_text(streams)
        self.sources: dict[str, ListSource] = {}
        for key, (name, entry) in list(pipeline.catalog.relations._entries.items()):
            assert isinstance(entry, Stream)
            self.sources[name] = ListSource(name, entry.read_schema, ended=False)
            pipeline.catalog.relations._entries[key] = (name, replace(entry, source=self.sources[name]))
        self.sink = MemorySink("Out")
        pipeline.catalog.sinks.add("Out", SinkEntry("Out", {}, None, self.sink))
        pipeline.add_text(f"INSERT INTO Out {query};")
        self.launch = launch = Launch.prepare(pipeline)
        self.letters: list[DeadLetter] = []
        self.run = LocalRun(launch.graph, launch.sources, launch.sinks, clock=self.clock, on_letters=self.letters.extend, **options)
        self.run.writers[0] = self.sink.writer(visible(self.run.schemas[0]), "00000", None)

    def push(self, stream: str, *rows: tuple[Any, ...]) -> None:
        schema = self.sources[stream].schema
        columns = []
        for at, field in enumerate(schema):
            values = [row[at] for row in rows]
            if pa.types.is_timestamp(field.type):
                columns.append(pa.array([round(v * SECOND) for v in values], pa.int64()).view(field.type))
            else:
                columns.append(pa.array(values, field.type))
        self.sources[stream].push(pa.RecordBatch.from_arrays(columns, schema=schema))

    def settle(self, after: float = 0) -> list[dict[str, Any]]:
        """Let time pass, run until nothing moves; everything that has come out so far, times in seconds."""
        self.clock.advance(int(after * SECOND))
        while self.run.step():
            pass
        self.run._flush()
        times = [f.name for f in self.sink.to_arrow().schema if pa.types.is_timestamp(f.type)]
        rows: list[dict[str, Any]] = self.sink.to_arrow().to_pylist()
        return [{name: v.timestamp() if name in times and v is not None else v for name, v in row.items()} for row in rows]

    def end(self) -> list[dict[str, Any]]:
        for source in self.sources.values():
            source.end()
        return self.settle()

    @property
    def held(self) -> int:
        return self.run.stage.executor.held
