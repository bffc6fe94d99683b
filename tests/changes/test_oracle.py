"""Random queries over random streams give what DuckDB computes, however their graph is changed meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.graph.rules import STRATEGIES
from millstream.language.statements import Ets
from millstream.plan.catalog import Stream
from millstream.testing import Live
from tests.oracle import duck, queries
from tests.oracle.cases import FAMILIES, TABLE, Case, make_case
from tests.oracle.streams import StreamSpec
from tests.oracle.watch import watched

chances = st.randoms(use_true_random=False)
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


def set_at_random(r: random.Random, live: Live) -> str:
    graph = live._launch.graph
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


class Play:
    """One case: its query runs from the beginning, `later` comes at some time, `guest` comes and goes."""

    def __init__(self, r: random.Random, family: str) -> None:
        self.r = r
        self.case = make_case(r, family)
        names = [s.name for s in self.case.streams]
        closing = family in ("closed", "punctuated")  # whose keys may be texts
        others = ["scan"] if closing else [f for f in FAMILIES if f not in ("closed", "punctuated")]
        self.later, self.guest = (FAMILIES[r.choice([family, *others])](r, names) for _ in range(2))
        pipeline = self.case.pipeline()
        for stream in list(pipeline.catalog.relations):
            if isinstance(stream, Stream):  # an enabling timestamp would make tuples late, by a clock that stands still
                pipeline.catalog.relations.replace(stream.name, replace(stream, ets=Ets("none")))
        self.live = Live(pipeline)
        self.pushed = dict.fromkeys(names, 0)
        self.since: dict[str, int] = {}
        self.again: set[str] = set()
        self.log: list[str] = []

    def change(self, text: str) -> None:
        self.log.append(f"after {self.pushed}: {text}")
        self.live.change(text)

    def read(self) -> set[str]:
        return {v.config.stream.name for v in self.live._launch.graph.sources}  # type: ignore[attr-defined]

    def insert(self, sink: str, query: queries.Query) -> dict[str, int]:
        """Tells from which tuple on it sees each stream: one that nobody reads is read from its beginning."""
        read = self.read()
        self.change(f"CREATE SINK {sink} WITH (connector = 'memory'); INSERT INTO {sink} {query.ours};")
        self.again |= self.read() - read
        return {name: number if name in read else 0 for name, number in self.pushed.items()}

    def push(self) -> None:
        r = self.r
        stream = r.choice([s for s in self.case.streams if self.pushed[s.name] < len(s.rows)])
        first = self.pushed[stream.name]
        last = min(len(stream.rows), first + r.choice([1, 2, 5, 20]))
        self.pushed[stream.name] = last
        self.live.push(stream.name, stream.table(list(stream.rows[first:last])))

    def play(self) -> None:
        r = self.r
        moments = sum(len(s.rows) for s in self.case.streams) // 3 + 2
        come, guest = r.randrange(moments), sorted(r.sample(range(moments + 1), 2))
        moment = 0
        while any(self.pushed[s.name] < len(s.rows) for s in self.case.streams) or moment <= max(come, *guest):
            if moment == come:
                self.since = self.insert("Later", self.later)
            if moment == guest[0]:
                self.insert("Guest", self.guest)
            if moment == guest[1]:
                self.change("DROP QUERY Guest")
            if r.random() < 0.5:
                self.change(set_at_random(r, self.live))
            if any(self.pushed[s.name] < len(s.rows) for s in self.case.streams):
                self.push()
            moment += 1
        self.live.end()

    def check(self) -> None:
        story = "\n".join([str(self.case), f"later: {self.later.ours}", f"guest: {self.guest.ours}", *self.log])
        for number, query in enumerate(self.case.queries):
            found = duck.difference(duck.rows_of(self.live.to_arrow(f"Out{number}")), self.case.expected(number))
            assert found is None, f"{story}\nquery {number}: {found}"
        found = duck.difference(duck.rows_of(self.live.to_arrow("Later")), expected(self.case, self.later, self.since))
        assert found is None, f"{story}\nthe one that came later: {found}"
        letters = Counter(letter.stream for letter in self.live.letters)
        wanted = {name: count for name, count in self.case.refused().items() if name in self.read() and name not in self.again}
        assert {name: letters[name] for name in wanted} == wanted, f"{story}\n{letters} but {wanted}"


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=EXAMPLES)
@given(chance=chances)
def test_changes_while_it_runs(family: str, chance: random.Random) -> None:
    with watched() as watch:
        play = Play(chance, family)
        play.play()
        play.check()
        assert not watch.left_over(), f"{play.case}\n{watch.left_over()}"
