"""Where streams come from and where results go: sources, sinks, tables and dead letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Generic, TypeVar

import pyarrow as pa

from millstream.errors import NameProblem, Place, SinkProblem, SourceProblem
from millstream.io.console import ConsoleSink
from millstream.io.contract import DeadLetter, Part, Position, Reading, Sink, Source, Unit, Writer
from millstream.io.file_sink import FileSink
from millstream.io.files import FileSource
from millstream.io.generator import GeneratorSource
from millstream.io.letters import LetterBox
from millstream.io.lists import ListSource
from millstream.io.memory import MemorySink
from millstream.io.options import Options, Secret
from millstream.io.rate import RateSource
from millstream.io.readers import file_reader, line_reader, without_files
from millstream.io.sockets import SocketSource
from millstream.io.tables import open_table, read_table, table_options

__all__ = [
    "ConsoleSink", "DeadLetter", "FileSink", "FileSource", "GeneratorSource", "LetterBox", "ListSource", "MemorySink", "Part", "Position",
    "RateSource", "Reading", "Secret", "Sink", "SocketSource", "Source", "Unit", "Writer", "open_sink", "open_source",
    "open_table", "read_table", "secrets_of", "table_options", "without_files",
]  # fmt: skip


T = TypeVar("T")


@dataclass(frozen=True)
class Connector(Generic[T]):
    """A kind of source or sink: how its options open one, and which of them are secret.

    A secret option reaches no file of a checkpoint and no message, and may change between the lives of a run.
    """

    open: Callable[[str, pa.Schema, Options], T]
    secret: frozenset[str] = frozenset()


def _file_source(name: str, schema: pa.Schema, o: Options) -> Source:
    path = o.path()
    watch = o.flag("watch", False)
    letters = o.choice("on_bad_file", ("stop", "letter"), "stop") == "letter"
    return FileSource(name, path, file_reader(name, schema, o, path), watch, letters)


def _socket(name: str, schema: pa.Schema, o: Options) -> Source:
    host, port = o.text("host", "127.0.0.1") or "127.0.0.1", o.integer("port", None, 1, 65535)
    if port is None:
        o.required("port")
    return SocketSource(name, host, port or 0, line_reader(name, schema, o))


SOURCES: dict[str, Connector[Source]] = {
    "file": Connector(_file_source),
    "socket": Connector(_socket),
    "rate": Connector(RateSource.of),
    "generator": Connector(GeneratorSource.of),
}
SINKS: dict[str, Connector[Sink]] = {
    "file": Connector(lambda name, _, o: FileSink.of(name, o)),
    "console": Connector(lambda name, _, o: ConsoleSink(name, o.integer("limit", None))),
    "memory": Connector(lambda name, _, o: MemorySink(name, o.integer("limit", None))),
}


def secrets_of(options: Mapping[str, object]) -> frozenset[str]:
    """The options that are secret, of a stream or a sink with these options."""
    name = str(options.get("connector", "file")).lower()
    return frozenset().union(*(known[name].secret for known in (SOURCES, SINKS) if name in known))


def open_source(name: str, schema: pa.Schema, options: Mapping[str, str], place: Place | None = None) -> Source:
    """The source that CREATE STREAM describes. `schema`: the declared columns, without one that is stamped on entry."""
    o = Options.of(f"stream {name}", options, place, SourceProblem)
    source = _connector(o, SOURCES).open(name, schema, o)
    o.done()
    return source


def open_sink(name: str, options: Mapping[str, str], place: Place | None = None) -> Sink:
    """The sink that CREATE SINK describes."""
    o = Options.of(f"sink {name}", options, place, SinkProblem)
    sink = _connector(o, SINKS).open(name, pa.schema([]), o)
    o.done()
    return sink


def _connector(options: Options, known: Mapping[str, Connector[T]]) -> Connector[T]:
    found = options.choice("connector", known, "file" if options.has("path") else None)
    if found is None:
        hint = f"write WITH (connector = '{next(iter(known))}', path = '...')"
        if near := [name for name in options.values if get_close_matches(name, ("connector", "path"), 1)]:
            hint = f"{hint}; there is no option `{near[0]}`"
        raise NameProblem(f"{options.owner} has no connector", place=options.place, hint=hint)
    return known[found]
