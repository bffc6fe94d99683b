"""Runs a program on Spark from its sources to its sinks, and tells how it goes."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from millstream.errors import MillstreamError
from millstream.io.contract import DeadLetter
from millstream.runtime.program import Program
from millstream.runtime.spark import sink, wire
from millstream.runtime.spark.failures import unseal
from millstream.runtime.spark.session import DYNAMIC, get_session
from millstream.runtime.spark.sink import Delivery
from millstream.runtime.spark.source import FORMAT, MillstreamSource, source_options
from millstream.runtime.spark.stage import BucketProcessor


@dataclass(frozen=True)
class Progress:
    """One finished micro-batch."""

    batch: int
    blocks_in: int
    seconds: float
    written: Mapping[int, int]  # tuples by sink, since the start of the run
    durations: Mapping[str, int] = field(default_factory=dict)  # Spark's own, in ms


@dataclass(frozen=True)
class Summary:
    """A finished run."""

    batches: int
    written: Mapping[int, int]  # tuples by sink
    letters: int
    seconds: float
    stopped: bool  # True when it was asked to stop before the end


def run_program(
    program: Program,
    *,
    master: str | None = None,
    checkpoint: str | None = None,
    name: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_letters: Callable[[int, Sequence[DeadLetter]], None] | None = None,
    stop_event: threading.Event | None = None,
    units_per_batch: int | None = None,
    spark: SparkSession | None = None,
) -> Summary:
    """Run until every source has ended, or until `stop_event`. Without a checkpoint a crash starts anew.

    `on_letters(epoch, letters)` is called after an epoch's results are committed, again if the epoch is replayed.
    """
    began = time.monotonic()
    base = spark or get_session(master)
    place = checkpoint or tempfile.mkdtemp(prefix="millstream-checkpoint-")
    commits = Commits(program, on_letters)
    try:
        query = _start(base, program, place, name, commits, units_per_batch, durable=checkpoint is not None)
        try:
            batches, stopped = _follow(query, commits, on_progress, stop_event)
        finally:
            commits.refuse()
            query.stop()
        for each in program.sinks:
            each.finish()
        return Summary(batches, dict(commits.counter.written), commits.counter.letters, time.monotonic() - began, stopped)
    except (PySparkException, Py4JError) as error:
        if isinstance(commits.failure, MillstreamError):
            raise commits.failure from None
        raise unseal(_text(commits.failure or error)) from error
    finally:
        if checkpoint is None:
            shutil.rmtree(place, ignore_errors=True)


class Commits:
    """The callback of each micro-batch, in the user's process."""

    def __init__(self, program: Program, on_letters: Callable[[int, Sequence[DeadLetter]], None] | None) -> None:
        self.program = program
        self.on_letters = on_letters
        self.counter = sink.Counter()
        self.failure: Exception | None = None
        self.lock = threading.Lock()
        self.refused = False
        self.finish: Delivery | None = None
        self.epoch = -1

    def refuse(self) -> None:
        """Let a commit under way finish, and begin no other. (To hold the lock while the query stops would be a
        deadlock: stopping waits for the callback.)"""
        with self.lock:
            self.refused = True

    def __call__(self, frame: DataFrame, epoch: int) -> None:
        try:
            if self.finish is not None:
                frame = frame.mapInArrow(self.finish, wire.SCHEMA)
            self.epoch = epoch
            # One action and no more: a second one would run the stages again.
            rows = [wire.Wire._make(row) for row in frame.collect()]
            with self.lock:
                if self.refused:
                    raise InterruptedError("stopped")
                letters = sink.commit(self.program, epoch, rows, self.counter)
                if letters and self.on_letters is not None:
                    self.on_letters(epoch, letters)
        except Exception as error:
            self.failure = error
            raise


def _start(
    base: SparkSession, program: Program, place: str, name: str | None, commits: Commits, units: int | None, *, durable: bool
) -> StreamingQuery:
    spark = base.newSession()
    for key, value in DYNAMIC.items():
        spark.conf.set(key, value)
    spark.conf.set("spark.sql.shuffle.partitions", str(program.buckets))
    if not durable:
        spark.conf.set("spark.sql.streaming.minBatchesToRetain", "2")
    spark.dataSource.register(MillstreamSource)

    shipment = wire.Shipment.pack(program, uuid.uuid4().hex)
    options = source_options(shipment, shape_of(program), units, base.sparkContext.defaultParallelism)
    frame = spark.readStream.format(FORMAT).options(**options).load()
    for index in range(program.stages):
        processor = BucketProcessor(shipment, index, last=index == program.stages - 1)
        frame = frame.groupBy("bucket").transformWithStateInPandas(processor, wire.SCHEMA, outputMode="append", timeMode="None")
    if program.stages == 0:
        commits.finish = Delivery(shipment)
    writer = frame.writeStream.foreachBatch(commits).outputMode("append").option("checkpointLocation", place)
    if name:
        writer = writer.queryName(name)
    if all(source.bounded for _, source in program.sources):
        writer = writer.trigger(availableNow=True)
    return writer.start()


def shape_of(program: Program) -> str:
    """What of a program a checkpoint depends on; a program may tell more by its `fingerprint`."""
    names = ",".join(name for name, _ in program.sources)
    text = f"{names}|{program.stages}|{program.buckets}|{getattr(program, 'fingerprint', '')}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _follow(
    query: StreamingQuery, commits: Commits, on_progress: Callable[[Progress], None] | None, stop_event: threading.Event | None
) -> tuple[int, bool]:
    """Wait for the end; how many micro-batches ran, and whether it was stopped."""
    told = seen = -1
    batches = 0
    ended = False
    while not ended:
        if stop_event is not None and stop_event.is_set():
            return batches, True
        ended = bool(query.awaitTermination(0.1))
        if commits.epoch == seen and not ended:
            continue  # to ask for the reports takes both processes 3 % of a core, at ten times a second
        for report in query.recentProgress:
            seen = max(seen, report["batchId"])
            if report["batchId"] <= told or not report["numInputRows"]:
                continue
            told = report["batchId"]
            batches += 1
            ended = ended or _all_ended(report)
            if on_progress is not None:
                on_progress(_progress(report, dict(commits.counter.written)))
    return batches, False


def _all_ended(report: Mapping[str, Any]) -> bool:
    """True when every stream has ended by this micro-batch: also of a program that could not know at its start that it would."""
    end = report["sources"][0]["endOffset"]
    offset = json.loads(end) if isinstance(end, str) else end
    return bool(offset) and all(stream["ended"] for stream in offset["streams"].values())


def _progress(report: Mapping[str, Any], written: Mapping[int, int]) -> Progress:
    durations = dict(report["durationMs"])
    return Progress(report["batchId"], report["numInputRows"], durations.get("triggerExecution", 0) / 1000, written, durations)


def _text(error: Exception) -> str:
    """Everything an exception of Spark says, its causes included."""
    texts = []
    link: Any = error
    while link is not None:
        texts.append(str(link))
        texts.append(str(getattr(link, "_stackTrace", None) or ""))
        link = getattr(link, "_cause", None) or link.__cause__
    return "\n".join(texts)
