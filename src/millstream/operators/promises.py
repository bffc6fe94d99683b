"""Values declared finished: remembered as ranges where they are integers, so that a million cost kilobytes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.punctuation import Constant, OneOf, Pattern, Punctuation, Range
from millstream.core.types import MAX_TIME, MIN_TIME, is_axis, to_axis
from millstream.state.registers import Registers

Mask = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

NAN = float("nan")


def plain_values(array: pa.Array) -> list[Any]:
    """Python values that are equal where keys are: times as their int64, one NaN, no -0.0."""
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        return [None if not v.is_valid else v.value for v in array]
    if pa.types.is_floating(array.type):
        return [v if v is None else NAN if v != v else v + 0.0 for v in array.to_pylist()]
    return array.to_pylist()  # type: ignore[no-any-return]


def is_below(pattern: Pattern) -> bool:
    """Everything below a mark on an axis."""
    return isinstance(pattern, Range) and pattern.low is None and isinstance(pattern.high, int) and not pattern.high_inclusive


class Closed:
    """The value punctuations seen on one arc.

    Adjacent integers merge into ranges. Other values are kept once, with the time up to which they are closed where the
    punctuation has one (group-wise): the latest is enough. Patterns of another form are kept one by one.
    """

    def __init__(self, schema: pa.Schema, registers: Registers, name: str) -> None:
        self.schema = schema
        self.registers = registers
        self.name = name

    def add(self, punctuations: Sequence[Punctuation]) -> None:
        """Remember promises; many ranges at once cost one copy of what is known."""
        tables: dict[str, dict[Any, int]] = {}
        ranges: dict[str, list[tuple[int, int]]] = {}
        others: set[Punctuation] = set()
        for punctuation in punctuations:
            shape = _shape(punctuation)
            if shape is None:
                others.add(punctuation)
                continue
            columns, time, bound = shape
            for key in _keys(punctuation, columns):
                if len(columns) == 1 and time is None and key[0] is not None and is_axis(self.schema.field(columns[0]).type):
                    if columns[0] not in ranges:
                        ranges[columns[0]] = list(self.registers.get(f"{self.name}:{columns[0]}", ()))
                    _insert(ranges[columns[0]], int(key[0]))
                else:
                    name = f"{self.name} by {','.join(columns)} until {time or ''}"
                    table = tables.setdefault(name, {})
                    table[key] = max(table.get(key, MIN_TIME), bound, self.registers.get(name, table).get(key, MIN_TIME))
                    self._index(name, columns, time)
        for column, found in ranges.items():
            self.registers[f"{self.name}:{column}"] = tuple(found)
        for name, table in tables.items():
            self.registers.put(name, table)
        if others:
            self.registers[self.name] = self.registers.get(self.name, frozenset()) | others

    def _index(self, name: str, columns: tuple[str, ...], time: str | None) -> None:
        known: frozenset[tuple[str, tuple[str, ...], str | None]] = self.registers.get(f"{self.name} tables", frozenset())
        if (name, columns, time) not in known:
            self.registers[f"{self.name} tables"] = known | {(name, columns, time)}

    def matches(self, batch: pa.RecordBatch) -> Mask | None:
        """The tuples that some punctuation seen so far says will not come; None when there is none at all."""
        masks: list[Mask] = [punctuation.matches(batch) for punctuation in self.registers.get(self.name, frozenset())]
        for field in self.schema:
            ranges = self.registers.get(f"{self.name}:{field.name}", ())
            if ranges:
                masks.append(_within(batch.column(field.name), ranges))
        for name, columns, time in self.registers.get(f"{self.name} tables", frozenset()):
            bounds = _bounds(self.registers[name], [batch.column(c) for c in columns])
            times = np.full(batch.num_rows, MIN_TIME + 1) if time is None else to_axis(batch.column(time))
            masks.append(times < bounds)
        return np.logical_or.reduce(masks) if masks else None

    def promises(self) -> Iterator[Punctuation]:
        """Punctuations that say together what was closed."""
        yield from self.registers.get(self.name, frozenset())
        for field in self.schema:
            ranges = self.registers.get(f"{self.name}:{field.name}", ())
            if ranges:
                values = tuple(value for low, high in ranges for value in range(low, high + 1))
                yield Punctuation.of({field.name: OneOf(values)})
        for name, columns, time in self.registers.get(f"{self.name} tables", frozenset()):
            for key, bound in self.registers[name].items():
                patterns: dict[str, Pattern] = {c: Constant(value) for c, value in zip(columns, key, strict=True)}
                yield Punctuation.of(patterns if time is None else {**patterns, time: Range(high=bound)})

    def broken_by(self, row: pa.RecordBatch) -> Punctuation:
        """A promise that one late tuple breaks."""
        for punctuation in self.registers.get(self.name, frozenset()):
            if punctuation.matches(row).any():
                return punctuation  # type: ignore[no-any-return]
        for field in self.schema:
            ranges = self.registers.get(f"{self.name}:{field.name}", ())
            if ranges and _within(row.column(field.name), ranges)[0]:
                return Punctuation.of({field.name: Constant(plain_values(row.column(field.name))[0])})
        for name, columns, time in self.registers.get(f"{self.name} tables", frozenset()):
            bound = int(_bounds(self.registers[name], [row.column(c) for c in columns])[0])
            if bound > (MIN_TIME if time is None else int(to_axis(row.column(time))[0])):
                patterns: dict[str, Pattern] = {c: Constant(plain_values(row.column(c))[0]) for c in columns}
                return Punctuation.of(patterns if time is None else {**patterns, time: Range(high=bound)})
        raise ValueError("this tuple breaks no promise")


def _shape(punctuation: Punctuation) -> tuple[tuple[str, ...], str | None, int] | None:
    """Columns with values, and the column and bound of one time below a mark; None for other forms."""
    columns: list[str] = []
    time, bound = None, MAX_TIME
    for name, pattern in punctuation.patterns:
        if isinstance(pattern, (Constant, OneOf)):
            columns.append(name)
        elif time is None and is_below(pattern):
            time, bound = name, pattern.high  # type: ignore[attr-defined]
        else:
            return None
    lists = sum(isinstance(pattern, OneOf) for _, pattern in punctuation.patterns)
    return (tuple(columns), time, bound) if columns and (not lists or len(columns) == 1) else None


def _keys(punctuation: Punctuation, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    pattern = punctuation.pattern(columns[0])
    if isinstance(pattern, OneOf):
        return [(value,) for value in pattern.values]
    return [tuple(punctuation.pattern(c).value for c in columns)]  # type: ignore[attr-defined]


def _bounds(table: dict[tuple[Any, ...], int], columns: list[pa.Array]) -> Int64s:
    """For each tuple the time up to which its value is closed, MIN_TIME when it is open."""
    if len(columns) > 1:
        rows = zip(*(plain_values(column) for column in columns), strict=True)
        return np.array([table.get(key, MIN_TIME) for key in rows], dtype=np.int64)
    column = columns[0]
    if pa.types.is_floating(column.type):
        column = pc.add(column, 0.0)
    at = pc.index_in(column, value_set=pa.array([key[0] for key in table], type=column.type))
    ends = np.array([*table.values(), MIN_TIME], dtype=np.int64)
    places: Int64s = np.asarray(at.fill_null(len(table)), dtype=np.int64)
    return ends[places]


def _within(values: pa.Array, ranges: Sequence[tuple[int, int]]) -> Mask:
    axis = to_axis(values)
    starts, ends = np.array([r[0] for r in ranges]), np.array([r[1] for r in ranges])
    at = np.searchsorted(starts, axis, side="right") - 1
    found: Mask = (at >= 0) & (axis <= ends[np.maximum(at, 0)])
    return found & np.asarray(values.is_valid()) if values.null_count else found


def _insert(ranges: list[tuple[int, int]], value: int) -> None:
    """Add one value to sorted disjoint ranges, both ends inclusive."""
    at = bisect_right(ranges, (value, float("inf"))) - 1
    if at >= 0 and ranges[at][1] >= value:
        return
    low = high = value
    if at >= 0 and ranges[at][1] == value - 1:
        low = ranges[at][0]
        del ranges[at]
        at -= 1
    if at + 1 < len(ranges) and ranges[at + 1][0] == value + 1:
        high = ranges[at + 1][1]
        del ranges[at + 1]
    ranges.insert(at + 1, (low, high))


def constants(punctuation: Punctuation, schema: pa.Schema) -> list[pa.Array] | None:
    """The value combinations a punctuation of constants and one list stands for, a column per pattern; None for ranges."""
    columns: list[list[Any]] = []
    for _, pattern in punctuation.patterns:
        if isinstance(pattern, Constant):
            columns.append([pattern.value])
        elif isinstance(pattern, OneOf):
            columns.append(list(pattern.values))
        else:
            return None
    longest = max(len(c) for c in columns)
    if any(len(c) not in (1, longest) for c in columns):
        return None
    types = [schema.field(name).type for name, _ in punctuation.patterns]
    return [pa.array(c * (longest if len(c) == 1 else 1), type=t) for c, t in zip(columns, types, strict=True)]
