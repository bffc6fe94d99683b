"""A directory of part files as a sink: appended as results come, or shown once per epoch."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from millstream.errors import SinkProblem
from millstream.io.contract import Part, Writer
from millstream.io.files import guess_format
from millstream.io.hold import Hold
from millstream.io.options import Options
from millstream.io.read.values import type_name
from millstream.io.readers import FILE_FORMATS, csv_characters
from millstream.io.staging import RECORDS, STAGED, Staging, safe, writing
from millstream.io.write.csv import CsvEncoder
from millstream.io.write.jsonl import JsonlEncoder
from millstream.io.write.parquet import ParquetFileWriter
from millstream.io.write.stream import Encoder, TextFileWriter
from millstream.io.write.text import TextEncoder


@dataclass(frozen=True)
class FileSink:
    """Part files are `part-<part>-<epoch>.<format>`; a directory that belongs to the same `run` is continued."""

    name: str
    path: str
    format: str
    mode: str = "error"  # or "append", "overwrite": what to do with a directory that holds something else
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    layout: Mapping[str, Any] = field(default_factory=dict)  # the CSV options
    rows_per_file: int = 1_000_000  # parquet, without epochs

    @classmethod
    def of(cls, name: str, options: Options) -> FileSink:
        path = options.path()
        kind = options.choice("format", FILE_FORMATS) or guess_format(path, []) or "jsonl"
        mode = options.choice("mode", ("error", "append", "overwrite"), "error") or "error"
        layout: dict[str, Any] = {}
        if kind == "csv":
            delimiter, quote = csv_characters(options)
            if not quote:
                raise options.wrong("a CSV sink needs a quote character")
            null_value = options.text("null_value", "") or ""
            layout = {"header": options.flag("header", True), "delimiter": delimiter, "quote": quote, "null_value": null_value}
        options.hidden.add("run")
        run = options.text("run")
        sink = cls(name, path, kind, mode, layout=layout)
        return sink.with_run(run) if run else sink

    @property
    def owner(self) -> str:
        return f"sink {self.name}"

    @property
    def distributed(self) -> bool:
        return True

    @property
    def staging(self) -> Staging:
        return Staging(self.owner, self.path, self.run)

    def with_run(self, run: str) -> FileSink:
        """The same sink for a named run: after a crash a run with this name goes on where it was."""
        return replace(self, run=run)

    def check(self, schema: pa.Schema) -> None:
        self.fits(schema)
        if os.path.exists(self.path) and not os.path.isdir(self.path):
            raise SinkProblem(f"{self.owner}: {self.path} is a file", hint="`path` names a directory; choose another or remove the file")
        with writing(self.owner, self.path):
            used = os.path.isdir(self.path) and bool(os.listdir(self.path))
        if used and self.mode == "error" and not self.staging.claimed():
            hint = "choose another path, remove it, or set mode = 'append' or 'overwrite'"
            raise SinkProblem(f"{self.owner}: {self.path} exists and is not empty", hint=hint)
        if used and self.mode == "overwrite" and not self.staging.claimed() and (others := self._others()):
            hint = "overwriting removes only what a run has written; choose another path, or remove it yourself"
            raise SinkProblem(f"{self.owner}: {self.path} holds `{others[0]}`, which is no result of ours", hint=hint)
        above = self.path
        while not os.path.exists(above):
            above = os.path.dirname(above)
        if not os.access(above, os.W_OK | os.X_OK):
            raise SinkProblem(f"{self.owner}: can not write {above}: permission denied", hint="choose another path")

    def hold(self) -> Hold:
        """Keep other runs away from the directory; asked for after `check`, and before anything is written."""
        return Hold(self.owner, self.path, shared=self.mode == "append")

    def _others(self) -> list[str]:
        """What is in the directory and was not written by a run."""
        ours = (STAGED, RECORDS, "_SUCCESS")
        return sorted(name for name in os.listdir(self.path) if name not in ours and not name.startswith("part-"))

    def fits(self, schema: pa.Schema) -> None:
        """Raise a SinkProblem when the format can not hold a type; looks at no file."""
        if self.format == "text" and len(schema) != 1:
            raise SinkProblem(f"{self.owner}: format 'text' holds one column, not {len(schema)}", hint="use jsonl or csv")
        for column in schema:
            if self.format in ("csv", "text") and pa.types.is_nested(column.type):
                text = f"{self.owner}: format '{self.format}' can not hold column `{column.name}` of type {type_name(column.type)}"
                raise SinkProblem(text, hint="use jsonl or parquet")

    def begin(self, *, whole: bool = False) -> None:
        """Claim the directory, once per run: with mode 'overwrite' what others left in it goes.

        `whole`: the run has no epochs, and commits at its end.
        """
        with writing(self.owner, self.path):
            if not self.staging.claimed() and self.mode == "overwrite" and os.path.isdir(self.path):
                self._clear()
            self.staging.claim(whole=whole)

    def _clear(self) -> None:
        for entry in os.scandir(self.path):
            if entry.name == STAGED:
                for run in os.scandir(entry.path):
                    if run.name != safe(self.run):
                        shutil.rmtree(run.path)
            elif entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)

    def encoder(self, schema: pa.Schema) -> Encoder:
        if self.format == "csv":
            return CsvEncoder(schema, **self.layout)
        return TextEncoder(schema) if self.format == "text" else JsonlEncoder(schema)

    def writer(self, schema: pa.Schema, part: str, epoch: int | None) -> Writer:
        stem = f"part-{safe(self.run)}-{safe(part)}" if self.mode == "append" else f"part-{safe(part)}"
        if epoch is None:
            self.begin(whole=True)
        if self.format == "parquet":
            return ParquetFileWriter(self.name, self.staging, schema, stem, epoch, self.rows_per_file)
        return TextFileWriter(self.name, self.staging, self.encoder(schema), stem, epoch)

    def marks(self, marks: Mapping[str, int | None]) -> Part:
        """The marks of the sink's input behind an epoch, to be committed with its other parts."""
        return Part(self.name, {"files": [], "marks": dict(marks)})

    def commit(self, epoch: int, parts: Iterable[Part]) -> None:
        self.begin()
        details = [part.detail for part in parts]
        marks = [detail["marks"] for detail in details if "marks" in detail]
        facts = {"sink": self.name, **({"marks": marks[0]} if marks else {})}
        self.staging.commit(epoch, [pair for detail in details for pair in detail["files"]], facts)

    def finish(self) -> None:
        self.begin()
        self.staging.clean()
        self.staging.end()

    def shown(self, part: Part, marks: Mapping[str, int | None]) -> None:
        """Name the complete files of a part that was visible as it grew, with the marks that it led to."""
        self.staging.record(part.detail["shown"], {"sink": self.name, "marks": dict(marks)})
