"""Runs a launched pipeline in this process or on Spark, and tells how it goes."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from millstream.core.clock import Clock
from millstream.errors import MillstreamError, PlanProblem, counted
from millstream.graph.cut import cut
from millstream.graph.execution import Execution
from millstream.graph.explain import label_all
from millstream.io import FileSink, FileSource
from millstream.io.contract import NO_LIMITS, DeadLetter, Limits, Source
from millstream.io.staging import safe
from millstream.language.durations import length
from millstream.operators.buffers import microseconds
from millstream.progress.ahead import Ahead
from millstream.runtime import scratch
from millstream.runtime.checkpoint import Checkpoint
from millstream.runtime.control import Control, Request
from millstream.runtime.launch import Launch
from millstream.runtime.meter import Meter
from millstream.runtime.status import Status

BYTES_PER_CORE = 64 << 20
"""What a micro-batch takes of a stream by default: more than a core reads in the 2 s it should last, and little beside its memory."""


def run_local(
    launch: Launch,
    *,
    stop: threading.Event | None = None,
    on_status: Callable[[Status], None] | None = None,
    clock: Clock | None = None,
    control: Control | None = None,
) -> Status:
    """In this process, until every stream has ended or `stop` is set; `control` may bring changes meanwhile."""
    from millstream.runtime.local.run import LocalRun, Progress

    settings, meter, ahead = launch.settings, Meter(), Ahead()

    def letters(found: list[DeadLetter]) -> None:
        ahead.put(found)
        launch.letters.put(found)

    run = LocalRun(
        launch.graph,
        launch.sources,
        launch.sinks,
        clock=clock,
        batch_size=settings.get("execution.batch"),
        execution=Execution.of(settings),
        on_letters=letters,
    )

    def change(request: Request) -> bool:
        launch.change(request.text, request.variables, request.file, run.change)
        launch.let_go()
        return True

    def status(p: Progress) -> Status:
        written = launch.written(p.written)
        made = Status(dict(p.tuples_in), sum(written.values()), written, dict(p.letters), p.marks, p.state_rows, p.state_bytes, p.seconds)
        made.rate_in, made.rate_out = meter.rates(sum(made.tuples_in.values()), made.tuples_out)
        made.behind, made.spent = launch.behind(p.marks, run.clock.now() / 1e6), dict(p.spent)
        made.operators = p.operators
        made.remarks = _useless(launch, "a run in one process has no micro-batches") + ahead.lines(
            made.tuples_in
        )
        return made

    try:
        between = None if control is None else lambda: control.serve(change)
        final = status(run.run(stop, None if on_status is None else lambda p: on_status(status(p)), between))
    finally:
        if control is not None:
            control.close()
        launch.close()
    final.stopped = stop is not None and stop.is_set() and not all(feed.ended for feed in run.feeds)
    return _with_letters(final, launch)


def run_spark(
    launch: Launch,
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
    on_status: Callable[[Status], None] | None = None,
    control: Control | None = None,
) -> Status:
    """On Spark, until every stream has ended or `stop` is set; `control` may bring changes meanwhile."""
    control = control or Control()
    try:
        return _run_spark(launch, master, config or {}, stop, on_status, control)
    finally:
        control.close()
        launch.close()


def _run_spark(
    launch: Launch,
    master: str | None,
    config: Mapping[str, str],
    stop: threading.Event | None,
    on_status: Callable[[Status], None] | None,
    control: Control,
) -> Status:
    from py4j.protocol import Py4JError

    from millstream.runtime.hosted import HostedProgram
    from millstream.runtime.spark.changing import LOG, Changing
    from millstream.runtime.spark.failures import check_place
    from millstream.runtime.spark.run import Progress, run_program
    from millstream.runtime.spark.session import get_session
    from millstream.runtime.spark.wire import Shipment

    if stop is not None and stop.is_set():
        return Status(stopped=True)
    settings, checkpoint = launch.settings, launch.checkpoint
    try:
        spark = get_session(master, config)
    except (MillstreamError, OSError, Py4JError):
        if stop is not None and stop.is_set():
            return Status(stopped=True)  # whoever told us to stop has told the JVM as well
        raise
    if stop is not None and stop.is_set():
        return Status(stopped=True)  # it came while Spark started
    if checkpoint is not None and checkpoint.remote:
        check_place(spark, checkpoint.path)
    cores = spark.sparkContext.defaultParallelism
    buckets, graph = settings.get("execution.buckets"), cut(launch.graph)
    stages = max(graph.stages, settings.get("execution.stages"))
    if checkpoint is not None:
        buckets = checkpoint.buckets(buckets, cores)
        stages = checkpoint.stages(stages, graph.stages)
    buckets = buckets or cores
    partitions = settings.get("execution.partitions")
    if partitions > buckets:
        said = f"execution.partitions = {partitions} is more than there are buckets ({buckets})"
        raise PlanProblem(said, hint=f"SET execution.buckets = {partitions}, or more")
    partitions = partitions or min(cores, buckets)
    if checkpoint is not None:
        partitions = checkpoint.partitions(settings.get("execution.partitions"), partitions)
    own = scratch.directory("run")
    spool = (None if checkpoint is None else checkpoint.spool) or own
    limits = Limits(
        settings.get("source.max_bytes_per_batch") or BYTES_PER_CORE * cores, settings.get("source.max_tuples_per_batch") or None
    )

    def host(source: Source) -> Source:
        return _hosted(source, spool, limits, checkpoint)

    program = HostedProgram(
        graph,
        tuple((name, host(launch.sources[name])) for name in launch.streams),
        tuple(launch.sinks),
        buckets,
        settings.get("execution.batch"),
        launch.facts.fingerprint,
        os.path.join(spool, "notices.json"),
        Execution.of(settings),
        stages,
        partitions,
    )
    if checkpoint is not None:
        Shipment.pack(program, "")  # a program that does not pickle is refused before anything is written
        checkpoint.keep(buckets=buckets, partitions=partitions, stages=stages)
        for sink in launch.sinks:
            if isinstance(sink, FileSink):
                sink.begin()  # before any task writes there: a crash must find its own directory again
    os.makedirs(spool, exist_ok=True)
    if control.directory is not None:
        control.say(
            f"{counted(stages, 'stage')}: the queries need {graph.stages}, and one that comes later can use up to {stages}"
        )
    changing = Changing(launch, program, host, control, None if checkpoint is None else os.path.join(spool, LOG))
    changing.catch_up(0 if checkpoint is None else checkpoint.edition)
    counts: dict[str, int] = {}

    def letters(epoch: int, found: object) -> None:
        unique: list[DeadLetter] = list(dict.fromkeys(found))  # type: ignore[call-overload]
        for letter in unique:
            counts[letter.kind] = counts.get(letter.kind, 0) + 1
        ahead.put(unique)
        launch.letters.deliver(epoch, unique)

    began, meter, ahead = time.monotonic(), Meter(), Ahead()
    ends = all(source.bounded for source in launch.sources.values())
    remarks = _useless(launch, "all streams of the run end") if ends else []
    if checkpoint is not None and checkpoint.last >= 0 and partitions != cores:
        kept = f"{counted(buckets, 'bucket')} in {counted(partitions, 'partition')}"
        remarks.append(f"the checkpoint keeps {kept}, and this run has {counted(cores, 'core')}")
    last = Status()

    def status(counted: Mapping[int, int], batches: int) -> Status:
        written, seconds, program = launch.written(counted), time.monotonic() - began, changing.program
        made = Status(dict(program.read), sum(written.values()), written, dict(counts), program.marks, *program.held, seconds, batches)
        made.rate_in, made.rate_out = meter.rates(sum(made.tuples_in.values()), made.tuples_out)
        made.behind = launch.behind(made.marks, time.time())
        made.batch, made.spent = last.batch, dict(last.spent)
        made.remarks = remarks + ahead.lines(made.tuples_in)
        made.operators = program.totals.metrics(label_all(program.cut.graph), round(seconds * 1e6), microseconds())
        return made

    def told(p: Progress) -> None:
        nonlocal last
        changing.ran(p.edition)
        last.batch = p.time
        for part, seconds in p.time.parts.items():
            last.spent[part] = last.spent.get(part, 0.0) + seconds
        last = status(p.written, last.batches + 1)
        if on_status is not None:
            on_status(last)

    def ticked() -> None:
        if on_status is not None:
            on_status(status(dict(enumerate(last.written.values())), last.batches))

    try:
        summary = run_program(
            changing.program,
            master=master,
            checkpoint=None if checkpoint is None else checkpoint.path,
            on_progress=told,
            on_letters=letters,
            on_tick=ticked,
            stop_event=stop,
            units_per_batch=settings.get("source.max_files_per_batch") or None,
            interval=0.0 if ends else length(settings.get("execution.interval")) / 1e6,
            between=changing.between,
            spark=spark,
        )
    finally:
        shutil.rmtree(own, ignore_errors=True)
    final = status(summary.written, summary.batches)
    final.stopped = summary.stopped
    return _with_letters(final, launch)


def _useless(launch: Launch, why: str) -> list[str]:
    """The setting that has no effect in this run, if it was set."""
    return (
        [f"execution.interval has no effect: {why}"]
        if length(launch.settings.get("execution.interval"))
        else []
    )


@dataclass(frozen=True)
class Resumed:
    """From where a run on Spark goes on."""

    batch: int
    """The micro-batch that was begun last."""
    whole: bool
    """True when it has ended; otherwise it is replayed."""
    at: float
    """When it ended, or began, in seconds since 1970."""
    begun: frozenset[str]
    """The streams of which something has been read."""
    unread: Mapping[str, tuple[int, int]]
    """Files and bytes to be read, of the streams that are files."""


def resumed(launch: Launch) -> Resumed | None:
    """The end of an earlier life by the checkpoint; None where there was none, or no file to read."""
    checkpoint = launch.checkpoint
    if checkpoint is None or checkpoint.spool is None or checkpoint.last < 0:
        return None
    streams = checkpoint.offset["streams"]
    unread = {}
    for name in launch.streams:
        source = _hosted(launch.sources[name], checkpoint.spool, NO_LIMITS, checkpoint)
        if isinstance(source, FileSource) and name in streams:
            unread[name] = source.unread(streams[name]["at"])
    begun = frozenset(name for name, state in streams.items() if state["units"])
    return Resumed(checkpoint.last, checkpoint.whole, checkpoint.at, begun, unread)


def _with_letters(status: Status, launch: Launch) -> Status:
    if sum(status.letters.values()):
        launch.letters.finish()
        status.letters_path = launch.letters.path
    return status


def _hosted(source: Source, spool: str, limits: Limits, checkpoint: Checkpoint | None) -> Source:
    """The source as Spark reads it: within limits, and with a directory for what a replay needs and a position should not carry."""
    if not hasattr(source, "hosted"):
        return source
    directory = os.path.join(spool, safe(source.name))  # type: ignore[attr-defined]
    # What a file stream has taken must be there after a restart: a checkpoint elsewhere carries it in the positions.
    far = checkpoint is not None and checkpoint.remote and isinstance(source, FileSource)
    hosted: Source = source.hosted(None if far else directory, limits)
    return hosted
