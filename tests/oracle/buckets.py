"""Hosts a program as Spark would, in this process: micro-batches, stages of several buckets, state written and read back."""

from __future__ import annotations

import pickle
import random
from typing import Any
from unittest.mock import patch

from millstream.graph.cut import cut
from millstream.runtime.execution import Execution
from millstream.runtime.hosted import HostedProgram, HostedStage
from millstream.runtime.launch import Launch
from millstream.runtime.program import Outcome, Packet
from millstream.runtime.status import Status
from millstream.runtime.visible import visible
from millstream.testing import Result, run
from tests.oracle.watch import Watch

Place = tuple[int, int]


class Host:
    """Runs one program to its end; chance decides how units fall into micro-batches and when state is written and read."""

    def __init__(self, launch: Launch, buckets: int, chance: random.Random) -> None:
        sources = tuple((v.config.stream.name, launch.sources[v.config.stream.name]) for v in launch.graph.sources)  # type: ignore[attr-defined]
        batch, execution = launch.settings.get("execution.batch"), Execution.of(launch.settings)
        program = HostedProgram(cut(launch.graph), sources, (), buckets, batch, execution=execution)
        self.program: HostedProgram = pickle.loads(pickle.dumps(program))
        self.launch = launch
        self.chance = chance
        self.stages: dict[Place, HostedStage] = {}
        self.written: dict[Place, list[bytes]] = {}
        schemas = {v.config.number: v.config.schema for v in launch.graph.sinks}  # type: ignore[attr-defined]
        self.writers = {number: sink.writer(visible(schemas[number]), "00000", None) for number, sink in enumerate(launch.sinks)}

    def run(self) -> None:
        waiting = []
        for _, source in self.program.sources:
            start = source.initial()
            waiting.append([*source.units(start, source.latest(start, None)), None])
        taken = [0] * len(waiting)
        while any(taken[s] < len(units) for s, units in enumerate(waiting)):
            outcomes: list[Outcome] = []
            for stream, units in enumerate(waiting):
                for unit in units[taken[stream] : taken[stream] + self.chance.randint(0, 3)]:
                    number = len(units) - 1
                    made = self.program.mark(stream, number, None) if unit is None else self.program.ingest(stream, unit, 0)
                    outcomes += list(made)
                    taken[stream] += 1
            self.micro_batch(outcomes)
        for writer in self.writers.values():
            writer.close()

    def micro_batch(self, outcomes: list[Outcome]) -> None:
        for index in range(self.program.stages):
            packets = [pickle.loads(pickle.dumps(packet)) for outcome in outcomes for packet in outcome.packets]
            self._deliver(outcomes)
            self.chance.shuffle(packets)
            outcomes = [
                self._step((index, bucket), mine)
                for bucket in range(self.program.buckets)
                if (mine := [p for p in packets if p.bucket == bucket])
            ]
        self._deliver(outcomes)
        assert not any(outcome.packets for outcome in outcomes)

    def _step(self, place: Place, packets: list[Packet]) -> Outcome:
        stage = self.stages.get(place)
        if stage is None or self.chance.random() < 0.3:
            stage = self.stages[place] = self.program.stage(*place)
            if self.written.get(place):
                stage.restore(self.written[place])
        outcome = stage.run(packets)
        written = self.written.setdefault(place, [])
        # A journal of a few bytes is never worn; here the oldest segments are dropped by chance.
        number = written[-1][0] + 1 if written else 1
        stage.ledger.worn = lambda living, end, apart: self.chance.randint(1, number) if self.chance.random() < 0.3 else 0
        if (changes := stage.changes(number)) is not None:
            written.append((number, changes.data))
            self.written[place] = [segment for segment in written if segment[0] >= changes.since]
        return outcome

    def _deliver(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            self.launch.letters.put(list(outcome.letters))
            for sink, block in outcome.results:
                self.writers[sink].write(self.program.rows(sink, block))


def run_hosted(session: Any, inputs: Any, *, buckets: int, chance: random.Random, watch: Watch, **options: Any) -> Result:
    """`millstream.testing.run` with the host above in place of Spark."""

    def hosted(launch: Launch) -> Status:
        host = Host(launch, buckets, chance)
        host.run()
        watch.stages = [stage.running for stage in host.stages.values()]
        return Status()

    with patch("millstream.testing.run.run_spark", hosted):
        return run(session, inputs, runtime="spark", **options)
