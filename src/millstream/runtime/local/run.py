"""Runs a graph in this process until every source has ended, or until it is told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.core.block import Block
from millstream.core.clock import Clock, SystemClock
from millstream.core.letters import DeadLetter
from millstream.graph.components import Components
from millstream.graph.cut import Cut
from millstream.graph.execution import Execution
from millstream.graph.explain import label_all
from millstream.graph.graph import Graph
from millstream.graph.whole import whole
from millstream.io import FileSink
from millstream.io.contract import Sink, Source, Writer
from millstream.operators.edges import Deliver
from millstream.progress.demand import Demand, called
from millstream.runtime.delivered import sink_marks
from millstream.runtime.gauges import OperatorMetrics
from millstream.runtime.ingest import Ingest, Piece
from millstream.runtime.local.feed import Feed
from millstream.runtime.local.scheduler import Component, Scheduler
from millstream.runtime.spent import READ, SINK, WORK, Watch
from millstream.runtime.stage import RunningStage
from millstream.runtime.visible import to_visible, visible

if TYPE_CHECKING:
    from millstream.runtime.launch import Launch

IDLE = 0.002, 0.01
"""Seconds to sleep when no source has anything new: at first, and at most after some silence."""
FLUSH = 0.2
"""Seconds after which results become visible while input keeps coming."""
TELL = 0.25
"""Seconds between two reports of progress."""


@dataclass
class Progress:
    """How far a run is."""

    tuples_in: dict[str, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    letters: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    state_rows: int = 0
    state_bytes: int = 0
    seconds: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)
    operators: list[OperatorMetrics] = field(default_factory=list)


class LocalRun:
    """One stage, one bucket, fed from all sources: whichever stream is furthest behind is read next."""

    def __init__(
        self,
        graph: Graph,
        sources: dict[str, Source],
        sinks: list[Sink],
        *,
        clock: Clock | None = None,
        batch_size: int = 1 << 16,
        execution: Execution = Execution(),  # noqa: B008 (it is frozen)
        on_letters: Callable[[list[DeadLetter]], None] = lambda letters: None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.sinks = sinks
        self.on_letters = on_letters
        cut = whole(graph)
        self.stage = RunningStage(cut, 0, on_result=self._result, on_crossing=_nowhere, execution=execution)
        self.stage.executor.on_wait = self._wait
        self.current: Component | None = None
        self.batch_size = batch_size
        self.by_name: dict[str, Feed] = {}
        self.scheduler = Scheduler()
        self.schemas: dict[int, pa.Schema] = {v.config.number: v.config.schema for v in graph.sinks}  # type: ignore[attr-defined]
        self.graph = graph
        self.components = Components(graph.vertices)
        self.names: dict[int, str] = {}
        self.writers: dict[int, Writer] = {}
        self.opened: dict[int, int] = {}
        """How often each sink was, by its number."""
        self._follow(cut, sources, execution)
        self.enabled = False
        """Whether the last step has made enabling timestamps: these may let something go that waits for others."""
        self.progress = Progress()
        self.watch = Watch()
        self.began = time.monotonic()

    @property
    def feeds(self) -> list[Feed]:
        return list(self.by_name.values())

    def _follow(self, cut: Cut, sources: dict[str, Source], execution: Execution) -> None:
        """Read the streams of this graph, and share the time among its components."""
        graph = cut.graph
        self.demand = Demand(graph)
        feeds = {}
        for vertex in graph.sources:
            stream = vertex.config.stream  # type: ignore[attr-defined]
            old = self.by_name.get(stream.name)
            if old is not None and old.ingest.vertex == vertex.number:
                feeds[stream.name] = old
            else:
                by_clock = isinstance(self.clock, SystemClock)
                ingest = Ingest(cut, vertex.number, sources[stream.name], self.batch_size, by_clock=by_clock)
                feeds[stream.name] = Feed(ingest, self.clock)
        for name, old in self.by_name.items():
            if feeds.get(name) is not old:
                old.source.close()
        self.by_name = feeds
        weights = execution.weights_of(graph, self.components)
        parts: dict[int, list[Feed]] = {}
        for feed in self.feeds:
            parts.setdefault(self.components.of(feed.ingest.vertex), []).append(feed)
        self.scheduler = self.scheduler.changed([(feeds, weights.get(first, 1)) for first, feeds in parts.items()])

    def change(self, launch: Launch) -> None:
        """Between two steps: go on with another graph. Operators that stay keep their state; new queries see what comes from now on.

        Sinks that can not be opened change nothing.
        """
        graph, execution = launch.graph, Execution.of(launch.settings)
        self.open(graph, launch.sinks)
        cut = whole(graph)
        gone, fresh = self.stage.change(cut, execution)
        if gone:
            self.components = Components(graph.vertices)
        else:
            self.components.add(fresh)
        before, self.graph, self.names = self.graph, graph, {}
        self._follow(cut, launch.sources, execution)
        self.current = None
        self.stage.run()
        if gone:
            for number in self.writers.keys() - {v.config.number for v in graph.sinks}:  # type: ignore[attr-defined]
                self._shut(number, before)

    def open(self, graph: Graph | None = None, sinks: list[Sink] | None = None) -> None:
        """Begin to write to the sinks of a graph that are not written to yet."""
        made: dict[int, Writer] = {}
        schemas: dict[int, pa.Schema] = {}
        try:
            for v in reversed((graph or self.graph).sinks):
                assert isinstance(v.config, Deliver)
                number = v.config.number
                if number in self.writers or number in made:
                    if graph is not None and v.number in self.graph.by_number:
                        break  # those before it have been there
                    continue
                schemas[number] = v.config.schema
                part = f"{self.opened.get(number, 0):05d}"  # one that is opened again does not write over what is there
                made[number] = (sinks or self.sinks)[number].writer(visible(v.config.schema), part, None)
        except BaseException:
            for writer in made.values():
                writer.abort()
            raise
        self.sinks = self.sinks if sinks is None else sinks
        self.writers |= made
        self.schemas |= schemas
        for number in made:
            self.opened[number] = self.opened.get(number, 0) + 1

    def _shut(self, number: int, graph: Graph) -> None:
        """Nothing more goes to a sink of a graph."""
        part, sink = self.writers.pop(number).close(), self.sinks[number]
        if isinstance(sink, FileSink):
            delivered = {name: self.stage.delivered[name] for name in self.stage.delivered}
            sink.shown(part, sink_marks(graph, number, lambda end: [delivered]))
        sink.finish()

    def run(
        self,
        stop: threading.Event | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        between: Callable[[], None] | None = None,
    ) -> Progress:
        """Until every stream has ended or `stop` is set; `between` two steps whatever it says may be changed."""
        try:
            for feed in self.feeds:
                feed.look()  # a peer that does not answer is found before anything is written
            self.open()
            told = flushed = time.monotonic()
            pause = IDLE[0]
            while not all(feed.ended for feed in self.feeds):
                if stop is not None and stop.is_set():
                    break
                if between is not None:
                    between()
                idle = not self.step()
                now = time.monotonic()
                if idle or now - flushed > FLUSH:
                    self._flush()
                    flushed = now
                if on_progress is not None and now - told > TELL:
                    told = now
                    on_progress(self.report())
                if idle:
                    time.sleep(pause)
                pause = min(1.5 * pause, IDLE[1]) if idle else IDLE[0]
            self._flush()
            for number in list(self.writers):
                self._shut(number, self.graph)
            return self.report()
        except BaseException:
            for writer in self.writers.values():
                writer.abort()
            for feed in self.feeds:
                feed.source.close()
            raise

    def step(self) -> bool:
        """Let one component read a piece and run until nothing can move; False when nothing was there to read."""
        self.enabled = False
        asleep: list[Component] = []
        for component in self.scheduler.turns():
            began = self.stage.executor.book.now()
            if self._step(component):
                self.scheduler.ran(component, self.stage.executor.book.now() - began, asleep)
                return True
            asleep.append(component)
        return False

    def _step(self, component: Component) -> bool:
        """Of its streams the one furthest behind is read first."""
        self.current = component
        silent: list[Feed] = []
        for feed in sorted((f for f in component.feeds if not f.ended), key=lambda f: f.mark):
            self.watch.pause()
            piece = feed.next()
            if piece is not None:
                self.watch.lap(READ)
                self._take(piece)
                self._enable(silent)
                return True
            silent.append(feed)
        self._enable(silent)
        return False

    def _enable(self, silent: list[Feed]) -> None:
        """Silent streams that hold something back are asked for enabling timestamps, though others may go on."""
        for piece in self._enabling(silent):
            self.enabled = True
            self._take(piece)

    def _wait(self) -> None:
        """In the midst of a piece: tuples wait for a silent stream, and may go before the rest has come (paper 001, section 4)."""
        feeds = self.feeds if self.current is None else self.current.feeds
        for piece in self._enabling([feed for feed in feeds if feed.silent()]):
            for arrival in piece.arrivals:
                self.stage.arrive(arrival.crossing, arrival.block, arrival.step)

    def _enabling(self, silent: list[Feed]) -> Iterator[Piece]:
        periodic = [feed for feed in silent if feed.ingest.stream.ets.policy == "every"]
        waiting = self.stage.executor.due() if silent else []
        if not periodic and not waiting:
            return
        outlooks = {feed.ingest.stream.name: feed.outlook(feed in silent) for feed in self.feeds}
        asked = called(self.demand.needs(waiting), outlooks) | {feed.ingest.stream.name for feed in periodic}
        for name in sorted(asked):
            if outlooks[name].could > outlooks[name].mark:
                yield self.by_name[name].enable(outlooks[name].could)

    def _take(self, piece: Piece) -> None:
        for arrival in piece.arrivals:
            self.stage.arrive(arrival.crossing, arrival.block, arrival.step)
        self.stage.run()
        letters = [*piece.letters, *self.stage.take_letters()]
        for broken in self.stage.take_broken():
            letters += self.by_name[broken.stream].ingest.late_letters(broken)
        if letters:
            for letter in letters:
                self.progress.letters[letter.kind] = self.progress.letters.get(letter.kind, 0) + 1
            self.on_letters(letters)
        self.watch.lap(WORK)

    def _result(self, sink: int, block: Block) -> None:
        if len(block):
            self.progress.written[sink] = self.progress.written.get(sink, 0) + len(block)
            self.watch.lap(WORK)
            self.writers[sink].write(to_visible(block.batch))
            self.watch.lap(SINK)

    def _flush(self) -> None:
        self.watch.pause()
        for writer in self.writers.values():
            writer.flush()
        self.watch.lap(SINK)

    def report(self) -> Progress:
        self.progress.tuples_in = {feed.ingest.stream.name: feed.rows for feed in self.feeds}
        self.progress.marks = self.stage.marks()
        self.progress.state_rows = self.stage.executor.held
        self.progress.state_bytes = self.stage.nbytes
        self.progress.spent = dict(self.watch.parts)
        self.progress.seconds = time.monotonic() - self.began
        self.names = self.names or label_all(self.graph)
        self.progress.operators = self.stage.executor.metrics(self.names, round(self.progress.seconds * 1e6))
        return self.progress


def _nowhere(crossing: object, block: Block) -> None:
    raise AssertionError("one stage has nothing behind it")
