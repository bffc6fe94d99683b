"""Launch a pipeline: open what its queries read and write, and hand the graph to a runtime."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from millstream.core.clock import Clock
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.errors import MillstreamError, PlanProblem, SinkProblem
from millstream.graph.build import GraphBuilder
from millstream.graph.cut import cut
from millstream.graph.graph import Graph
from millstream.io import FileSink, FileSource, LetterBox, open_sink, open_source
from millstream.io.contract import DeadLetter, Limits, Sink, Source
from millstream.io.hold import Hold
from millstream.io.staging import Staging, safe
from millstream.language import parse
from millstream.language.statements import DropQuery, Explain, Insert, SetOption, Statement
from millstream.operators.edges import Deliver
from millstream.pipeline import Pipeline
from millstream.plan.bind import bind_insert
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime import scratch
from millstream.runtime.checkpoint import Checkpoint
from millstream.runtime.control import Control, Request
from millstream.runtime.execution import CHANGEABLE, Execution
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
    pipeline: Pipeline
    builder: GraphBuilder
    facts: Facts
    """What a checkpoint must agree with: the graph before any change."""
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
        builder = pipeline.builder()
        graph = builder.graph
        sources, sinks = _sources(graph, {}), _sinks(graph, [], run)
        _keep_apart(sources.values(), sinks)
        Execution.of(pipeline.settings).check(graph)
        letters = LetterBox(_letters_path(pipeline.settings, sinks), run or uuid.uuid4().hex[:12])
        return cls(graph, sources, sinks, letters, pipeline.settings, pipeline.copy(), builder, Facts.of(graph), checkpoint)

    def change(
        self,
        text: str,
        variables: Mapping[str, str] | None = None,
        file: str | None = None,
        fits: Callable[[Launch], None] = lambda changed: None,
    ) -> None:
        """Take in statements while the run goes on. A text that is wrong anywhere changes nothing, nor does one that does not fit."""
        pipeline, builder = self.pipeline.copy(), self.builder.copy()
        for statement in parse(text, variables=variables, file=file):
            try:
                _change(statement, pipeline, builder)
            except MillstreamError as problem:
                raise problem.at(statement.place) from None
        graph, run = builder.graph, None if self.checkpoint is None else self.checkpoint.run
        if not graph.vertices:
            raise PlanProblem("no query would be left", hint="stop the run instead")
        Execution.of(pipeline.settings).check(graph, Execution.of(self.settings))
        sources, sinks = _sources(graph, self.sources), _sinks(graph, self.sinks, run, self.builder.next)
        _keep_apart(sources.values(), sinks[len(self.sinks) :])
        _keep_apart((source for name, source in sources.items() if name not in self.sources), sinks)
        changed = replace(self, graph=graph, sources=sources, sinks=sinks, settings=pipeline.settings, pipeline=pipeline, builder=builder)
        fits(changed)
        self.holds += [sink.hold() for sink in sinks[len(self.sinks) :] if isinstance(sink, FileSink)]
        self.graph, self.sources, self.sinks = graph, sources, sinks
        self.pipeline, self.builder, self.settings = pipeline, builder, pipeline.settings

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
    def results(self) -> list[Staging]:
        """Where file sinks keep what they have committed."""
        return [sink.staging for sink in self.sinks if isinstance(sink, FileSink)]


def _change(statement: Statement, pipeline: Pipeline, builder: GraphBuilder) -> None:
    """One statement that comes while the graph runs."""
    match statement:
        case Insert():
            bound = bind_insert(statement.sink, statement.query, pipeline.catalog, statement.place)
            builder.insert(pipeline.plans([bound]))
            pipeline.queries.append(bound)
        case DropQuery():
            pipeline.drop(statement.sink)
            builder.drop(statement.sink)
        case Explain():
            raise PlanProblem("a run explains nothing", hint="use `millstream explain`")
        case SetOption() if statement.name not in CHANGEABLE:
            raise PlanProblem(f"{statement.name} can not be changed while queries run", hint=f"what can is {', '.join(CHANGEABLE)}")
        case _:
            pipeline.add(statement)


def _sources(graph: Graph, known: Mapping[str, Source]) -> dict[str, Source]:
    """Of the streams that are read; those that are open stay so."""
    streams: list[Stream] = [v.config.stream for v in graph.sources]  # type: ignore[attr-defined]
    return {stream.name: known[stream.name] if stream.name in known else _source(stream) for stream in streams}


def _sinks(graph: Graph, known: Sequence[Sink], run: str | None, first: int = 0) -> list[Sink]:
    """By their numbers; those that are open stay so, though nobody may write to them any more. Vertices are new from `first` on."""
    found = list(known)
    fresh = itertools.takewhile(lambda v: v.number >= first, reversed(graph.sinks))
    for vertex in reversed(list(fresh)):
        config = vertex.config
        assert isinstance(config, Deliver)
        if config.number == len(found):
            found.append(_sink(config.sink, config.schema, run))
    return found


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

    def change(request: Request) -> bool:
        launch.change(request.text, request.variables, request.file)
        run.change(launch.graph, launch.sources, launch.sinks, Execution.of(launch.settings))
        return True

    def status(p: Progress) -> Status:
        written = launch.written(p.written)
        made = Status(dict(p.tuples_in), sum(written.values()), written, dict(p.letters), p.marks, p.state_rows, p.state_bytes, p.seconds)
        made.rate_in, made.rate_out = meter.rates(sum(made.tuples_in.values()), made.tuples_out)
        made.behind, made.spent = launch.behind(p.marks, run.clock.now() / 1e6), dict(p.spent)
        return made

    try:
        between = None if control is None else lambda: control.serve(change)
        final = status(run.run(stop, None if on_status is None else lambda p: on_status(status(p)), between))
    finally:
        if control is not None:
            control.close()
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

    def host(source: Source) -> Source:
        return _hosted(source, spool, limits, checkpoint)

    program = HostedProgram(
        cut(launch.graph),
        tuple((name, host(launch.sources[name])) for name in launch.streams),
        tuple(launch.sinks),
        buckets,
        settings.get("execution.batch"),
        launch.facts.fingerprint,
        os.path.join(spool, "notices.json"),
        Execution.of(settings),
        settings.get("execution.stages"),
    )
    changing = Changing(launch, program, host, control, None if checkpoint is None else os.path.join(spool, LOG))
    changing.catch_up(0 if checkpoint is None else checkpoint.edition)
    counts: dict[str, int] = {}

    def letters(epoch: int, found: object) -> None:
        unique: list[DeadLetter] = list(dict.fromkeys(found))  # type: ignore[call-overload]
        for letter in unique:
            counts[letter.kind] = counts.get(letter.kind, 0) + 1
        launch.letters.deliver(epoch, unique)

    began, meter = time.monotonic(), Meter()
    last = Status()

    def status(counted: Mapping[int, int], batches: int) -> Status:
        written, seconds, program = launch.written(counted), time.monotonic() - began, changing.program
        made = Status(dict(program.read), sum(written.values()), written, dict(counts), program.marks, *program.held, seconds, batches)
        made.rate_in, made.rate_out = meter.rates(sum(made.tuples_in.values()), made.tuples_out)
        made.behind = launch.behind(made.marks, time.time())
        made.batch, made.spent = last.batch, dict(last.spent)
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
            between=changing.between,
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
