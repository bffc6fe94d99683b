"""A sink that keeps the results as Arrow in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from millstream.errors import SinkProblem
from millstream.io.contract import Part, Writer


def to_ipc(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bytes(out.getvalue())


def from_ipc(data: bytes) -> list[pa.RecordBatch]:
    with pa.ipc.open_stream(data) as stream:
        return list(stream)


class HandedWriter:
    """A part that travels to the driver: with an epoch in `Part.detail`, otherwise each flush hands it over."""

    def __init__(self, sink: str, schema: pa.Schema, take: Callable[[list[pa.RecordBatch]], None] | None) -> None:
        self.sink, self.schema, self.take = sink, schema, take
        self.held: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self.held.append(batch)

    def flush(self) -> None:
        if self.take is not None and self.held:
            held, self.held = self.held, []
            self.take(held)

    def close(self) -> Part:
        self.flush()
        return Part(self.sink, {"ipc": to_ipc(self.schema, self.held) if self.held else b""})

    def abort(self) -> None:
        self.held = []


class MemorySink:
    """Keeps record batches; `to_arrow` gives them as a table at any time. A copy sent to a task is empty."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._schema: pa.Schema | None = None
        self._batches: list[pa.RecordBatch] = []
        self._epoch = -1

    @property
    def distributed(self) -> bool:
        return False

    def check(self, schema: pa.Schema) -> None:
        if self._schema is not None and not self._schema.equals(schema):
            raise SinkProblem(f"sink {self.name}: two queries with different columns write to it", hint="give each query its own sink")
        self._schema = schema

    def writer(self, schema: pa.Schema, part: str, epoch: int | None) -> Writer:
        self._schema = self._schema or schema
        return HandedWriter(self.name, schema, self._take if epoch is None else None)

    def _take(self, batches: list[pa.RecordBatch]) -> None:
        with self._lock:
            self._batches.extend(batches)
            self._schema = self._schema or batches[0].schema

    def commit(self, epoch: int, parts: Iterable[Part]) -> None:
        with self._lock:
            if epoch <= self._epoch:
                return
            self._epoch = epoch
        for part in parts:
            if part.detail["ipc"]:
                self._take(from_ipc(part.detail["ipc"]))

    def to_arrow(self) -> pa.Table:
        with self._lock:
            return pa.Table.from_batches(self._batches, self._schema or pa.schema([]))

    def finish(self) -> None:
        """The next run counts its epochs from the start; the results stay."""
        self._epoch = -1

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.name = state["name"]
        self._start()
