"""The way of the data in one place: text, statements, plans, graph, run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from millstream.core.rates import Rates
from millstream.core.types import is_hidden
from millstream.errors import MillstreamError, NameProblem, Place, PlanProblem, UnsupportedProblem, warn
from millstream.graph.build import GraphBuilder, build_graph
from millstream.graph.execution import Execution
from millstream.graph.explain import explain_graph, explain_spark
from millstream.graph.graph import Graph
from millstream.graph.joins import Joins
from millstream.io import MemorySink, open_sink, open_table, read_table, table_options, without_files
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
from millstream.operators.join import WINDOW
from millstream.plan import nodes
from millstream.plan.bind import bind_answer, bind_insert, bind_view
from millstream.plan.catalog import Catalog, SinkEntry, Stream, Table
from millstream.plan.check import check
from millstream.plan.explain import explain_logical
from millstream.plan.rules import AS_IT_IS, AS_WRITTEN, IMPLIED, Choices, rewrite
from millstream.plan.static import rows_of
from millstream.settings import Settings

FORMS = ("logical", "graph", "spark")


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
        except RecursionError:
            hint = "write the query with fewer conditions, members or views behind one another"
            raise PlanProblem("the query is nested too deeply", place=statement.place, hint=hint) from None

    def _add(self, statement: Statement) -> None:
        match statement:
            case CreateStream():
                self.declare(Stream.of(statement), replace=statement.replace)
            case CreateTable():
                table_options(statement.name, statement.options, statement.place)
                self.declare(Table.of(statement), replace=statement.replace)
            case CreateSink():
                open_sink(statement.name, statement.options, statement.place)  # refuses wrong options
                self.declare(SinkEntry.of(statement), replace=statement.replace)
            case CreateView():
                bind_view(statement, self.catalog)  # wrong views are found where they are written
                self.declare(statement, replace=statement.replace)
            case Insert():
                bound = bind_insert(statement.sink, statement.query, self.catalog, statement.named)
                self.insert(bound, statement.place)
            case DropQuery():
                self.drop(statement.sink)
            case Explain():
                self.explains.append(statement)
            case SetOption():
                self.settings.set(statement.name, statement.value, statement.place)
            case CreateAggregate():
                raise UnsupportedProblem(f"CREATE AGGREGATE is not supported yet (`{statement.name}`)")

    def declare(self, entry: Stream | Table | CreateView | SinkEntry, *, replace: bool = False) -> None:
        """Add a name, or replace it. Nothing changes where a view or a query would no longer fit."""
        names = self.catalog.names_of(entry)
        if not replace or names.get(entry.name) is None:
            names.add(entry.name, entry, entry.place)
            return
        if isinstance(entry, CreateView) and entry.name.lower() in self.catalog.reads(entry.query):
            raise PlanProblem(f"view `{entry.name}` would read itself", hint="give it another name")
        catalog = self.catalog.copy()
        catalog.names_of(entry).replace(entry.name, entry)
        queries, unfit = self._bound_again(catalog)
        if unfit:
            said = f"`{entry.name}` is not replaced, because {' and '.join(unfit)} would no longer fit"
            reason = next(iter(unfit.values()))
            raise PlanProblem(
                f"{said}: {reason.message}", hint="replace such views first, end such queries with DROP QUERY"
            )
        names.replace(entry.name, entry)
        self.queries = queries

    def _bound_again(self, catalog: Catalog) -> tuple[list[nodes.Insert], dict[str, MillstreamError]]:
        """The queries over another catalog, and the problem of each view and query that does not fit it."""
        queries: list[nodes.Insert] = []
        unfit: dict[str, MillstreamError] = {}
        for view in catalog.relations:
            if isinstance(view, CreateView):
                try:
                    bind_view(view, catalog)
                except MillstreamError as problem:
                    unfit[f"view `{view.name}`"] = problem
        for query in self.queries:
            assert query.written is not None
            try:
                queries.append(bind_insert(query.sink.name, query.written, catalog))
                self.plans(queries[-1:])
                _check_columns(queries[-1], queries[:-1])
            except MillstreamError as problem:
                unfit[f"the query into `{query.sink.name}`"] = problem
        return queries, unfit

    def insert(self, bound: nodes.Insert, place: Place | None = None) -> None:
        """Add a query to run, unless it is there; a wrong one is found here."""
        if self.has(bound, place):
            return
        self.plans([bound])
        _check_columns(bound, self.queries)
        self.queries.append(bound)

    def has(self, bound: nodes.Insert, place: Place | None = None) -> bool:
        """True, with a warning, when the same query writes into the same sink. Two would double each result.

        All queries have the settings of the session, so two queries never differ in them.
        """
        for query in self.queries:
            if query.sink.name == bound.sink.name and query.input == bound.input:
                where = "" if place is None else f"{place}: "
                sink = bound.sink.name
                warn(f"{where}the same query writes into sink `{sink}` already, this INSERT changes nothing")
                return True
        return False

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
        bound = self.queries if bound is None else bound
        windowed = self.settings.get("join.algorithm") == WINDOW
        choices = Choices(self.in_order, self.settings.get("join.tree"), _rates, windowed)
        try:
            plans = [check(plan) for plan in rewrite(bound, choices)]
        except PlanProblem:
            levels = tuple(_level(query, choices) for query in bound)
            plans = [check(plan) for plan in rewrite(bound, replace(choices, levels=levels))]
        return [plan for plan in plans if isinstance(plan, nodes.Insert)]

    def graph(self) -> Graph:
        """One graph for all queries, equal parts shared."""
        return self.builder().graph

    def builder(self, read: Callable[[Table], pa.Table] | None = None) -> GraphBuilder:
        """With the graph of all queries, ready for more."""
        if not self.queries:
            raise PlanProblem(
                "there is no query to run", hint="write INSERT INTO sink SELECT ... FROM stream"
            )
        builder = GraphBuilder(
            lambda node: rows_of(node, read or _read), self.in_order, Joins.of(self.settings)
        )
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
                return bind_insert(query.sink, query.query, self.catalog, query.named)
            return bind_answer(query, SinkEntry("answer", {}, None, MemorySink("answer")), self.catalog)
        except MillstreamError as problem:
            raise problem.at(statement.place) from None

    def explain(self, form: str = "logical", queries: Sequence[nodes.Insert] | None = None) -> str:
        """One form of the plans of these queries (all of them, by default) as text; nothing is opened or read."""
        plans = self.plans(queries)
        if form_of(form) == "logical":
            return "\n".join(explain_logical(plan) for plan in plans)
        return explained(form, sketch(plans, in_order=self.in_order, joins=Joins.of(self.settings)), self.settings)


def _check_columns(bound: nodes.Insert, others: Sequence[nodes.Insert]) -> None:
    """Refuse a query whose columns differ from those that others write into its sink."""
    for query in others:
        if query.sink.name == bound.sink.name and _columns(query) != _columns(bound):
            hint = f"write DROP QUERY {bound.sink.name} before, or declare a sink for each"
            raise PlanProblem(
                f"another query writes other columns into sink `{bound.sink.name}`", hint=hint
            )


def _columns(query: nodes.Insert) -> list[tuple[str, pa.DataType]]:
    return [(f.name, f.type) for f in query.schema if not is_hidden(f.name)]


def form_of(form: str) -> str:
    """The form of a plan in lower case, if there is one of that name."""
    if not isinstance(form, str) or form.lower() not in FORMS:
        raise NameProblem.unknown("form of a plan", str(form), FORMS)
    return form.lower()


def explained(form: str, graph: Graph, settings: Settings) -> str:
    """A graph as text."""
    return (
        explain_spark(graph)
        if form_of(form) == "spark"
        else explain_graph(graph, Execution.of(settings), _rates)
    )


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


def check_table(table: Table) -> pa.Table:
    """Refuse wrong options of a table, without a look at its files; no rows."""
    if table.rows is None:
        open_table(table.name, table.columns, without_files(table.options), table.place)
    return table.columns.empty_table()


def _read(table: Table) -> pa.Table:
    if table.rows is not None:
        rows: Any = table.rows
        return rows
    return read_table(table.name, table.columns, table.options, table.place)
