"""Runs a program on Spark from its sources to its sinks, and tells how it goes."""

from __future__ import annotations

import hashlib
import json
import shutil
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

from millstream.errors import MillstreamError, SessionStopped, SetupProblem
from millstream.io.contract import DeadLetter
from millstream.io.places import scheme_of
from millstream.runtime import scratch
from millstream.runtime.program import Program
from millstream.runtime.spark import shelf, sink, wire
from millstream.runtime.spark.editions import Editions
from millstream.runtime.spark.failures import (
    is_sealed,
    other_stages,
    parts_differ,
    source_is_lost,
    state_is_lost,
    unseal,
)
from millstream.runtime.spark.halt import Halt
from millstream.runtime.spark.session import (
    DYNAMIC,
    LOCAL_CHECKPOINT,
    get_session,
    given,
    is_stopped,
    jvm_ended,
    own_workers,
)
from millstream.runtime.spark.sink import Delivery
from millstream.runtime.spark.source import FORMAT, MillstreamSource, source_options
from millstream.runtime.spark.stage import BucketProcessor
from millstream.runtime.spent import BatchTime, batch_time, begin_of

TICK = 1.0
"""Seconds between two calls of `on_tick`."""


@dataclass(frozen=True)
class Progress:
    """One finished micro-batch."""

    batch: int
    blocks_in: int
    seconds: float
    written: Mapping[int, int]  # tuples by sink, since the start of the run
    durations: Mapping[str, int] = field(default_factory=dict)  # Spark's own, in ms
    time: BatchTime = field(default_factory=BatchTime)
    edition: int = 0
    """Of the program that it ran under."""


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
    on_tick: Callable[[], None] | None = None,
    stop_event: threading.Event | None = None,
    units_per_batch: int | None = None,
    interval: float = 0.0,
    between: Callable[[Callable[[Program], None]], None] | None = None,
    spark: SparkSession | None = None,
) -> Summary:
    """Run until every source has ended, or until `stop_event`, which lets the micro-batch in hand finish.

    Without a checkpoint a crash starts anew.

    At least `interval` seconds lie between the beginnings of two micro-batches, unless the first one is full.
    `on_letters(epoch, letters)` is called after an epoch's results are committed, again if the epoch is replayed; `on_tick` every
    second, whether something happens or not. `between` is called often with a function that takes the next edition of the program:
    from some micro-batch on it is the one that runs, and `on_progress` tells so.
    """
    began = time.monotonic()
    base = spark or get_session(master)
    place = checkpoint or scratch.directory("checkpoint")
    commits = Commits(program, on_letters)
    shipment = wire.Shipment.pack(program, uuid.uuid4().hex)
    halt = Halt.new()
    editions = Editions(halt.path)

    def publish(edition: Program) -> None:
        commits.program = edition
        editions.publish(wire.Shipment.pack(edition, shipment.run))

    following = Following(commits, halt, stop_event, on_progress, on_tick, None if between is None else lambda: between(publish))
    try:
        with own_workers(base.sparkContext):
            query = _start(
                base,
                program,
                shipment,
                place,
                name,
                commits,
                units_per_batch,
                interval,
                halt,
                durable=checkpoint is not None,
            )
        try:
            following.follow(query)
        finally:
            commits.refuse()
            query.stop()
        for each in commits.program.sinks:
            each.finish()
        written, letters = dict(commits.counter.written), commits.counter.letters
        return Summary(following.batches, written, letters, time.monotonic() - began, following.stopped)
    except (PySparkException, Py4JError, ConnectionError, EOFError) as error:
        if isinstance(commits.failure, MillstreamError):
            raise commits.failure from None
        text = _text(commits.failure or error)
        end = jvm_ended(0.0 if isinstance(error, PySparkException) else 2.0)
        if stop_event is not None and stop_event.is_set() and not is_sealed(text):
            # Whoever told us to stop has told the JVM as well, perhaps before us. What was in hand is replayed by the next run.
            return Summary(following.batches, dict(commits.counter.written), commits.counter.letters, time.monotonic() - began, True)
        hint = "run again with the same checkpoint to go on" if checkpoint else "run again"
        if is_stopped(base.sparkContext):
            raise SessionStopped("the Spark session was stopped while the query ran", hint=hint) from None
        if end is not None:
            raise SetupProblem(f"Spark's Java process has ended ({end})", hint=hint, passing=True) from None
        if source_is_lost(text):
            said = "the Python process that Spark asks for news of the sources has ended"
            raise SetupProblem(said, hint=hint, passing=True) from None
        if checkpoint is not None and (differ := other_stages(text)) is not None:
            raise parts_differ(f"the checkpoint {checkpoint}", *([stages] for stages in differ)) from None
        if checkpoint is not None and state_is_lost(text):
            hint = "restore it from a copy, or give a new checkpoint directory"
            raise SetupProblem(f"the checkpoint {checkpoint} is damaged: its state can not be read", hint=hint) from error
        raise unseal(text, base.sparkContext.pythonExec) from error
    finally:
        shelf.remove(shipment.run)
        halt.remove()
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
                with own_workers(frame.sparkSession.sparkContext):
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
    base: SparkSession,
    program: Program,
    shipment: wire.Shipment,
    place: str,
    name: str | None,
    commits: Commits,
    units: int | None,
    interval: float,
    halt: Halt,
    *,
    durable: bool,
) -> StreamingQuery:
    spark = base.newSession()
    started = given(base.sparkContext)
    for key, value in settings_at(place, {} if started is None else started.config).items():
        spark.conf.set(key, value)
    _share_listeners(base, spark)
    spark.conf.set("spark.sql.shuffle.partitions", str(program.partitions))
    if not durable:
        spark.conf.set("spark.sql.streaming.minBatchesToRetain", "2")
    spark.dataSource.register(MillstreamSource)

    options = source_options(
        shipment, shape_of(program), units, base.sparkContext.defaultParallelism, halt, interval
    )
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


def settings_at(place: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """The settings of a query whose checkpoint is at a place; what the user has chosen wins."""
    ours = {**DYNAMIC, **({} if scheme_of(place) else LOCAL_CHECKPOINT)}
    return {**ours, **{key: value for key, value in chosen.items() if key.startswith("spark.sql.")}}


def _share_listeners(base: SparkSession, spark: SparkSession) -> None:
    """Add the listeners of the user's session: Spark tells those of the query's own session alone."""
    theirs, ours = (session._jsparkSession.streams() for session in (base, spark))
    for listener in theirs.listListeners():
        ours.addListener(listener)


def shape_of(program: Program) -> str:
    """The part of a program that a checkpoint depends on: `fingerprint`, stages, buckets, partitions.

    Later editions share it.
    """
    names = getattr(program, "fingerprint", "") or ",".join(name for name, _ in program.sources)
    return f"{hashlib.sha256(names.encode()).hexdigest()[:16]} {program.stages} {program.buckets} {program.partitions}"


@dataclass
class Following:
    """Waits for the end of a streaming query, and tells what happens meanwhile."""

    commits: Commits
    halt: Halt
    stop_event: threading.Event | None
    on_progress: Callable[[Progress], None] | None
    on_tick: Callable[[], None] | None
    between: Callable[[], None] | None = None
    batches: int = 0
    stopped: bool = False
    """It was asked to stop, and did so before its streams had ended."""
    ended: bool = False
    told: int = -1
    ticked: float = field(default_factory=time.monotonic)

    def follow(self, query: StreamingQuery) -> None:
        """Until the query is over, or has been asked to stop and has nothing more in hand."""
        over = False
        while not over:
            asked = self.stop_event is not None and self.stop_event.is_set()
            if asked:
                self.halt.ask()
                self.stopped = True
            elif self.between is not None:
                self.between()
            over = bool(query.awaitTermination(0.02 if asked else 0.1)) or self.halt.answered
            self._tell(query)
            over = over or self.ended
            self.stopped = asked and not self.ended

    def _tell(self, query: StreamingQuery) -> None:
        if self.commits.epoch > self.told:  # asking costs both processes some ms, so nobody asks when nothing has happened
            for report in query.recentProgress:
                if report["batchId"] > self.told and report["numInputRows"]:
                    self._report(report)
        if self.on_tick is not None and time.monotonic() - self.ticked > TICK:
            self.ticked = time.monotonic()
            self.on_tick()

    def _report(self, report: Mapping[str, Any]) -> None:
        self.told = report["batchId"]
        self.batches += 1
        self.ended = self.ended or _all_ended(report)
        counter = self.commits.counter
        spent, commit = counter.spent.pop(self.told, ([], 0.0))
        durations = dict(report["durationMs"])
        seconds = durations.get("triggerExecution", 0) / 1000
        if self.on_progress is not None:
            taken = batch_time(seconds, spent, commit, begin_of(report))
            edition = int((_offset(report) or {}).get("edition", 0))
            self.on_progress(Progress(self.told, report["numInputRows"], seconds, dict(counter.written), durations, taken, edition))
            self.ticked = time.monotonic()


def _all_ended(report: Mapping[str, Any]) -> bool:
    """True when every stream has ended by this micro-batch: also of a program that could not know at its start that it would."""
    offset = _offset(report)
    return bool(offset) and all(stream["ended"] for stream in offset["streams"].values())


def _offset(report: Mapping[str, Any]) -> Any:
    end = report["sources"][0]["endOffset"]
    return json.loads(end) if isinstance(end, str) else end


def _text(error: Exception) -> str:
    """Everything an exception of Spark says, its causes included."""
    texts = []
    link: Any = error
    while link is not None:
        texts.append(str(link))
        texts.append(str(getattr(link, "_stackTrace", None) or ""))
        link = getattr(link, "_cause", None) or link.__cause__
    return "\n".join(texts)
