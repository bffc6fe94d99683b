"""What travels through Spark: one row per block, and the program itself."""

from __future__ import annotations

import os
import pickle
import socket
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from pyspark import cloudpickle

from millstream.errors import DataProblem, MillstreamError, SetupProblem
from millstream.runtime.program import Outcome, Packet, Program
from millstream.runtime.spark.buckets import bucket_ids
from millstream.runtime.spent import Spent, Watch

PACKET, RESULT, LETTERS, PART, NOTE, SPENT, PROGRAM = range(7)

SCHEMA = "bucket int, kind int, port int, first bigint, second bigint, third bigint, epoch bigint, payload binary"
ARROW = pa.schema(
    [
        ("bucket", pa.int32()),
        ("kind", pa.int32()),
        ("port", pa.int32()),
        ("first", pa.int64()),
        ("second", pa.int64()),
        ("third", pa.int64()),
        ("epoch", pa.int64()),
        ("payload", pa.binary()),
    ]
)

CHUNK = 8 << 20
"""Bytes of payload per Arrow batch handed to Spark."""

LARGEST = 512 << 20
"""Bytes of one payload beyond which Spark's rows and Arrow's 2 GB vectors come too near."""


class Wire(NamedTuple):
    """A row of Spark's. `port` is the sink's number for results and parts; a part's `first` counts its tuples.

    `epoch` is the number of the micro-batch. A stage can not ask Spark for it, so the source counts
    the steps of its offset and every row brings the count along; the driver checks it against Spark's.
    """

    bucket: int
    kind: int
    port: int
    first: int
    second: int
    third: int
    epoch: int
    payload: bytes


def ids_of(program: Program) -> tuple[int, ...]:
    """The ids of a program's buckets, by which Spark groups."""
    return bucket_ids(program.buckets, program.partitions)


def rows_of(outcome: Outcome, ids: Sequence[int], epoch: int, home: int) -> Iterator[Wire]:
    """The rows of an outcome; results and letters, which no stage needs, travel with the bucket `home`."""
    for packet in outcome.packets:
        first, second, third = packet.order
        yield _checked(Wire(ids[packet.bucket], PACKET, packet.port, first, second, third, epoch, packet.block))
    for sink, block in outcome.results:
        yield _checked(Wire(ids[home], RESULT, sink, 0, 0, 0, epoch, block))
    if outcome.letters:
        yield _checked(Wire(ids[home], LETTERS, 0, len(outcome.letters), 0, 0, epoch, pickle.dumps(outcome.letters)))
    if outcome.note is not None:
        yield _checked(Wire(ids[home], NOTE, 0, 0, 0, 0, epoch, pickle.dumps(outcome.note)))


def spent_row(stage: int, watch: Watch, ids: Sequence[int], epoch: int, home: int) -> Wire:
    """What a task has spent so far, on its way to the driver."""
    spent = Spent(stage, f"{socket.gethostname()}:{os.getpid()}", dict(watch.parts))
    return Wire(ids[home], SPENT, 0, 0, 0, 0, epoch, pickle.dumps(spent))


def program_rows(shipment: Shipment, ids: Sequence[int], epoch: int) -> Iterator[Wire]:
    """The program on its way to every bucket, where it is not the one that the workers have."""
    payload = pickle.dumps(shipment)
    for id_ in ids:
        yield _checked(Wire(id_, PROGRAM, 0, shipment.edition, 0, 0, epoch, payload))


def packet_of(row: Wire, bucket: int) -> Packet:
    return Packet(bucket, row.port, (row.first, row.second, row.third), row.payload)


def _checked(row: Wire) -> Wire:
    if len(row.payload) > LARGEST:
        raise DataProblem(
            f"a block of {len(row.payload) >> 20} MB is too large for one row of Spark (at most {LARGEST >> 20} MB)",
            hint="read smaller units or use more buckets",
        )
    return row


def in_chunks(rows: Iterable[Wire]) -> Iterator[list[Wire]]:
    """The rows in lists of some MB, so that no Arrow batch grows past its limits."""
    chunk: list[Wire] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row.payload)
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def to_batch(rows: list[Wire]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(c, type=f.type) for c, f in zip(columns, ARROW, strict=True)], schema=ARROW)


def from_batch(batch: pa.RecordBatch) -> Iterator[Wire]:
    yield from map(Wire._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


@dataclass(frozen=True)
class Shipment:
    """A program on its way to the workers; each Python process opens it once per run."""

    run: str
    data: bytes
    edition: int = 0

    @classmethod
    def pack(cls, program: Program, run: str) -> Shipment:
        try:
            packed = cloudpickle.dumps(program)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise _unpickled(program, error) from error
        return cls(run, zlib.compress(packed, 1), getattr(program, "edition", 0))

    def open(self) -> Program:
        program = _programs.get((self.run, self.edition))
        if program is None:
            program = _programs[self.run, self.edition] = pickle.loads(zlib.decompress(self.data))
            while len(_programs) > _KEPT:
                (old, _), _ = _programs.popitem(last=False)
                if not any(run == old for run, _ in _programs):
                    for forget in on_forget:
                        forget(old)
        return program


_KEPT = 8
_programs: OrderedDict[tuple[str, int], Program] = OrderedDict()
on_forget: list[Callable[[str], None]] = []
"""Called with the run's name when a process drops an old run's program."""


def _unpickled(program: Program, error: Exception) -> MillstreamError:
    """The problem with a program that does not pickle, by the name of the source or sink that causes it."""
    sources = [(f"the source of stream {name}", source) for name, source in program.sources]
    for what, part in [*sources, *((f"sink {sink.name}", sink) for sink in program.sinks)]:
        try:
            cloudpickle.dumps(part)
        except (TypeError, AttributeError, pickle.PicklingError) as reason:
            hint = "leave what does not pickle out in its __getstate__"
            return SetupProblem(f"{what} can not be sent to processes of Spark: {reason}", hint=hint)
    return SetupProblem(f"the queries can not be sent to processes of Spark: {error}")
