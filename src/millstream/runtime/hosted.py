"""A query graph hosted by Spark: what its tasks read, what its stages keep, what its sinks get."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from millstream.core.block import Block
from millstream.core.letters import DeadLetter
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.errors import PlanProblem, counted
from millstream.graph.cut import INGEST, Crossing, Cut, cut
from millstream.graph.execution import Execution
from millstream.graph.graph import Graph
from millstream.io.contract import Sink, Source, Unit
from millstream.operators.buffers import microseconds
from millstream.plan.catalog import Stream
from millstream.progress.arrivals import Step
from millstream.progress.demand import Demand, Outlook, called
from millstream.progress.ets import enabling_timestamp
from millstream.progress.gate import Broken
from millstream.runtime.delivered import sink_marks
from millstream.runtime.gauges import Totals
from millstream.runtime.ingest import Ingest, Piece
from millstream.runtime.notices import Notice, Notices
from millstream.runtime.program import Changes, Note, Outcome, Packet, StreamState
from millstream.runtime.spread import spread
from millstream.runtime.stage import GATE, RunningStage
from millstream.runtime.visible import to_visible
from millstream.state.ledger import Ledger
from millstream.state.registers import Registers

LEDGER = "ledger"


@dataclass
class HostedProgram:
    """The `Program` that Spark hosts. Pickles; every process builds its ingests and stages from it."""

    cut: Cut
    sources: tuple[tuple[str, Source], ...]
    sinks: tuple[Sink, ...]
    buckets: int
    batch_size: int = 1 << 16
    fingerprint: str = ""
    notes_path: str = ""
    """A file by which the user's process tells the source's what the buckets said; both are on the driver's host."""
    execution: Execution = field(default_factory=Execution)
    least_stages: int = 0
    """How many there are at least: a query that comes later may need more than those that are there."""
    partitions: int = 0
    """Partitions of Spark that the buckets of a stage share; 0 for one each."""
    edition: int = 0
    """How many changes have made it what it is."""
    read: dict[str, int] = field(default_factory=dict, repr=False)
    """Tuples read so far by stream, as the tasks have told."""
    _ingests: dict[int, Ingest] = field(default_factory=dict, repr=False)
    _notes: dict[tuple[int, int], Note] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.partitions = self.partitions or self.buckets

    def __getstate__(self) -> dict[str, object]:
        return {**{k: v for k, v in self.__dict__.items() if k not in ("notices", "demand", "totals")}, "_ingests": {}, "_notes": {}}

    @property
    def stages(self) -> int:
        return max(self.cut.stages, self.least_stages)

    def changed(self, graph: Graph, sources: Iterable[tuple[str, Source]], sinks: Iterable[Sink], execution: Execution) -> HostedProgram:
        """The next edition; refused where it does not fit into the stages that there are."""
        cut_ = cut(graph, self.cut)
        if cut_.stages > self.stages:
            said = f"this needs {counted(cut_.stages, 'stage')}, and the run keeps the {self.stages} that it began with"
            hint = f"start a new run with SET execution.stages = {cut_.stages}; a checkpoint keeps its number of stages"
            raise PlanProblem(said, hint=hint)
        made = replace(
            self, cut=cut_, sources=tuple(sources), sinks=tuple(sinks), execution=execution, edition=self.edition + 1, _ingests={}
        )
        made.totals = self.totals  # what operators have done stays done
        return made

    @property
    def entrances(self) -> dict[str, int]:
        """Of each stream the vertex where it enters: one that was left and is read again enters elsewhere, and begins anew."""
        return {v.config.stream.name: v.number for v in self.cut.graph.sources}  # type: ignore[attr-defined]

    @cached_property
    def notices(self) -> Notices:
        return Notices(self.notes_path)

    @cached_property
    def totals(self) -> Totals:
        """What the operators have done in all buckets, in this life of the run."""
        return Totals()

    @cached_property
    def demand(self) -> Demand:
        return Demand(self.cut.graph)

    @property
    def _streams(self) -> dict[Stream, Source]:
        return {v.config.stream: self.sources[i][1] for i, v in enumerate(self.cut.graph.sources)}  # type: ignore[attr-defined]

    def _ingest(self, stream: int) -> Ingest:
        found = self._ingests.get(stream)
        if found is None:
            vertex = self.cut.graph.sources[stream].number
            found = self._ingests[stream] = Ingest(self.cut, vertex, self.sources[stream][1], self.batch_size)
        return found

    def ingest(self, stream: int, unit: Unit, entered: int = 0) -> Iterator[Outcome]:
        """One unit, packed per bucket. Every bucket hears how far the unit came, even those it has no tuples for."""
        arrived = self.sources[stream][1].arrived(unit) or entered
        for part, piece in enumerate(self._ingest(stream).read(unit, entered)):
            yield self._packed(piece, part, arrived)

    def mark(self, stream: int, unit_number: int, mark: int | None, made: int = 0) -> Iterator[Outcome]:
        yield self._packed(self._ingest(stream).mark(unit_number, mark, made), 0, 0)

    def _packed(self, piece: Piece, part: int, arrived: int) -> Outcome:
        packets = []
        for arrival in piece.arrivals:
            order = (arrival.step.unit.number, part, 0)
            everyone = arrival.step.done or arrival.step.promises
            home = arrival.step.unit.number % self.buckets
            for bucket, block in spread(arrival.block, arrival.crossing, self.buckets, home, everyone):
                packets.append(Packet(bucket, arrival.crossing.number, order, pack(block, arrival.step)))
        note = None
        if piece.rows:
            lag = piece.lag(arrived)
            lags = () if lag is None else ((piece.stream, lag),)
            note = Note(INGEST, read=((piece.stream, piece.rows),), lags=lags, gauges=piece.gauges)
        return Outcome(tuple(packets), (), piece.letters, note)

    def stage(self, index: int, bucket: int) -> HostedStage:
        return HostedStage(self, index, bucket)

    def noted(self, notes: Sequence[Note]) -> None:
        """What the buckets say after a micro-batch, for whoever asks how the run goes, and for enabling timestamps."""
        for note in notes:
            for stream, rows in note.read:
                self.read[stream] = self.read.get(stream, 0) + rows
            if note.stage != INGEST:
                self._notes[note.stage, note.bucket] = note
        self.totals.take(((None if note.stage == INGEST else note.bucket, note.gauges) for note in notes), microseconds())
        if self.notes_path:
            self.notices.write((self.notices.read() or Notice()).after(notes))

    @property
    def marks(self) -> dict[str, int]:
        """The low-water mark that each stream has reached, as far as buckets have told."""
        marks: dict[str, int] = {}
        for note in self._notes.values():
            for name, mark in note.reached:
                marks[name] = max(marks.get(name, mark), mark)
        return marks

    @property
    def held(self) -> tuple[int, int]:
        """Tuples and groups in the stages' state, and their bytes."""
        return sum(n.held for n in self._notes.values()), sum(n.state_bytes for n in self._notes.values())

    def reached(self, sink: int) -> Mapping[str, int | None]:
        """The marks of a sink, as far as the buckets have told in this life of the run."""
        known = {place: dict(note.delivered) for place, note in self._notes.items()}
        return sink_marks(
            self.cut.graph,
            sink,
            lambda end: [known.get((self.cut.stage_of[end], b)) for b in range(self.buckets)],
        )

    def enabling(self, streams: Mapping[str, StreamState], moving: Set[str], now: int) -> dict[str, int]:
        """The enabling timestamps of silent streams that let something go in a bucket, or that a period asks for."""
        notice = self.notices.read()
        if notice is None:
            return {}
        outlooks, periodic = {}, set()
        for stream, source in self._streams.items():
            state = streams[stream.name]
            last = MIN_TIME if state["mark"] is None else int(state["mark"])
            mark = notice.marks.get(stream.name, MIN_TIME)
            promised = MAX_TIME if state["ended"] else max(mark, last)
            made = None
            if not (state["ended"] or source.bounded or stream.name in moving):
                made = enabling_timestamp(stream, mark, int(state["arrived"]), now, last, notice.lags.get(stream.name))
            if made is not None and stream.ets.policy == "every":
                periodic.add(stream.name)
            outlooks[stream.name] = Outlook(promised, promised if made is None else made, stream.name in moving)
        return {name: outlooks[name].could for name in called(self.demand.needs(notice.waiting), outlooks) | periodic}

    def late(self, broken: Broken) -> list[DeadLetter]:
        number = next(i for i, (name, _) in enumerate(self.sources) if name == broken.stream)
        return self._ingest(number).late_letters(broken)

    def rows(self, sink: int, block: bytes) -> pa.RecordBatch:
        return to_visible(unpack(block)[0].batch)


class HostedStage:
    """One bucket of one stage between micro-batches."""

    def __init__(self, program: HostedProgram, index: int, bucket: int) -> None:
        self.program = program
        self.index = index
        self.bucket = bucket
        self.crossings = {c.number: c for c in program.cut.into(index)}
        self.packets: list[Packet] = []
        self.results: list[tuple[int, bytes]] = []
        self.count = 0
        self.ledger = Ledger()
        self.running = RunningStage(
            program.cut,
            index,
            bucket=bucket,
            buckets=program.buckets,
            on_result=self._result,
            on_crossing=self._crossing,
            execution=program.execution,
            journal=True,
        )

    def run(self, packets: Sequence[Packet]) -> Outcome:
        """One micro-batch: sources in the order of their units, then until nothing can move."""
        self.packets, self.results, self.count = [], [], 0
        if self.program.edition:
            self.running.welcome()
        # By unit first, so that the streams of a join advance side by side and its state stays small.
        for packet in sorted(packets, key=lambda p: (p.order, p.port)):
            crossing = self.crossings.get(packet.port)
            if crossing is None:
                self.packets.append(packet)  # for a later stage
                continue
            block, step = unpack(packet.block)
            if step is not None:
                self.running.arrive(crossing, block, step)
            else:
                self.running.gather(crossing, packet.order[0], block)
            self.running.run()
        letters = self.running.take_letters()
        for broken in self.running.take_broken():
            letters += self.program.late(broken)
        return Outcome(tuple(self.packets), tuple(self.results), tuple(letters), self._note())

    def _note(self) -> Note:
        executor = self.running.executor
        marks, reached = (tuple(self.running.marks(enabling=enabling).items()) for enabling in (False, True))
        due = tuple(executor.due())
        return Note(
            self.index,
            self.bucket,
            held=executor.held,
            due=due,
            marks=marks,
            reached=reached,
            delivered=tuple((name, self.running.delivered[name]) for name in self.running.delivered),
            state_bytes=self.running.nbytes,
            gauges=executor.take_gauges(),
        )

    def _result(self, sink: int, block: Block) -> None:
        if len(block):
            self.results.append((sink, pack(Block(to_visible(block.batch)), None)))

    def _crossing(self, crossing: Crossing, block: Block) -> None:
        """To the later stage's buckets; promises go to all of them."""
        buckets = self.program.buckets
        for bucket, part in spread(block, crossing, buckets, self.bucket, bool(block.punctuations)):
            self.packets.append(Packet(bucket, crossing.number, (self.bucket, self.count, 0), pack(part, None)))
        self.count += 1

    def changes(self, number: int) -> Changes | None:
        state = self.running.state
        apart = sum(container.nbytes for container in state.values() if isinstance(container, Registers))
        since = self.ledger.worn(self.running.executor.held, number, apart)
        parts = {name: part for name, container in state.items() if (part := container.changes(number, since)) is not None}
        if not since and not parts:
            return None
        rows = sum(part.rows for part in parts.values())
        pieces = {name: part.data for name, part in parts.items()}
        data = pickle.dumps((rows, pieces), protocol=5)
        if since:
            self.ledger.drop(since)
        self.ledger.add(number, rows, len(data), self._apart(pieces))
        return Changes(data, since)

    def restore(self, segments: Iterable[tuple[int, bytes]]) -> None:
        """What operators had that have gone since is passed over."""
        self.ledger = Ledger()
        state = self.running.state
        logs: dict[str, list[tuple[int, bytes]]] = {name: [] for name in state}
        for number, segment in segments:
            rows, pieces = pickle.loads(segment)
            self.ledger.add(number, rows, len(segment), self._apart(pieces))
            for name, piece in pieces.items():
                if name in state or name.startswith(GATE):
                    logs.setdefault(name, []).append((number, piece))
        for name, container in state.items():
            container.restore(logs.pop(name))
        for name, log in logs.items():
            registers = Registers(journal=True)
            registers.restore(log)
            self.running.remember(name, registers)
        self.running.executor.refresh()

    def _apart(self, pieces: Mapping[str, bytes]) -> int:
        """Bytes of a segment that are of registers."""
        state = self.running.state
        return sum(len(piece) for name, piece in pieces.items() if isinstance(state.get(name), Registers))

    def contents(self) -> dict[str, dict[str, Any]]:
        return {LEDGER: dict(vars(self.ledger)), **{name: dict(vars(each)) for name, each in self.running.state.items()}}

    def adopt(self, contents: object) -> None:
        assert isinstance(contents, dict)
        for name, each in (*self.running.state.items(), (LEDGER, self.ledger)):
            if name in contents:
                vars(each).update(contents[name])
        for name in contents.keys() - self.running.state.keys():
            if name.startswith(GATE):
                registers = Registers(journal=True)
                vars(registers).update(contents[name])
                self.running.remember(name, registers)
        self.running.executor.refresh()


def pack(block: Block, step: Step | None) -> bytes:
    """Promises and step pickled, tuples as Arrow IPC behind them."""
    head = pickle.dumps((block.punctuations, step))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, block.batch.schema) as writer:
        if len(block):
            writer.write_batch(block.batch)
    tuples: bytes = sink.getvalue().to_pybytes()
    return len(head).to_bytes(4, "little") + head + tuples


def unpack(data: bytes) -> tuple[Block, Step | None]:
    size = int.from_bytes(data[:4], "little")
    punctuations, step = pickle.loads(data[4 : 4 + size])
    with pa.ipc.open_stream(pa.py_buffer(data)[4 + size :]) as reader:
        table = reader.read_all()
    batches = table.to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_arrays([pa.array([], type=f.type) for f in table.schema], schema=table.schema)
    return Block(batch, punctuations), step
