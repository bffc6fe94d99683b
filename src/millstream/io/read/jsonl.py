"""JSON lines: one object per line, read in blocks by Arrow and line by line where that fails."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from millstream.core.types import Int64s, one_of
from millstream.errors import SourceProblem
from millstream.io.contract import DeadLetter, Reading
from millstream.io.read.base import Raw, broken, line_blocks, numbered, pieces
from millstream.io.read.values import convert, is_text, type_name

NOT_NUMBERS = ("NaN", "Infinity", "-Infinity")
"""JSON has no literal for these, so they are written as strings."""


class Number(str):
    """A JSON number as it was written, so that no digit is lost."""


@dataclass(frozen=True)
class JsonReader:
    """Missing keys are null and unknown keys are ignored; a value of another type breaks the tuple."""

    stream: str
    schema: pa.Schema

    def read(self, raw: Raw, file: str, batch_size: int, first_line: int = 1) -> Iterator[Reading]:
        begins = first_line == 1
        for block in line_blocks(raw, file):
            count = block.count(b"\n")
            batch = self.fast(block, count)
            lines = numbered(first_line, count)
            letters: list[DeadLetter] = []
            if batch is None:
                batch, lines, letters = self.careful(block, file, first_line)
            if begins:
                self._check_keys(block, batch, file)
                begins = False
            yield from pieces(batch, lines, letters, file, batch_size)
            first_line += count

    def _check_keys(self, block: bytes, batch: pa.RecordBatch, file: str) -> None:
        """Keys are matched exactly; a column that stays empty for its spelling alone would be a loss in silence."""
        empty = [field.name for field, column in zip(self.schema, batch.columns, strict=True) if column.null_count == len(column)]
        if not empty or not batch.num_rows:
            return
        try:
            keys = list(_object(block[: block.index(b"\n")]))
        except (ValueError, RecursionError):
            return
        for name in empty:
            other = [key for key in keys if key.lower() == name.lower() and key != name]
            if other and name not in keys and other[0] not in self.schema.names:
                raise SourceProblem(
                    f"{file} has the key `{other[0]}` where the column is `{name}`", hint="write the column as the key is written"
                )

    def fast(self, block: bytes, count: int) -> pa.RecordBatch | None:
        """The whole block by Arrow, or None when a line needs a second look.

        Arrow would read objects over several lines or several objects on one. Where every line begins with `{`
        and ends with `}`, a line end can only lie between two objects; with as many objects as lines there
        is then exactly one on each, and the line numbers are right.
        """
        whole = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(whole == 10)
        before = whole[np.maximum(ends - 1, 0)]
        if (before == 13).any():
            before = np.where(before == 13, whole[np.maximum(ends - 2, 0)], before)
        if whole[0] != 123 or (whole[ends[:-1] + 1] != 123).any() or (before != 125).any():
            return None
        try:
            if not block.isascii():
                block.decode("utf-8")  # Arrow does not look
            table = pa.json.read_json(
                pa.BufferReader(block),
                read_options=pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                parse_options=pa.json.ParseOptions(explicit_schema=self._raw_schema(), unexpected_field_behavior="ignore"),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
            return None
        if table.num_rows != count:
            return None
        columns = []
        for field in self.schema:
            values = _one(table.column(field.name))
            if values.type != field.type:
                values, bad = (values.cast(field.type), []) if pa.types.is_duration(field.type) else convert(values, field.type)
                if bad:
                    return None
            if pa.types.is_decimal(field.type) and not _valid(values):
                return None
            if pa.types.is_floating(field.type) and pc.any(pc.is_inf(values)).as_py():
                return None  # a number that is too large: JSON has none for infinity
            columns.append(values)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _raw_schema(self) -> pa.Schema:
        """Numbers, booleans and decimals by Arrow; the rest as strings, which `convert` turns into values."""
        t = pa.types
        return pa.schema(
            [
                (f.name, f.type if t.is_boolean(f.type) or t.is_integer(f.type) or t.is_floating(f.type) or t.is_decimal(f.type)
                 else pa.int64() if t.is_duration(f.type) else pa.string())
                for f in self.schema
            ]
        )  # fmt: skip

    def careful(self, block: bytes, file: str, first_line: int) -> tuple[pa.RecordBatch, Int64s, list[DeadLetter]]:
        """Line by line; every broken line becomes a letter with its number and the reason."""
        letters: list[DeadLetter] = []
        rows: list[tuple[int, bytes, dict[str, Any]]] = []
        for number, line in enumerate(block[:-1].split(b"\n"), first_line):
            if not line.strip():
                continue
            try:
                rows.append((number, line, _object(line)))
            except (ValueError, RecursionError) as error:
                letters.append(broken(self.stream, file, number, _why(error), line))
        wrong: dict[int, str] = {}
        columns = []
        for field in self.schema:
            texts: list[str | None] = []
            for index, (_, _, row) in enumerate(rows):
                text, reason = _text(row.get(field.name), field.type)
                if reason is not None:
                    wrong.setdefault(index, f"column `{field.name}`: {reason}")
                texts.append(text)
            values, bad = convert(pa.array(texts, pa.string()), field.type)
            for index, reason in bad:
                wrong.setdefault(index, f"column `{field.name}`: {reason}")
            columns.append(values)
        letters += [broken(self.stream, file, rows[i][0], wrong[i], rows[i][1]) for i in sorted(wrong)]
        letters.sort(key=lambda letter: letter.line or 0)
        keep = np.array([index not in wrong for index in range(len(rows))], dtype=bool)
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema).filter(pa.array(keep))
        return batch, np.array([row[0] for row in rows], dtype=np.int64)[keep], letters


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _valid(values: pa.Array) -> bool:
    """Arrow's JSON reader lets decimals of too many digits pass."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _object(line: bytes) -> dict[str, Any]:
    value = json.loads(line.decode("utf-8"), parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=_pairs)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(n for n in names if names.count(n) > 1)!r} is given twice")
    return value


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start + 1} of the line"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg.removesuffix(' at')} at character {error.pos + 1}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _text(value: Any, kind: pa.DataType) -> tuple[str | None, str | None]:
    """The text that `convert` reads, or the reason why this JSON value has the wrong type."""
    t = pa.types
    if value is None:
        return None, None
    if isinstance(value, (dict, list)):
        return None, f"{'an object' if isinstance(value, dict) else 'an array'} is not {one_of(kind)}"
    shown = json.dumps(value) if not isinstance(value, Number) else str(value)
    if isinstance(value, bool):
        fits = t.is_boolean(kind) or is_text(kind)
        value = shown
    elif isinstance(value, Number):
        fits = t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_duration(kind) or is_text(kind)
        if fits and t.is_floating(kind) and value not in NOT_NUMBERS and math.isinf(float(value)):
            return None, f"{shown} is out of range for {type_name(kind)}"
    else:
        fits = not (t.is_boolean(kind) or t.is_integer(kind) or t.is_floating(kind) or t.is_duration(kind))
        fits = fits or (t.is_floating(kind) and value in NOT_NUMBERS)
        if any("\ud800" <= c <= "\udfff" for c in value):
            return None, "half of a surrogate pair is not a character"
    if fits:
        return str(value), None
    hint = ' (write it as a string such as "2020-01-01T00:00:00Z")' if t.is_timestamp(kind) and isinstance(value, Number) else ""
    return None, f"{shown} is not {one_of(kind)}{hint}"
