"""Launch a pipeline: open what its queries read and write, and hand the graph to a runtime."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.errors import MillstreamError, Place, PlanProblem, SinkProblem
from millstream.graph.build import GraphBuilder
from millstream.graph.execution import CHANGEABLE, Execution
from millstream.graph.graph import Graph
from millstream.io import FileSink, FileSource, LetterBox, MemorySink, open_sink, open_source, without_files
from millstream.io.contract import Sink, Source
from millstream.io.hold import Hold
from millstream.io.places import need_local
from millstream.io.staging import Staging
from millstream.language import parse
from millstream.language.statements import (
    CreateSink,
    CreateStream,
    CreateTable,
    CreateView,
    DropQuery,
    Explain,
    Insert,
    SetOption,
    Statement,
)
from millstream.operators.edges import Deliver, Enter
from millstream.pipeline import Pipeline, check_table
from millstream.plan import nodes
from millstream.plan.bind import bind_insert
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime.checkpoint import Checkpoint
from millstream.runtime.facts import Facts
from millstream.runtime.visible import visible
from millstream.settings import SETTINGS, Settings


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
    holds: dict[int, Hold] = field(default_factory=dict)
    """By the number of a sink."""

    @classmethod
    def prepare(
        cls, pipeline: Pipeline, checkpoint: str | None = None, *, keeps_letters: bool = False
    ) -> Launch:
        """With a checkpoint, sinks and dead letters belong to its run and are continued by whoever continues that.

        `keeps_letters` is true where dead letters will stay in memory.
        """
        if checkpoint is None:
            launch = cls._prepared(pipeline, None, keeps_letters=keeps_letters)
            launch.hold_sinks()
            return launch
        held = Checkpoint.open(checkpoint)
        try:
            launch = cls._prepared(pipeline, held, keeps_letters=keeps_letters)
            held.agree(launch.facts, launch.results, launch.letters.staging)
            held.buckets(pipeline.settings.get("execution.buckets"), 0)  # before Spark is started
            held.partitions(pipeline.settings.get("execution.partitions"), 0)
            held.stages(pipeline.settings.get("execution.stages"), 0)
            launch.hold_sinks()
        except BaseException:
            held.close()
            raise
        return launch

    def hold_sinks(self) -> None:
        """Keep other runs away from what this one writes to."""
        try:
            self.holds |= self._hold()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """The run is over, or will not be."""
        for hold in self.holds.values():
            hold.release()
        if self.checkpoint is not None:
            self.checkpoint.close()

    @classmethod
    def rehearse(cls, pipeline: Pipeline, queries: Sequence[nodes.Insert]) -> None:
        """Refuse what a run of these queries would refuse, as far as that can be told without data."""
        cls._prepared(replace(pipeline, queries=list(queries)), None, rehearsed=True)

    @classmethod
    def _prepared(
        cls,
        pipeline: Pipeline,
        checkpoint: Checkpoint | None,
        *,
        rehearsed: bool = False,
        keeps_letters: bool = False,
    ) -> Launch:
        run = None if checkpoint is None else checkpoint.run
        builder = pipeline.builder(check_table) if rehearsed else pipeline.builder()
        graph = builder.graph
        sources, sinks = _sources(graph, {}, rehearsed=rehearsed), _sinks(graph, [], run)
        letters = LetterBox(_letters_path(pipeline.settings, sinks), run or uuid.uuid4().hex[:12])
        made = cls(graph, sources, sinks, letters, pipeline.settings, pipeline.copy(), builder, Facts.of(graph), checkpoint)
        Execution.of(pipeline.settings).check(graph)
        if rehearsed:
            made._check_declared()
        else:
            made.check()
        if not keeps_letters:
            _keep_letters_apart(sources.values(), letters.path)
        return made

    def change(
        self,
        text: str,
        variables: Mapping[str, str] | None = None,
        file: str | None = None,
        fits: Callable[[Launch], None] = lambda changed: None,
        *,
        again: bool = False,
    ) -> None:
        """Take in statements while the run goes on. A text that is wrong anywhere changes nothing, nor does one that does not fit.

        `again`: it was taken in by an earlier life of the run, and what it reads and writes may not be there any more (see `check`).
        """
        pipeline, builder = self.pipeline.copy(), self.builder.copy()
        statements = parse(text, variables=variables, file=file)
        if not statements:
            where = "" if file is None else f"{file}: "
            raise PlanProblem(f"{where}there is no statement in it", hint="write INSERT, DROP QUERY or SET")
        for statement in statements:
            try:
                _change(statement, pipeline, builder)
            except MillstreamError as problem:
                raise problem.at(statement.place) from None
        builder.settle(len(self.sinks))
        graph, run = builder.graph, None if self.checkpoint is None else self.checkpoint.run
        if not graph.vertices:
            raise PlanProblem("no query would be left", place=statements[-1].place, hint="stop the run instead")
        Execution.of(pipeline.settings).check(graph, Execution.of(self.settings))
        pipeline.settings.set("execution.breaks", Execution.of(pipeline.settings).breaks_of(graph))
        sources, sinks = _sources(graph, self.sources), _sinks(graph, self.sinks, run, self.builder.next)
        changed = replace(self, graph=graph, sources=sources, sinks=sinks, settings=pipeline.settings, pipeline=pipeline, builder=builder)
        changed.holds = {}
        if not again:
            changed.check(self)
            changed.holds = changed._hold(self)
        try:
            fits(changed)
        except BaseException:
            for hold in changed.holds.values():
                hold.release()
            raise
        self.holds |= changed.holds
        self.graph, self.sources, self.sinks = graph, sources, sinks
        self.pipeline, self.builder, self.settings = pipeline, builder, pipeline.settings

    def check(self, before: Launch | None = None) -> None:
        """What it reads and writes, but for what was checked before."""
        self._check_declared(before)
        for v in self.graph.sources:
            stream: Stream = v.config.stream  # type: ignore[attr-defined]
            if before is None or stream.name not in before.sources:
                source = self.sources[stream.name]
                _check(stream.place, source.check)
                if isinstance(source, FileSource) and (self.checkpoint is None or self.checkpoint.last < 0):
                    _check(stream.place, source.need_files)
        for config in self._fresh(before):
            sink = self.sinks[config.number]
            _check(config.sink.place, partial(sink.check, visible(config.schema)))
            if isinstance(sink, MemorySink):
                without_end = any(not self.sources[name].bounded for name in self._read_by(config))
                sink.endless = sink.endless or without_end

    def _check_declared(self, before: Launch | None = None) -> None:
        """Check what needs no data: the types of each sink, and that nothing writes where something else reads or writes."""
        fresh = self._fresh(before)
        new = [
            source for name, source in self.sources.items() if before is None or name not in before.sources
        ]
        _keep_apart(new, self.sinks)
        if before is not None:
            _keep_letters_apart(new, self.letters.path)
        _keep_apart(self.sources.values(), [self.sinks[config.number] for config in fresh])
        held = [self.sinks[number] for number in ({} if before is None else before.holds)]
        for config in fresh:
            sink = self.sinks[config.number]
            if isinstance(sink, FileSink):
                _check(config.sink.place, partial(sink.fits, visible(config.schema)))
                _check(config.sink.place, partial(_one_each, sink, held, self.letters.path))
            held.append(sink)

    def _fresh(self, before: Launch | None) -> list[Deliver]:
        """The queries that a change has brought, by where they write."""
        first = 0 if before is None else before.builder.next
        found = itertools.takewhile(lambda v: v.number >= first, reversed(self.graph.sinks))
        return [v.config for v in reversed(list(found)) if isinstance(v.config, Deliver)]

    def _read_by(self, config: Deliver) -> set[str]:
        """The names of the streams that a query reads."""
        left = [next(v.number for v in reversed(self.graph.sinks) if v.config is config)]
        found, seen = set(), set(left)
        while left:
            vertex = self.graph.by_number[left.pop()]
            if isinstance(vertex.config, Enter):
                found.add(vertex.config.stream.name)
            left += set(vertex.inputs) - seen
            seen.update(vertex.inputs)
        return found

    def _hold(self, before: Launch | None = None) -> dict[int, Hold]:
        """Keep other runs away from what is written to; from all of it, or from nothing."""
        made: dict[int, Hold] = {}
        known = self.holds if before is None else before.holds
        try:
            for config in self._fresh(before):
                sink = self.sinks[config.number]
                if isinstance(sink, FileSink) and config.number not in known and config.number not in made:
                    made[config.number] = sink.hold()
        except BaseException:
            for hold in made.values():
                hold.release()
            raise
        return made

    def let_go(self) -> None:
        """Of sinks that nobody writes to any more: another run may."""
        for number in self.holds.keys() - self.schemas.keys():
            self.holds.pop(number).release()

    @property
    def schemas(self) -> dict[int, pa.Schema]:
        """Of what is written to each sink, by its number; of those that somebody writes to."""
        return {v.config.number: v.config.schema for v in self.graph.sinks if isinstance(v.config, Deliver)}

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
            bound = bind_insert(statement.sink, statement.query, pipeline.catalog, statement.named)
            if not pipeline.has(bound, statement.place):
                builder.insert(pipeline.plans([bound]))
                pipeline.queries.append(bound)
        case DropQuery():
            pipeline.drop(statement.sink)
            builder.drop(statement.sink)
        case Explain():
            raise PlanProblem("a run explains nothing", hint="use `millstream explain`")
        case CreateStream() | CreateTable() | CreateSink() | CreateView() if statement.replace:
            hint = "choose another name, or replace it in the file and start the run again"
            raise PlanProblem(f"`{statement.name}` can not be replaced while queries run", hint=hint)
        case SetOption() if statement.name in SETTINGS and statement.name not in CHANGEABLE:
            raise PlanProblem(f"{statement.name} can not be changed while queries run", hint=f"what can is {', '.join(CHANGEABLE)}")
        case _:
            pipeline.add(statement)


def _sources(graph: Graph, known: Mapping[str, Source], *, rehearsed: bool = False) -> dict[str, Source]:
    """Of the streams that are read; those that are open stay so."""
    streams: list[Stream] = [v.config.stream for v in graph.sources]  # type: ignore[attr-defined]
    if rehearsed:
        streams = [replace(stream, options=without_files(stream.options)) for stream in streams]
    return {stream.name: known[stream.name] if stream.name in known else _source(stream) for stream in streams}


def _sinks(graph: Graph, known: Sequence[Sink], run: str | None, first: int = 0) -> list[Sink]:
    """By their numbers; those that are open stay so, though nobody may write to them any more. Vertices are new from `first` on."""
    found = list(known)
    fresh = itertools.takewhile(lambda v: v.number >= first, reversed(graph.sinks))
    for vertex in reversed(list(fresh)):
        config = vertex.config
        assert isinstance(config, Deliver)
        if config.number == len(found):
            found.append(_sink(config.sink, run))
    return found


def _keep_apart(sources: Iterable[Source], sinks: Iterable[Sink]) -> None:
    """A sink must not write where a stream reads: the run would eat its own results, or remove its input."""
    for source in sources:
        for sink in sinks:
            if isinstance(source, FileSource) and isinstance(sink, FileSink):
                above = os.path.commonpath([source.path, sink.path])
                if above in (source.path, sink.path):
                    said = f"sink {sink.name} would write into {sink.path}, where stream {source.name} reads {source.path}"
                    raise SinkProblem(said, hint="choose a path of its own for the sink")


def _keep_letters_apart(sources: Iterable[Source], letters: str | None) -> None:
    """Refuse dead letters where a stream reads: each would be a tuple. Letters in memory have no path."""
    place = "" if letters is None else os.path.abspath(letters)
    for source in sources if place else ():
        if isinstance(source, FileSource) and os.path.commonpath([source.path, place]) == source.path:
            said = f"the dead letters would go to {place}, where stream {source.name} reads {source.path}"
            raise SinkProblem(said, hint="choose another place with SET dead_letters.path = '...'")


def _one_each(sink: FileSink, others: Iterable[Sink], letters: str | None) -> None:
    """Refuse a directory of two sinks: the manifests of one would hide those of the other, and overwriting clears both."""
    hint = f"give sink {sink.name} a path of its own"
    if sink.path == letters:
        raise SinkProblem(f"sink {sink.name} and the dead letters both write to {sink.path}", hint=hint)
    for other in others:
        if (
            other is not sink
            and isinstance(other, FileSink)
            and os.path.commonpath([sink.path, other.path]) in (sink.path, other.path)
        ):
            where = (
                f"both write to {sink.path}"
                if sink.path == other.path
                else f"write into one another: {other.path} and {sink.path}"
            )
            raise SinkProblem(
                f"the sinks {other.name} and {sink.name} {where}",
                hint=f"{hint}, or insert both queries into one sink",
            )


def _source(stream: Stream) -> Source:
    if stream.source is not None:
        given: Source = stream.source
        return given
    return open_source(stream.name, stream.read_schema, stream.options, stream.place)


def _sink(entry: SinkEntry, run: str | None) -> Sink:
    sink: Sink = entry.sink if entry.sink is not None else open_sink(entry.name, entry.options, entry.place)
    if run is not None and isinstance(sink, FileSink) and "run" not in entry.options:
        sink = sink.with_run(run)
    return sink


def _check(place: Place | None, check: Callable[[], None]) -> None:
    try:
        check()
    except MillstreamError as problem:
        raise problem.at(place) from None


def _letters_path(settings: Settings, sinks: list[Sink]) -> str:
    """As set, or beside the first file sink, or in the working directory."""
    chosen: str = settings.get("dead_letters.path")
    if chosen:
        return need_local(chosen, lambda said, hint: SinkProblem(f"dead_letters.path: {said}", hint=hint))
    for sink in sinks:
        if isinstance(sink, FileSink):
            return os.fspath(sink.path).rstrip("/") + "_dead_letters"
    return "dead_letters"
