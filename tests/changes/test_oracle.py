"""Random queries over random streams give what DuckDB computes, however their graph is changed meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.core.letters import DeadLetter
from millstream.graph.graph import Graph
from millstream.graph.rules import STRATEGIES
from millstream.io import MemorySink
from millstream.language.statements import Ets
from millstream.pipeline import Pipeline
from millstream.plan.catalog import Stream
from millstream.runtime.launch import Launch
from millstream.runtime.status import Status
from millstream.testing import Live, run
from tests.oracle import duck, queries
from tests.oracle.buckets import Host
from tests.oracle.cases import FAMILIES, TABLE, Case, make_case
from tests.oracle.streams import StreamSpec
from tests.oracle.watch import Watch, watched

EXAMPLES = max(1, settings.default.max_examples // 8)


def kept_since(stream: StreamSpec, first: int) -> pa.Table:
    """The tuples of a stream from an arrival number on; those that are late are so by the whole stream. Numbered."""
    refused = stream.arrived()[1]
    rows, numbers = [], []
    for number, row in enumerate(stream.rows):
        if row["kind"] not in stream.punctuations and not any(row is r for r in refused) and number >= first:
            rows.append(row)
            numbers.append(number)
    return stream.table(rows).append_column("number", pa.array(numbers, pa.int64()))


def expected(case: Case, query: queries.Query, since: dict[str, int]) -> list[duck.Row]:
    tables: dict[str, pa.Table] = {"T": TABLE}
    for stream in case.streams:
        table = kept_since(stream, since[stream.name])
        tables[stream.name], tables[f"{stream.name}_numbered"] = table.drop_columns(["number"]), table
    return duck.answer(tables, query.duck, queries.views([s.name for s in case.streams]))


def set_at_random(r: random.Random, graph: Graph) -> str:
    arcs = [f"{producer} -> {v.number}" for v in graph.vertices for producer in v.inputs]
    sinks = [v.config.sink.name for v in graph.sinks]  # type: ignore[attr-defined]
    value: Any
    name, value = r.choice(
        [
            ("strategy", r.choice(list(STRATEGIES))),
            ("strategies", f"{r.choice(sinks)}: {r.choice(list(STRATEGIES))}"),
            ("limit", r.choice([0, 1, 3])),
            ("promises", r.choice(["tuples", "arcs"])),
            ("breaks", r.choice(["none", "auto", ", ".join(r.sample(arcs, min(len(arcs), r.choice([1, 2, 5]))))])),
            ("weights", f"{r.choice(sinks)}: {r.randint(1, 9)}"),
        ]
    )
    return f"SET execution.{name} = {value!r}"


class Story:
    """One case: its queries run from the beginning, `later` comes at some time, `guest` comes and goes, settings change."""

    def __init__(self, r: random.Random, family: str) -> None:
        self.r = r
        self.case = make_case(r, family)
        names = [s.name for s in self.case.streams]
        closing = family in ("closed", "punctuated")  # whose keys may be texts
        others = ["scan"] if closing else [f for f in FAMILIES if f not in ("closed", "punctuated")]
        self.later, self.guest = (self._query(r.choice([family, *others]), names) for _ in range(2))
        moments = sum(len(s.rows) for s in self.case.streams) // 4 + 2
        self.come, self.guests = r.randrange(moments), sorted(r.sample(range(moments + 1), 2))
        self.last = max(self.come, *self.guests)
        self.moment = 0
        self.since: dict[str, int] = {}
        self.again: set[str] = set()
        self.log: list[str] = []

    def _query(self, family: str, names: list[str]) -> queries.Query:
        """A query of a family that can cast every key it reads: neither a text nor NaN is a DECIMAL."""
        query = FAMILIES[family](self.r, names)
        while queries.DECIMAL_KEY in query.ours and any(
            s.key in ("STRING", "DOUBLE") for s in self.case.streams
        ):
            query = FAMILIES[family](self.r, names)
        return query

    def pipeline(self) -> Pipeline:
        pipeline = self.case.pipeline()
        for stream in list(pipeline.catalog.relations):
            if isinstance(stream, Stream):  # an enabling timestamp would make tuples late, by a clock that stands still
                pipeline.catalog.relations.replace(stream.name, replace(stream, ets=Ets("none")))
        return pipeline

    def between(self, launch: Launch, change: Callable[[str], None], came: dict[str, int]) -> None:
        """Between two steps, when so many tuples of each stream have come."""

        def changed(text: str) -> None:
            self.log.append(f"after {came}: {text}")
            change(text)

        def insert(sink: str, query: queries.Query) -> dict[str, int]:
            """Tells from which tuple on it sees each stream: one that nobody reads is read from its beginning."""
            read = _read(launch)
            changed(f"CREATE SINK {sink} WITH (connector = 'memory'); INSERT INTO {sink} {query.ours};")
            self.again |= _read(launch) - read
            return {s.name: came[s.name] if s.name in read else 0 for s in self.case.streams}

        if self.moment == self.come:
            self.since = insert("Later", self.later)
        if self.moment == self.guests[0]:
            insert("Guest", self.guest)
        if self.moment == self.guests[1]:
            changed("DROP QUERY Guest")
        if self.r.random() < 0.5:
            changed(set_at_random(self.r, launch.graph))
        self.moment += 1

    def check(self, launch: Launch, letters: Iterable[DeadLetter]) -> None:
        story = "\n".join([str(self.case), f"later: {self.later.ours}", f"guest: {self.guest.ours}", *self.log])
        got = {sink.name: sink.to_arrow() for sink in launch.sinks if isinstance(sink, MemorySink)}
        for number in range(len(self.case.queries)):
            found = duck.difference(duck.rows_of(got[f"Out{number}"]), self.case.expected(number))
            assert found is None, f"{story}\nquery {number}: {found}"
        found = duck.difference(duck.rows_of(got["Later"]), expected(self.case, self.later, self.since))
        assert found is None, f"{story}\nthe one that came later: {found}"
        told = Counter(letter.stream for letter in letters)
        wanted = {name: count for name, count in self.case.refused().items() if name in _read(launch) and name not in self.again}
        assert {name: told[name] for name in wanted} == wanted, f"{story}\n{told} but {wanted}"


def _read(launch: Launch) -> set[str]:
    return {v.config.stream.name for v in launch.graph.sources}  # type: ignore[attr-defined]


def play_in_one_process(story: Story) -> None:
    r, streams = story.r, story.case.streams
    live = Live(story.pipeline())
    came = {s.name: 0 for s in streams}
    while story.moment <= story.last or any(came[s.name] < len(s.rows) for s in streams):
        story.between(live._launch, live.change, came)
        left = [s for s in streams if came[s.name] < len(s.rows)]
        if left:
            stream = r.choice(left)
            first = came[stream.name]
            came[stream.name] = min(len(stream.rows), first + r.choice([1, 2, 5, 20]))
            live.push(stream.name, stream.table(list(stream.rows[first : came[stream.name]])))
    live.end()
    story.check(live._launch, live.letters)


def play_in_buckets(story: Story, buckets: int, watch: Watch) -> None:
    """Over stages of several buckets, with state written and read back between micro-batches."""
    sizes = {s.name: -(-len(s.rows) // story.case.files) or 1 for s in story.case.streams}

    def hosted(launch: Launch, **session: object) -> Status:
        host = Host(launch, buckets, story.r)

        def between() -> None:
            if story.moment <= story.last:
                came = {s.name: min(host.taken.get(s.name, 0) * sizes[s.name], len(s.rows)) for s in story.case.streams}
                story.between(launch, host.change, came)

        host.run(between, at_least=story.last + 1)
        watch.stages = [stage.running for stage in host.stages.values()]
        story.check(launch, launch.letters.letters)
        return Status()

    files = {s.name: story.case.files for s in story.case.streams}
    with patch("millstream.testing.run.run_spark", hosted):
        run(story.pipeline(), story.case.inputs(), runtime="spark", batch=story.case.batch, files=files)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=max(1, EXAMPLES // 2))
@given(seed=st.integers(0, 1 << 32))
def test_changes_in_one_process(family: str, seed: int) -> None:
    _check_in_one_process(family, seed)


@pytest.mark.parametrize(
    ("family", "seed"),
    [
        ("scan", 134217729),  # a value comes back after the horizon of its promise
        ("punctuated", 3009816743),  # keys are NaN, and a query casts them to DECIMAL
    ],
)
def test_what_changes_have_found(family: str, seed: int) -> None:
    _check_in_one_process(family, seed)


def _check_in_one_process(family: str, seed: int) -> None:
    story = Story(random.Random(seed), family)
    with watched(forgets=story.case.forgets) as watch:
        play_in_one_process(story)
        assert not watch.left_over(), f"{story.case}\n{watch.left_over()}"


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=max(1, EXAMPLES // 3))
@given(seed=st.integers(0, 1 << 32), buckets=st.sampled_from([1, 2, 3]))
def test_changes_between_micro_batches(family: str, seed: int, buckets: int) -> None:
    story = Story(random.Random(seed), family)
    with watched(forgets=story.case.forgets) as watch:
        play_in_buckets(story, buckets, watch)
        assert not watch.left_over(), f"{story.case}\n{watch.left_over()}"
