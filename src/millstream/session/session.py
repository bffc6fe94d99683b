"""A session is what statements and handles add to, and what runs them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from millstream.errors import NameProblem
from millstream.io import ListSource, MemorySink
from millstream.language import parse, parse_query
from millstream.language.statements import CreateStream, Explain
from millstream.language.text import fill
from millstream.language.types import sql_type
from millstream.pipeline import Pipeline
from millstream.plan import nodes
from millstream.plan.bind import bind_query
from millstream.plan.catalog import SinkEntry, Stream, Table
from millstream.runtime.control import Control
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_local, run_spark
from millstream.runtime.status import Status
from millstream.session.handle import StreamHandle, plain
from millstream.session.letters import LetterList
from millstream.session.query import Plan, Query
from millstream.session.rows import Rows, declared, to_batch

RUNTIMES = ("spark", "local")
_QUERY = re.compile(r"(\s|--[^\n]*\n|/\*.*?\*/)*(\(|SELECT\b|FROM\b)", re.IGNORECASE | re.DOTALL)


class Session:
    """Streams, tables, sinks, views, settings and queries; `runtime` is "spark" or "local", `config` has settings of Spark's own."""

    def __init__(self, runtime: str = "spark", master: str | None = None, config: Mapping[str, str] | None = None) -> None:
        if runtime not in RUNTIMES:
            raise NameProblem.unknown("runtime", runtime, RUNTIMES)
        self.runtime, self.master, self.config = runtime, master, dict(config or {})
        self.pipeline = Pipeline()
        self._sinks: dict[str, Any] = {}

    def sql(self, text: str, /, **variables: object) -> StreamHandle | Plan | None:
        """Add the statements of a text, `${name}` filled from `variables`.

        A text that is a query alone gives a handle on it; the plans of EXPLAINs come back as text.
        """
        filling = {name: str(value) for name, value in variables.items()}
        if _QUERY.match(text):
            return StreamHandle.of_query(self, plain(parse_query(fill(text, filling).filled)))
        plans = []
        for statement in parse(text, variables=filling):
            if isinstance(statement, Explain):
                plans.append(self.pipeline.explain(statement.form, [self.pipeline.explained(statement)]))
            else:
                self.pipeline.add(statement)
        return Plan("\n\n".join(plans)) if plans else None

    def stream(self, name: str) -> StreamHandle:
        """A handle on a declared stream, table or view."""
        self.pipeline.catalog.relations.need(name)
        return StreamHandle(self, exp.Table(this=exp.to_identifier(name, quoted=True)))

    table = stream

    def set(self, name: str, value: str | int | bool) -> None:
        """`SET name = value`."""
        self.pipeline.settings.set(name, value)

    def add_stream(
        self,
        name: str,
        rows: Rows | Any = (),
        *,
        schema: str | pa.Schema | None = None,
        time: str | None = None,
        slack: str | None = None,
        clauses: str = "",
    ) -> StreamHandle:
        """Declare a stream over tuples in memory, or over a ready source such as a `ListSource` that is fed while it runs.

        `schema` is a list of columns in SQL or Arrow; a table or a source brings its own. `time` names the timestamp column: in
        order, or out of order by at most `slack` ("2 seconds"). `clauses` may hold what else CREATE STREAM knows, such as
        "TIMESTAMP INTERNAL AS ts" or "PUNCTUATE ON (auction) WHEN closed".
        """
        source = rows if hasattr(rows, "units") else None
        columns = schema if schema is not None else getattr(rows, "schema", None)
        if columns is None:
            columns = pa.Table.from_pylist([dict(row) for row in rows]).schema
        if isinstance(columns, pa.Schema):
            columns = ", ".join(f"`{f.name}` {sql_type(f.type).sql('spark')}" for f in declared(columns))
        stamp = "" if time is None else f"TIMESTAMP BY `{time}` " + ("ORDERED" if slack is None else f"SLACK {slack}")
        latent = "TIMESTAMP LATENT" if time is None and "TIMESTAMP" not in clauses.upper() else ""
        text = f"CREATE STREAM `{name}` ({columns}) {stamp} {latent} {clauses} WITH (connector = 'list')"
        (statement,) = parse(text)
        assert isinstance(statement, CreateStream)
        stream = replace(Stream.of(statement), place=None)
        if source is None:
            source = ListSource(name, stream.read_schema, [to_batch(f"stream {name}", stream.read_schema, rows)])
        self.pipeline.catalog.relations.add(name, replace(stream, source=source))
        return self.stream(name)

    def add_table(self, name: str, rows: pa.Table) -> StreamHandle:
        """Declare a static table over Arrow data."""
        schema = declared(rows.schema)
        batch = to_batch(f"table {name}", schema, rows)
        self.pipeline.catalog.relations.add(name, Table(name, schema, {}, None, pa.Table.from_batches([batch])))
        return self.stream(name)

    def add_sink(self, name: str, sink: Any = None) -> Any:
        """Declare a sink over a ready object, by default a new `MemorySink`; returns it."""
        sink = MemorySink(name) if sink is None else sink
        self.pipeline.catalog.sinks.add(name, SinkEntry(name, {}, None, sink))
        return sink

    def to_arrow(self, sink: str) -> pa.Table:
        """What a memory sink got in the last run."""
        entry = self.pipeline.catalog.sinks.need(sink)
        found = entry.sink if entry.sink is not None else self._sinks.get(entry.name)
        if not isinstance(found, MemorySink):
            hint = "run the session first" if found is None else "only sinks with connector = 'memory' are kept"
            raise NameProblem(f"sink {entry.name} holds nothing in memory", hint=hint)
        return found.to_arrow()

    def explain(self, form: str = "logical") -> Plan:
        """The plans of all queries so far as `logical`, `graph` or `spark`."""
        return Plan(self.pipeline.explain(form))

    def prepare(self, checkpoint: str | None = None) -> Launch:
        """Open and check everything that the queries read and write."""
        launch = Launch.prepare(self.pipeline, checkpoint)
        self._sinks.update({sink.name: sink for sink in launch.sinks})
        return launch

    def run(
        self,
        *,
        launch: Launch | None = None,
        checkpoint: str | None = None,
        stop: threading.Event | None = None,
        on_status: Callable[[Status], None] | None = None,
        control: Control | None = None,
    ) -> Status:
        """Run every INSERT until its streams have ended, or until `stop` is set; `control` brings changes meanwhile."""
        launch = launch or self.prepare(checkpoint)
        if self.runtime == "local":
            return run_local(launch, stop=stop, on_status=on_status, control=control)
        return run_spark(launch, master=self.master, config=self.config, stop=stop, on_status=on_status, control=control)

    def start(self, query: exp.Expr, checkpoint: str | None = None) -> Query:
        """Run one query in the background, with its answer in memory."""
        sink = MemorySink("answer")
        insert = nodes.Insert(bind_query(query, self.pipeline.catalog), SinkEntry("answer", {}, None, sink))
        alone = Pipeline(self.pipeline.catalog, self.pipeline.settings, [insert])
        launch = Launch.prepare(alone, checkpoint)
        letters = LetterList()
        if not self.pipeline.settings.get("dead_letters.path"):
            launch.letters = letters  # type: ignore[assignment]

        def run(stop: threading.Event, on_status: Callable[[Status], None], control: Control) -> Status:
            return self.run(launch=launch, stop=stop, on_status=on_status, control=control)

        return Query(launch, letters, run)
