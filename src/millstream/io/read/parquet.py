"""Parquet: columns are matched by name and cast to the declared types; a value that does not fit breaks its tuple."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.core.letters import DeadLetter, as_json
from millstream.errors import SourceProblem
from millstream.io.contract import Reading
from millstream.io.read.base import numbered, pieces
from millstream.io.read.values import is_bytes, is_text, type_name


@dataclass(frozen=True)
class ParquetReader:
    """The line numbers of its tuples are row numbers."""

    stream: str
    schema: pa.Schema

    def read(self, path: str, batch_size: int, groups: tuple[int, int, int] | None = None) -> Iterator[Reading]:
        """All of a file, or the row groups (first, end, number of the first row)."""
        with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            names = [self._find(path, file.schema_arrow, field) for field in self.schema]
            first, end, row = groups or (0, file.metadata.num_row_groups, 1)
            for batch in file.iter_batches(batch_size, row_groups=range(first, end), columns=names, use_threads=False):
                yield from self._cast(batch, names, path, row, batch_size)
                row += batch.num_rows

    def _find(self, path: str, found: pa.Schema, field: pa.Field) -> str:
        same = [n for n in found.names if n == field.name] or [n for n in found.names if n.lower() == field.name.lower()]
        if len(same) != 1:
            hint = "it has " + ", ".join(f"`{name}`" for name in found.names[:12])
            problem = "more than one column" if same else "no column"
            raise SourceProblem(f"{path} has {problem} `{field.name}`", hint=hint)
        kind = found.field(same[0]).type
        if not fits(kind, field.type):
            text = f"column `{field.name}` of {path} is {type_name(kind)}, declared {type_name(field.type)}"
            raise SourceProblem(text, hint="declare the column with the type it has in the file")
        return str(same[0])

    def _cast(self, batch: pa.RecordBatch, names: list[str], path: str, row: int, batch_size: int) -> Iterator[Reading]:
        lines = numbered(row, batch.num_rows)
        try:
            columns = [
                as_declared(batch.column(name), field.type)
                for name, field in zip(names, self.schema, strict=True)
            ]
            letters = []
        except pa.ArrowInvalid:
            wrong: dict[int, str] = {}
            columns = []
            for name, field in zip(names, self.schema, strict=True):
                values, bad = _each(batch.column(name), field.type)
                for index in bad:
                    wrong.setdefault(
                        index, f"column `{field.name}`: {_why(batch.column(name)[index], field.type)}"
                    )
                columns.append(values)
            found = pa.RecordBatch.from_arrays(
                [batch.column(name) for name in names], names=self.schema.names
            )
            letters = [
                DeadLetter(self.stream, "broken", why, path, row + i, content=as_json(found, i))
                for i, why in sorted(wrong.items())
            ]
            keep = np.ones(batch.num_rows, dtype=bool)
            keep[list(wrong)] = False
            columns = [column.filter(pa.array(keep)) for column in columns]
            lines = lines[keep]
        yield from pieces(pa.RecordBatch.from_arrays(columns, schema=self.schema), lines, letters, path, batch_size)


def as_declared(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values in the declared type; ArrowInvalid where one of them has no counterpart."""
    if is_text(kind):
        made = column if column.type == kind else column.cast(kind)
        made.validate(full=True)  # Arrow reads bytes that are not UTF-8 without a word
        return made
    if column.type == kind:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(kind) and pa.types.is_integer(column.type):
        # Arrow asks for room for every digit of the integer's type, not of the value.
        column = column.cast(pa.decimal256(76, kind.scale))
    return column.cast(kind)


def _why(value: pa.Scalar, kind: pa.DataType) -> str:
    """The reason of a letter about a value that does not fit."""
    try:
        return f"{value} does not fit {type_name(kind)} exactly"
    except UnicodeDecodeError:
        return "not UTF-8"
    except (OverflowError, ValueError):  # a time beyond the years of Python
        return f"{value.value} does not fit {type_name(kind)} exactly"


def _each(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, list[int]]:
    """Value by value where the column as a whole can not be cast; the indices of those that do not fit."""
    try:
        return as_declared(column, kind), []
    except pa.ArrowInvalid:
        parts, bad = [], []
    for index in range(len(column)):
        try:
            parts.append(as_declared(column.slice(index, 1), kind))
        except pa.ArrowInvalid:
            bad.append(index)
            parts.append(pa.nulls(1, kind))
    return pa.concat_arrays(parts), bad


def fits(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """True when values of the file's type may be read as the declared type without a change of meaning."""
    t = pa.types
    if t.is_dictionary(kind):
        kind = kind.value_type
    if kind == wanted or t.is_null(kind):
        return True
    if t.is_integer(wanted):
        return bool(t.is_integer(kind))
    if t.is_floating(wanted):
        return bool(t.is_integer(kind) or (t.is_floating(kind) and kind.bit_width <= wanted.bit_width))
    if t.is_decimal(wanted):
        return bool(t.is_decimal(kind) or t.is_integer(kind))
    if t.is_timestamp(wanted):
        return bool(t.is_timestamp(kind) or t.is_date32(kind))
    if t.is_duration(wanted):
        return bool(t.is_duration(kind))
    text = is_text(kind) or str(kind) == "string_view"
    if is_text(wanted):
        return text
    if is_bytes(wanted):
        return text or is_bytes(kind) or bool(t.is_fixed_size_binary(kind))
    return bool(t.is_nested(wanted) and t.is_nested(kind) and kind.equals(wanted))
