"""A case is streams with their data and one or two queries over them, run by us and by DuckDB."""

# ruff: noqa: E501 - a query reads best on one line

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.errors import MillstreamError
from millstream.graph.rules import STRATEGIES
from millstream.io import ListSource
from millstream.pipeline import Pipeline
from millstream.plan.catalog import Table
from millstream.plan.nodes import Scan
from millstream.runtime.launch import Launch
from millstream.testing import Result, run
from millstream.testing.run import stand_ins
from tests.oracle import duck, joins, queries
from tests.oracle.buckets import run_hosted
from tests.oracle.compositions import COMPOSITIONS
from tests.oracle.queries import Family, Query
from tests.oracle.streams import SECOND, StreamSpec, make_stream
from tests.oracle.watch import watched

FAMILIES: dict[str, Family] = {
    "scan": queries.scan, "window": queries.window_aggregate, "rows": queries.rows_aggregate, "progressing": queries.progressing_aggregate,
    "closed": queries.closed_aggregate, "distinct": queries.distinct, "nested": queries.nested, "join": joins.two_way, "many": joins.many_way,
    "chain": queries.chain, "calendar": joins.calendar, "using": joins.using, "outer": joins.outer_parts, "chained": joins.chained, "punctuated": joins.punctuated, "table": joins.table, "joined": joins.joined_window,
}  # fmt: skip
ALL = FAMILIES | COMPOSITIONS
TABLE = pa.table(
    {
        "id": pa.array([None, -1, 0, 1, 1, 2], pa.int32()),
        "label": pa.array(["none", "a", "b", "one", "uno", None]),
        "low": pa.array([0, 10**15, 0, None, 5 * 10**6, 0]).cast(pa.timestamp("us", "UTC")),
    }
)


@dataclass(frozen=True)
class Case:
    streams: tuple[StreamSpec, ...]
    queries: tuple[Query, ...]
    batch: int = 1 << 16
    files: int = 1
    limit: int = 0
    strategy: str = "depth-first"
    order: str = "out-of-order"
    promises: str = "tuples"
    algorithm: str = "auto"
    tree: str = "auto"
    trial: int = 8192
    families: tuple[str, ...] = ()
    """The family of each query."""
    now: int = 0
    """The time at which all rows arrive, by a clock that is moved by hand."""

    def __str__(self) -> str:
        parts = (
            [s.ddl for s in self.streams]
            + [q.ours + ";" for q in self.queries]
            + [
                f"-- batch {self.batch}, files {self.files}, limit {self.limit}, {self.strategy}, {self.order}, promises as {self.promises}, joins {self.algorithm} {self.tree}, trial {self.trial}"
            ]
        )
        return "\n".join(parts)

    def pipeline(self) -> Pipeline:
        pipeline = Pipeline()
        names = [s.name for s in self.streams]
        pipeline.add_text(
            "\n".join(s.ddl for s in self.streams)
            + "CREATE TABLE T (id INT, label STRING, low TIMESTAMP) WITH (format = 'csv', path = 'x');"
        )
        pipeline.catalog.relations._entries["t"] = ("T", Table("T", TABLE.schema, {}, None, TABLE))
        pipeline.add_text("\n".join(queries.views(names)))
        for number, query in enumerate(self.queries):
            pipeline.add_text(f"CREATE SINK Out{number} WITH (connector = 'memory'); INSERT INTO Out{number} {query.ours};")
        pipeline.settings.set("execution.limit", self.limit)
        pipeline.settings.set("execution.strategy", self.strategy)
        pipeline.settings.set("execution.order", self.order)
        pipeline.settings.set("execution.promises", self.promises)
        pipeline.settings.set("join.algorithm", self.algorithm)
        pipeline.settings.set("join.tree", self.tree)
        pipeline.settings.set("feedback.trial", self.trial)
        return pipeline

    def refusal(self) -> MillstreamError | None:
        """The reason why the planner refuses the case."""
        try:
            copy, _, _ = stand_ins(self.pipeline(), lambda stream: ListSource(stream.name, stream.read_schema))
            Launch.prepare(copy)
        except MillstreamError as error:
            return error
        return None

    def inputs(self) -> dict[str, pa.Table]:
        return {s.name: s.table() for s in self.streams}

    def expected(self, number: int) -> list[duck.Row]:
        tables: dict[str, pa.Table] = {"T": TABLE}
        for stream in self.streams:
            tables[stream.name] = stream.arrived()[0]
            kept = {id(row) for row in stream.tuples()}
            numbers = [n for n, row in enumerate(stream.rows) if id(row) in kept]
            numbered = tables[stream.name].append_column("number", pa.array(numbers, pa.int64()))
            tables[f"{stream.name}_numbered"] = numbered
        return duck.answer(tables, self.queries[number].duck, queries.views([s.name for s in self.streams]))

    def refused(self) -> Counter[str]:
        """The streams of the tuples that must become letters, with how many."""
        return Counter({s.name: len(s.arrived()[1]) for s in self.streams if s.arrived()[1]})

    def check(self, result: Result, letters: bool = True) -> None:
        for number in range(len(self.queries)):
            ours = duck.rows_of(result.tables[f"Out{number}"])
            found = duck.difference(ours, self.expected(number))
            assert found is None, f"{self}\nquery {number}: {found}"
        self.check_order(result)
        if letters:
            self.check_letters(result)

    def check_order(self, result: Result) -> None:
        for number, query in enumerate(self.queries):
            if query.ordered is not None:
                times = result.tables[f"Out{number}"].column(query.ordered).to_pylist()
                assert times == sorted(times), f"{self}\nnot in order: {times}"
            if query.by:
                table = result.tables[f"Out{number}"]
                places = [table.schema.names.index(name) for name in query.by]
                both = duck.rows_of(table), self.expected(number)
                ours, theirs = ([[row[at] for at in places] for row in rows] for rows in both)
                assert ours == theirs, f"{self}\nnot in the order of DuckDB: {ours}, but {theirs}"

    def check_letters(self, result: Result) -> None:
        """Each tuple that must become a letter, of the streams that are read, has become one."""
        read = {n.stream.name.lower() for plan in self.pipeline().queries for n in plan.walk() if isinstance(n, Scan)}
        found_letters = Counter(letter.stream for letter in result.letters)
        wanted = Counter({k: v for k, v in self.refused().items() if k.lower() in read})
        assert found_letters == wanted, f"{self}\nletters {found_letters}, expected {wanted}: {result.letters[:5]}"

    @property
    def forgets(self) -> bool:
        """Values come back after the horizon of their promise."""
        return any(s.horizon is not None and s.horizon < NEVER for s in self.streams)

    def run(self, **options: Any) -> Result:
        with watched(forgets=self.forgets) as watch:
            result = run(self.pipeline(), self.inputs(), batch=self.batch, files={s.name: self.files for s in self.streams}, **options)
            assert not watch.left_over(), f"{self}\n{watch.left_over()}"
        return result

    def host(self, buckets: int, chance: random.Random) -> Result:
        """The same on several buckets, without Spark."""
        with watched(forgets=self.forgets) as watch:
            files = {s.name: self.files for s in self.streams}
            result = run_hosted(self.pipeline(), self.inputs(), buckets=buckets, chance=chance, watch=watch, batch=self.batch, files=files)
            assert not watch.left_over(), f"{self}\n{watch.left_over()}"
        return result


NEVER = 1000 * 86_400 * SECOND
DRAWS = 40
"""Cases that are drawn until the planner takes one."""


def make_case(r: random.Random, family: str, late: bool | None = None) -> Case:
    """A case that the planner takes: a composition that it refuses is drawn again.

    So is a window join that would have to hear of closed values, for the groups or the join above it.
    """
    for _ in range(DRAWS):
        case = draw(r, family, late)
        refusable = family in COMPOSITIONS or (family == "punctuated" and case.algorithm == "window")
        if not refusable or case.refusal() is None:
            return case
    raise AssertionError(f"{family}: {DRAWS} draws are refused")


def draw(r: random.Random, family: str, late: bool | None = None) -> Case:
    closing = family in ("closed", "punctuated")
    base = None if r.random() < 0.1 else r.choice([0, -20_000_000, 1_700_000_000_000_000])
    late = r.random() < 0.3 if late is None else late
    names = list("ABC"[: r.choice([1, 2, 3])])
    made, families = [ALL[family](r, names)], [family]
    # A join of three does not take columns that are equal for one where they may look different: 0.0 and -0.0, or in type.
    floats = [] if " AS c" in made[0].ours else ["DOUBLE"]
    key = r.choice(["BIGINT", "STRING", "INT", "DECIMAL(12,0)", *floats]) if closing else None
    # What comes back after its horizon is a tuple like others where nobody joins or groups it; elsewhere nothing does.
    plain = family == "scan" and "GROUP BY" not in made[0].ours
    horizons = (None, None, 0, SECOND, 7 * SECOND) if plain else (None, None, NEVER)
    options: dict[str, Any] = dict(close=closing or None, late=late, base=base, horizons=horizons)
    mixed = family == "punctuated" and floats and key in ("INT", "BIGINT") and r.random() < 0.4  # then a side of the join is cast
    streams = tuple(
        make_stream(r, name, scale=10_000 if family == "dates" else 1, key=r.choice(["INT", "BIGINT"]) if mixed else key, **options)
        for name in names
    )
    if r.random() < 0.2 and not closing and family != "scan" and family not in COMPOSITIONS:
        other = r.choice([f for f in FAMILIES if f not in ("closed", "punctuated")])
        made.append(FAMILIES[other](r, names))
        families.append(other)
    cuts = r.choice([1, 2, 7, 1 << 16]), r.choice([1, 1, 2, 3, 7]), r.choice([0, 0, 1, 3])
    execution = r.choice(list(STRATEGIES)), r.choice(["out-of-order", "in-order"]), r.choice(["tuples", "arcs"])
    algorithm = r.choice(["auto", "auto", "window", "punctuated", "punctuated-window"])
    tree = r.choice(["auto", "written", "right-deep", "bushy", "m-join", "eddy"])
    return Case(streams, tuple(made), *cuts, *execution, algorithm, tree, r.choice([0, 0, 3, 8192]), tuple(families))
