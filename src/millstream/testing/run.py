"""Run a session over lists instead of its sources, and get what its sinks would have got."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

import pyarrow as pa

from millstream.core.clock import Clock
from millstream.core.letters import DeadLetter
from millstream.errors import NameProblem, SetupProblem, TypeProblem
from millstream.io import ListSource, MemorySink
from millstream.pipeline import Pipeline
from millstream.plan import nodes
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_local, run_spark
from millstream.runtime.status import Status
from millstream.runtime.visible import visible
from millstream.session.letters import LetterList
from millstream.session.rows import Rows, kind_of, to_batch
from millstream.session.session import RUNTIMES

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


@dataclass
class Result(Sequence[dict[str, Any]]):
    """What a run gave: tables by sink name, dead letters, and the final status.

    With one sink it is the list of that sink's tuples, as dictionaries: `len(result)`, `result[0]["n"]`, `for row in result`,
    `result == [{...}]`. With several, `result.rows("Out")` gives those of one.
    """

    tables: dict[str, pa.Table]
    letters: list[DeadLetter] = field(default_factory=list)
    status: Status = field(default_factory=Status)

    def rows(self, sink: str | None = None) -> list[dict[str, Any]]:
        """The tuples of one sink (of the only one, when there is one), as dictionaries."""
        return self.to_arrow(sink).to_pylist()  # type: ignore[no-any-return]

    def to_arrow(self, sink: str | None = None) -> pa.Table:
        """The tuples of one sink (of the only one, when there is one), as an Arrow table."""
        if sink is None:
            if len(self.tables) != 1:
                raise NameProblem(f"there are {len(self.tables)} sinks", hint="say which with rows(name): " + ", ".join(self.tables))
            sink = next(iter(self.tables))
        found = next((table for name, table in self.tables.items() if name.lower() == sink.lower()), None)
        if found is None:
            raise NameProblem.unknown("sink", sink, self.tables)
        return found

    def to_pandas(self, sink: str | None = None) -> pd.DataFrame:
        """`to_arrow` as a frame of pandas."""
        return self.to_arrow(sink).to_pandas()

    @cached_property
    def _only(self) -> list[dict[str, Any]]:
        return self.rows()

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self._only[index]

    def __len__(self) -> int:
        return len(self._only)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Result):
            return self.tables == other.tables and self.letters == other.letters
        return isinstance(other, (list, tuple)) and self._only == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if len(self.tables) == 1:
            return repr(self._only)
        return f"Result({', '.join(f'{name}: {table.num_rows} tuples' for name, table in self.tables.items())})"


def run(
    session: Any,
    inputs: Mapping[str, Rows],
    *,
    runtime: str | None = None,
    batch: int | None = None,
    clock: Clock | None = None,
    buckets: int | None = None,
    files: Mapping[str, int] | None = None,
) -> Result:
    """Feed each stream its list (a missing one is empty), run to the end, and collect every sink.

    >>> rows = ms.testing.run(session, {"Bid": [{"auction": 1, "price": 10.0, "ts": "2026-01-01 12:00:05"}]})
    >>> assert rows[0]["bids"] == 1

    Tuples are those of `Session.add_stream`. A `ManualClock` as `clock` decides what time it is for streams
    that are stamped on entry (in one process only).
    `batch` cuts the lists into blocks of that many tuples, `files` says into how many units a stream's list is cut:
    neither changes an answer.
    """
    pipeline = pipeline_of(session)
    runtime = runtime or getattr(session, "runtime", "local")
    if runtime not in RUNTIMES:
        raise NameProblem.unknown("runtime", str(runtime), RUNTIMES)
    if clock is not None and runtime != "local":
        raise SetupProblem("a clock moved by hand works in one process only", hint="add runtime='local'")
    streams = [entry.name for entry in pipeline.catalog.relations if isinstance(entry, Stream)]
    given, units = _by_stream("inputs", inputs, streams), _by_stream("files", files or {}, streams)
    letters = LetterList()

    def source(stream: Stream) -> ListSource:
        pieces = _units(stream, given.get(stream.name, []), units.get(stream.name, 1))
        return ListSource(stream.name, stream.read_schema, pieces)

    copy, sinks, _ = stand_ins(pipeline, source)
    if batch is not None:
        copy.settings.set("execution.batch", batch)
    if buckets is not None:
        copy.settings.set("execution.buckets", buckets)
    launch = Launch.prepare(copy)
    launch.letters = letters  # type: ignore[assignment]
    if runtime == "local":
        status = run_local(launch, clock=clock)
    else:
        status = run_spark(
            launch, master=getattr(session, "master", None), config=getattr(session, "config", None)
        )
    return Result(collected(copy, sinks), letters.letters, status)


def pipeline_of(session: Any) -> Pipeline:
    """The pipeline of a session, or the one that is given."""
    pipeline = getattr(session, "pipeline", session)
    if not isinstance(pipeline, Pipeline):
        raise TypeProblem(
            f"a session is needed, not {kind_of(session)}", hint="give the ms.Session that holds the queries"
        )
    return pipeline


def stand_ins(pipeline: Pipeline, source: Callable[[Stream], ListSource]) -> tuple[Pipeline, dict[str, MemorySink], dict[str, Stream]]:
    """The same queries over lists instead of their sources, into memory instead of their sinks."""
    sinks: dict[str, MemorySink] = {}
    streams = {e.name: replace(e, source=source(e)) for e in pipeline.catalog.relations if isinstance(e, Stream)}
    queries = []
    for query in pipeline.queries:
        sink = sinks.setdefault(query.sink.name, MemorySink(query.sink.name, limit=0))
        queries.append(nodes.Insert(_with_streams(query.input, streams), SinkEntry(query.sink.name, {}, None, sink)))
    catalog = pipeline.catalog.copy()
    for name, stream in streams.items():
        catalog.relations.replace(name, stream)
    return Pipeline(catalog, pipeline.settings.copy(), queries), sinks, streams


def collected(pipeline: Pipeline, sinks: Mapping[str, MemorySink]) -> dict[str, pa.Table]:
    """What each sink got; one that got nothing still has its columns."""
    tables = {}
    for query in pipeline.queries:
        table = sinks[query.sink.name].to_arrow()
        tables[query.sink.name] = table if table.schema.names else visible(query.schema).empty_table()
    return tables


def _by_stream(what: str, given: Mapping[str, T], streams: Sequence[str]) -> dict[str, T]:
    """What is given for each stream, under the name with which the stream is declared."""
    if not isinstance(given, Mapping):
        raise TypeProblem(
            f"{what} is a dictionary by stream, not {kind_of(given)}", hint="write {'Bid': ...}"
        )
    found: dict[str, T] = {}
    for name, value in given.items():
        declared = next((stream for stream in streams if stream.lower() == str(name).lower()), None)
        if declared is None:
            raise NameProblem.unknown("stream", str(name), streams)
        if declared in found:
            raise NameProblem(
                f"{what} names stream `{declared}` twice", hint="leave one out; case makes no difference"
            )
        found[declared] = value
    return found


def _units(stream: Stream, rows: Rows, count: int) -> list[pa.RecordBatch]:
    batch = to_batch(f"stream {stream.name}", stream.read_schema, rows)
    size = -(-batch.num_rows // max(count, 1)) or 1
    return [batch.slice(at, size) for at in range(0, batch.num_rows, size)]


def _with_streams(node: nodes.Node, streams: Mapping[str, Stream]) -> nodes.Node:
    if isinstance(node, nodes.Scan):
        return nodes.Scan(streams[node.stream.name])
    inputs = [_with_streams(child, streams) for child in node.inputs]
    return node.with_inputs(inputs) if inputs else node
