"""A table of groups: (axis, key) to accumulators, let go by axis (aggregates, duplicate elimination)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.errors import DataProblem
from millstream.kernels import slots as table
from millstream.kernels.compiled import Bools, Int32s, Int64s, UInt64s, given
from millstream.kernels.lives import flag
from millstream.state import journal as journals
from millstream.state import keys
from millstream.state.accumulators import AccumulatorSpec
from millstream.state.bridge import grown, roomy, squeezed
from millstream.state.calendar import Calendar
from millstream.state.chained import Chained
from millstream.state.column_kinds import room
from millstream.state.columns import Columns
from millstream.state.journal import Segment, Segments

_NONE = np.empty(0, dtype=np.int64)
_SMALLEST = 256
_AHEAD = 64


class GroupTable:
    """A group is an axis value (a window, the progressing group column, or 0) and key values; null and NaN are values.

    Group numbers are dense, in order of creation, and hold until the next `upsert`, which may compact at its start.
    """

    def __init__(self, key_schema: pa.Schema, accumulators: Sequence[AccumulatorSpec], *, journal: bool = False) -> None:
        self.key_schema = key_schema
        self.accumulators = tuple(accumulators)
        self._journal = journal
        self._next_serial = 0
        self._clear()

    def _clear(self) -> None:
        self._keys = Columns(self.key_schema)
        self._running = [spec.build() for spec in self.accumulators]
        self._calendar = Calendar()
        self._index(1)
        self._tags: UInt64s = np.empty(0, dtype=np.uint64)
        self._alive: Bools = np.empty(0, dtype=np.bool_)
        self._serials: Int64s = _NONE
        self._touched: Bools = np.empty(0, dtype=np.bool_)
        self._top = 0
        self._living = 0
        self._pace = 0  # how many groups a batch brings, of late
        self._injective = True  # equal hashes have always proved equal keys so far
        self._written = 0  # groups below this one are in the journal
        self._homes: Int32s = np.empty(0, dtype=np.int32)  # the segment that holds a group's latest state
        self._gone: list[Int64s] = []  # serials of groups in the journal that were discarded since
        self._changed: list[Int64s] = []  # groups in the journal that were touched since
        self._chained: dict[tuple[str, ...], Chained] = {}  # by the key columns that somebody has asked for

    # -- groups in and out ----------------------------------------------------------------------------------------

    def upsert(self, key_columns: list[pa.Array], axis: Int64s) -> tuple[Int64s, Int64s]:
        """The group of each position, and the positions that created one: `first[j]` made the j-th new group."""
        axis = given(axis, np.int64)
        hashes, injective = self._hash(key_columns, len(axis))
        self._injective &= injective
        dead = self._top - self._living
        if self._top + min(self._pace, len(axis)) > len(self._tags) and dead * 2 >= self._top and dead >= _SMALLEST:
            self._compact()
        groups, first = np.empty(len(axis), dtype=np.int64), np.empty(len(axis), dtype=np.int64)
        created = self._find(hashes, axis, groups, first)
        if self._injective:
            self._admit(key_columns, first[:created])
        else:
            created = self._separate(key_columns, groups, first, created)
        self._pace = max(created, self._pace // 2)
        return groups, first[:created]

    def lookup(self, key_columns: list[pa.Array], axis: Int64s) -> Int64s:
        """The group of each position, or -1 where there is none; changes nothing."""
        axis = given(axis, np.int64)
        hashes, injective = self._hash(key_columns, len(axis))
        groups, positions = np.full(len(axis), -1, dtype=np.int64), np.arange(len(axis))
        while len(positions):
            table.look_up(self._slots, self._shift, self._tags, self._calendar.axis, hashes, axis, positions, groups)
            if injective and self._injective:
                break
            positions = positions[groups[positions] >= 0]
            chosen = [array.take(pa.array(positions)) for array in key_columns]
            positions = positions[~self._keys.equal(groups[positions], chosen)]
        return groups

    def of(self, names: tuple[str, ...], values: list[pa.Array]) -> Int64s:
        """The alive groups that have one of these combinations of values in some of their key columns, in order of creation."""
        places = [self.key_schema.get_field_index(name) for name in names]

        def hashes_of(groups: Int64s) -> UInt64s:
            return keys.hash_columns([self._keys.take_column(place, groups) for place in places], null_is_value=True)[0]

        wanted, _, _ = keys.hash_columns(values, null_is_value=True)
        which, groups = self._chained.setdefault(names, Chained()).find(wanted, self._top, self._alive, hashes_of)
        chosen = pa.array(which)
        return np.unique(groups[self._keys.equal(groups, [array.take(chosen) for array in values], places)])

    def _hash(self, key_columns: list[pa.Array], rows: int) -> tuple[UInt64s, bool]:
        if not key_columns:
            return np.zeros(rows, dtype=np.uint64), True
        hashes, _, injective = keys.hash_columns(key_columns, null_is_value=True)
        if len(hashes) != rows:
            raise ValueError("arrays of unequal length")
        return hashes, injective

    def _find(self, hashes: UInt64s, axis: Int64s, groups: Int64s, first: Int64s) -> int:
        position, created, ahead = 0, 0, np.empty(_AHEAD + 1, dtype=np.uint64)
        while True:
            position, self._top, created = table.find_or_add(
                self._slots, self._shift, self._tags, self._calendar.axis, self._top, hashes, axis, position, groups, first, created, ahead
            )
            if position == len(hashes):
                return created
            left = len(hashes) - position
            self._resize(room(len(self._tags), self._top + _SMALLEST + (left * created // position if position else 0)))

    def _separate(self, key_columns: list[pa.Array], groups: Int64s, first: Int64s, created: int) -> int:
        """Look at the keys themselves: who met another key behind the same hash goes on to the next group of that hash."""
        self._admit(key_columns, first[:created])
        positions = np.flatnonzero(~self._keys.equal(groups, key_columns))
        while len(positions):
            at, before = 0, created
            while True:
                at, self._top, created = table.find_further(
                    self._slots, self._shift, self._tags, self._calendar.axis, self._top, positions, at, groups, first, created
                )
                if at == len(positions):
                    break
                self._resize(room(len(self._tags), self._top + _SMALLEST))
            self._admit(key_columns, first[before:created])
            chosen = [array.take(pa.array(positions)) for array in key_columns]
            positions = positions[~self._keys.equal(groups[positions], chosen)]
        return created

    def _admit(self, key_columns: list[pa.Array], first: Int64s) -> None:
        """Everything new groups need beside their slots; `top` already counts them."""
        new = len(first)
        if not new:
            return
        if new == len(key_columns[0]) if key_columns else True:
            self._keys.append_arrays(key_columns, new)
        else:
            chosen = pa.array(first)
            self._keys.append_arrays([array.take(chosen) for array in key_columns], new)
        self._alive[self._top - new : self._top] = True
        for accumulator in self._running:
            accumulator.begin(self._top - new, self._top)
        self._calendar.add_written(new)
        self._living += new
        if self._journal:
            self._touched[self._top - new : self._top] = False
            self._serials[self._top - new : self._top] = np.arange(self._next_serial, self._next_serial + new)
            self._next_serial += new

    def _resize(self, capacity: int) -> None:
        top = self._top
        self._tags = grown(self._tags, capacity, top)
        self._alive = grown(self._alive, capacity, top)
        self._calendar.reserve(capacity, top)
        for accumulator in self._running:
            accumulator.reserve(capacity, top)
        if self._journal:
            self._serials = grown(self._serials, capacity, top)
            self._touched = grown(self._touched, capacity, top)
            self._homes = grown(self._homes, capacity, top)
        if 2 * capacity > len(self._slots):
            old = self._slots
            self._index(capacity)
            table.transfer(old, self._slots, self._shift)

    def _index(self, capacity: int) -> None:
        """Empty slots, so many that `capacity` groups fill half of them at most."""
        bits = (2 * capacity).bit_length()
        if bits > 31:
            raise DataProblem("more than a billion groups in one table", hint="use more buckets")
        self._slots = np.zeros(1 << bits, dtype=np.uint64)
        self._shift = np.uint64(64 - bits)

    def _compact(self) -> None:
        """Give the living groups new numbers, in the same order."""
        groups = self.alive()
        capacity = roomy(len(self._tags), max(len(groups) + self._pace, _SMALLEST))
        same_room = capacity == len(self._tags)
        self._written = int(np.searchsorted(groups, self._written))
        self._chained = {}
        self._keys.keep(groups)
        self._calendar.keep(groups, capacity)
        for accumulator in self._running:
            accumulator.keep(groups, capacity)
        self._tags = squeezed(self._tags, groups, capacity)
        if self._journal:
            self._serials = squeezed(self._serials, groups, capacity)
            self._touched = squeezed(self._touched, groups, capacity)
            self._homes = squeezed(self._homes, groups, capacity)
            self._changed = [np.flatnonzero(self._touched[: self._written])]
        self._alive = np.ones(capacity, dtype=np.bool_)
        self._top = len(groups)
        self._slots.fill(0) if same_room else self._index(capacity)
        table.rebuild(self._slots, self._shift, self._tags, self._top)

    def discard(self, groups: Int64s) -> None:
        """The groups are dead; the same key begins anew."""
        buried = np.empty(len(groups), dtype=np.int64)
        groups = buried[: table.bury(self._alive, self._tags, given(groups, np.int64), buried)]
        self._living -= len(groups)
        if self._journal:
            self._gone.append(self._serials[groups[groups < self._written]])

    # -- accumulators ---------------------------------------------------------------------------------------------

    def update(self, i: int, groups: Int64s, values: pa.Array | None = None, mask: Bools | None = None) -> None:
        """Fold values into accumulator i of their groups; `values` None counts tuples."""
        self._touch(groups)
        self._running[i].update(groups, values, mask)

    def merge(self, i: int, groups: Int64s, state: list[pa.Array]) -> None:
        """Fold partial aggregates (columns of the spec's `state_schema`) into accumulator i."""
        self._touch(groups)
        self._running[i].merge(given(groups, np.int64), state)

    def _touch(self, groups: Int64s) -> None:
        if self._journal:
            fresh = np.empty(len(groups), dtype=np.int64)
            fresh = fresh[: flag(self._touched, given(groups, np.int64), fresh)]
            self._changed.append(fresh[fresh < self._written])

    def state(self, i: int, groups: Int64s) -> list[pa.Array]:
        """Accumulator i as partial aggregates."""
        return self._running[i].state(groups)

    def values(self, i: int, groups: Int64s) -> pa.Array:
        """What accumulator i has come to."""
        return self._running[i].result(groups)

    def keys(self, groups: Int64s) -> pa.RecordBatch:
        return self._keys.take(groups)

    def axis(self, groups: Int64s) -> Int64s:
        return self._calendar.axis[groups]

    def result(self, groups: Int64s) -> tuple[pa.RecordBatch, Int64s, list[pa.Array]]:
        return self.keys(groups), self.axis(groups), [accumulator.result(groups) for accumulator in self._running]

    # -- by time --------------------------------------------------------------------------------------------------

    def expire(self, mark: int) -> Int64s:
        """The alive groups with axis < mark, in order of creation. They stay until discarded."""
        return self._calendar.due(mark, self._alive)

    @property
    def earliest(self) -> int:
        """The least axis value of an alive group; MAX_TIME when there is none."""
        return self._calendar.earliest(self._alive) if self._living else MAX_TIME

    @property
    def latest(self) -> int:
        """A mark beyond this lets go every group that any mark lets go; MAX_TIME when there is none."""
        return self._calendar.aim if self._living and self._calendar.latest > MIN_TIME else MAX_TIME

    def alive(self) -> Int64s:
        return np.flatnonzero(self._alive[: self._top])

    def __len__(self) -> int:
        return self._living

    @property
    def nbytes(self) -> int:
        own = sum(array.nbytes for array in (self._slots, self._tags, self._alive, self._serials, self._touched, self._homes))
        own += self._calendar.nbytes + self._keys.nbytes + sum(chained.nbytes for chained in self._chained.values())
        return own + sum(accumulator.nbytes for accumulator in self._running)

    # -- journal --------------------------------------------------------------------------------------------------

    def changes(self, number: int = 0, since: int = 0) -> Segment | None:
        """Segment `number`: groups that came, changed or went since the last one, and those written before segment `since`;
        None when there are none."""
        if not self._journal:
            raise RuntimeError("this table keeps no journal")
        changed = journals.joined(self._changed)
        old = changed[self._alive[changed]]
        if since:
            left = (self._homes[: self._written] < since) & self._alive[: self._written]
            left[old] = True
            old = np.flatnonzero(left)
        groups = np.concatenate([old, self._written + np.flatnonzero(self._alive[self._written : self._top])])
        gone = journals.joined(self._gone)
        self._touched[changed] = False
        self._touched[self._written : self._top] = False
        self._written, self._gone, self._changed = self._top, [], []
        if not (len(groups) or len(gone)):
            return None
        self._homes[groups] = number
        numbers = {"serial": self._serials[groups], "axis": self.axis(groups), "gone": gone}
        states = [self._state_batch(i, groups) for i in range(len(self._running))]
        header = {"container": "groups", "next": self._next_serial}
        return Segment(journals.pack(header, numbers, [self.keys(groups), *states]), len(groups))

    def _state_batch(self, i: int, groups: Int64s) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self.state(i, groups), schema=self.accumulators[i].state_schema)

    def restore(self, segments: Segments) -> None:
        """Become what the segments say, of which the oldest may have been dropped."""
        self._clear()
        serials, axis, gone, homes, batches = [], [], [], [], []
        next_serial = 0
        for number, segment in segments:
            header, numbers, found = journals.unpack(segment)
            serials.append(numbers["serial"])
            axis.append(numbers["axis"])
            gone.append(numbers["gone"])
            homes.append(np.full(len(numbers["serial"]), number, dtype=np.int64))
            batches.append(found)
            next_serial = header["next"]
        if not batches:
            return
        kept = journals.latest(journals.joined(serials), journals.joined(gone))
        key_batch, *states = (pa.concat_batches(column).take(pa.array(kept)) for column in zip(*batches, strict=True))
        groups, first = self.upsert(key_batch.columns, journals.joined(axis)[kept])
        assert len(first) == len(kept), "two groups with one key"
        for accumulator, state in zip(self._running, states, strict=True):
            accumulator.load(groups, state.columns)
        self._next_serial = next_serial
        if self._journal:
            self._serials[groups] = journals.joined(serials)[kept]
            self._homes[groups] = journals.joined(homes)[kept]
            self._touched[: self._top] = False
        self._written = self._top
