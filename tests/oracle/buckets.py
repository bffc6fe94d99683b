"""Hosts a program as Spark would, in this process: micro-batches, stages of several buckets, state written and read back."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from millstream.graph.cut import cut
from millstream.graph.execution import Execution
from millstream.runtime.hosted import HostedProgram, HostedStage
from millstream.runtime.launch import Launch
from millstream.runtime.program import Outcome, Packet
from millstream.runtime.status import Status
from millstream.runtime.visible import visible
from millstream.testing import Result, run
from tests.oracle.watch import Watch

Place = tuple[int, int]
STAGES = 8
"""Enough for any query that comes later."""


class Host:
    """Runs one program to its end, or over streams without one.

    Chance decides how units fall into micro-batches and when state is written and read.
    With a file for `notes` silent streams make enabling timestamps, by the clock that `run` is given.
    """

    def __init__(self, launch: Launch, buckets: int, chance: random.Random, notes: str = "") -> None:
        sources = tuple((v.config.stream.name, launch.sources[v.config.stream.name]) for v in launch.graph.sources)  # type: ignore[attr-defined]
        batch, execution = launch.settings.get("execution.batch"), Execution.of(launch.settings)
        program = HostedProgram(cut(launch.graph), sources, (), buckets, batch, "", notes, execution, STAGES)
        self.program: HostedProgram = pickle.loads(pickle.dumps(program))
        self.launch = launch
        self.taken = {name: 0 for name, _ in sources}
        """Units of each stream."""
        self.enabled: dict[str, int | None] = {name: None for name, _ in sources}
        """The last enabling timestamp of each stream."""
        self.arrived = 0
        self.chance = chance
        self.stages: dict[Place, HostedStage] = {}
        self.elsewhere: dict[Place, HostedStage] = {}
        """Other workers that have had a bucket."""
        self.written: dict[Place, list[bytes]] = {}
        self.writers: dict[int, Any] = {}
        self._open()

    def _open(self) -> None:
        schemas = {v.config.number: v.config.schema for v in self.launch.graph.sinks}  # type: ignore[attr-defined]
        for number, sink in enumerate(self.launch.sinks):
            if number not in self.writers:
                self.writers[number] = sink.writer(visible(schemas[number]), "00000", None)

    def change(self, text: str) -> None:
        """Between two micro-batches; every bucket hears of it in the next."""
        launch = self.launch
        launch.change(text)
        sources = [(v.config.stream.name, launch.sources[v.config.stream.name]) for v in launch.graph.sources]  # type: ignore[attr-defined]
        program = self.program.changed(launch.graph, sources, (), Execution.of(launch.settings))
        self.program = pickle.loads(pickle.dumps(program))
        self.taken = {name: self.taken.get(name, 0) for name, _ in sources}
        stages, self.stages, self.elsewhere = self.stages, {}, {}
        for place, old in stages.items():
            if self.chance.random() < 0.5:
                self.stages[place] = self.program.stage(*place)
                vars(old.ledger).pop("worn", None)
                self.stages[place].adopt(pickle.loads(pickle.dumps(old.contents())))
        self._open()
        ended = [name for name in self.taken if self.taken[name] > len(self._units(name)) - 1]
        again = [outcome for name in ended for outcome in self.program.mark(self._stream(name), self.taken[name] - 1, None)]
        self.micro_batch(again, everyone=True)

    def _stream(self, name: str) -> int:
        return [each for each, _ in self.program.sources].index(name)

    def _units(self, name: str) -> list[Any]:
        source = dict(self.program.sources)[name]
        start = source.initial()
        return [*source.units(start, source.latest(start, None)), *([None] if source.bounded else [])]

    def run(self, between: Callable[[], None] = lambda: None, at_least: int = 0, now: int = 0) -> None:
        """Something may happen `between` any two micro-batches, of which there are at least so many."""
        for number in itertools.count():
            between()
            waiting = {name: self._units(name) for name, _ in self.program.sources}
            if number >= at_least and all(self.taken[name] >= len(units) for name, units in waiting.items()):
                break
            outcomes: list[Outcome] = []
            for name, units in waiting.items():
                stream, taken = self._stream(name), self.taken[name]
                for unit in units[taken : taken + self.chance.randint(0, 3)]:
                    if unit is None:
                        outcomes += self.program.mark(stream, len(units) - 1, None)
                    else:
                        outcomes += self.program.ingest(stream, unit, now)
                    self.taken[name] += 1
                    self.arrived = now
            self.micro_batch(outcomes)
        while outcomes := self._enabling(now):
            self.micro_batch(outcomes)
        for writer in self.writers.values():
            writer.close()

    def _enabling(self, now: int) -> list[Outcome]:
        """The enabling timestamps of silent streams at this time, made as `runtime/spark/source.py` makes them."""
        common = {"arrived": self.arrived, "ended": False}
        states = {name: {**common, "mark": mark} for name, mark in self.enabled.items()}
        made = self.program.enabling(states, set(), now) if self.program.notes_path else {}
        self.enabled |= made
        marks = [(self._stream(name), self.taken[name], mark) for name, mark in made.items()]
        return [outcome for mark in marks for outcome in self.program.mark(*mark)]

    def micro_batch(self, outcomes: list[Outcome], everyone: bool = False) -> None:
        for index in range(self.program.stages):
            packets = [pickle.loads(pickle.dumps(packet)) for outcome in outcomes for packet in outcome.packets]
            self._deliver(outcomes)
            self.chance.shuffle(packets)
            outcomes = [
                self._step((index, bucket), mine)
                for bucket in range(self.program.buckets)
                if (mine := [p for p in packets if p.bucket == bucket]) or everyone
            ]
        self._deliver(outcomes)
        assert not any(outcome.packets for outcome in outcomes)

    def _step(self, place: Place, packets: list[Packet]) -> Outcome:
        stage, fate = self.stages.get(place), self.chance.random()
        if stage is None or fate < 0.3:
            stage = self.stages[place] = self.program.stage(*place)
            if self.written.get(place):
                stage.restore(self.written[place])
        elif fate < 0.4:
            stage = self._moved(place, stage)
        outcome = stage.run(packets)
        written = self.written.setdefault(place, [])
        # A journal of a few bytes is never worn; here the oldest segments are dropped by chance.
        number = written[-1][0] + 1 if written else 1
        stage.ledger.worn = lambda living, end, apart: self.chance.randint(1, number) if self.chance.random() < 0.3 else 0
        if (changes := stage.changes(number)) is not None:
            written.append((number, changes.data))
            self.written[place] = [segment for segment in written if segment[0] >= changes.since]
        return outcome

    def _moved(self, place: Place, stage: HostedStage) -> HostedStage:
        """As from one worker to another, which may have had that bucket before; the first one keeps what is no state."""
        vars(stage.ledger).pop("worn", None)
        contents = pickle.loads(pickle.dumps(stage.contents()))
        stage.restore(())
        other = self.elsewhere.pop(place, None)
        self.elsewhere[place] = stage
        self.stages[place] = self.program.stage(*place) if other is None else other
        self.stages[place].adopt(contents)
        return self.stages[place]

    def _deliver(self, outcomes: list[Outcome]) -> None:
        self.program.noted([outcome.note for outcome in outcomes if outcome.note is not None])
        for outcome in outcomes:
            self.launch.letters.put(list(outcome.letters))
            for sink, block in outcome.results:
                self.writers[sink].write(self.program.rows(sink, block))


def run_hosted(session: Any, inputs: Any, *, buckets: int, chance: random.Random, watch: Watch, **options: Any) -> Result:
    """`millstream.testing.run` with the host above in place of Spark."""

    def hosted(launch: Launch, **session: object) -> Status:
        host = Host(launch, buckets, chance)
        host.run()
        watch.stages = [stage.running for stage in host.stages.values()]
        return Status()

    with patch("millstream.testing.run.run_spark", hosted):
        return run(session, inputs, runtime="spark", **options)
