"""The way of the data in one place: text, statements, plans, graph, run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from millstream.core.rates import Rates
from millstream.errors import MillstreamError, NameProblem, PlanProblem, UnsupportedProblem
from millstream.graph.build import GraphBuilder, build_graph
from millstream.graph.execution import Execution
from millstream.graph.explain import explain_graph, explain_spark
from millstream.graph.graph import Graph
from millstream.graph.joins import Joins
from millstream.io import read_table
from millstream.io.rates import rates_of
from millstream.language import parse
from millstream.language.statements import (
    CreateAggregate,
    CreateSink,
    CreateStream,
    CreateTable,
    CreateView,
    DropQuery,
    Explain,
    Insert,
    SetOption,
    Statement,
)
from millstream.plan import nodes
from millstream.plan.bind import bind_insert, bind_query
from millstream.plan.catalog import Catalog, SinkEntry, Stream, Table
from millstream.plan.check import check
from millstream.plan.explain import explain_logical
from millstream.plan.rules import AS_IT_IS, AS_WRITTEN, IMPLIED, Choices, rewrite
from millstream.plan.static import rows_of
from millstream.settings import Settings


@dataclass
class Pipeline:
    """What a session has been told so far: declarations, settings, and the bound queries to run."""

    catalog: Catalog = field(default_factory=Catalog)
    settings: Settings = field(default_factory=Settings)
    queries: list[nodes.Insert] = field(default_factory=list)
    explains: list[Explain] = field(default_factory=list)

    def add_text(self, text: str, *, variables: Mapping[str, str] | None = None, file: str | None = None) -> None:
        for statement in parse(text, variables=variables, file=file):
            self.add(statement)

    def add(self, statement: Statement) -> None:
        try:
            self._add(statement)
        except MillstreamError as problem:
            raise problem.at(statement.place) from None

    def _add(self, statement: Statement) -> None:
        match statement:
            case CreateStream():
                self.catalog.relations.add(statement.name, Stream.of(statement), statement.place)
            case CreateTable():
                self.catalog.relations.add(statement.name, Table.of(statement), statement.place)
            case CreateSink():
                self.catalog.sinks.add(statement.name, SinkEntry.of(statement), statement.place)
            case CreateView():
                bind_query(statement.query, self.catalog)  # wrong views are found where they are written
                self.catalog.relations.add(statement.name, statement, statement.place)
            case Insert():
                self.insert(bind_insert(statement.sink, statement.query, self.catalog, statement.place))
            case DropQuery():
                self.drop(statement.sink)
            case Explain():
                self.explains.append(statement)
            case SetOption():
                self.settings.set(statement.name, statement.value, statement.place)
            case CreateAggregate():
                raise UnsupportedProblem(f"CREATE AGGREGATE is not supported yet (`{statement.name}`)")

    def insert(self, bound: nodes.Insert) -> None:
        """One more query to run; a wrong one is found here."""
        self.plans([bound])
        self.queries.append(bound)

    def drop(self, sink: str) -> None:
        """No more of the queries that write into a sink."""
        left = [query for query in self.queries if query.sink.name.lower() != sink.lower()]
        if len(left) == len(self.queries):
            raise NameProblem.unknown("query into a sink", sink, sorted({query.sink.name for query in self.queries}))
        self.queries = left

    def copy(self) -> Pipeline:
        """For changes that are not this pipeline's."""
        return Pipeline(self.catalog.copy(), self.settings.copy(), list(self.queries), list(self.explains))

    def plans(self, bound: Sequence[nodes.Insert] | None = None) -> list[nodes.Insert]:
        """Bound queries (all of them, by default) after all rules, checked."""
        bound, choices = self.queries if bound is None else bound, Choices(self.in_order, self.settings.get("join.tree"), _rates)
        try:
            plans = [check(plan) for plan in rewrite(bound, choices)]
        except PlanProblem:
            levels = tuple(_level(query, choices) for query in bound)
            plans = [check(plan) for plan in rewrite(bound, replace(choices, levels=levels))]
        return [plan for plan in plans if isinstance(plan, nodes.Insert)]

    def graph(self) -> Graph:
        """One graph for all queries, equal parts shared."""
        return self.builder().graph

    def builder(self) -> GraphBuilder:
        """With the graph of all queries, ready for more."""
        if not self.queries:
            raise PlanProblem("there is no query to run", hint="write INSERT INTO sink SELECT ... FROM stream")
        builder = GraphBuilder(lambda node: rows_of(node, _read), self.in_order, Joins.of(self.settings))
        builder.insert(self.plans())
        return builder

    @property
    def in_order(self) -> bool:
        return bool(self.settings.get("execution.order") == "in-order")

    def sketched(self, queries: Sequence[nodes.Insert] | None = None) -> Graph:
        """The graph of these queries (all of them, by default), to look at."""
        return sketch(self.plans(queries), in_order=self.in_order, joins=Joins.of(self.settings))

    def explained(self, statement: Explain) -> nodes.Insert:
        """The bound query that an EXPLAIN statement asks about; a query without INSERT gets a sink of its own."""
        try:
            query = statement.query
            if isinstance(query, Insert):
                return bind_insert(query.sink, query.query, self.catalog, query.place)
            return nodes.Insert(bind_query(query, self.catalog), SinkEntry("answer", {}))
        except MillstreamError as problem:
            raise problem.at(statement.place) from None

    def explain(self, form: str = "logical", queries: Sequence[nodes.Insert] | None = None) -> str:
        """One form of the plans of these queries (all of them, by default) as text; nothing is opened or read."""
        plans = self.plans(queries)
        if form == "logical":
            return "\n".join(explain_logical(plan) for plan in plans)
        return explained(form, sketch(plans, in_order=self.in_order, joins=Joins.of(self.settings)), self.settings)


def explained(form: str, graph: Graph, settings: Settings) -> str:
    """A graph as text."""
    return explain_spark(graph) if form == "spark" else explain_graph(graph, Execution.of(settings), _rates)


def _level(query: nodes.Insert, choices: Choices) -> int:
    """How far to go so that nothing stays for ever; to the end where that does not help, which then tells what is wrong."""
    for level in (AS_IT_IS, IMPLIED):
        try:
            check(*rewrite([query], replace(choices, levels=(level,))))
            return level
        except PlanProblem:
            continue
    return AS_WRITTEN


def _rates(stream: Stream) -> Rates | None:
    return rates_of(stream.options, closes=bool(stream.closed_columns), unique=bool(stream.unique))


def sketch(queries: Sequence[nodes.Insert], *, in_order: bool = False, joins: Joins = Joins()) -> Graph:  # noqa: B008 (it is frozen)
    """The graph of some queries with empty tables in place of the static ones: enough to look at, not to run."""
    return build_graph(queries, lambda node: node.schema.empty_table(), in_order=in_order, joins=joins)


def _read(table: Table) -> pa.Table:
    if table.rows is not None:
        rows: Any = table.rows
        return rows
    return read_table(table.name, table.columns, table.options, table.place)
