"""A running stage: gates for what comes from sources, promises of upstream buckets, and the executor of its part of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from millstream.core.block import Block, empty_batch
from millstream.core.letters import DeadLetter
from millstream.core.punctuation import Punctuation
from millstream.core.types import SEQUENCE
from millstream.graph.cut import INGEST, Crossing, Cut
from millstream.graph.execution import Execution
from millstream.graph.graph import Vertex
from millstream.operators.contract import Container
from millstream.operators.edges import Deliver, Enter
from millstream.operators.promises import Promises
from millstream.progress.arrivals import Step
from millstream.progress.gate import Broken, Gate
from millstream.progress.guard import Guard, reporters
from millstream.runtime.delivered import deliver
from millstream.runtime.executor import Executor
from millstream.state.registers import Registers

GATE = "gate "
Emit = Callable[[int, Block], None]


class RunningStage:
    """One bucket of one stage. In one process there is one stage with one bucket; on Spark there are several of both."""

    def __init__(
        self,
        cut: Cut,
        stage: int,
        *,
        bucket: int = 0,
        buckets: int = 1,
        on_result: Emit,
        on_crossing: Callable[[Crossing, Block], None],
        execution: Execution = Execution(),  # noqa: B008 (it is frozen)
        journal: bool = False,
    ) -> None:
        self.stage, self.bucket, self.buckets, self.journal = stage, bucket, buckets, journal
        self.on_result = on_result
        self.on_crossing = on_crossing
        self.gates: dict[int, Gate] = {}
        self.gathers: dict[int, Promises] = {}
        self.broken: list[Broken] = []
        entering = [cut.graph[c.producer] for c in cut.into(stage) if c.consumer == c.producer]
        members = [*entering, *cut.members(stage)]
        self.sinks: dict[int, list[Deliver]] = {}
        self.leaving: dict[int, list[Crossing]] = {}
        for crossing in cut.crossings:
            if crossing.from_stage == stage:
                self.leaving.setdefault(crossing.producer, []).append(crossing)
        self.outlets = set(self.leaving)
        for v in members:
            if isinstance(v.config, Deliver):
                self._delivers(v.inputs[0]).append(v.config)
        self._enter(cut)
        own = execution.by_operator(cut.graph)
        self.read_by_number = _read_by_number(members)
        """Producers whose arrival numbers somebody reads, or has read."""
        self.delivered = Registers(journal=journal)
        """The low-water marks that each producer has sent to sinks."""
        self.former: dict[int, Registers] = {}
        """By the vertex of their source, what gates knew that have gone."""
        self.executor = Executor(members, self._outlet, self.outlets, execution=execution, strategies=own, journal=journal)

    def _delivers(self, vertex: int) -> list[Deliver]:
        """The sinks that get what a vertex puts out."""
        self.outlets.add(vertex)
        return self.sinks.setdefault(vertex, [])

    def _enter(self, cut: Cut) -> None:
        """A gate or a gather for each crossing that leads here."""
        self.cut = cut
        reports = reporters(cut)
        into = {crossing.number: crossing for crossing in cut.into(self.stage)}
        for number in [number for number in (*self.gates, *self.gathers) if number not in into]:
            self.gates.pop(number, None)
            self.gathers.pop(number, None)
        for number, crossing in into.items():
            if crossing.from_stage != INGEST:
                self.gathers.setdefault(number, Promises(self.buckets, cut.graph[crossing.producer].config.schema, self.journal))
                continue
            if number not in self.gates:
                guard, path = Guard.at(cut, crossing), [v.config for v in cut.path(crossing.producer)[1:]]
                entrance = cut.path(crossing.producer)[0].number
                self.gates[number] = Gate(guard, path, entrance, speaks=self.bucket == 0, journal=self.journal)
            first = crossing.route is None or crossing.route.speaks(self.bucket, self.buckets)
            self.gates[number].reports = first and reports[self.gates[number].stream.name] == number

    @property
    def nbytes(self) -> int:
        """What its operators keep, and what its gates remember of finished values."""
        memories = [gate.registers for gate in self.gates.values()] + [promises.registers for promises in self.gathers.values()]
        return self.executor.nbytes + sum(memory.nbytes for memory in memories)

    # -- change while it runs -------------------------------------------------------------------------------------

    def change(self, cut: Cut, execution: Execution) -> tuple[list[Vertex], list[Vertex]]:
        """Go on with a graph of more or fewer operators: those that stay keep their state, new ones hear what has been promised.

        Tells who has gone and who has come.

        For the whole of a graph in one process, where a stream crosses once (`whole`).
        """
        before, now = self.executor.network.vertices, cut.graph.by_number
        gone = [before[number] for number in before.keys() - now.keys()]
        fresh = [now[number] for number in sorted(now.keys() - before.keys())]
        new = {v.number for v in fresh}
        self._enter(cut)
        for v in gone:
            if isinstance(v.config, Deliver):
                self._delivers(v.inputs[0]).remove(v.config)
                if not self.sinks[v.inputs[0]]:
                    self.outlets.discard(v.inputs[0])
        for v in fresh:
            if isinstance(v.config, Deliver):
                self._delivers(v.inputs[0]).append(v.config)
        self.read_by_number |= _read_by_number(fresh)
        own = execution.by_operator(cut.graph)
        self.executor.own = own
        self.executor.change([v.number for v in gone], fresh)
        if execution != self.executor.execution or own:
            self.executor.plan(execution, own)
        for v in fresh:
            for port, producer in enumerate(v.inputs):
                if producer not in new and not isinstance(v.config, Deliver):
                    nothing = empty_batch(cut.graph[producer].config.schema)
                    self.executor.network.tell(v.number, port, Block(nothing, self._promised(producer)))
        return gone, fresh

    def welcome(self) -> None:
        """Gates that have come later than others of their stream learn what those know or knew, and tell it behind them.

        For a bucket of a cut graph, where each consumer has a gate of its own (`cut`).
        """
        knowing = self.former | {gate.entrance: gate.registers for gate in self.gates.values() if len(gate.registers)}
        for crossing in self.cut.into(self.stage):
            gate = self.gates.get(crossing.number)
            if gate is not None and not len(gate.registers) and gate.entrance in knowing:
                gate.learn(knowing[gate.entrance])
                self._put(crossing, Block(empty_batch(self.cut.graph[crossing.producer].config.schema), gate.promises()))
        self.executor.run()

    def _promised(self, vertex: int) -> tuple[Punctuation, ...]:
        """What has been promised behind a vertex from which nothing is kept back to its source."""
        v = self.cut.graph[vertex]
        if isinstance(v.config, Enter):
            return self.gates[vertex].promises()
        return tuple(new for old in self._promised(v.inputs[0]) for new in v.config.translate(old))

    # -- blocks ---------------------------------------------------------------------------------------------------

    def arrive(self, crossing: Crossing, block: Block, step: Step) -> None:
        """A block of a source's unit; units must come in order."""
        passed, broken = self.gates[crossing.number].take(block, step, numbered=self._numbered(crossing))
        self.broken += broken
        self._put(crossing, passed)

    def _numbered(self, crossing: Crossing) -> bool:
        """False when nobody has read arrival numbers: in one process the projection behind a source mostly drops them."""
        return crossing.consumer != crossing.producer or crossing.producer in self.read_by_number

    def gather(self, crossing: Crossing, bucket: int, block: Block) -> None:
        """A block from one bucket of an earlier stage: what all buckets have promised is promised here."""
        promises = self.gathers[crossing.number]
        self._put(crossing, Block(block.batch, tuple(new for old in block.punctuations for new in promises.take(bucket, old))))

    def _put(self, crossing: Crossing, block: Block) -> None:
        if crossing.consumer is None or (not len(block) and not block.punctuations):
            return
        if crossing.consumer == crossing.producer:
            self.executor.emit(crossing.producer, block)
            return
        consumer = self.cut.graph[crossing.consumer]
        if isinstance(consumer.config, Deliver):
            self._result(crossing.producer, consumer.config, block)
            return
        self.executor.put(crossing.consumer, crossing.port, block)

    def run(self) -> None:
        self.executor.run()

    def _outlet(self, vertex: int, block: Block) -> None:
        for sink in self.sinks.get(vertex, ()):
            self._result(vertex, sink, block)
        for crossing in self.leaving.get(vertex, ()):
            self.on_crossing(crossing, block)

    def _result(self, producer: int, sink: Deliver, block: Block) -> None:
        deliver(self.delivered, producer, sink, block)
        self.on_result(sink.number, block)

    def take_broken(self) -> list[Broken]:
        broken, self.broken = self.broken, []
        return broken

    def take_letters(self) -> list[DeadLetter]:
        return self.executor.take_letters()

    def marks(self, *, enabling: bool = True) -> dict[str, int]:
        """The low-water mark of each stream that enters here, with or without its enabling timestamps."""
        found: dict[str, int] = {}
        for gate in self.gates.values():
            mark = gate.mark if enabling else gate.tuples_mark
            found[gate.stream.name] = max(found.get(gate.stream.name, mark), mark)
        return found

    def remember(self, name: str, registers: Registers) -> None:
        """What a gate knew that has gone; others of its stream may come in its place."""
        self.former[int(name.rpartition(" of ")[2])] = registers

    @property
    def state(self) -> dict[str, Container]:
        """By the names under which a journal keeps them."""
        gates = {f"{GATE}{n} of {self.gates[n].entrance}": self.gates[n].registers for n in sorted(self.gates)}
        gathers = {f"gather {n}": self.gathers[n].registers for n in sorted(self.gathers)}
        return {**gates, **gathers, "delivered": self.delivered, **self.executor.state}


def _read_by_number(vertices: Iterable[Vertex]) -> set[int]:
    return {producer for v in vertices if v.inputs and v.config.reads(SEQUENCE) for producer in v.inputs}
