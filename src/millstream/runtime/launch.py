"""Launch a pipeline: open what its queries read and write, and hand the graph to a runtime."""

from __future__ import annotations

import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from millstream.core.clock import Clock
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.errors import MillstreamError, SinkProblem
from millstream.graph.cut import cut
from millstream.graph.explain import label_all
from millstream.graph.graph import Graph
from millstream.io import FileSink, FileSource, LetterBox, open_sink, open_source
from millstream.io.contract import DeadLetter, Limits, Sink, Source
from millstream.io.hold import Hold
from millstream.io.staging import Staging, safe
from millstream.operators.buffers import microseconds
from millstream.pipeline import Pipeline
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime import scratch
from millstream.runtime.checkpoint import Checkpoint
from millstream.runtime.execution import Execution
from millstream.runtime.facts import Facts
from millstream.runtime.meter import Meter
from millstream.runtime.status import Status
from millstream.runtime.visible import visible
from millstream.settings import Settings

BYTES_PER_CORE = 64 << 20
"""What a micro-batch takes of a stream by default: more than a core reads in the 2 s it should last, and little beside its memory."""


@dataclass
class Launch:
    """Everything a runtime needs, opened and checked."""

    graph: Graph
    sources: dict[str, Source]
    sinks: list[Sink]
    letters: LetterBox
    settings: Settings
    checkpoint: Checkpoint | None = None
    holds: list[Hold] = field(default_factory=list)

    @classmethod
    def prepare(cls, pipeline: Pipeline, checkpoint: str | None = None) -> Launch:
        """With a checkpoint, sinks and dead letters belong to its run and are continued by whoever continues that."""
        if checkpoint is None:
            return cls._prepared(pipeline, None)._held()
        held = Checkpoint.open(checkpoint)
        try:
            launch = cls._prepared(pipeline, held)
            held.agree(launch.facts, launch.results, launch.letters.staging)
            held.buckets(pipeline.settings.get("execution.buckets"), 0)  # before Spark is started
            launch._held()
        except BaseException:
            held.close()
            raise
        return launch

    def _held(self) -> Launch:
        """Keep other runs away from what this one writes to."""
        try:
            self.holds = [sink.hold() for sink in self.sinks if isinstance(sink, FileSink)]
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """The run is over, or will not be."""
        for hold in self.holds:
            hold.release()
        if self.checkpoint is not None:
            self.checkpoint.close()

    @classmethod
    def _prepared(cls, pipeline: Pipeline, checkpoint: Checkpoint | None) -> Launch:
        run = None if checkpoint is None else checkpoint.run
        graph = pipeline.graph()
        streams: list[Stream] = [v.config.stream for v in graph.sources]  # type: ignore[attr-defined]
        sources = {stream.name: _source(stream) for stream in streams}
        entries: dict[int, tuple[SinkEntry, Sink]] = {}
        for vertex in graph.sinks:
            config = vertex.config
            entry: SinkEntry = config.sink  # type: ignore[attr-defined]
            number: int = config.number  # type: ignore[attr-defined]
            if number not in entries:
                entries[number] = (entry, _sink(entry, vertex.config.schema, run))
        sinks = [entries[number][1] for number in sorted(entries)]
        _keep_apart(sources.values(), sinks)
        letters = LetterBox(_letters_path(pipeline.settings, sinks), run or uuid.uuid4().hex[:12])
        return cls(graph, sources, sinks, letters, pipeline.settings, checkpoint)

    def written(self, counts: Mapping[int, int]) -> dict[str, int]:
        """Tuples by sink name."""
        return {sink.name: counts.get(number, 0) for number, sink in enumerate(self.sinks)}

    def behind(self, marks: Mapping[str, int], now: float) -> dict[str, float]:
        """How far each stream without end is behind the clock, where its timestamps are times."""
        found = {}
        for vertex in self.graph.sources:
            stream: Stream = vertex.config.stream  # type: ignore[attr-defined]
            mark = marks.get(stream.name, MIN_TIME)
            if MIN_TIME < mark < MAX_TIME and not self.sources[stream.name].bounded:
                found[stream.name] = now - mark / 1e6
        return found

    @property
    def streams(self) -> list[str]:
        """The names of the streams that are read, in the order of the graph."""
        return [v.config.stream.name for v in self.graph.sources]  # type: ignore[attr-defined]

    @property
    def facts(self) -> Facts:
        """What a checkpoint must agree with."""
        return Facts.of(self.graph)

    @property
    def results(self) -> list[Staging]:
        """Where file sinks keep what they have committed."""
        return [sink.staging for sink in self.sinks if isinstance(sink, FileSink)]


def run_local(
    launch: Launch,
    *,
    stop: threading.Event | None = None,
    on_status: Callable[[Status], None] | None = None,
    clock: Clock | None = None,
) -> Status:
    """In this process, until every stream has ended or `stop` is set."""
    from millstream.runtime.local.run import LocalRun, Progress

    settings = launch.settings
    run = LocalRun(
        launch.graph,
        launch.sources,
        launch.sinks,
        clock=clock,
        batch_size=settings.get("execution.batch"),
        execution=Execution.of(settings),
        on_letters=launch.letters.put,
    )

    meter = Meter()

    def status(p: Progress) -> Status:
        written = launch.written(p.written)
        made = Status(dict(p.tuples_in), sum(written.values()), written, dict(p.letters), p.marks, p.state_rows, p.state_bytes, p.seconds)
        made.rate_in, made.rate_out = meter.rates(sum(made.tuples_in.values()), made.tuples_out)
        made.behind, made.spent = launch.behind(p.marks, run.clock.now() / 1e6), dict(p.spent)
        made.operators = p.operators
        return made

    try:
        final = status(run.run(stop, None if on_status is None else lambda p: on_status(status(p))))
    finally:
        launch.close()
    final.stopped = stop is not None and stop.is_set()
    return _with_letters(final, launch)


def run_spark(
    launch: Launch,
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
    on_status: Callable[[Status], None] | None = None,
) -> Status:
    """On Spark, until every stream has ended or `stop` is set."""
    try:
        return _run_spark(launch, master, config or {}, stop, on_status)
    finally:
        launch.close()


def _run_spark(
    launch: Launch,
    master: str | None,
    config: Mapping[str, str],
    stop: threading.Event | None,
    on_status: Callable[[Status], None] | None,
) -> Status:
    from py4j.protocol import Py4JError

    from millstream.runtime.hosted import HostedProgram
    from millstream.runtime.spark.run import Progress, run_program
    from millstream.runtime.spark.session import get_session

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
    cores = spark.sparkContext.defaultParallelism
    buckets = settings.get("execution.buckets")
    if checkpoint is not None:
        buckets = checkpoint.buckets(buckets, cores)
        checkpoint.keep(buckets)
        for sink in launch.sinks:
            if isinstance(sink, FileSink):
                sink.begin()  # before any task writes there: a crash must find its own directory again
    buckets = buckets or cores
    own = scratch.directory("run")
    spool = (None if checkpoint is None else checkpoint.spool) or own
    os.makedirs(spool, exist_ok=True)
    limits = Limits(
        settings.get("source.max_bytes_per_batch") or BYTES_PER_CORE * cores, settings.get("source.max_tuples_per_batch") or None
    )
    sources = tuple((name, _hosted(launch.sources[name], spool, limits, checkpoint)) for name in launch.streams)
    program = HostedProgram(
        cut(launch.graph),
        sources,
        tuple(launch.sinks),
        buckets,
        settings.get("execution.batch"),
        launch.facts.fingerprint,
        os.path.join(spool, "notices.json"),
        Execution.of(settings),
    )
    counts: dict[str, int] = {}

    def letters(epoch: int, found: object) -> None:
        unique: list[DeadLetter] = list(dict.fromkeys(found))  # type: ignore[call-overload]
        for letter in unique:
            counts[letter.kind] = counts.get(letter.kind, 0) + 1
        launch.letters.deliver(epoch, unique)

    began, meter, names = time.monotonic(), Meter(), label_all(launch.graph)
    last = Status()

    def status(counted: Mapping[int, int], batches: int) -> Status:
        written, seconds = launch.written(counted), time.monotonic() - began
        made = Status(dict(program.read), sum(written.values()), written, dict(counts), program.marks, *program.held, seconds, batches)
        made.rate_in, made.rate_out = meter.rates(sum(made.tuples_in.values()), made.tuples_out)
        made.behind = launch.behind(made.marks, time.time())
        made.batch, made.spent = last.batch, dict(last.spent)
        made.operators = program.totals.metrics(names, round(seconds * 1e6), microseconds())
        return made

    def told(p: Progress) -> None:
        nonlocal last
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
            program,
            master=master,
            checkpoint=None if checkpoint is None else checkpoint.path,
            on_progress=told,
            on_letters=letters,
            on_tick=ticked,
            stop_event=stop,
            units_per_batch=settings.get("source.max_files_per_batch") or None,
            spark=spark,
        )
    finally:
        shutil.rmtree(own, ignore_errors=True)
    final = status(summary.written, summary.batches)
    final.stopped = summary.stopped
    return _with_letters(final, launch)


def _with_letters(status: Status, launch: Launch) -> Status:
    if sum(status.letters.values()):
        launch.letters.finish()
        status.letters_path = launch.letters.path
    return status


def _keep_apart(sources: Iterable[Source], sinks: Iterable[Sink]) -> None:
    """A sink must not write where a stream reads: the run would eat its own results, or remove its input."""
    for source in sources:
        for sink in sinks:
            if isinstance(source, FileSource) and isinstance(sink, FileSink):
                above = os.path.commonpath([source.path, sink.path])
                if above in (source.path, sink.path):
                    said = f"sink {sink.name} would write into {sink.path}, where stream {source.name} reads {source.path}"
                    raise SinkProblem(said, hint="choose a path of its own for the sink")


def _hosted(source: Source, spool: str, limits: Limits, checkpoint: Checkpoint | None) -> Source:
    """The source as Spark reads it: within limits, and with a directory for what a replay needs and a position should not carry."""
    if not hasattr(source, "hosted"):
        return source
    directory = os.path.join(spool, safe(source.name))  # type: ignore[attr-defined]
    # What a file stream has taken must be there after a restart: a checkpoint elsewhere carries it in the positions.
    far = checkpoint is not None and checkpoint.remote and isinstance(source, FileSource)
    hosted: Source = source.hosted(None if far else directory, limits)
    return hosted


def _source(stream: Stream) -> Source:
    source: Source = (
        stream.source if stream.source is not None else open_source(stream.name, stream.read_schema, stream.options, stream.place)
    )
    try:
        source.check()
    except MillstreamError as problem:
        raise problem.at(stream.place) from None
    return source


def _sink(entry: SinkEntry, schema: object, run: str | None) -> Sink:
    sink: Sink = entry.sink if entry.sink is not None else open_sink(entry.name, entry.options, entry.place)
    if run is not None and isinstance(sink, FileSink) and "run" not in entry.options:
        sink = sink.with_run(run)
    try:
        sink.check(visible(schema))
    except MillstreamError as problem:
        raise problem.at(entry.place) from None
    return sink


def _letters_path(settings: Settings, sinks: list[Sink]) -> str:
    """As set, or beside the first file sink, or in the working directory."""
    chosen: str = settings.get("dead_letters.path")
    if chosen:
        return chosen
    for sink in sinks:
        if isinstance(sink, FileSink):
            return os.fspath(sink.path).rstrip("/") + "_dead_letters"
    return "dead_letters"
