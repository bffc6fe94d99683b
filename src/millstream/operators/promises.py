"""Values declared finished: remembered as ranges where they are integers, so that a million cost kilobytes."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.punctuation import Constant, OneOf, Punctuation
from millstream.core.types import is_axis, to_axis
from millstream.state.registers import Registers

Mask = npt.NDArray[np.bool_]


class Closed:
    """The value punctuations seen on one arc over one set of columns.

    Adjacent integers merge into ranges. Patterns that are neither constants nor lists are kept one by one.
    """

    def __init__(self, schema: pa.Schema, registers: Registers, name: str) -> None:
        self.schema = schema
        self.registers = registers
        self.name = name

    def add(self, punctuation: Punctuation) -> None:
        column = self._integer_column(punctuation)
        if column is None:
            known: frozenset[Punctuation] = self.registers.get(self.name, frozenset())
            self.registers[self.name] = known | {punctuation}
            return
        pattern = punctuation.patterns[0][1]
        values = pattern.values if isinstance(pattern, OneOf) else (pattern.value,)  # type: ignore[attr-defined]
        key = f"{self.name}:{column}"
        ranges: list[tuple[int, int]] = list(self.registers.get(key, ()))
        for value in values:
            if value is None:
                self.registers[self.name] = self.registers.get(self.name, frozenset()) | {Punctuation.of({column: Constant(None)})}
            else:
                _insert(ranges, int(value))
        self.registers[key] = tuple(ranges)

    def matches(self, batch: pa.RecordBatch) -> Mask | None:
        """The tuples that some punctuation seen so far says will not come; None when there is none at all."""
        mask: Mask | None = None
        for punctuation in self.registers.get(self.name, frozenset()):
            found = punctuation.matches(batch)
            mask = found if mask is None else mask | found
        for field in self.schema:
            ranges = self.registers.get(f"{self.name}:{field.name}", ())
            if ranges:
                values = batch.column(field.name)
                axis = to_axis(values)
                starts, ends = np.array([r[0] for r in ranges]), np.array([r[1] for r in ranges])
                at = np.searchsorted(starts, axis, side="right") - 1
                found = (at >= 0) & (axis <= ends[np.maximum(at, 0)])
                if values.null_count:
                    found &= np.asarray(values.is_valid())
                mask = found if mask is None else mask | found
        return mask

    def broken_by(self, row: pa.RecordBatch) -> list[Punctuation]:
        """The promises that one late tuple breaks, as constants of its own values."""
        found = [p for p in self.registers.get(self.name, frozenset()) if p.matches(row).any()]
        for field in self.schema:
            ranges = self.registers.get(f"{self.name}:{field.name}", ())
            if ranges and row.column(field.name).null_count == 0:
                value = int(to_axis(row.column(field.name))[0])
                if any(low <= value <= high for low, high in ranges):
                    found.append(Punctuation.of({field.name: Constant(value)}))
        return found

    def _integer_column(self, punctuation: Punctuation) -> str | None:
        if len(punctuation.patterns) != 1:
            return None
        name, pattern = punctuation.patterns[0]
        if not isinstance(pattern, (Constant, OneOf)) or not is_axis(self.schema.field(name).type):
            return None
        return name


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
