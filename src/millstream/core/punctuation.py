"""A punctuation is a promise in the stream: no later tuple on this arc matches its patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.types import MAX_TIME, MIN_TIME

Mask = npt.NDArray[np.bool_]


class Pattern:
    """What one attribute's values must be for a tuple to match (paper 004, section 3.2)."""

    def matches(self, values: pa.Array) -> Mask:
        raise NotImplementedError

    def covers(self, other: Pattern) -> bool:
        """True when every value that `other` matches is matched by this pattern too."""
        raise NotImplementedError


NAN = float("nan")


def plain_values(array: pa.Array) -> list[Any]:
    """Python values that are equal where keys are: times as their int64, one NaN, no -0.0."""
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        return [None if not v.is_valid else v.value for v in array]
    if pa.types.is_floating(array.type):
        return [v if v is None else NAN if v != v else v + 0.0 for v in array.to_pylist()]
    return array.to_pylist()  # type: ignore[no-any-return]


def _mask(values: pa.Array) -> Mask:
    """A null comparison does not match: SQL's rule."""
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


@dataclass(frozen=True)
class Wildcard(Pattern):
    """Any value, null included. An attribute that a punctuation does not mention is a wildcard."""

    def matches(self, values: pa.Array) -> Mask:
        return np.ones(len(values), dtype=np.bool_)

    def covers(self, other: Pattern) -> bool:
        return True


@dataclass(frozen=True)
class Empty(Pattern):
    """No value at all: a punctuation with it promises nothing."""

    def matches(self, values: pa.Array) -> Mask:
        return np.zeros(len(values), dtype=np.bool_)

    def covers(self, other: Pattern) -> bool:
        return isinstance(other, Empty)


@dataclass(frozen=True)
class Constant(Pattern):
    """Exactly this value; `None` stands for null."""

    value: Any

    def matches(self, values: pa.Array) -> Mask:
        if self.value is None:
            return _mask(pc.is_null(values))
        if self.value != self.value:
            return _mask(pc.is_nan(values))  # as a key NaN is one value, equal to itself
        return _mask(pc.equal(values, pa.scalar(self.value, type=values.type)))

    def covers(self, other: Pattern) -> bool:
        return isinstance(other, Empty) or other == self or (isinstance(other, OneOf) and other.values == (self.value,))


class OneOf(Pattern):
    """Any value of a list: plain values, or an Arrow array of the column's type, which a million values need."""

    __slots__ = ("_array", "_values")
    __match_args__ = ("values",)

    def __init__(self, values: Sequence[Any] | pa.Array) -> None:
        self._array: pa.Array | None = values if isinstance(values, pa.Array) else None
        self._values: tuple[Any, ...] | None = None if isinstance(values, pa.Array) else tuple(values)

    @property
    def values(self) -> tuple[Any, ...]:
        if self._values is None:
            self._values = tuple(plain_values(self._array))
        return self._values

    def array(self, kind: pa.DataType | None) -> pa.Array:
        """The values as a column of this type, or of their own."""
        if self._array is None:
            return pa.array(self._values, type=kind)
        return self._array if kind is None or self._array.type == kind else self._array.cast(kind)

    def __len__(self) -> int:
        return len(self.values) if self._array is None else len(self._array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneOf) and self.values == other.values

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return f"OneOf({self.values})"

    def matches(self, values: pa.Array) -> Mask:
        known = self.array(values.type)
        if pa.types.is_floating(values.type):
            values, known = pc.add(values, 0.0), pc.add(known, 0.0)  # -0.0 becomes 0.0
        return _mask(pc.is_in(values, value_set=known))

    def covers(self, other: Pattern) -> bool:
        if isinstance(other, Constant):
            return other.value in self.values
        if isinstance(other, OneOf):
            return set(other.values) <= set(self.values)
        return isinstance(other, Empty)


class Part(Pattern):
    """One column of a list of combinations; a punctuation has all of its columns, and they match together."""

    __slots__ = ("index", "rows")

    def __init__(self, rows: pa.RecordBatch, index: int) -> None:
        self.rows, self.index = rows, index

    @classmethod
    def all(cls, rows: pa.RecordBatch) -> Mapping[str, Pattern]:
        """A pattern for each column of the combinations."""
        return {name: cls(rows, index) for index, name in enumerate(rows.schema.names)}

    def array(self, kind: pa.DataType) -> pa.Array:
        """This column's values, one for each combination."""
        return self.rows.column(self.index).cast(kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self.index == other.index and (self.rows is other.rows or self.rows.equals(other.rows))

    def __hash__(self) -> int:
        return hash((self.index, self.rows.num_rows))

    def __repr__(self) -> str:
        return f"Part({self.index} of {self.rows.num_rows} combinations)"

    def covers(self, other: Pattern) -> bool:
        return self == other or isinstance(other, Empty)


def _together(parts: Sequence[Part], columns: Sequence[pa.Array]) -> Mask:
    """Where the columns have one of the combinations: each prefix of one is a number, which grows by a column at a time."""
    known = np.zeros(parts[0].rows.num_rows, dtype=np.int64)
    asked = np.zeros(len(columns[0]), dtype=np.int64)
    fits = np.ones(len(columns[0]), dtype=np.bool_)
    for part, column in zip(parts, columns, strict=True):
        values = part.array(column.type)
        if pa.types.is_floating(column.type):
            values, column = pc.add(values, 0.0), pc.add(column, 0.0)
        distinct = values.unique()
        known = known * len(distinct) + pc.index_in(values, value_set=distinct).to_numpy()
        found = pc.index_in(column, value_set=distinct)
        asked = asked * len(distinct) + found.fill_null(0).to_numpy()
        fits &= np.asarray(found.is_valid())
        numbers = np.unique(known)
        at = np.minimum(np.searchsorted(numbers, asked), len(numbers) - 1)
        fits &= numbers[at] == asked
        known, asked = np.searchsorted(numbers, known), at
    return fits


@dataclass(frozen=True)
class NoneOf(Pattern):
    """Any value but those of a list, and but null: what a list of the values that can occur leaves over."""

    values: tuple[Any, ...]

    def matches(self, values: pa.Array) -> Mask:
        return _mask(pc.is_valid(values)) & ~OneOf(self.values).matches(values)

    def covers(self, other: Pattern) -> bool:
        if isinstance(other, Constant):
            return other.value is not None and not OneOf(self.values).covers(other)
        if isinstance(other, OneOf):
            return all(self.covers(Constant(value)) for value in other.values)
        if isinstance(other, NoneOf):
            return OneOf(other.values).covers(OneOf(self.values))
        return isinstance(other, Empty)


@dataclass(frozen=True)
class Range(Pattern):
    """Values from `low` to `high`, each end inclusive or not; `None` leaves an end open."""

    low: Any = None
    high: Any = None
    low_inclusive: bool = True
    high_inclusive: bool = False

    def matches(self, values: pa.Array) -> Mask:
        mask = _mask(pc.is_valid(values))
        if self.low is not None:
            compare = pc.greater_equal if self.low_inclusive else pc.greater
            mask &= _mask(compare(values, pa.scalar(self.low, type=values.type)))
        if self.high is not None:
            compare = pc.less_equal if self.high_inclusive else pc.less
            mask &= _mask(compare(values, pa.scalar(self.high, type=values.type)))
        return mask

    @property
    def ends(self) -> tuple[int, int]:
        """On an axis: the first and the last value that match."""
        first = MIN_TIME if self.low is None else int(self.low) + (not self.low_inclusive)
        last = MAX_TIME if self.high is None else int(self.high) - (not self.high_inclusive)
        return first, last

    def _holds(self, value: Any) -> bool:
        if value is None:
            return False
        if self.low is not None and (value < self.low or (value == self.low and not self.low_inclusive)):
            return False
        return not (self.high is not None and (value > self.high or (value == self.high and not self.high_inclusive)))

    def covers(self, other: Pattern) -> bool:
        if isinstance(other, Constant):
            return self._holds(other.value)
        if isinstance(other, OneOf):
            return all(self._holds(value) for value in other.values)
        if isinstance(other, Range):
            low_ok = self.low is None or (
                other.low is not None
                and (other.low > self.low or (other.low == self.low and (self.low_inclusive or not other.low_inclusive)))
            )
            high_ok = self.high is None or (
                other.high is not None
                and (other.high < self.high or (other.high == self.high and (self.high_inclusive or not other.high_inclusive)))
            )
            return low_ok and high_ok
        return isinstance(other, Empty)


def is_below(pattern: Pattern) -> bool:
    """Everything below a mark on an axis."""
    return isinstance(pattern, Range) and pattern.low is None and isinstance(pattern.high, int) and not pattern.high_inclusive


@dataclass(frozen=True)
class Punctuation:
    """A pattern per attribute; attributes not named are wildcards, so `Punctuation(())` ends the stream."""

    patterns: tuple[tuple[str, Pattern], ...]

    @classmethod
    def of(cls, patterns: Mapping[str, Pattern]) -> Punctuation:
        kept = sorted((name, p) for name, p in patterns.items() if not isinstance(p, Wildcard))
        return cls(tuple(kept))

    @classmethod
    def linear(cls, attribute: str, mark: Any) -> Punctuation:
        """No later tuple has `attribute < mark`; equality is allowed."""
        return cls(((attribute, Range(high=mark)),))

    @classmethod
    def end(cls) -> Punctuation:
        """Matches everything: the stream is over."""
        return cls(())

    @property
    def is_end(self) -> bool:
        return not self.patterns

    @property
    def is_linear(self) -> bool:
        """One attribute, everything below a mark."""
        if len(self.patterns) != 1:
            return False
        pattern = self.patterns[0][1]
        return isinstance(pattern, Range) and pattern.low is None and pattern.high is not None and not pattern.high_inclusive

    @property
    def count(self) -> int:
        """How many values it speaks of, where it lists them; otherwise it is one promise."""
        found = 1
        for _, pattern in self.patterns:
            found *= len(pattern) if isinstance(pattern, OneOf) else 1
        return found

    def pattern(self, attribute: str) -> Pattern:
        return dict(self.patterns).get(attribute, Wildcard())

    def matches(self, batch: pa.RecordBatch) -> Mask:
        """The tuples of the batch that this punctuation promises not to come."""
        mask = np.ones(batch.num_rows, dtype=np.bool_)
        parts: dict[int, list[tuple[Part, pa.Array]]] = {}
        for name, pattern in self.patterns:
            if isinstance(pattern, Part):
                parts.setdefault(id(pattern.rows), []).append((pattern, batch.column(name)))
            else:
                mask &= pattern.matches(batch.column(name))
        for found in parts.values():
            mask &= _together([part for part, _ in found], [column for _, column in found])
        return mask

    def covers(self, other: Punctuation) -> bool:
        """True when this promise implies the other."""
        return all(pattern.covers(other.pattern(name)) for name, pattern in self.patterns)

    def renamed(self, names: Mapping[str, str]) -> Punctuation | None:
        """The same promise under new names, or None when a named attribute is gone, or two that differ become one."""
        found: dict[str, Pattern] = {}
        for name, pattern in self.patterns:
            if name not in names or found.setdefault(names[name], pattern) != pattern:
                return None
        return Punctuation.of(found)

    def __str__(self) -> str:
        return self.shown(None)

    def shown(self, schema: pa.Schema | None) -> str:
        """For people: times of the schema's columns as times, not as microseconds."""
        if self.is_end:
            return "<end>"
        return "<" + ", ".join(f"{name} {_show(pattern, _writer(schema, name))}" for name, pattern in self.patterns) + ">"


def _writer(schema: pa.Schema | None, name: str) -> Callable[[Any], str]:
    if schema is None or name not in schema.names or not pa.types.is_temporal(schema.field(name).type):
        return lambda value: "NULL" if value is None else str(value)
    kind = schema.field(name).type
    return lambda value: "NULL" if value is None else str(pa.scalar(value, type=kind).cast(pa.string()))


def _show(pattern: Pattern, write: Callable[[Any], str]) -> str:
    match pattern:
        case Constant(value):
            return f"= {write(value)}"
        case OneOf(values):
            return f"in [{', '.join(write(value) for value in values)}]"
        case Part():
            return f"of {pattern.rows.num_rows} combinations"
        case NoneOf(values):
            return f"not in [{', '.join(write(value) for value in values)}]"
        case Range(low, high, low_inclusive, high_inclusive):
            if low is None:
                return f"{'<=' if high_inclusive else '<'} {write(high)}"
            if high is None:
                return f"{'>=' if low_inclusive else '>'} {write(low)}"
            return f"in {'[' if low_inclusive else '('}{write(low)}, {write(high)}{']' if high_inclusive else ')'}"
        case Empty():
            return "none"
    return "*"
