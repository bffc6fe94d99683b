"""A sink that keeps the results as Arrow in this process."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.errors import SinkProblem, warn
from millstream.io.contract import Part, Writer

if TYPE_CHECKING:
    import pandas as pd


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


KEPT = 1_000_000
"""Rows that a sink over streams without end keeps, unless its `limit` says otherwise."""
BLOCK, PIECES = 4096, 256
"""Rows, and batches, that a sink with a limit puts together to free them together."""


class MemorySink:
    """Keeps record batches; `to_arrow` gives them as a table at any time. A copy sent to a task is empty.

    `limit` is the number of rows to keep, the last ones; 0 keeps all. Without it all rows of streams that end
    are kept, and the last 1,000,000 of others.
    """

    def __init__(self, name: str, limit: int | None = None) -> None:
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise SinkProblem(
                f"sink {name}: `limit` is {limit!r}", hint="give a number of rows, or 0 to keep all"
            )
        self.name, self.limit = name, limit
        self.endless = False
        """True when a stream that it gets results of has no end."""
        self._lock = threading.Lock()
        self._start()

    def clear(self) -> None:
        """Drop what was kept, as before the first run."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        self._schema: pa.Schema | None = None
        self._blocks: deque[pa.RecordBatch] = deque()
        self._pieces: list[pa.RecordBatch] = []
        """Batches too small to be blocks, younger than those."""
        self._loose = 0
        """Rows in pieces."""
        self._held = 0
        """Rows in blocks and pieces."""
        self._taken = 0
        self._epoch = -1

    @property
    def most(self) -> int:
        """The number of rows to keep; 0 is no limit."""
        if self.limit is None:
            return KEPT if self.endless else 0
        return self.limit

    @property
    def gone(self) -> int:
        """The number of rows that `to_arrow` no longer gives."""
        return max(0, self._taken - self.most) if self.most else 0

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
            self._schema = self._schema or batches[0].schema
            for batch in batches:
                self._keep(batch)

    def _keep(self, batch: pa.RecordBatch) -> None:
        """Add a batch, and free the oldest blocks. Each row is copied once at most."""
        self._taken += batch.num_rows
        self._held += batch.num_rows
        if not self.most:
            self._blocks.append(batch)
            return
        if batch.num_rows >= BLOCK:
            self._settle()
            self._blocks.append(_owned(batch))
        else:
            self._pieces.append(batch)
            self._loose += batch.num_rows
            if self._loose >= BLOCK or len(self._pieces) >= PIECES:
                self._settle()
        while self._blocks and self._held - self._blocks[0].num_rows >= self.most:
            self._held -= self._blocks.popleft().num_rows

    def _settle(self) -> None:
        if self._pieces:
            self._blocks.append(pa.concat_batches(self._pieces))
            self._pieces, self._loose = [], 0

    def commit(self, epoch: int, parts: Iterable[Part]) -> None:
        with self._lock:
            if epoch <= self._epoch:
                return
            self._epoch = epoch
        for part in parts:
            if part.detail["ipc"]:
                self._take(from_ipc(part.detail["ipc"]))

    def to_arrow(self) -> pa.Table:
        """The rows that are kept, with a warning when older ones are gone."""
        with self._lock:
            table = pa.Table.from_batches([*self._blocks, *self._pieces], self._schema or pa.schema([]))
            gone = self.gone
        if gone:
            said = f"sink {self.name} keeps the last {self.most:,} rows, {gone:,} older ones are gone"
            warn(f"{said}; `limit` sets how many it keeps, 0 keeps all")
        return table.slice(max(0, table.num_rows - self.most)) if self.most else table

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a frame of pandas."""
        return self.to_arrow().to_pandas()

    def finish(self) -> None:
        """The next run counts its epochs from the start; the results stay."""
        self._epoch = -1

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "limit": self.limit}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _owned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A copy of a batch that is a small slice of a larger one, which would stay in memory with it."""
    if batch.get_total_buffer_size() <= 2 * batch.nbytes:
        return batch
    return pa.concat_batches([batch, batch.slice(0, 0)])
