"""A stage of a program as a stateful processor: hot state in the worker, the truth in Spark's state store."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from millstream.runtime.program import Program, Stage
from millstream.runtime.spark import wire
from millstream.runtime.spark.buckets import bucket_numbers
from millstream.runtime.spark.failures import sealed
from millstream.runtime.spark.sink import delivered
from millstream.runtime.spent import SINK, STATE, TRANSFER, WORK, Watch

if TYPE_CHECKING:
    import pandas as pd  # half a second; before the first micro-batch Spark starts a Python per stage that needs none

PIECE = 16 << 20
"""Bytes per value in the state store; longer segments are cut, so that no message to the JVM grows without bound."""

LEAST_LOG = 1 << 20
"""Bytes of changes below which no snapshot is worth its writing."""


@dataclass(frozen=True)
class Head:
    """What the state store knows of a bucket: pieces `base` (the last snapshot's first) up to `end`.

    `token` names the state after the last piece. It is drawn at random for each version, so that a
    worker's hot state can be told from the leftover of a failed attempt at the same version.
    """

    token: bytes = b""
    base: int = 0
    end: int = 0
    snapshot: int = 0  # bytes
    logged: int = 0  # bytes of changes since


@dataclass
class Hot:
    """A running stage in this process, and which stored state it equals."""

    stage: Stage
    token: bytes
    end: int


_hot: dict[tuple[str, int, int], Hot] = {}
"""By run, stage and bucket. Spark does not pin buckets to workers, so each worker may hold an old one of each."""


def _forget(run: str) -> None:
    for key in [key for key in _hot if key[0] == run]:
        del _hot[key]


wire.on_forget.append(_forget)


class Store:
    """A bucket's part of Spark's state store: one map, the head under HEAD and the pieces under their numbers.

    Pieces are values of a map, not of a list: RocksDB keeps a list state as one value that grows by
    merging, to be read as a whole and at most 2 GB long. The head is in the same map because every
    task pays the JVM for each state variable it names.
    """

    HEAD = -1

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        key = StructType([StructField("number", LongType())])
        value = StructType([StructField("token", BinaryType()), StructField("data", BinaryType())])
        self.map = handle.getMapState("state", key, value)

    def head(self) -> Head:
        stored = self.map.getValue((self.HEAD,))
        return Head() if stored is None else Head(bytes(stored[0]), *_NUMBERS.unpack(stored[1]))

    def segments(self, start: int, end: int) -> Iterator[bytes]:
        """What was written, piece by piece put together again."""
        for _, pieces in groupby((self._piece(number) for number in range(start, end)), key=lambda piece: piece[0]):
            yield b"".join(data for _, data in pieces)

    def token(self, number: int) -> bytes:
        return self._piece(number)[0]

    def append(self, head: Head, data: bytes) -> Head:
        return self._write(head, data, head.base, head.snapshot, head.logged + len(data))

    def replace(self, head: Head, data: bytes) -> Head:
        for number in range(head.base, head.end):
            self.map.removeKey((number,))
        return self._write(head, data, head.end, len(data), 0)

    def _write(self, head: Head, data: bytes, base: int, snapshot: int, logged: int) -> Head:
        token = os.urandom(16)
        end = head.end
        for cut in range(0, len(data) or 1, PIECE):
            self.map.updateValue((end,), (token, data[cut : cut + PIECE]))
            end += 1
        self.map.updateValue((self.HEAD,), (token, _NUMBERS.pack(base, end, snapshot, logged)))
        return Head(token, base, end, snapshot, logged)

    def _piece(self, number: int) -> tuple[bytes, bytes]:
        piece = self.map.getValue((number,))
        if piece is None:
            raise AssertionError(f"piece {number} of the state is missing")
        return bytes(piece[0]), bytes(piece[1])


_NUMBERS = struct.Struct("<4q")


def attach(program: Program, run: str, index: int, bucket: int, store: Store) -> tuple[Stage, Head]:
    """The stage with the state the store tells of: hot as it is, brought up to date, or rebuilt."""
    head = store.head()
    # Taken out until the work is done: whatever fails on the way leaves no half-changed state behind.
    hot = _hot.pop((run, index, bucket), None)
    if hot is not None and hot.token == head.token:
        return hot.stage, head
    if hot is not None and head.base < hot.end < head.end and store.token(hot.end - 1) == hot.token:
        hot.stage.advance(store.segments(hot.end, head.end))
        return hot.stage, head
    stage = program.stage(index, bucket)
    if head.end > head.base:
        stage.restore(store.segments(head.base, head.end))
    return stage, head


def save(stage: Stage, head: Head, store: Store) -> Head:
    """Write what has changed; once the changes outweigh twice the last snapshot, write a new one instead."""
    changes = stage.changes()
    if changes is None:
        return head
    if head.logged + len(changes) > max(2 * head.snapshot, LEAST_LOG):
        return store.replace(head, stage.snapshot())
    return store.append(head, changes)


class BucketProcessor(StatefulProcessor):  # type: ignore[misc]
    """Hosts one stage; Spark calls it once per bucket and micro-batch that brings the bucket rows."""

    def __init__(self, shipment: wire.Shipment, index: int, last: bool) -> None:
        self.shipment = shipment
        self.index = index
        self.last = last

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.store = Store(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        import pandas as pd

        with sealed():
            wires = (wire.Wire._make(row) for frame in rows for row in frame[wire.ARROW.names].itertuples(index=False, name=None))
            for chunk in wire.in_chunks(self.work(int(key[0]), wires)):
                yield pd.DataFrame(chunk, columns=wire.ARROW.names)

    def work(self, bucket_id: int, rows: Iterable[wire.Wire]) -> Iterable[wire.Wire]:
        watch = Watch()
        program = self.shipment.open()
        bucket = bucket_numbers(program.buckets)[bucket_id]
        packets = []
        passing: list[wire.Wire] = []  # results and letters of earlier stages
        epoch = 0
        for row in rows:
            epoch = row.epoch
            if row.kind == wire.PACKET:
                packets.append(wire.packet_of(row, bucket))
            else:
                passing.append(row)
        watch.lap(TRANSFER)
        made: Iterable[wire.Wire] = ()
        if packets:
            packets.sort(key=lambda packet: (packet.port, packet.order))
            stage, head = attach(program, self.shipment.run, self.index, bucket, self.store)
            watch.lap(STATE)
            made = list(wire.rows_of(stage.run(packets), program.buckets, epoch, bucket))
            watch.lap(WORK)
            head = save(stage, head, self.store)
            watch.lap(STATE)
            _hot[self.shipment.run, self.index, bucket] = Hot(stage, head.token, head.end)
        onward: Iterable[wire.Wire] = chain(passing, made)
        if self.last:
            onward = delivered(program, onward, str(bucket))
            watch.lap(SINK)
        return chain(onward, [wire.spent_row(self.index, watch, program.buckets, epoch, bucket)])

    def close(self) -> None:
        pass
