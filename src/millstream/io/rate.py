"""A stream of numbered tuples, made and never stored: any stretch of it can be made again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millstream.core.types import TIMESTAMP, Int64s, from_axis, is_axis
from millstream.errors import MillstreamError, NameProblem, SourceProblem
from millstream.io.contract import Limits, Position, Reading, Unit
from millstream.io.options import Options
from millstream.io.read.values import type_name

if TYPE_CHECKING:
    from millstream.expressions import Compiled

DEFAULT_RATE = 1000.0
BASE = pa.schema([("value", pa.int64()), ("ts", TIMESTAMP)])
BOUNDED_START = 1_577_836_800_000_000  # 2020-01-01T00:00:00Z


@dataclass(frozen=True)
class RateSource:
    """Row `n` has the time `start + n / rate`. Expressions over `value` (n) and `ts` (that time) give the other columns."""

    name: str
    schema: pa.Schema
    rate: float | None = None  # None: as fast as possible
    rows: int | None = None  # None: without end
    start: int = BOUNDED_START
    unit_rows: int = 10_000
    formulas: Mapping[str, str] = field(default_factory=dict)
    most_units: int | None = None
    """That one micro-batch takes."""

    def hosted(self, directory: str | None, limits: Limits) -> RateSource:
        return self if limits.tuples is None else replace(self, most_units=max(1, limits.tuples // self.unit_rows))

    @classmethod
    def of(cls, name: str, schema: pa.Schema, options: Options) -> RateSource:
        rate, rows, start = options.number("rows_per_second"), options.integer("rows", None), options.moment("start")
        if start is None:
            start = BOUNDED_START if rows is not None else time.time_ns() // 1000
        unit_rows = options.integer("unit_rows", max(1, min(10_000, int(rate / 10))) if rate and rows is None else 10_000, 1) or 1
        formulas = {}
        by_name = {column.lower(): column for column in schema.names}
        for column, formula in options.prefixed("column.").items():
            if column.lower() not in by_name:
                raise NameProblem.unknown("column", column, schema.names, within=options.owner, place=options.place)
            formulas[by_name[column.lower()]] = formula
        source = cls(name, schema, rate, rows, start, unit_rows, formulas)
        try:
            source.make(0, 0)
        except MillstreamError as error:  # its place would be one inside the formula
            owner = "" if error.message.startswith("stream ") else f"{options.owner}: "
            raise type(error)(owner + error.message, place=options.place, hint=error.hint) from None
        return source

    @property
    def bounded(self) -> bool:
        return self.rows is not None

    def check(self) -> None: ...

    def initial(self) -> Position:
        return {"rows": 0}

    def latest(self, start: Position, limit: int | None) -> Position:
        """Unbounded with a rate follows the clock; a bounded stream is there at once."""
        limit = min((most for most in (limit, self.most_units) if most is not None), default=None)
        first = int(start["rows"])
        end = self.rows
        if end is None and self.rate is not None:
            end = max(0, int((time.time_ns() // 1000 - self.start) * self.rate / 1_000_000))
        if end is None or limit is not None:
            units = first // self.unit_rows + (1 if limit is None else limit)
            end = units * self.unit_rows if end is None else min(end, units * self.unit_rows)
        if self.rows is None:
            end -= end % self.unit_rows  # whole units, so that their bounds do not depend on when we looked
        return {"rows": max(first, end)}

    def units(self, start: Position, end: Position) -> list[Unit]:
        first, last = int(start["rows"]), int(end["rows"])
        bounds = range(first, last, self.unit_rows)
        return [Unit(at // self.unit_rows, {"first": at, "end": min(at + self.unit_rows, last)}) for at in bounds]

    def read(self, unit: Unit, batch_size: int) -> Iterator[Reading]:
        for at in range(unit.detail["first"], unit.detail["end"], batch_size):
            end = min(at + batch_size, unit.detail["end"])
            yield Reading(self.make(at, end), file=self.name, lines=np.arange(at + 1, end + 1, dtype=np.int64))

    def make(self, first: int, end: int) -> pa.RecordBatch:
        """The tuples `first` to `end`, a function of their numbers alone."""
        value: Int64s = np.arange(first, end, dtype=np.int64)
        step = 1_000_000 / (self.rate or DEFAULT_RATE)
        exact = step.is_integer()
        offsets = value * int(step) if exact else np.floor(value * step).astype(np.int64)
        moment = from_axis(self.start + offsets, TIMESTAMP)
        base = pa.RecordBatch.from_arrays([pa.array(value), moment], schema=BASE)
        columns, numbered = [], False
        for column in self.schema:
            if column.name in self.formulas:
                columns.append(self._formula(column, base))
            elif pa.types.is_timestamp(column.type):
                columns.append(moment.cast(column.type))
            elif pa.types.is_integer(column.type) and is_axis(column.type) and not numbered:
                numbered = True
                columns.append(self._wrap(value, column.type))
            else:
                hint = f"add \"column.{column.name}\" = 'value % 100'"
                raise NameProblem(f"stream {self.name}: nothing says what column `{column.name}` holds", hint=hint)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _wrap(self, value: Int64s, kind: pa.DataType) -> pa.Array:
        return pa.array(value % (1 << (kind.bit_width - 1)) if kind.bit_width < 64 else value).cast(kind)

    def _formula(self, column: pa.Field, base: pa.RecordBatch) -> pa.Array:
        values = _compiled(self.formulas[column.name]).evaluate(base)
        try:
            return values if values.type == column.type else values.cast(column.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            text = f"stream {self.name}: column `{column.name}`: `{self.formulas[column.name]}` does not fit {type_name(column.type)}"
            raise SourceProblem(text, hint="declare another type or use CAST") from error

    def arrived(self, unit: Unit) -> int | None:
        return None

    def finished(self, position: Position) -> bool:
        return self.rows is not None and int(position["rows"]) >= self.rows

    def release(self, position: Position) -> None: ...

    def close(self) -> None: ...


@lru_cache(maxsize=256)
def _compiled(formula: str) -> Compiled:
    from millstream.expressions import compile_expression  # here: readers of files need not load the language
    from millstream.language import parse_expression

    return compile_expression(parse_expression(formula), BASE)
