"""Small steps the tests of sources and sinks share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.io import DeadLetter, Position, Reading, Source, open_source
from millstream.io.history import name_of

TS = pa.timestamp("us", tz="UTC")
TYPES: dict[str, pa.DataType] = {
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "SMALLINT": pa.int16(),
    "TINYINT": pa.int8(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": TS,
    "DATE": pa.date32(),
    "BINARY": pa.binary(),
    "DECIMAL": pa.decimal128(9, 2),
    "INTERVAL": pa.duration("us"),
}


def schema(text: str) -> pa.Schema:
    """`a BIGINT, s STRING` as an Arrow schema."""
    pairs = [column.split() for column in text.split(",")]
    return pa.schema([(name, TYPES[kind]) for name, kind in pairs])


def read_all(source: Source, batch_size: int = 1000) -> list[Reading]:
    source.check()
    start = source.initial()
    end = source.latest(start, None)
    return [reading for unit in source.units(start, end) for reading in source.read(unit, batch_size)]


def files_of(position: Position) -> list[str]:
    """The names of the files in a position, without what was recorded about them."""
    return [name_of(entry) for entry in position["files"]]


class Answer:
    """Everything a source gave."""

    def __init__(self, readings: list[Reading], kind: pa.Schema) -> None:
        self.table = pa.Table.from_batches([reading.batch for reading in readings], kind)
        self.lines: list[int] = np.concatenate([[], *(reading.lines for reading in readings)]).astype(int).tolist()
        self.letters: list[DeadLetter] = [letter for reading in readings for letter in reading.letters]
        self.sizes = [reading.batch.num_rows for reading in readings]
        assert len(self.lines) == self.table.num_rows

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.table.to_pylist()]

    @property
    def reasons(self) -> list[tuple[int | None, str]]:
        return [(letter.line, letter.reason) for letter in self.letters]


def read_file(path: Path, columns: str | pa.Schema, options: Mapping[str, str] | None = None, batch_size: int = 1000) -> Answer:
    kind = schema(columns) if isinstance(columns, str) else columns
    source = open_source("S", kind, {"path": str(path), **(options or {})}, None)
    return Answer(read_all(source, batch_size), kind)


def read_text(
    folder: Path, name: str, text: str | bytes, columns: str, options: Mapping[str, str] | None = None, batch_size: int = 1000
) -> Answer:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_file(path, columns, options, batch_size)
