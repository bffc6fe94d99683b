"""Launch a pipeline: open what its queries read and write, and hand the graph to a runtime."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from millstream.core.clock import Clock
from millstream.errors import MillstreamError, SetupProblem, SinkProblem
from millstream.graph.cut import cut
from millstream.graph.graph import Graph
from millstream.io import FileSink, FileSource, LetterBox, SocketSource, open_sink, open_source
from millstream.io.contract import DeadLetter, Sink, Source
from millstream.pipeline import Pipeline
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime.visible import visible
from millstream.settings import Settings


@dataclass
class Status:
    """How far a run is; the same for both runtimes."""

    tuples_in: dict[str, int] = field(default_factory=dict)
    tuples_out: int = 0
    written: dict[str, int] = field(default_factory=dict)
    """Tuples by sink."""
    letters: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    state_rows: int = 0
    state_bytes: int = 0
    seconds: float = 0.0
    batches: int = 0
    stopped: bool = False
    letters_path: str | None = None


@dataclass
class Launch:
    """Everything a runtime needs, opened and checked."""

    graph: Graph
    sources: dict[str, Source]
    sinks: list[Sink]
    letters: LetterBox
    settings: Settings

    @classmethod
    def prepare(cls, pipeline: Pipeline, checkpoint: str | None = None) -> Launch:
        """With a checkpoint, sinks and dead letters belong to its run and are continued by whoever continues that."""
        run = None if checkpoint is None else _run_name(checkpoint)
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
        return cls(graph, sources, sinks, letters, pipeline.settings)

    def written(self, counts: Mapping[int, int]) -> dict[str, int]:
        """Tuples by sink name."""
        return {sink.name: counts.get(number, 0) for number, sink in enumerate(self.sinks)}

    @property
    def streams(self) -> list[str]:
        """The names of the streams that are read, in the order of the graph."""
        return [v.config.stream.name for v in self.graph.sources]  # type: ignore[attr-defined]

    @property
    def fingerprint(self) -> str:
        """What a checkpoint must agree with."""
        return hashlib.sha256(self.graph.describe().encode()).hexdigest()[:16]


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
        limit=settings.get("execution.limit") or None,
        on_letters=launch.letters.put,
    )

    def status(p: Progress) -> Status:
        written = launch.written(p.written)
        return Status(dict(p.tuples_in), sum(written.values()), written, dict(p.letters), p.marks, p.state_rows, p.state_bytes, p.seconds)

    final = status(run.run(stop, None if on_status is None else lambda p: on_status(status(p))))
    final.stopped = stop is not None and stop.is_set()
    return _with_letters(final, launch)


def run_spark(
    launch: Launch,
    *,
    master: str | None = None,
    checkpoint: str | None = None,
    stop: threading.Event | None = None,
    on_status: Callable[[Status], None] | None = None,
) -> Status:
    """On Spark, until every stream has ended or `stop` is set."""
    from millstream.runtime.hosted import HostedProgram
    from millstream.runtime.spark.run import Progress, run_program
    from millstream.runtime.spark.session import get_session

    settings = launch.settings
    spark = get_session(master)
    buckets = settings.get("execution.buckets") or spark.sparkContext.defaultParallelism
    scratch = tempfile.mkdtemp(prefix="millstream-run-")
    spool = scratch if checkpoint is None or "://" in checkpoint else os.path.join(checkpoint, "millstream-spool")
    sources = tuple((name, _replayable(launch.sources[name], os.path.join(spool, name))) for name in launch.streams)
    os.makedirs(spool, exist_ok=True)
    program = HostedProgram(
        cut(launch.graph),
        sources,
        tuple(launch.sinks),
        buckets,
        settings.get("execution.batch"),
        launch.fingerprint,
        os.path.join(spool, "notices.json"),
    )
    counts: dict[str, int] = {}

    def letters(epoch: int, found: object) -> None:
        unique: list[DeadLetter] = list(dict.fromkeys(found))  # type: ignore[call-overload]
        for letter in unique:
            counts[letter.kind] = counts.get(letter.kind, 0) + 1
        launch.letters.deliver(epoch, unique)

    began = time.monotonic()

    def status(counted: Mapping[int, int], batches: int) -> Status:
        written, seconds = launch.written(counted), time.monotonic() - began
        return Status(dict(program.read), sum(written.values()), written, dict(counts), program.marks, *program.held, seconds, batches)

    def told(p: Progress) -> None:
        if on_status is not None:
            on_status(status(p.written, p.batch + 1))

    try:
        summary = run_program(
            program,
            master=master,
            checkpoint=checkpoint,
            on_progress=told,
            on_letters=letters,
            stop_event=stop,
            units_per_batch=settings.get("source.max_files_per_batch") or None,
            spark=spark,
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
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


def _replayable(source: Source, spool: str) -> Source:
    """A source that keeps what it received, so that other processes can read it and a micro-batch can be replayed."""
    return source.with_spool(spool) if isinstance(source, SocketSource) else source


def _source(stream: Stream) -> Source:
    source: Source = stream.source if stream.source is not None else open_source(
        stream.name, stream.read_schema, stream.options, stream.place
    )
    try:
        source.check()
    except MillstreamError as problem:
        raise problem.at(stream.place) from None
    return source


def _run_name(checkpoint: str) -> str:
    """A name drawn when the checkpoint is made and kept in it, so that it goes when the checkpoint goes."""
    if "://" in checkpoint:
        return hashlib.sha256(checkpoint.encode()).hexdigest()[:12]
    path = os.path.join(checkpoint, "millstream-run")
    try:
        os.makedirs(checkpoint, exist_ok=True)
        with contextlib.suppress(FileExistsError), open(path, "x") as file:
            file.write(uuid.uuid4().hex[:12])
        with open(path) as file:
            return file.read().strip()
    except OSError as error:
        raise SetupProblem(f"the checkpoint {checkpoint} can not be used: {error.strerror}", hint="choose another directory") from None


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
