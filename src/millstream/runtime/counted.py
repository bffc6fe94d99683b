"""Counts what a run reads, keeps and writes, the same way on both runtimes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from millstream.core.block import Block
from millstream.io.contract import Part, Sink, Unit, Writer
from millstream.io.memory import HandedWriter, from_ipc
from millstream.runtime.hosted import HostedProgram, pack
from millstream.runtime.ingest import Piece
from millstream.runtime.program import Outcome

LINE = pa.schema([("stream", pa.string()), ("tuples", pa.int64())])


class CountedSink:
    """A sink that knows how many tuples it got; the count travels with the part where tasks write."""

    def __init__(self, inner: Sink) -> None:
        self.inner = inner
        self.tuples = 0
        self.epoch = -1

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def distributed(self) -> bool:
        return self.inner.distributed

    def check(self, schema: pa.Schema) -> None:
        self.inner.check(schema)

    def writer(self, schema: pa.Schema, part: str, epoch: int | None) -> Writer:
        return _CountedWriter(self.inner.writer(schema, part, epoch), self if epoch is None else None)

    def commit(self, epoch: int, parts: Iterable[Part]) -> None:
        parts = list(parts)
        self.inner.commit(epoch, parts)
        if epoch > self.epoch:
            self.epoch = epoch
            self.tuples += sum(part.detail["tuples"] for part in parts)

    def finish(self) -> None:
        self.inner.finish()


class _CountedWriter:
    def __init__(self, inner: Writer, sink: CountedSink | None) -> None:
        self.inner, self.sink, self.tuples = inner, sink, 0

    def write(self, batch: pa.RecordBatch) -> None:
        self.inner.write(batch)
        self.tuples += batch.num_rows
        if self.sink is not None:
            self.sink.tuples += batch.num_rows

    def flush(self) -> None:
        self.inner.flush()

    def close(self) -> Part:
        part = self.inner.close()
        return replace(part, detail={**part.detail, "tuples": self.tuples})

    def abort(self) -> None:
        self.inner.abort()


class Tally:
    """A sink of the engine's own, to which the tasks that read sources on Spark send their counts."""

    name = "__tally"
    distributed = False

    def __init__(self) -> None:
        self.tuples_in: dict[str, int] = {}
        self.epoch = -1

    def check(self, schema: pa.Schema) -> None: ...

    def writer(self, schema: pa.Schema, part: str, epoch: int | None) -> Writer:
        return HandedWriter(self.name, schema, None)

    def commit(self, epoch: int, parts: Iterable[Part]) -> None:
        if epoch <= self.epoch:
            return
        self.epoch = epoch
        for part in parts:
            for batch in from_ipc(part.detail["ipc"]) if part.detail["ipc"] else []:
                for stream, tuples in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    self.tuples_in[stream] = self.tuples_in.get(stream, 0) + tuples

    def finish(self) -> None: ...


@dataclass
class CountedProgram(HostedProgram):
    """A program whose last sink is a `Tally`: every reading of a unit sends a line to it."""

    tally: Tally = field(default_factory=Tally, repr=False)
    rows_read: int = 0

    def __post_init__(self) -> None:
        self.sinks = (*self.sinks, self.tally)

    def ingest(self, stream: int, unit: Unit, entered: int = 0) -> Iterator[Outcome]:
        name, number = self.sources[stream][0], len(self.sinks) - 1
        for outcome in super().ingest(stream, unit, entered):
            line = pa.RecordBatch.from_arrays([pa.array([name]), pa.array([self.rows_read])], schema=LINE)
            yield replace(outcome, results=(*outcome.results, (number, pack(Block(line), None))))

    def _packed(self, piece: Piece, part: int) -> Outcome:
        self.rows_read = piece.rows
        return super()._packed(piece, part)
