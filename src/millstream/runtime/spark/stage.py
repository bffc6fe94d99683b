"""A stage of a program as a stateful processor: hot state on the host's shelf, the truth in Spark's state store."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from millstream.runtime.program import Changes, Program, Stage
from millstream.runtime.spark import wire
from millstream.runtime.spark.buckets import bucket_numbers
from millstream.runtime.spark.failures import sealed
from millstream.runtime.spark.shelf import Shelf, let_go
from millstream.runtime.spark.sink import delivered
from millstream.runtime.spent import SINK, STATE, TRANSFER, WORK, Watch

if TYPE_CHECKING:
    import pandas as pd  # half a second; before the first micro-batch Spark starts a Python per stage that needs none

PIECE = 16 << 20
"""Bytes per value in the state store; longer segments are cut, so that no message to the JVM grows without bound."""


@dataclass(frozen=True)
class Head:
    """What the state store knows of a bucket: pieces `base` (the oldest segment's first) up to `end`.

    `token` names the state after the last piece. It is drawn at random for each version, so that a
    host's hot state can be told from the leftover of a failed attempt at the same version.
    """

    token: bytes = b""
    base: int = 1
    end: int = 1


@dataclass
class Kept:
    """A stage that this process has built. Its state is on the shelf, unless that had no room for it."""

    stage: Stage
    token: bytes | None = None
    """Which stored state the stage holds, if any."""
    edition: int = 0
    """Of the program that it was built from."""


_kept: dict[tuple[str, int, int], Kept] = {}
"""By run, stage and bucket."""


def _forget(run: str) -> None:
    for key in [key for key in _kept if key[0] == run]:
        del _kept[key]


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

    def segments(self, head: Head) -> Iterator[tuple[int, bytes]]:
        """What was written, piece by piece put together again, each segment with the number of its first piece."""
        numbered = ((number, *self._piece(number)) for number in range(head.base, head.end))
        for _, pieces in groupby(numbered, key=lambda piece: piece[1]):
            together = list(pieces)
            yield together[0][0], b"".join(data for _, _, data in together)

    def append(self, head: Head, changes: Changes) -> Head:
        """Write a segment, and remove those it makes superfluous."""
        token = os.urandom(16)
        end = head.end
        for cut in range(0, len(changes.data) or 1, PIECE):
            self.map.updateValue((end,), (token, changes.data[cut : cut + PIECE]))
            end += 1
        base = max(head.base, changes.since)
        for number in range(head.base, base):
            self.map.removeKey((number,))
        self.map.updateValue((self.HEAD,), (token, _NUMBERS.pack(base, end)))
        return Head(token, base, end)

    def _piece(self, number: int) -> tuple[bytes, bytes]:
        piece = self.map.getValue((number,))
        if piece is None:
            raise AssertionError(f"piece {number} of the state is missing")
        return bytes(piece[0]), bytes(piece[1])


_NUMBERS = struct.Struct("<2q")


def attach(program: Program, run: str, index: int, bucket: int, store: Store, edition: int = 0) -> tuple[Stage, Head]:
    """The stage with the state the store tells of: hot from the shelf, or rebuilt."""
    head = store.head()
    # Taken out until the work is done: whatever fails on the way leaves no half-changed state behind.
    kept = _kept.pop((run, index, bucket), None)
    holds = kept is not None and kept.token is not None and kept.token == head.token
    if kept is not None and holds and kept.edition == edition:
        return kept.stage, head
    contents = kept.stage.contents() if kept is not None and holds else Shelf(run, index, bucket).take(head.token)
    if contents is not None:
        stage = kept.stage if kept is not None and kept.edition == edition else program.stage(index, bucket)
        stage.adopt(contents)
        return stage, head
    stage = program.stage(index, bucket)
    if head.end > head.base:
        stage.restore(store.segments(head))
    return stage, head


def leave(run: str, index: int, bucket: int, stage: Stage, token: bytes, edition: int = 0) -> None:
    """Put the state on the shelf for the next worker, and keep the stage itself."""
    if Shelf(run, index, bucket).put(token, stage.contents()):
        stage.restore(())
        _kept[run, index, bucket] = Kept(stage, edition=edition)
    else:
        _kept[run, index, bucket] = Kept(stage, token, edition)
    let_go()


def save(stage: Stage, head: Head, store: Store) -> Head:
    """Write what has changed."""
    changes = stage.changes(head.end)
    return head if changes is None else store.append(head, changes)


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
        shipment = self.shipment
        own = shipment.open()
        bucket = bucket_numbers(own.buckets, own.partitions)[bucket_id]
        packets = []
        passing: list[wire.Wire] = []  # results and letters of earlier stages, and a program other than ours
        epoch = 0
        for row in rows:
            epoch = row.epoch
            if row.kind == wire.PACKET:
                packets.append(wire.packet_of(row, bucket))
                continue
            if row.kind == wire.PROGRAM:
                shipment = pickle.loads(row.payload)
            passing.append(row)
        program = shipment.open()
        ids = wire.ids_of(program)
        watch.lap(TRANSFER)
        made: Iterable[wire.Wire] = ()
        if packets or shipment is not self.shipment:
            packets.sort(key=lambda packet: (packet.port, packet.order))
            stage, head = attach(program, shipment.run, self.index, bucket, self.store, shipment.edition)
            watch.lap(STATE)
            made = list(wire.rows_of(stage.run(packets), ids, epoch, bucket))
            watch.lap(WORK)
            head = save(stage, head, self.store)
            leave(shipment.run, self.index, bucket, stage, head.token, shipment.edition)
            watch.lap(STATE)
        onward: Iterable[wire.Wire] = chain(passing, made)
        if self.last:
            onward = delivered(program, onward, str(bucket))
            watch.lap(SINK)
        return chain(onward, [wire.spent_row(self.index, watch, ids, epoch, bucket)])

    def close(self) -> None:
        pass
