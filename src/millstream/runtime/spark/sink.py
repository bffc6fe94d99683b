"""The ends of a program: tasks write the results of distributed sinks, the user's own process commits them.

Why `foreachBatch` and not a Python DataSourceStreamWriter: the writer's commit runs in a Python process
beside the driver, which can reach neither a console nor a list of the user's. `foreachBatch` calls back
into the user's process, knows the same batch id (so that a replayed commit is recognised) and collects a
handful of small rows. With a do-nothing `mapInArrow` it took 20 ms more per micro-batch than the writer
(120 against 99 ms); our stages do not need that `mapInArrow`.
Why the last stage writes, and not a `mapInArrow` behind it: a second Python worker per task would take
the blocks through the JVM once more, and would double the pool in which a bucket looks for its hot state.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator
from typing import Any, cast

import pyarrow as pa

from millstream.io import FileSink
from millstream.io.contract import DeadLetter, Part, Writer
from millstream.runtime.program import Program
from millstream.runtime.spark import wire
from millstream.runtime.spark.failures import sealed
from millstream.runtime.spent import SINK, Spent, Watch


class Outlet:
    """Takes results in one task; what must go on to the driver comes out of `close`."""

    def __init__(self, program: Program, part: str) -> None:
        self.program = program
        self.part = part
        self.writers: dict[int, tuple[Writer, wire.Wire]] = {}
        self.counts: dict[int, int] = {}
        self.onward: list[wire.Wire] = []

    def take(self, row: wire.Wire) -> None:
        if row.kind == wire.PROGRAM:
            self.program = pickle.loads(row.payload).open()
            return
        if row.kind != wire.RESULT or not self.program.sinks[row.port].distributed:
            self.onward.append(row)
            return
        batch = cast(pa.RecordBatch, self.program.rows(row.port, row.payload))
        if batch.num_rows == 0:
            return
        if row.port not in self.writers:
            writer = self.program.sinks[row.port].writer(batch.schema, self.part, row.epoch)
            self.writers[row.port] = writer, row
        self.writers[row.port][0].write(batch)
        self.counts[row.port] = self.counts.get(row.port, 0) + batch.num_rows

    def close(self) -> list[wire.Wire]:
        for sink, (writer, row) in self.writers.items():
            part = pickle.dumps(writer.close())
            self.onward.append(row._replace(kind=wire.PART, first=self.counts[sink], payload=part))
        self.writers = {}
        return self.onward

    def abort(self) -> None:
        for writer, _ in self.writers.values():
            writer.abort()


def delivered(program: Program, rows: Iterable[wire.Wire], part: str) -> list[wire.Wire]:
    """Write what can be written here, return the rest."""
    outlet = Outlet(program, part)
    try:
        for row in rows:
            outlet.take(row)
        return outlet.close()
    except BaseException:
        outlet.abort()
        raise


class Delivery:
    """The `mapInArrow` of a program without stages: ingest leads straight to the sinks."""

    def __init__(self, shipment: wire.Shipment) -> None:
        self.shipment = shipment

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task = TaskContext.get()
        part = str(task.partitionId() if task is not None else 0)
        watch = Watch()
        epochs: set[int] = set()

        def received() -> Iterator[wire.Wire]:
            for batch in batches:
                watch.pause()  # ingest works in another process, and measures itself
                for row in wire.from_batch(batch):
                    epochs.add(row.epoch)
                    yield row
                watch.lap(SINK)

        with sealed():
            program = self.shipment.open()
            onward = delivered(program, received(), part)
            watch.lap(SINK)
            onward += [wire.spent_row(0, watch, wire.ids_of(program), epoch, 0) for epoch in epochs]
            for chunk in wire.in_chunks(onward):
                yield wire.to_batch(chunk)


KEPT = 64
"""Micro-batches whose report by Spark we wait for."""


class Counter:
    """What the driver has committed so far."""

    def __init__(self) -> None:
        self.written: dict[int, int] = {}  # tuples by sink
        self.letters = 0
        self.spent: dict[int, tuple[list[Spent], float]] = {}
        """By epoch what the tasks have spent, and what the commit took; kept until Spark has reported on the micro-batch."""

    def spend(self, epoch: int, spent: list[Spent], commit: float) -> None:
        self.spent[epoch] = spent, commit
        self.spent.pop(epoch - KEPT, None)

    def count(self, sink: int, tuples: int) -> None:
        self.written[sink] = self.written.get(sink, 0) + tuples


def commit(program: Program, epoch: int, rows: Iterable[wire.Wire], counter: Counter) -> tuple[DeadLetter, ...]:
    """In the user's process: make one micro-batch's results visible, every sink once; returns the dead letters."""
    parts: dict[int, list[Part]] = {sink: [] for sink in range(len(program.sinks))}
    writers: dict[int, Writer] = {}
    letters: list[DeadLetter] = []
    notes: list[Any] = []
    spent: list[Spent] = []
    began = time.perf_counter()
    for row in rows:
        if row.epoch != epoch:
            raise AssertionError(f"the source counts micro-batch {row.epoch} where Spark counts {epoch}")
        if row.kind == wire.PART:
            parts[row.port].append(pickle.loads(row.payload))
            counter.count(row.port, row.first)
        elif row.kind == wire.LETTERS:
            letters += pickle.loads(row.payload)
        elif row.kind == wire.NOTE:
            notes.append(pickle.loads(row.payload))
        elif row.kind == wire.SPENT:
            spent.append(pickle.loads(row.payload))
        else:
            batch = cast(pa.RecordBatch, program.rows(row.port, row.payload))
            if batch.num_rows:
                if row.port not in writers:
                    writers[row.port] = program.sinks[row.port].writer(batch.schema, "driver", epoch)
                writers[row.port].write(batch)
                counter.count(row.port, batch.num_rows)
    for sink, writer in writers.items():
        parts[sink].append(writer.close())
    counter.letters += len(letters)
    program.noted(notes)  # before the sinks, which record how far they are
    for number, sink_parts in parts.items():
        target = program.sinks[number]
        if isinstance(target, FileSink):
            sink_parts.append(target.marks(program.reached(number)))
        target.commit(epoch, sink_parts)
    counter.spend(epoch, spent, time.perf_counter() - began)
    return tuple(letters)
