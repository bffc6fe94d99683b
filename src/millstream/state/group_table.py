"""A table of groups: (axis, key) to accumulators, let go by axis (aggregates, duplicate elimination)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.errors import DataProblem
from millstream.kernels import slots as table
from millstream.kernels.compiled import Bools, Int64s, UInt64s, given
from millstream.state import journal as journals
from millstream.state import keys
from millstream.state.accumulators import AccumulatorSpec
from millstream.state.bridge import grown, roomy, squeezed
from millstream.state.calendar import Calendar
from millstream.state.column_kinds import room
from millstream.state.columns import Columns

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
        self._gone: list[Int64s] = []  # serials of groups in the journal that were discarded since

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
        self._keys.keep(groups)
        self._calendar.keep(groups, capacity)
        for accumulator in self._running:
            accumulator.keep(groups, capacity)
        self._tags = squeezed(self._tags, groups, capacity)
        if self._journal:
            self._serials = squeezed(self._serials, groups, capacity)
            self._touched = squeezed(self._touched, groups, capacity)
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
            self._serials[groups] = -1  # another copy may give the number of a group never written to one of its own

    # -- accumulators ---------------------------------------------------------------------------------------------

    def update(self, i: int, groups: Int64s, values: pa.Array | None = None, mask: Bools | None = None) -> None:
        """Fold values into accumulator i of their groups; `values` None counts tuples."""
        if self._journal:
            self._touched[groups] = True
        self._running[i].update(groups, values, mask)

    def merge(self, i: int, groups: Int64s, state: list[pa.Array]) -> None:
        """Fold partial aggregates (columns of the spec's `state_schema`) into accumulator i."""
        if self._journal:
            self._touched[groups] = True
        self._running[i].merge(given(groups, np.int64), state)

    def state(self, i: int, groups: Int64s) -> list[pa.Array]:
        """Accumulator i as partial aggregates."""
        return self._running[i].state(groups)

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
        return self._calendar.latest if self._living and self._calendar.latest > MIN_TIME else MAX_TIME

    def match(self, mask_of: Callable[[pa.RecordBatch, Int64s], Bools]) -> Int64s:
        """The alive groups for which a function of (keys, axis) is True: looks at all of them."""
        groups = self.alive()
        return groups[mask_of(self.keys(groups), self.axis(groups))]

    def alive(self) -> Int64s:
        return np.flatnonzero(self._alive[: self._top])

    def __len__(self) -> int:
        return self._living

    @property
    def nbytes(self) -> int:
        own = sum(array.nbytes for array in (self._slots, self._tags, self._alive, self._serials, self._touched))
        return own + self._calendar.nbytes + self._keys.nbytes + sum(accumulator.nbytes for accumulator in self._running)

    # -- journal --------------------------------------------------------------------------------------------------

    def changes(self) -> bytes | None:
        """Groups that came, changed or went since the last call; None when there are none."""
        if not self._journal:
            raise RuntimeError("this table keeps no journal")
        fresh = self._touched[: self._top] & self._alive[: self._top]
        fresh[self._written :] = self._alive[self._written : self._top]
        groups = np.flatnonzero(fresh)
        gone = np.concatenate(self._gone) if self._gone else _NONE
        if not (len(groups) or len(gone)):
            self._wrote()
            return None
        return self._segment("changes", groups, gone)

    def snapshot(self) -> bytes:
        """All groups; the journal goes on from here."""
        return self._segment("snapshot", self.alive(), _NONE)

    def _wrote(self) -> None:
        self._written, self._gone = self._top, []
        self._touched[: self._top] = False

    def _segment(self, kind: str, groups: Int64s, gone: Int64s) -> bytes:
        serials = self._serials[groups] if self._journal else np.arange(len(groups))
        header = {"container": "groups", "kind": kind, "next": self._next_serial if self._journal else len(groups)}
        numbers = journals.numbers(serial=serials, axis=self.axis(groups))
        states = [self._state_batch(i, groups) for i in range(len(self._running))]
        parts = [numbers, journals.numbers(serial=gone), self.keys(groups), *states]
        self._wrote()
        return journals.pack(header, parts)

    def _state_batch(self, i: int, groups: Int64s) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self.state(i, groups), schema=self.accumulators[i].state_schema)

    def restore(self, segments: Iterable[bytes]) -> None:
        """Become what the segments say: a snapshot (or nothing) and the changes that followed it."""
        keeps_journal, self._journal = self._journal, True
        self._clear()
        self.advance(segments)
        self._journal = keeps_journal
        if not keeps_journal:
            self._serials, self._touched = _NONE, np.empty(0, dtype=np.bool_)

    def advance(self, segments: Iterable[bytes]) -> None:
        """Follow the changes that came after the state at hand was written."""
        for segment in segments:
            header, (numbers, gone, key_batch, *states) = journals.unpack(segment)
            if header["kind"] == "snapshot":
                self._clear()
            self.discard(journals.places(self._serials[: self._top], journals.column(gone, "serial")))
            serials, axis = journals.column(numbers, "serial"), journals.column(numbers, "axis")
            new = np.flatnonzero(serials > self._serials[: self._top].max(initial=-1))
            _, first = self.upsert([array.take(pa.array(new)) for array in key_batch.columns], axis[new])
            assert len(first) == len(new), "two groups with one key"
            self._serials[self._top - len(new) : self._top] = serials[new][first]  # colliding hashes come out of order
            groups = journals.places(self._serials[: self._top], serials)
            for accumulator, state in zip(self._running, states, strict=True):
                accumulator.load(groups, state.columns)
            self._next_serial = header["next"]
        self._wrote()
