"""CREATE TABLE: a file or a directory that is read once, whole."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from millstream.errors import MillstreamError, Place, SourceProblem
from millstream.io.files import found_files
from millstream.io.options import Options
from millstream.io.readers import FileReader, file_reader
from millstream.io.reading import read_file


def open_table(
    name: str, schema: pa.Schema, options: Mapping[str, str], place: Place | None = None
) -> tuple[Options, str, FileReader]:
    """The options, the path and the reader of a table."""
    o = table_options(name, options, place)
    path = o.path()
    reader = file_reader(name, schema, o, path)
    o.done()
    return o, path, reader


def read_table(
    name: str, schema: pa.Schema, options: Mapping[str, str], place: Place | None = None
) -> pa.Table:
    """All rows; a broken one is an error: a table has no dead letters, and a join with half of it would be wrong."""
    o, path, reader = open_table(name, schema, options, place)
    batches = []
    try:
        for file in found_files(o.owner, path, some=True):
            for reading in read_file(o.owner, reader, file, 65_536):
                for letter in reading.letters:
                    raise o.wrong(f"{letter.file}, line {letter.line}: {letter.reason}", "correct the file: a table must be whole")
                batches.append(reading.batch)
    except MillstreamError as error:
        raise error.at(place) from error.__cause__
    return pa.Table.from_batches(batches, schema)


def table_options(name: str, options: Mapping[str, str], place: Place | None = None) -> Options:
    """The options of a table, which is read from files; Flink's tables are streams and sinks here."""
    o = Options.of(f"table {name}", options, place, SourceProblem)
    connector = o.text("connector", "file") or ""
    if connector.lower() != "file":
        hint = "a table is read from files: give it a path, or write CREATE SINK or CREATE STREAM"
        raise o.wrong(f"there is no connector `{connector}`", hint)
    return o
