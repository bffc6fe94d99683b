"""Where streams come from and where results go: sources, sinks, tables and dead letters."""

from __future__ import annotations

from collections.abc import Mapping

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
from millstream.io.options import Options
from millstream.io.rate import RateSource
from millstream.io.readers import file_reader, line_reader
from millstream.io.sockets import SocketSource
from millstream.io.tables import read_table

SOURCES = ("file", "socket", "rate", "generator")
SINKS = ("file", "console", "memory")

__all__ = [
    "ConsoleSink", "DeadLetter", "FileSink", "FileSource", "GeneratorSource", "LetterBox", "ListSource", "MemorySink", "Part", "Position",
    "RateSource", "Reading", "Sink", "SocketSource", "Source", "Unit", "Writer", "open_sink", "open_source", "read_table",
]  # fmt: skip


def open_source(name: str, schema: pa.Schema, options: Mapping[str, str], place: Place | None = None) -> Source:
    """The source that CREATE STREAM describes. `schema`: the declared columns, without one that is stamped on entry."""
    o = Options.of(f"stream {name}", options, place, SourceProblem)
    connector = _connector(o, SOURCES)
    source: Source
    if connector == "file":
        path = o.path()
        watch = o.flag("watch", False)
        source = FileSource(name, path, file_reader(name, schema, o, path), watch)
    elif connector == "socket":
        host, port = o.text("host", "127.0.0.1") or "127.0.0.1", o.integer("port", None, 1, 65535)
        if port is None:
            o.required("port")
        source = SocketSource(name, host, port or 0, line_reader(name, schema, o))
    elif connector == "generator":
        source = GeneratorSource.of(name, schema, o)
    else:
        source = RateSource.of(name, schema, o)
    o.done()
    return source


def open_sink(name: str, options: Mapping[str, str], place: Place | None = None) -> Sink:
    """The sink that CREATE SINK describes."""
    o = Options.of(f"sink {name}", options, place, SinkProblem)
    connector = _connector(o, SINKS)
    sink: Sink
    if connector == "file":
        sink = FileSink.of(name, o)
    elif connector == "console":
        sink = ConsoleSink(name, o.integer("limit", None))
    else:
        sink = MemorySink(name)
    o.done()
    return sink


def _connector(options: Options, known: tuple[str, ...]) -> str:
    found = options.choice("connector", known, "file" if options.has("path") else None)
    if found is None:
        raise NameProblem(
            f"{options.owner} has no connector", place=options.place, hint=f"write WITH (connector = '{known[0]}', path = '...')"
        )
    return found
