"""A running stage: gates for what comes from sources, promises of upstream buckets, and the executor of its part of the graph."""

from __future__ import annotations

from collections.abc import Callable

from millstream.core.block import Block
from millstream.core.letters import DeadLetter
from millstream.core.types import SEQUENCE
from millstream.graph.cut import INGEST, Crossing, Cut
from millstream.operators.contract import Container
from millstream.operators.edges import Deliver
from millstream.operators.union import Promises
from millstream.progress.arrivals import Step
from millstream.progress.gate import Broken, Gate
from millstream.progress.guard import Guard, reporters
from millstream.runtime.execution import Execution
from millstream.runtime.executor import Executor

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
        self.cut = cut
        self.on_result = on_result
        self.on_crossing = on_crossing
        entering = [cut.graph.vertices[c.producer] for c in cut.into(stage) if c.consumer == c.producer]
        members = [*entering, *cut.members(stage)]
        self.sinks: dict[int, list[Deliver]] = {}
        for v in members:
            if isinstance(v.config, Deliver):
                self.sinks.setdefault(v.inputs[0], []).append(v.config)
        inside = {v.number for v in members}
        self.leaving: dict[int, list[Crossing]] = {}
        for crossing in cut.crossings:
            if crossing.from_stage == stage:
                self.leaving.setdefault(crossing.producer, []).append(crossing)
        outlets = set(self.leaving) | {p for p in self.sinks if p in inside}
        self.executor = Executor(members, self._outlet, outlets, execution=execution, journal=journal)
        self.gates: dict[int, Gate] = {}
        self.gathers: dict[int, Promises] = {}
        reports = reporters(cut)
        for crossing in cut.into(stage):
            if crossing.from_stage == INGEST:
                guard, path = Guard.at(cut, crossing), [v.config for v in cut.path(crossing.producer)[1:]]
                reporting = reports[guard.stream.name] == crossing.number
                self.gates[crossing.number] = Gate(guard, path, reports=reporting, speaks=bucket == 0, journal=journal)
            else:
                self.gathers[crossing.number] = Promises(buckets, journal)
        self.broken: list[Broken] = []

    def arrive(self, crossing: Crossing, block: Block, step: Step) -> None:
        """A block of a source's unit; units must come in order."""
        passed, broken = self.gates[crossing.number].take(block, step, numbered=self._numbered(crossing))
        self.broken += broken
        self._put(crossing, passed)

    def _numbered(self, crossing: Crossing) -> bool:
        """False when nobody reads arrival numbers: in one process the projection behind a source mostly drops them."""
        if crossing.consumer != crossing.producer:
            return True
        network = self.executor.network
        return any(network.vertices[number].config.reads(SEQUENCE) for number, _, _ in network.branches[crossing.producer])

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
        consumer = self.cut.graph.vertices[crossing.consumer]
        if isinstance(consumer.config, Deliver):
            self.on_result(consumer.config.number, block)
            return
        self.executor.put(crossing.consumer, crossing.port, block)

    def run(self) -> None:
        self.executor.run()

    def _outlet(self, vertex: int, block: Block) -> None:
        for sink in self.sinks.get(vertex, ()):
            self.on_result(sink.number, block)
        for crossing in self.leaving.get(vertex, ()):
            self.on_crossing(crossing, block)

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

    @property
    def state(self) -> list[Container]:
        own: list[Container] = [self.gates[n].registers for n in sorted(self.gates)]
        own += [self.gathers[n].registers for n in sorted(self.gathers)]
        return own + self.executor.state
