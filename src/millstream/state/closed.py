"""Values declared finished: as ranges where they are integers, dates or times, so that a million cost kilobytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.punctuation import Constant, OneOf, Part, Pattern, Punctuation, Range, is_below, plain_values
from millstream.core.types import MAX_TIME, MIN_TIME, from_axis, is_axis, to_axis
from millstream.state.listing import Listing
from millstream.state.ranges import Ranges, runs
from millstream.state.registers import Registers

Mask = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

SHOWN = 64
"""Values of a range up to which it is told as a list."""


class _Place(NamedTuple):
    """Where values are kept: the register, the columns that they are of, and the time below which they are closed."""

    name: str
    columns: tuple[str, ...]
    time: str | None


class Closed:
    """The value punctuations seen on one arc.

    Neighbouring integers merge into ranges. Other values are kept once, with the time up to which they are closed where the
    punctuation has one (group-wise): the latest is enough. Patterns of another form are kept one by one.
    """

    def __init__(self, schema: pa.Schema, registers: Registers, name: str) -> None:
        self.schema = schema
        self.registers = registers
        self.name = name

    # -- what came ------------------------------------------------------------------------------------------------

    def add(self, punctuations: Sequence[Punctuation]) -> None:
        """Remember promises; many at once cost one look at what is known."""
        lists: dict[tuple[tuple[str, ...], str | None], list[tuple[list[pa.Array], int]]] = {}
        others: set[Punctuation] = set()
        for punctuation in punctuations:
            if self._add_range(punctuation):
                continue
            shape = shape_of(punctuation)
            if shape is None:
                others.add(punctuation)
                continue
            columns, time, bound = shape
            lists.setdefault((columns, time), []).append((values_of(punctuation, columns, self.schema), bound))
        for (columns, time), found in lists.items():
            keys = [pa.concat_arrays([arrays[i] for arrays, _ in found]) for i in range(len(columns))]
            self._list(columns, time, keys, np.repeat([bound for _, bound in found], [len(arrays[0]) for arrays, _ in found]))
        if others:
            self.registers[self.name] = self.registers.get(self.name, frozenset()) | others

    def _add_range(self, punctuation: Punctuation) -> bool:
        """A range of a column whose values lie on an axis."""
        if len(punctuation.patterns) != 1:
            return False
        column, pattern = punctuation.patterns[0]
        if not isinstance(pattern, Range) or not is_axis(self.schema.field(column).type):
            return False
        first, last = pattern.ends
        if first <= last:
            self._hold(column, (np.array([first]), np.array([last])))
        return True

    def _list(self, columns: tuple[str, ...], time: str | None, keys: list[pa.Array], bounds: Int64s) -> None:
        if len(columns) == 1 and time is None and is_axis(keys[0].type):
            if not keys[0].null_count:
                self._hold(columns[0], runs(to_axis(keys[0])))
                return
            null = np.asarray(keys[0].is_null())
            self._hold(columns[0], runs(to_axis(keys[0].drop_null())))
            keys, bounds = [keys[0].filter(pa.array(null))], bounds[null]
        place = _Place(f"{self.name} by {','.join(columns)} until {time or ''}", columns, time)
        schema = pa.schema([self.schema.field(c) for c in columns])
        self.registers.grow(place.name, Listing, (pa.RecordBatch.from_arrays(keys, schema=schema), bounds.astype(np.int64)))
        self._note(place)

    def _hold(self, column: str, ranges: tuple[Int64s, Int64s]) -> None:
        self.registers.grow(f"{self.name}:{column}", Ranges, ranges)
        self._note(_Place(f"{self.name}:{column}", (column,), None))

    def _note(self, place: _Place) -> None:
        known: frozenset[_Place] = self.registers.get(f"{self.name} places", frozenset())
        if place not in known:
            self.registers[f"{self.name} places"] = known | {place}

    def __bool__(self) -> bool:
        """There is something that was closed."""
        return self.name in self.registers or f"{self.name} places" in self.registers

    # -- what it means --------------------------------------------------------------------------------------------

    def _places(self) -> list[tuple[_Place, Any]]:
        return [(place, self.registers[place.name]) for place in sorted(self.registers.get(f"{self.name} places", frozenset()), key=str)]

    def matches(self, batch: pa.RecordBatch) -> Mask | None:
        """The tuples that some punctuation seen so far says will not come; None when there is none at all."""
        masks: list[Mask] = [punctuation.matches(batch) for punctuation in self.registers.get(self.name, frozenset())]
        masks += [self._matches(place, kept, batch) for place, kept in self._places()]
        return np.logical_or.reduce(masks) if masks else None

    def _matches(self, place: _Place, kept: Ranges | Listing, batch: pa.RecordBatch) -> Mask:
        columns = [batch.column(c) for c in place.columns]
        if isinstance(kept, Ranges):
            found = kept.holds(to_axis(columns[0]))
            return found & np.asarray(columns[0].is_valid()) if columns[0].null_count else found
        bounds = kept.bounds(columns)
        times = np.full(batch.num_rows, MIN_TIME + 1) if place.time is None else to_axis(batch.column(place.time))
        mask: Mask = times < bounds
        return mask

    def promises(self) -> Iterator[Punctuation]:
        """Punctuations that say together what was closed."""
        yield from self.registers.get(self.name, frozenset())
        for place, kept in self._places():
            if isinstance(kept, Ranges):
                yield from told(place.columns[0], self.schema.field(place.columns[0]).type, kept)
                continue
            keys, bounds = kept.entries
            if len(place.columns) == 1 and place.time is None:
                yield Punctuation.of({place.columns[0]: OneOf(keys.column(0))})
                continue
            if place.time is None:
                yield Punctuation.of(Part.all(keys))
                continue
            rows = zip(*(plain_values(column) for column in keys.columns), strict=True)
            for key, bound in zip(rows, bounds, strict=True):
                patterns: dict[str, Pattern] = {c: Constant(value) for c, value in zip(place.columns, key, strict=True)}
                yield Punctuation.of({**patterns, place.time: Range(high=int(bound))})

    def broken_by(self, row: pa.RecordBatch) -> Punctuation:
        """A promise that one late tuple breaks."""
        for punctuation in self.registers.get(self.name, frozenset()):
            if punctuation.matches(row).any():
                return punctuation  # type: ignore[no-any-return]
        for place, kept in self._places():
            if self._matches(place, kept, row)[0]:
                patterns: dict[str, Pattern] = {c: Constant(plain_values(row.column(c))[0]) for c in place.columns}
                if place.time is not None:
                    assert isinstance(kept, Listing)
                    patterns[place.time] = Range(high=int(kept.bounds([row.column(c) for c in place.columns])[0]))
                return Punctuation.of(patterns)
        raise ValueError("this tuple breaks no promise")


def shape_of(punctuation: Punctuation) -> tuple[tuple[str, ...], str | None, int] | None:
    """Columns with values, and the column and bound of one time below a mark; None for other forms."""
    columns: list[str] = []
    time, bound = None, MAX_TIME
    for name, pattern in punctuation.patterns:
        if isinstance(pattern, (Constant, OneOf, Part)):
            columns.append(name)
        elif time is None and is_below(pattern):
            time, bound = name, pattern.high  # type: ignore[attr-defined]
        else:
            return None
    lists = {id(p.rows) if isinstance(p, Part) else name for name, p in punctuation.patterns if isinstance(p, (OneOf, Part))}
    alone = len(columns) == 1 or all(isinstance(p, Part) for name, p in punctuation.patterns if name in columns)
    return (tuple(columns), time, bound) if columns and (not lists or (len(lists) == 1 and alone)) else None


def values_of(punctuation: Punctuation, columns: Sequence[str], schema: pa.Schema) -> list[pa.Array]:
    """The value combinations that a punctuation of one list, or of constants, stands for; a column each."""
    found = []
    for name in columns:
        pattern, kind = punctuation.pattern(name), schema.field(name).type
        if isinstance(pattern, (OneOf, Part)):
            found.append(pattern.array(kind))
        else:
            assert isinstance(pattern, Constant)
            found.append(pa.array([pattern.value], type=kind))
    return found


def told(column: str, kind: pa.DataType, kept: Ranges) -> Iterator[Punctuation]:
    """Short ranges as one list of their values, each longer one as a range."""
    firsts, lasts = kept.ranges
    wide = lasts.view(np.uint64) - firsts.view(np.uint64) >= SHOWN
    for first, last in zip(firsts[wide].tolist(), lasts[wide].tolist(), strict=True):
        low, high = (None if first == MIN_TIME else first), (None if last == MAX_TIME else last)
        yield Punctuation.of({column: Range(low=low, high=high, high_inclusive=True)})
    if not wide.all():
        values = np.concatenate([np.arange(a, b + 1) for a, b in zip(firsts[~wide], lasts[~wide], strict=True)])
        yield Punctuation.of({column: OneOf(from_axis(values, kind))})
