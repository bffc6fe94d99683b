"""Values declared finished: as ranges where they are integers, dates or times, so that a million cost kilobytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.punctuation import Constant, OneOf, Part, Pattern, Punctuation, Range, is_below, plain_values
from millstream.core.types import MAX_TIME, MIN_TIME, is_axis, to_axis
from millstream.state.listing import Listing
from millstream.state.ranges import Ranges, runs
from millstream.state.registers import Registers

Mask = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]


class Place(NamedTuple):
    """Where values are kept: the register, the columns that they are of, and the time below which they are closed."""

    name: str
    columns: tuple[str, ...]
    time: str | None


_NOWHERE: frozenset[Place] = frozenset()


class Closed:
    """The value punctuations seen on one arc.

    Neighbouring integers merge into ranges. Other values are kept once, with the time up to which they are closed where the
    punctuation has one (group-wise): the latest is enough. Patterns of another form are kept one by one.
    """

    def __init__(self, schema: pa.Schema, registers: Registers, name: str) -> None:
        self.schema = schema
        self.registers = registers
        self.name = name
        self._known, self._sorted = _NOWHERE, list[Place]()

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
            self.add_keys(columns, time, keys, np.repeat([bound for _, bound in found], [len(arrays[0]) for arrays, _ in found]))
        if others:
            self.registers[self.name] = self.registers.get(self.name, frozenset()) | others

    def _add_range(self, punctuation: Punctuation) -> bool:
        if not self.is_range(punctuation):
            return False
        column, pattern = punctuation.patterns[0]
        first, last = pattern.ends  # type: ignore[attr-defined]
        if first <= last:
            self._hold(column, (np.array([first]), np.array([last])))
        return True

    def is_range(self, punctuation: Punctuation) -> bool:
        """A range of a column whose values lie on an axis."""
        if len(punctuation.patterns) != 1:
            return False
        column, pattern = punctuation.patterns[0]
        return isinstance(pattern, Range) and is_axis(self.schema.field(column).type)

    def add_keys(self, columns: tuple[str, ...], time: str | None, keys: list[pa.Array], bounds: Int64s) -> None:
        """Remember keys, a column of them each, and the time up to which each is closed."""
        if len(columns) == 1 and time is None and is_axis(keys[0].type):
            if not keys[0].null_count:
                self._hold(columns[0], runs(to_axis(keys[0])))
                return
            null = np.asarray(keys[0].is_null())
            self._hold(columns[0], runs(to_axis(keys[0].drop_null())))
            keys, bounds = [keys[0].filter(pa.array(null))], bounds[null]
        place = Place(f"{self.name} by {','.join(columns)} until {time or ''}", columns, time)
        schema = pa.schema([self.schema.field(c) for c in columns])
        self.registers.grow(place.name, Listing, (pa.RecordBatch.from_arrays(keys, schema=schema), bounds.astype(np.int64)))
        self._note(place)

    def news(self, punctuation: Punctuation) -> list[Punctuation]:
        """What a promise says that was not known: of a list of values those that were open."""
        shape = shape_of(punctuation)
        if shape is None or shape[1] is not None or not self:
            return [punctuation]
        keys = values_of(punctuation, shape[0], self.schema)
        fresh = self.bounds(shape[0], None, keys) < MAX_TIME
        if fresh.all():
            return [punctuation]
        return listed(shape[0], None, [key.filter(pa.array(fresh)) for key in keys], np.full(int(fresh.sum()), MAX_TIME))

    def forget(self, columns: tuple[str, ...], keys: list[pa.Array]) -> None:
        """Keys that nobody will bring up again, and that were closed for good."""
        for place, kept in self.places():
            if place.columns != columns or place.time is not None or (isinstance(kept, Ranges) and not kept.many):
                continue
            self.registers.alter(place.name, "shrink", to_axis(keys[0].drop_null()) if isinstance(kept, Ranges) else keys)

    def pass_time(self, time: str, mark: int) -> None:
        """Forget what was closed up to a time that has passed for all."""
        for place, kept in self.places():
            if place.time == time and kept.crowded:
                self.registers.alter(place.name, "sweep", mark)

    def _hold(self, column: str, ranges: tuple[Int64s, Int64s]) -> None:
        self.registers.grow(f"{self.name}:{column}", Ranges, ranges)
        self._note(Place(f"{self.name}:{column}", (column,), None))

    def _note(self, place: Place) -> None:
        known: frozenset[Place] = self.registers.get(f"{self.name} places", frozenset())
        if place not in known:
            self.registers[f"{self.name} places"] = known | {place}

    def __bool__(self) -> bool:
        """There is something that was closed."""
        return self.name in self.registers or f"{self.name} places" in self.registers

    # -- what it means --------------------------------------------------------------------------------------------

    def places(self) -> list[tuple[Place, Any]]:
        known: frozenset[Place] = self.registers.get(f"{self.name} places", _NOWHERE)
        if known is not self._known:
            self._known, self._sorted = known, sorted(known, key=str)
        return [(place, self.registers[place.name]) for place in self._sorted]

    def matches(self, batch: pa.RecordBatch) -> Mask | None:
        """The tuples that some punctuation seen so far says will not come; None when there is none at all."""
        masks: list[Mask] = [punctuation.matches(batch) for punctuation in self.registers.get(self.name, frozenset())]
        masks += [self._matches(place, kept, batch) for place, kept in self.places()]
        return np.logical_or.reduce(masks) if masks else None

    def _matches(self, place: Place, kept: Ranges | Listing, batch: pa.RecordBatch) -> Mask:
        columns = [batch.column(c) for c in place.columns]
        if isinstance(kept, Ranges):
            found = kept.holds(to_axis(columns[0]))
            return found & np.asarray(columns[0].is_valid()) if columns[0].null_count else found
        bounds = kept.bounds(columns)
        times = np.full(batch.num_rows, MIN_TIME + 1) if place.time is None else to_axis(batch.column(place.time))
        mask: Mask = times < bounds
        return mask

    def bounds(self, columns: Sequence[str], time: str | None, keys: list[pa.Array]) -> Int64s:
        """The time up to which keys are closed by punctuations of this form: MAX_TIME for good, MIN_TIME not at all."""
        found = np.full(len(keys[0]), MIN_TIME, dtype=np.int64)
        for place, kept in self.places():
            if place.columns == tuple(columns) and place.time == time:
                if isinstance(kept, Ranges):
                    held = kept.holds(to_axis(keys[0]))
                    found[held & np.asarray(keys[0].is_valid()) if keys[0].null_count else held] = MAX_TIME
                else:
                    found = np.maximum(found, kept.bounds(keys))
        return found

    def ranges(self, column: str) -> Ranges | None:
        kept: Ranges | None = self.registers.get(f"{self.name}:{column}")
        return kept

    def promises(self) -> Iterator[Punctuation]:
        """Punctuations that say together what was closed."""
        yield from self.registers.get(self.name, frozenset())
        for place, kept in self.places():
            if isinstance(kept, Ranges):
                yield from kept.told(place.columns[0], self.schema.field(place.columns[0]).type)
            else:
                keys, bounds = kept.entries
                yield from listed(place.columns, place.time, keys.columns, bounds)

    def broken_by(self, row: pa.RecordBatch) -> Punctuation:
        """A promise that one late tuple breaks."""
        for punctuation in self.registers.get(self.name, frozenset()):
            if punctuation.matches(row).any():
                return punctuation  # type: ignore[no-any-return]
        for place, kept in self.places():
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


def listed(columns: Sequence[str], time: str | None, keys: list[pa.Array], bounds: Int64s) -> list[Punctuation]:
    """Closed keys as punctuations: one list, of values or of combinations; with a time one for each key."""
    if not len(bounds):
        return []
    if len(columns) == 1 and time is None:
        return [Punctuation.of({columns[0]: OneOf(keys[0]) if len(keys[0]) > 1 else Constant(plain_values(keys[0])[0])})]
    if time is None and len(bounds) > 1:
        return [Punctuation.of(Part.all(pa.RecordBatch.from_arrays(keys, names=list(columns))))]
    found = []
    for key, bound in zip(zip(*(plain_values(column) for column in keys), strict=True), bounds, strict=True):
        patterns: dict[str, Pattern] = {c: Constant(value) for c, value in zip(columns, key, strict=True)}
        found.append(Punctuation.of(patterns if time is None else {**patterns, time: Range(high=int(bound))}))
    return found


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
