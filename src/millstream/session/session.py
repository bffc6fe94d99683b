"""A session is what statements and handles add to, and what runs them."""

from __future__ import annotations

import dataclasses
import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from millstream.errors import (
    MillstreamError,
    NameProblem,
    PlanProblem,
    SetupProblem,
    SourceProblem,
    TypeProblem,
)
from millstream.io import ListSource, MemorySink, Source
from millstream.language import parse, parse_query
from millstream.language.statements import CreateView, Explain
from millstream.language.text import fill
from millstream.pipeline import Pipeline
from millstream.plan import nodes
from millstream.plan.bind import bind_answer
from millstream.plan.catalog import SinkEntry, Stream, Table
from millstream.runtime.control import Control
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_local, run_spark
from millstream.runtime.status import Status
from millstream.session.given import declared, given_sink, given_source, owner_of
from millstream.session.handle import StreamHandle, plain
from millstream.session.letters import LETTERS, LetterList
from millstream.session.query import Plan, Query
from millstream.session.rows import Rows, columns_of, need_text, quoted, taken, to_batch

if TYPE_CHECKING:
    import pandas as pd

RUNTIMES = ("spark", "local")
_QUERY = re.compile(r"(\s|--[^\n]*\n|/\*.*?\*/)*(\(|SELECT\b|FROM\b|WITH\b)", re.IGNORECASE | re.DOTALL)


class Session:
    """Streams, tables, sinks, views, settings and queries; `runtime` is "spark" or "local", `config` has settings of Spark's own."""

    def __init__(self, runtime: str = "spark", master: str | None = None, config: Mapping[str, str] | None = None) -> None:
        if runtime not in RUNTIMES:
            raise NameProblem.unknown("runtime", runtime, RUNTIMES)
        if runtime == "local" and (master or config):
            raise SetupProblem(
                "the local runtime has no master and no settings of Spark", hint="use ms.Session('spark')"
            )
        self.runtime, self.master, self.config = runtime, master, dict(config or {})
        self.pipeline = Pipeline()
        self._sinks: dict[str, tuple[SinkEntry | None, Any]] = {}
        """Sinks of the last run, each with the declaration that it was opened for."""

    def sql(self, text: str, /, **variables: object) -> StreamHandle | Plan | None:
        """Add the statements of a text, `${name}` filled from `variables`, or none where one is wrong.

        A text that is a query alone gives a handle on it; the plans of EXPLAINs come back as text.
        """
        if isinstance(text, os.PathLike):
            raise TypeProblem(
                "sql takes the text of a file, not its name", hint="write sql(path.read_text())"
            )
        need_text("SQL", text)
        filling = {name: str(value) for name, value in variables.items()}
        if _QUERY.match(text):
            return StreamHandle.of_query(self, plain(parse_query(fill(text, filling).filled)))
        plans, before = [], self.pipeline.copy()
        try:
            for statement in parse(text, variables=filling):
                if isinstance(statement, Explain):
                    plans.append(self.pipeline.explain(statement.form, [self.pipeline.explained(statement)]))
                else:
                    self.pipeline.add(statement)
        except MillstreamError:
            vars(self.pipeline).update(vars(before))
            raise
        return Plan("\n\n".join(plans)) if plans else None

    def stream(self, name: str) -> StreamHandle:
        """A handle on a declared stream, table or view."""
        self.pipeline.catalog.relations.need(need_text("the name of a stream", name))
        return StreamHandle(self, exp.Table(this=exp.to_identifier(name, quoted=True)))

    table = stream

    def set(self, name: str, value: str | int | bool) -> None:
        """`SET name = value`."""
        self.pipeline.settings.set(need_text("the name of a setting", name), value)

    def add_stream(
        self,
        name: str,
        rows: Rows | Source = (),
        *,
        schema: str | pa.Schema | None = None,
        time: str | None = None,
        slack: str | None = None,
        clauses: str = "",
        replace: bool = False,
    ) -> StreamHandle:
        """Declare a stream over tuples in memory, or over a ready source such as a `ListSource` that is fed while it runs.

        Tuples are dictionaries, sequences in column order, or a frame or table of any library that exports
        Arrow, such as pandas, Polars and DuckDB. `schema` is a list of columns in SQL or Arrow. A table,
        dictionaries and a `ListSource` bring their own. `time` names the timestamp column: in order, or out
        of order by at most `slack` ("2 seconds"). `clauses` holds further clauses of CREATE STREAM, such as
        "TIMESTAMP INTERNAL AS ts" or "PUNCTUATE ON (auction) WHEN closed". `replace` is that of CREATE OR REPLACE.
        """
        owner = owner_of("stream", name)
        source = given_source(owner, rows)
        given = taken(owner, rows) if source is None else getattr(source, "schema", [])
        columns = columns_of(owner, schema, given)
        if slack is not None and time is None:
            raise PlanProblem(f"{owner}: slack is about a timestamp", hint="name its column with time='...'")
        order = "ORDERED"
        if slack is not None:
            order = f"SLACK {need_text(f'{owner}: slack', slack, 'write a number and a unit: 30 seconds')}"
        need_text(f"{owner}: clauses", clauses, "write them one after the other: UNIQUE (k) CHECK (k > 0)")
        stamp = "" if time is None else f"TIMESTAMP BY {quoted(time)} {order}"
        latent = "TIMESTAMP LATENT" if time is None and "TIMESTAMP" not in clauses.upper() else ""
        text = (
            f"CREATE STREAM {quoted(name)} ({columns}) {stamp} {latent} {clauses} WITH (connector = 'list')"
        )
        stream = declared(owner, Stream, text)
        if source is None:
            source = ListSource(name, stream.read_schema, [to_batch(owner, stream.read_schema, given)])
        elif not (brought := getattr(source, "schema", stream.read_schema)).equals(stream.read_schema):
            shown = [", ".join(f"{f.name} {f.type}" for f in s) for s in (brought, stream.read_schema)]
            said = f"{owner}: its source brings ({shown[0]}), declared is ({shown[1]})"
            raise TypeProblem(said, hint="give the source the declared types")
        self.pipeline.declare(dataclasses.replace(stream, place=None, source=source), replace=replace)
        return self.stream(name)

    def add_table(
        self, name: str, rows: Rows, *, schema: str | pa.Schema | None = None, replace: bool = False
    ) -> StreamHandle:
        """Declare a static table. See `add_stream` for the arguments."""
        owner = owner_of("table", name)
        given = taken(owner, rows)
        columns = columns_of(owner, schema, given)
        table = declared(owner, Table, f"CREATE TABLE {quoted(name)} ({columns}) WITH (connector = 'list')")
        batch = to_batch(owner, table.columns, given)
        self.pipeline.declare(
            dataclasses.replace(table, options={}, place=None, rows=pa.Table.from_batches([batch])),
            replace=replace,
        )
        return self.stream(name)

    def add_sink(self, name: str, sink: Any = None, *, replace: bool = False) -> Any:
        """Declare a sink over a ready object, by default a new `MemorySink`, and return the object."""
        owner = owner_of("sink", name)
        sink = MemorySink(name) if sink is None else given_sink(owner, sink)
        entry = declared(owner, SinkEntry, f"CREATE SINK {quoted(name)} WITH (connector = 'memory')")
        self.pipeline.declare(dataclasses.replace(entry, options={}, place=None, sink=sink), replace=replace)
        return sink

    def to_arrow(self, sink: str | None = None) -> pa.Table:
        """Results of the last run in a sink in memory (in the only sink, when there is one)."""
        names = self.pipeline.catalog.sinks.names()
        if sink is None and len(names) != 1:
            hint = (
                f"say which with to_arrow(name): {', '.join(names)}"
                if names
                else "declare one with add_sink(name)"
            )
            raise NameProblem(f"there are {len(names)} sinks", hint=hint)
        sink = names[0] if sink is None else need_text("the name of a sink", sink)
        entry = self.pipeline.catalog.sinks.need(sink)
        opened, found = self._sinks.get(entry.name, (None, None))
        found = entry.sink if entry.sink is not None else found if opened is entry else None
        if not isinstance(found, MemorySink):
            hint = "run the session first" if found is None else "only sinks with connector = 'memory' are kept"
            raise NameProblem(f"sink {entry.name} holds nothing in memory", hint=hint)
        return found.to_arrow()

    def to_pandas(self, sink: str | None = None) -> pd.DataFrame:
        """`to_arrow` as a frame of pandas."""
        return self.to_arrow(sink).to_pandas()

    def __repr__(self) -> str:
        """`<Session local: stream Bid; sinks Out, Dear; 2 queries; execution.batch = 7>`."""
        relations = list(self.pipeline.catalog.relations)
        parts = [
            _listed("stream", [entry.name for entry in relations if isinstance(entry, Stream)]),
            _listed("table", [entry.name for entry in relations if isinstance(entry, Table)]),
            _listed("view", [entry.name for entry in relations if isinstance(entry, CreateView)]),
            _listed("sink", self.pipeline.catalog.sinks.names()),
        ]
        if count := len(self.pipeline.queries):
            parts.append("1 query" if count == 1 else f"{count} queries")
        parts.append(", ".join(f"{name} = {value}" for name, value in self.pipeline.settings.chosen.items()))
        return f"<Session {self.runtime}: {'; '.join(filter(None, parts)) or 'empty'}>"

    def explain(self, form: str = "logical") -> Plan:
        """The plans of all queries so far as `logical`, `graph` or `spark`."""
        return Plan(self.pipeline.explain(form))

    def prepare(self, checkpoint: str | None = None) -> Launch:
        """Open and check everything that the queries read and write.

        Ready sinks in memory drop what they hold, unless the run goes on from a checkpoint.
        """
        for query in self.pipeline.queries if checkpoint is None else ():
            if isinstance(query.sink.sink, MemorySink):
                query.sink.sink.clear()
        launch = self._launched(self.pipeline, checkpoint)
        self._sinks.update(
            {sink.name: (self.pipeline.catalog.sinks.get(sink.name), sink) for sink in launch.sinks}
        )
        return launch

    def _launched(
        self, pipeline: Pipeline, checkpoint: str | None, *, keeps_letters: bool = False
    ) -> Launch:
        if checkpoint is not None and self.runtime == "local":
            raise SetupProblem("the local runtime has no checkpoint", hint="use ms.Session('spark')")
        for name in [] if self.runtime == "local" else _fed(pipeline):
            said = f"stream {name} is fed while it runs, which processes of Spark do not see"
            hint = "use ms.Session('local'), or end the source before; files and sockets can be fed on Spark"
            raise SourceProblem(said, hint=hint)
        place = None if checkpoint is None else os.fspath(checkpoint)
        return Launch.prepare(pipeline, place, keeps_letters=keeps_letters)

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

    def start(self, query: exp.Expr, checkpoint: str | None = None, limit: int | None = None) -> Query:
        """Run one query in the background, with its answer in memory. See `MemorySink` for `limit`."""
        sink = MemorySink("answer", limit)
        insert = bind_answer(query, SinkEntry("answer", {}, None, sink), self.pipeline.catalog)
        alone = Pipeline(self.pipeline.catalog, self.pipeline.settings.copy(), [insert])
        in_memory = not alone.settings.get("dead_letters.path")
        launch = self._launched(alone, checkpoint, keeps_letters=in_memory)
        ending = all(source.bounded for source in launch.sources.values())
        letters = LetterList(None if ending else LETTERS)
        if in_memory:
            launch.letters = letters  # type: ignore[assignment]

        def run(stop: threading.Event, on_status: Callable[[Status], None], control: Control) -> Status:
            return self.run(launch=launch, stop=stop, on_status=on_status, control=control)

        return Query(launch, letters, run)


def _fed(pipeline: Pipeline) -> list[str]:
    """Names of the streams whose source is a list that has not ended."""
    read = [
        node.stream for query in pipeline.queries for node in query.walk() if isinstance(node, nodes.Scan)
    ]
    return [
        stream.name for stream in read if isinstance(stream.source, ListSource) and not stream.source.bounded
    ]


def _listed(kind: str, names: list[str]) -> str:
    """`streams A, B`; of many names the first."""
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return f"{kind}{'s' * (len(names) > 1)} {', '.join(names[:6])}{more}" if names else ""
