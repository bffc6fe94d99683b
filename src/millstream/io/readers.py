"""Which reader a format's options ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from millstream.errors import MillstreamError
from millstream.io.files import found_files, guess_format
from millstream.io.options import Options
from millstream.io.read.base import LineReader
from millstream.io.read.csv import CsvReader
from millstream.io.read.jsonl import JsonReader
from millstream.io.read.parquet import ParquetReader
from millstream.io.read.text import TextReader
from millstream.io.read.values import is_text, readable, type_name

FILE_FORMATS = ("csv", "jsonl", "parquet", "text")
LINE_FORMATS = ("csv", "jsonl", "text")


FileReader: TypeAlias = LineReader | ParquetReader


def without_files(options: Mapping[str, str]) -> dict[str, str]:
    """Options that can be checked where there are no files.

    A format that only the files tell is taken for CSV, which has every option.
    """
    told = "format" in options or "path" not in options or guess_format(options["path"], []) is not None
    return dict(options) if told else {**options, "format": "csv"}


def file_reader(name: str, schema: pa.Schema, options: Options, path: str) -> FileReader:
    """The reader for files; the format is guessed from the extension when it is not given."""
    kind = options.choice("format", FILE_FORMATS) or guess_format(path, [])
    if kind is None:
        try:
            files = found_files(options.owner, path)
        except MillstreamError as error:
            raise error.at(options.place) from None
        kind = guess_format(path, files)
        if kind is None:
            raise options.wrong(f"the format of {path} can not be told from its name", "add format = 'csv', 'jsonl', 'parquet' or 'text'")
    if kind == "parquet":
        return ParquetReader(name, schema)
    return _reader(name, schema, options, kind, True)


def line_reader(name: str, schema: pa.Schema, options: Options) -> LineReader:
    """The reader for lines that come over a wire: no header."""
    return _reader(name, schema, options, options.choice("format", LINE_FORMATS, "jsonl") or "jsonl", False)


def _reader(name: str, schema: pa.Schema, options: Options, kind: str, files: bool) -> LineReader:
    for field in schema:
        if not readable(field.type):
            raise options.wrong(f"format '{kind}' can not hold column `{field.name}` of type {type_name(field.type)}", "use parquet")
    if kind == "text":
        if len(schema) != 1 or not is_text(schema.field(0).type):
            raise options.wrong("format 'text' gives one column of type STRING", "declare (line STRING)")
        return TextReader(name, schema)
    if kind == "jsonl":
        return JsonReader(name, schema)
    header = options.flag("header", True) if files else False
    delimiter, quote = csv_characters(options)
    return CsvReader(name, schema, header, delimiter, quote, options.text("null_value", "") or "")


def csv_characters(options: Options) -> tuple[str, str]:
    delimiter, quote = options.character("delimiter", ","), options.character("quote", '"', empty=True)
    if delimiter == quote:
        raise options.wrong(f"`delimiter` and `quote` are both '{quote}'", "choose two characters")
    return delimiter, quote
