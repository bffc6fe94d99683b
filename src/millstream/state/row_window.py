"""A window of rows: stored tuples found by key hash and interval, and let go by time (joins, sorts, sequences).

The structure is PWJoin's: a time list (the calendar) and value lists (the chains) over one set of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from millstream.core.types import MAX_TIME, MIN_TIME, to_axis
from millstream.kernels import chains
from millstream.kernels.compiled import Bools, Int32s, Int64s, UInt64s, given
from millstream.kernels.lives import bury, flag
from millstream.state import journal as journals
from millstream.state.bridge import grown, roomy, squeezed
from millstream.state.calendar import Calendar
from millstream.state.chained import Chained
from millstream.state.column_kinds import room
from millstream.state.columns import Columns
from millstream.state.index import Index
from millstream.state.journal import Segment, Segments
from millstream.state.keys import hash_columns, hash_rows
from millstream.state.ordered import Ordered
from millstream.state.rings import Rings

_NONE = np.empty(0, dtype=np.int64)
_STALE = -1
"""Instead of the segment that holds a row: none does as it is now."""


class RowWindow:
    """Each row has a key hash, covers an interval [low, high] of the other side's time, and expires by its own axis.

    Row numbers are dense, in order of insertion, and hold until the next `insert`, which may compact: the
    memory of dead rows comes back when they are half of all and the window has to grow.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        keys: tuple[str, ...] | None = None,
        also: Sequence[tuple[str, ...]] = (),
        journal: bool = False,
        indexed: bool = True,
    ) -> None:
        """`keys` are the columns whose `hash_columns` the hashes are; where they are given, the journal leaves the hashes out.

        `also` are columns by which rows are to be found, too. Without an index a probe looks at every row that time has left
        in reach (nested loops).
        """
        self.schema = schema
        self._key_columns = keys
        self._also = tuple(also)
        self._indexed = indexed
        self._journal = journal
        self._numbered = journal
        self._next_serial = 0
        self._clear()

    def _clear(self) -> None:
        self._columns = Columns(self.schema)
        self._calendar = Calendar()
        self._indexes = [Index(self._indexed) for _ in (self._key_columns, *self._also)]
        self._alive: Bools = np.empty(0, dtype=np.bool_)
        self._matched: Bools = np.empty(0, dtype=np.bool_)
        self._serials: Int64s = _NONE
        self._homes: Int32s = np.empty(0, dtype=np.int32)  # the segment that holds a row
        self._top = 0
        self._living = 0
        self._written = 0  # rows below this one are in the journal
        self._gone: list[Int64s] = []  # serials of rows in the journal that were discarded since
        self._flagged: list[Int64s] = []  # the same for matched flags
        self._stale = False  # whether a row in the journal expires later than it says
        self._rings = Rings()
        self._ordered = Ordered()
        self._chained: dict[tuple[str, ...], Chained] = {}
        self.ringed = False
        """Whether its owner has tied the rows of punctuated values: a journal does not tell, so they have to be tied again."""

    # -- rows in and out ------------------------------------------------------------------------------------------

    def insert(
        self,
        batch: pa.RecordBatch,
        hashes: UInt64s,
        low: Int64s,
        high: Int64s,
        expiry: Int64s | None = None,
        matched: Bools | None = None,
    ) -> int:
        """Store rows; `expiry` is `high` when not given. Returns the first row's number, the others follow."""
        rows = batch.num_rows
        if not len(hashes) == len(low) == len(high) == rows:
            raise ValueError("arrays of unequal length")
        hashes, low, high = given(hashes, np.uint64), given(low, np.int64), given(high, np.int64)
        self._make_room(rows)
        first = self._columns.append(batch)
        stop = first + rows
        self._indexes[0].add(first, hashes, low, high)
        for index, columns in zip(self._indexes[1:], self._also, strict=True):
            index.add(first, hash_rows(batch, columns)[0], low, high)
        self._calendar.add(high if expiry is None else expiry)
        self._alive[first:stop] = True
        self._matched[first:stop] = False if matched is None else matched
        self._rings.forget(first, stop)
        if self._numbered:
            self._serials[first:stop] = np.arange(self._next_serial, self._next_serial + rows)
            self._next_serial += rows
        self._top = stop
        self._living += rows
        return first

    def _make_room(self, rows: int) -> None:
        if self._top + rows <= len(self._alive):
            return
        if (self._top - self._living) * 2 >= self._top:
            self._compact(roomy(len(self._alive), self._living + rows))
        if self._top + rows > len(self._alive):
            self._resize(room(len(self._alive), self._top + rows))

    def _resize(self, capacity: int) -> None:
        top = self._top
        for index in self._indexes:
            index.reserve(capacity, top)
        self._alive = grown(self._alive, capacity, top)
        self._matched = grown(self._matched, capacity, top)
        if self._numbered:
            self._serials = grown(self._serials, capacity, top)
        if self._journal:
            self._homes = grown(self._homes, capacity, top)
        self._calendar.reserve(capacity)
        self._rings.reserve(capacity)

    def _compact(self, capacity: int) -> None:
        """Give the living rows new numbers, in the same order."""
        rows = self.alive_rows()
        self._written = int(np.searchsorted(rows, self._written))
        self._columns.keep(rows)
        self._calendar.keep(rows, capacity)
        self._rings.keep(rows, capacity)
        self._ordered = Ordered()
        self.forget_chains()
        for index in self._indexes:
            index.keep(rows, capacity)
        for name in ("_matched", *(["_serials"] if self._numbered else []), *(["_homes"] if self._journal else [])):
            setattr(self, name, squeezed(getattr(self, name), rows, capacity))
        self._alive = np.ones(capacity, dtype=np.bool_)
        self._top = len(rows)

    def take(self, rows: Int64s) -> pa.RecordBatch:
        return self._columns.take(rows)

    def take_column(self, name: str, rows: Int64s) -> pa.Array:
        return self._columns.take_column(self.schema.get_field_index(name), rows)

    def hashes(self, rows: Int64s) -> UInt64s:
        return self._indexes[0].hashes(rows)

    def spans(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """The interval that each covers."""
        nodes = self._indexes[0].nodes
        return nodes[rows, chains.LOW], nodes[rows, chains.HIGH]

    def expiries(self, rows: Int64s) -> Int64s:
        return self._calendar.axis[rows]

    def prolong(self, rows: Int64s, expiry: Int64s) -> None:
        """Rows that are to expire later, where this is later; one row may stand there several times."""
        self._calendar.prolong(rows, expiry)
        if self._journal:
            self._homes[rows] = _STALE
            self._stale = True

    def number(self) -> None:
        """From now on each row has a number that stays; in a journal it has one in any case."""
        if not self._numbered:
            self._numbered = True
            self._serials = np.arange(self._next_serial, self._next_serial + len(self._alive))
            self._next_serial += self._top

    def numbers(self, rows: Int64s) -> Int64s:
        """Later rows have higher ones."""
        return self._serials[rows]

    @property
    def next_number(self) -> int:
        return self._next_serial

    def count_from(self, number: int) -> None:
        """The next row has this number at least."""
        self._next_serial = max(self._next_serial, number)

    def discard(self, rows: Int64s) -> Int64s:
        """The rows are dead: no probe meets them any more. Gives those with which the last row of a tied value has gone."""
        buried = np.empty(len(rows), dtype=np.int64)
        rows = buried[: bury(self._alive, given(rows, np.int64), buried)]
        self._living -= len(rows)
        if self._journal:
            self._gone.append(self._serials[rows[rows < self._written]])
        return self._rings.loosen(rows)

    # -- by value -------------------------------------------------------------------------------------------------

    def probe(
        self, hashes: UInt64s, valid: Bools, low: Int64s, high: Int64s, limit: int = 1 << 18, index: int = 0
    ) -> Iterator[tuple[Int64s, Int64s]]:
        """Pairs (position, row) of equal hash and overlapping intervals, both ends inclusive; keys are the caller's to compare.

        At most `limit` pairs at a time, in order of position, newest row first. Discarding between two chunks
        is allowed, inserting is not. The hashes are those of the keys, or of the columns under `also` from index 1 on.
        """
        return self._indexes[index].probe(self._alive, hashes, valid, low, high, limit) if self._top else iter(())

    @property
    def probes(self) -> int:
        """Rows that probes have looked at."""
        return sum(index.probes for index in self._indexes)

    def of(self, keys: list[pa.Array], hashes: UInt64s, valid: Bools, exact: bool) -> tuple[Int64s, Int64s]:
        """The alive rows that have one of these different keys: which of them, and the row. `exact`: equal hashes prove equal keys."""
        if not self._living:
            return _NONE, _NONE
        which, rows = self._indexes[0].of(self._alive, hashes, valid, self._living)
        if exact or not len(rows):
            return which, rows
        assert self._key_columns is not None
        chosen, places = pa.array(which), [self.schema.get_field_index(name) for name in self._key_columns]
        same = self._columns.equal(rows, [key.take(chosen) for key in keys], places)
        return which[same], rows[same]

    def having(self, columns: tuple[str, ...], hashes: UInt64s) -> tuple[Int64s, Int64s]:
        """Which of the hashes, and an alive row that has it in these columns. What finds them is made when it is asked for."""
        chained = self._chained.setdefault(columns, Chained())

        def hashes_of(rows: Int64s) -> UInt64s:
            return hash_columns([self.take_column(name, rows) for name in columns])[0]

        return chained.find(hashes, self._top, self._alive, hashes_of)

    def forget_chains(self) -> None:
        """What `having` has made."""
        self._chained = {}

    def between(self, first: int, last: int) -> Int64s:
        """The alive rows whose only key, on an axis, lies between two values, both inclusive; in order of insertion."""
        assert self._key_columns is not None and len(self._key_columns) == 1
        place = self.schema.get_field_index(self._key_columns[0])
        rows = self._ordered.between(first, last, self._top, lambda rows: to_axis(self._columns.take_column(place, rows)))
        return np.sort(rows[self._alive[rows]])

    def tie(self, rows: Int64s, to: Int64s, count: int) -> None:
        """Rows of `count` values that are finished on this side: `to` says which each is of. See `discard`."""
        self._rings.tie(rows, to, count, len(self._alive))

    @property
    def tied(self) -> int:
        """Values that are finished, but for rows that are still here."""
        return self._rings.tied

    def mark_matched(self, rows: Int64s) -> None:
        fresh = np.empty(len(rows), dtype=np.int64)
        rows = fresh[: flag(self._matched, given(rows, np.int64), fresh)]
        if self._journal:
            self._flagged.append(self._serials[rows[rows < self._written]])

    def is_matched(self, rows: Int64s) -> Bools:
        return self._matched[rows]

    # -- by time --------------------------------------------------------------------------------------------------

    def expire(self, mark: int) -> Int64s:
        """The alive rows with expiry < mark, in order of insertion. They stay alive and readable until discarded."""
        return self._calendar.due(mark, self._alive)

    @property
    def earliest(self) -> int:
        """The least expiry of an alive row; MAX_TIME when there is none."""
        return self._calendar.earliest(self._alive) if self._living else MAX_TIME

    @property
    def latest(self) -> int:
        """A mark beyond this lets go every row that any mark lets go, but for some that have come lately; MAX_TIME when there is none."""
        return self._calendar.aim if self._living and self._calendar.latest > MIN_TIME else MAX_TIME

    def alive_rows(self) -> Int64s:
        return np.flatnonzero(self._alive[: self._top])

    def __len__(self) -> int:
        return self._living

    @property
    def nbytes(self) -> int:
        own = (self._alive, self._matched, self._serials, self._homes)
        parts = (self._calendar, self._columns, self._rings, self._ordered)
        indexes = sum(index.nbytes for index in self._indexes) + sum(chained.nbytes for chained in self._chained.values())
        return indexes + sum(array.nbytes for array in own) + sum(part.nbytes for part in parts)

    # -- journal --------------------------------------------------------------------------------------------------

    def changes(self, number: int = 0, since: int = 0) -> Segment | None:
        """Segment `number`: rows that came, went or found a partner since the last one, and those written before segment `since`;
        None when there are none."""
        if not self._journal:
            raise RuntimeError("this window keeps no journal")
        rows = self._written + np.flatnonzero(self._alive[self._written : self._top])
        if since or self._stale:
            old = np.flatnonzero((self._homes[: self._written] < since) & self._alive[: self._written])
            rows = np.concatenate([old, rows])
        gone, flagged = journals.joined(self._gone), journals.joined(self._flagged)
        self._written, self._gone, self._flagged, self._stale = self._top, [], [], False
        if not (len(rows) or len(gone) or len(flagged)):
            return None
        self._homes[rows] = number
        nodes = self._indexes[0].nodes[rows]
        numbers = {
            "serial": self._serials[rows],
            "low": nodes[:, chains.LOW],
            "high": nodes[:, chains.HIGH],
            "expiry": self._calendar.axis[rows],
            "matched": self._matched[rows].astype(np.int64),
            "gone": gone,
            "flagged": flagged,
        }
        if self._key_columns is None:
            numbers["hash"] = nodes[:, chains.HASH]
        return Segment(journals.pack({"container": "rows", "next": self._next_serial}, numbers, [self.take(rows)]), len(rows))

    def restore(self, segments: Segments) -> None:
        """Become what the segments say, of which the oldest may have been dropped."""
        self._clear()
        parts: dict[str, list[Int64s]] = {}
        batches, homes = [], []
        for number, segment in segments:
            header, numbers, (batch,) = journals.unpack(segment)
            for name, values in numbers.items():
                parts.setdefault(name, []).append(values)
            batches.append(batch)
            homes.append(np.full(batch.num_rows, number, dtype=np.int64))
            self._next_serial = header["next"]
        if not batches:
            return
        arrays = {name: journals.joined(values) for name, values in parts.items()}
        kept = journals.latest(arrays["serial"], arrays["gone"])
        batch = pa.concat_batches(batches).take(pa.array(kept))
        serials, low, high, expiry, matched = (arrays[name][kept] for name in ("serial", "low", "high", "expiry", "matched"))
        if self._key_columns is None:
            hashes = arrays["hash"][kept].view(np.uint64)
        else:
            hashes, _, _ = hash_rows(batch, self._key_columns)
        next_serial = self._next_serial
        self.insert(batch, hashes, low, high, expiry, matched.astype(np.bool_) | np.isin(serials, arrays["flagged"]))
        self._next_serial = next_serial
        if self._numbered:
            self._serials[: self._top] = serials
        if self._journal:
            self._homes[: self._top] = journals.joined(homes)[kept]
        self._written = self._top
