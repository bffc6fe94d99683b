"""A sink that prints tuples as an aligned table."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from typing import TextIO

import pyarrow as pa

from millstream.errors import SinkProblem
from millstream.io.contract import Part, Writer
from millstream.io.memory import HandedWriter, from_ipc
from millstream.io.write.jsonl import json_column
from millstream.io.write.render import render

WIDEST = 60


class ConsoleSink:
    """Prints to stdout, at most `limit` tuples in all; the header comes again when columns must widen."""

    def __init__(self, name: str, limit: int | None = None) -> None:
        self.name, self.limit = name, limit
        self.printed = self.held_back = 0
        self.epoch = -1
        self.widths: list[int] = []

    @property
    def distributed(self) -> bool:
        return False

    def check(self, schema: pa.Schema) -> None: ...

    def writer(self, schema: pa.Schema, part: str, epoch: int | None) -> Writer:
        return HandedWriter(self.name, schema, self.show if epoch is None else None)

    def commit(self, epoch: int, parts: Iterable[Part]) -> None:
        if epoch <= self.epoch:
            return
        self.epoch = epoch
        self.show([batch for part in parts if part.detail["ipc"] for batch in from_ipc(part.detail["ipc"])])

    def show(self, batches: list[pa.RecordBatch], out: TextIO | None = None) -> None:
        out = out or sys.stdout
        for batch in batches:
            room = batch.num_rows if self.limit is None else max(0, self.limit - self.printed)
            self.held_back += max(0, batch.num_rows - room)
            if batch.num_rows and room:
                try:
                    self._print(batch.slice(0, room), out)
                except OSError as error:
                    raise SinkProblem(f"sink {self.name}: can not print: {error.strerror}") from error

    def _print(self, batch: pa.RecordBatch, out: TextIO) -> None:
        names = batch.schema.names
        columns = [_cells(column) for column in batch.columns]
        right = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_decimal(f.type) for f in batch.schema]
        widths = [max([_width(name), *map(_width, cells)]) for name, cells in zip(names, columns, strict=True)]
        if len(self.widths) != len(widths) or any(new > old for new, old in zip(widths, self.widths, strict=True)):
            same = self.widths if len(self.widths) == len(widths) else widths
            self.widths = [max(pair) for pair in zip(widths, same, strict=True)]
            out.write(_line(names, self.widths, right) + "\n" + "  ".join("-" * width for width in self.widths) + "\n")
        for row in zip(*columns, strict=True):
            out.write(_line(row, self.widths, right) + "\n")
        out.flush()
        self.printed += batch.num_rows

    def finish(self) -> None:
        self.epoch = -1
        if self.held_back:
            sys.stdout.write(f"... and {self.held_back} more\n")
            sys.stdout.flush()
            self.held_back = 0


def _cells(column: pa.Array) -> list[str]:
    text = json_column(column) if pa.types.is_nested(column.type) or pa.types.is_null(column.type) else render(column)
    return [_short(value) for value in text.fill_null("null").to_pylist()]


def _short(text: str) -> str:
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return plain if len(plain) <= WIDEST else plain[: WIDEST - 3] + "..."


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else int(not unicodedata.combining(c)) for c in text)


def _line(cells: Iterable[str], widths: list[int], right: list[bool]) -> str:
    padded = []
    for cell, width, at_right in zip(cells, widths, right, strict=True):
        space = " " * (width - _width(cell))
        padded.append(space + cell if at_right else cell + space)
    return "  ".join(padded).rstrip()
