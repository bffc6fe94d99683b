"""Spark does not pin buckets to workers: whoever gets one finds its state on the shelf, or rebuilds it from the journal.

The protocol of `millstream.runtime.spark.stage` is played in one process, with two workers that take turns by chance.
"""

from __future__ import annotations

import importlib
import random
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from millstream.graph.cut import cut
from millstream.io import ListSource, MemorySink
from millstream.io.contract import Unit
from millstream.pipeline import Pipeline
from millstream.plan import nodes
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime.hosted import HostedProgram
from millstream.runtime.launch import Launch
from millstream.runtime.spark import shelf
from millstream.runtime.spark.shelf import Shelf
from millstream.state import ledger
from tests.runtimes.case import Case
from tests.runtimes.cases import SETTLED
from tests.runtimes.compare import Row, assert_same
from tests.runtimes.oracle import ask

kit = importlib.import_module("millstream.testing.run")


def program_of(case: Case, files: int, buckets: int) -> HostedProgram:
    pipeline = case.pipeline()
    streams = {}
    for entry in pipeline.catalog.relations:
        if isinstance(entry, Stream):
            batches = kit._units(entry, case.inputs.get(entry.name, []), files)
            streams[entry.name] = replace(entry, source=ListSource(entry.name, entry.read_schema, batches))
    queries = []
    for query in pipeline.queries:
        sink = SinkEntry(query.sink.name, {}, None, MemorySink(query.sink.name))
        queries.append(nodes.Insert(kit._with_streams(query, streams).inputs[0], sink))
    launch = Launch.prepare(Pipeline(pipeline.catalog, pipeline.settings, queries))
    names = [vertex.config.stream.name for vertex in launch.graph.sources]
    return HostedProgram(cut(launch.graph), tuple((name, launch.sources[name]) for name in names), tuple(launch.sinks), buckets)


class Play:
    """Micro-batches of a program; `forget` is the chance that a shelf is empty, and the state is rebuilt from the journal."""

    def __init__(self, program: HostedProgram, rng: random.Random, forget: float, root: str) -> None:
        self.program, self.rng, self.forget, self.root = program, rng, forget, root
        self.stage_of = {c.number: s for s in range(program.stages) for c in program.cut.into(s)}
        self.journals: dict[tuple[int, int], list[tuple[int, bytes]]] = {}
        self.kept: dict[tuple[int, int, int], Any] = {}
        self.packets: dict[tuple[int, int], list[Any]] = {}
        self.answer: dict[str, list[Row]] = {sink.name: [] for sink in program.sinks}

    def run(self) -> dict[str, list[Row]]:
        left: list[list[Unit]] = []
        for _, source in self.program.sources:
            left.append(source.units(source.initial(), source.latest(source.initial(), None)))
        ended = [False] * len(left)
        while not all(ended):
            for stream, units in enumerate(left):
                if ended[stream]:
                    continue
                taken = [units.pop(0) for _ in range(min(len(units), self.rng.choice((1, 1, 2))))]
                for unit in taken:
                    self._take(self.program.ingest(stream, unit, time.time_ns() // 1000))
                if not units:
                    self._take(self.program.mark(stream, taken[-1].number + 1 if taken else 0, None))
                    ended[stream] = True
            for stage in range(self.program.stages):
                for bucket in range(self.program.buckets):
                    if packets := self.packets.pop((stage, bucket), None):
                        self._take([self._work(stage, bucket, packets)])
        return self.answer

    def _take(self, outcomes: Any) -> None:
        for outcome in outcomes:
            for packet in outcome.packets:
                self.packets.setdefault((self.stage_of[packet.port], packet.bucket), []).append(packet)
            for sink, block in outcome.results:
                self.answer[self.program.sinks[sink].name] += self.program.rows(sink, block).to_pylist()

    def _work(self, stage: int, bucket: int, packets: list[Any]) -> Any:
        journal = self.journals.setdefault((stage, bucket), [])
        place = Shelf("run", stage, bucket, self.root)
        worker = self.rng.randrange(2)
        own = self.kept.pop((stage, bucket, worker), None) or self.program.stage(stage, bucket)
        contents = place.take(str(journal[-1:]).encode())
        if contents is not None and self.rng.random() >= self.forget:
            own.adopt(contents)
        else:
            own = self.program.stage(stage, bucket)
            own.restore(journal)
        outcome = own.run(packets)
        number = journal[-1][0] + 1 if journal else 1
        if (changes := own.changes(number)) is not None:
            journal.append((number, changes.data))
            self.journals[stage, bucket] = journal = [segment for segment in journal if segment[0] >= changes.since]
        assert place.put(str(journal[-1:]).encode(), own.contents())
        own.restore(())
        self.kept[stage, bucket, worker] = own
        return outcome


@pytest.mark.parametrize("forget", [0.1, pytest.param(0.0, marks=pytest.mark.slow), pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SETTLED)
def test_answers_do_not_depend_on_where_a_bucket_is(name: str, forget: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "LEAST", 64)
    monkeypatch.setattr(ledger, "LEAST", 256)
    case = SETTLED[name]
    rng = random.Random(f"{name} {forget}")
    program = program_of(case, files=rng.choice((3, 7, 12)), buckets=rng.choice((1, 3)))
    if program.stages == 0:
        pytest.skip("keeps no state")
    answer = Play(program, rng, forget, str(tmp_path)).run()
    shutil.rmtree(tmp_path)
    shelf.let_go()  # in one process all of them would keep thousands of files open
    if case.rows is not None:
        assert_same(answer["Out"], case.rows, name)
        return
    for sink, query in case.queries().items():
        assert_same(answer[sink], ask(query, case.tables()), name)
