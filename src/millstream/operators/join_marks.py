"""Pairs that are not made, because a consumer has no partner for two of their parts together (type II of paper 003).

Neither part can sleep: with somebody else each of them may be needed. So the join remembers the values of both parts, and the
arrival from which on it has made no pair of them. When the consumer finds a partner it makes those, by looking its rows up again;
nothing is kept of a pair itself. The arrival of a pair is that of its later row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.feedback.messages import MARK, UNMARK
from millstream.feedback.watch import Watch
from millstream.kernels import patterns as kernels
from millstream.kernels.compiled import Bools, Int64s, UInt64s
from millstream.operators.contract import Output
from millstream.state.keys import hash_columns
from millstream.state.row_window import RowWindow

if TYPE_CHECKING:
    from millstream.operators.join_feedback import JoinFeedback

PATTERN = pa.schema([("pattern", pa.int64()), ("left", pa.int64()), ("right", pa.int64()), ("since", pa.int64())])
"""The hashes of values that pairs are not made of: of all, and of each side's; and the first arrival."""
LEFT, RIGHT = 0, 1
_CHUNK = 1 << 18


@dataclass(frozen=True)
class Candidates:
    """Pairs that might be made: rows of a batch that comes in by `port`, with rows of the other side's window."""

    port: int
    batch: pa.RecordBatch
    window: RowWindow
    probes: Int64s
    rows: Int64s

    def column(self, side: int, name: str) -> pa.Array:
        return self.batch.column(name).take(pa.array(self.probes)) if side == self.port else self.window.take_column(name, self.rows)


def stored(windows: tuple[RowWindow, RowWindow], left: Int64s, right: Int64s) -> Candidates:
    """Pairs of rows that are there."""
    return Candidates(LEFT, windows[LEFT].take(left), windows[RIGHT], np.arange(len(left)), right)


@dataclass(frozen=True)
class Pattern:
    """What a watch knows a pair by: columns of both sides."""

    watch: Watch
    columns: tuple[tuple[int, str], ...]

    def of(self, side: int) -> tuple[str, ...]:
        return tuple(name for where, name in self.columns if where == side)

    @property
    def different(self) -> list[int]:
        """The places of columns that do not stand there before: one may be compared with two."""
        return [place for place, column in enumerate(self.columns) if column not in self.columns[:place]]

    def values(self, pairs: Candidates) -> pa.RecordBatch:
        names = [name for _, name in self.columns]
        return pa.RecordBatch.from_arrays([pairs.column(side, name) for side, name in self.columns], names=names)

    def hashes(self, values: pa.RecordBatch) -> tuple[UInt64s, Bools]:
        return hash_columns(values.columns)[:2]

    def sides(self, values: pa.RecordBatch) -> tuple[Int64s, Int64s]:
        """The hashes of both sides by themselves."""
        places = [[place for place, (where, _) in enumerate(self.columns) if where == side] for side in (LEFT, RIGHT)]
        left, right = (hash_columns([values.column(place) for place in chosen])[0].view(np.int64) for chosen in places)
        return left, right


class Marks:
    """What a join does not make for one watch of one consumer; for two, a pair might be held back twice and made twice."""

    def __init__(self, pattern: Pattern, producer: JoinFeedback, owner: JoinFeedback) -> None:
        """`owner` is the consumer."""
        self.pattern, self.watch = pattern, pattern.watch
        self.producer, self.owner = producer, owner
        self.rows, self.patterns = producer.rows, producer.patterns
        self._claimed: tuple[pa.RecordBatch, int] | None = None
        self._known = np.empty((0, 3), dtype=np.int64)

    @property
    def now(self) -> int:
        """The number of the next arrival."""
        return max(window.next_number for window in self.rows)

    @property
    def saves(self) -> float:
        """What is saved by a result that is not made: half of what it costs, as its parts are looked at nevertheless, and what it makes
        in turn."""
        return 0.5 + self.producer.beyond(self.owner)

    def begins(self, tuples: int) -> bool:
        """Tuples are about to meet others: whether it is asked about their pairs, all of them or none."""
        if self.watch.resting:
            self.watch.left -= tuples
            if self.watch.left > 0 or self.owner.waking or not self.watch.rested(self.saves):
                return False
            self.owner.count(self.watch)
        if self.watch.dormant and self.owner.waking:
            return False
        self.owner.look(self.watch)
        return True

    def sift(self, pairs: Candidates, stays: Bools, until: Int64s, needed: Bools) -> None:
        """See `JoinFeedback.needs`."""
        values = self.pattern.values(pairs)
        hashes, valid = self.pattern.hashes(values)
        needed &= valid  # null is equal to nothing
        asked = np.flatnonzero(needed & stays[pairs.probes])
        known = self.watch.wanted.sleeping(hashes[asked]) if self.producer.listener is not None else None
        wanted = self.watch.ask(hashes[asked], self.saves)
        if wanted.all():
            return
        self.producer.epoch.turn()
        if known is not None:
            self.producer.say(MARK, self.owner, values.take(pa.array(asked[~wanted & ~known])), self.pattern.different)
        spared = asked[~wanted]
        expiry = until[pairs.probes[spared]] if pairs.port == LEFT else self.rows[LEFT].expiries(pairs.rows[spared])
        bound = self.producer.reach.needed(self.producer.reach.behind(self.owner))[LEFT]
        left, right = self.pattern.sides(values)
        needed[spared] = self.leave(hashes[spared], (left[spared], right[spared]), expiry, bound)

    def leave(self, hashes: UInt64s, parts: tuple[Int64s, Int64s], expiry: Int64s, bound: int) -> Bools:
        """Pairs of these hashes are not needed; which are made nevertheless. Of no use is what expires before `bound`."""
        made = np.zeros(len(hashes), dtype=np.bool_)
        young = np.flatnonzero(expiry >= bound)
        if len(young):
            longer = (int(expiry.max()) - bound) // 8 if bound > MIN_TIME else 0  # so that the next ones are known for some time
            fresh = np.empty(len(young), dtype=np.bool_)
            kernels.note(self._room(), hashes[young].view(np.int64), parts[LEFT][young], expiry[young], longer, fresh)
            chosen = young[fresh]
            made[chosen] = self._note(hashes[chosen], parts[LEFT][chosen], parts[RIGHT][chosen], expiry[chosen] + longer)
        self.patterns.slept += len(made) - int(np.count_nonzero(made))
        return made

    def _note(self, hashes: UInt64s, left: Int64s, right: Int64s, expiry: Int64s) -> Bools:
        """Remember patterns, or for longer than before; which are those that two have one hash of, who cannot be."""
        made = np.zeros(len(hashes), dtype=np.bool_)
        fresh = np.ones(len(hashes), dtype=np.bool_)
        always = np.zeros(len(hashes), dtype=np.int64)
        for at, rows in self.patterns.rows.probe(hashes ^ self.watch.mixed, fresh, always, always):
            made[at] = self._apart(rows, left[at], right[at])
            fresh[at] = False
            same = ~made[at]
            self.patterns.rows.prolong(rows[same], expiry[at[same]])
        chosen = np.flatnonzero(fresh)
        if len(chosen):
            different, first, which = np.unique(hashes[chosen], return_index=True, return_inverse=True)
            first = chosen[first]
            made[chosen] = (left[chosen] != left[first][which]) | (right[chosen] != right[first][which])
            until = expiry[first]
            np.maximum.at(until, which, expiry[chosen])
            numbers = (different.view(np.int64), left[first], right[first], np.full(len(first), self.now, dtype=np.int64))
            batch = pa.RecordBatch.from_arrays([pa.array(column) for column in numbers], schema=PATTERN)
            self.patterns.add(batch, different, self.watch, until)
            self.patterns.slept -= batch.num_rows
        kernels.forget(self._known, hashes[made].view(np.int64), MIN_TIME)
        return made

    def _room(self) -> Int64s:
        """What was noted lately, by the hashes of the pattern and of its left part: until when."""
        if len(self._known) < 2 * len(self.patterns) or not len(self._known):
            self._known = np.full((max(1024, 4 << len(self.patterns).bit_length()), 3), MIN_TIME, dtype=np.int64)
        return self._known

    def _apart(self, rows: Int64s, left: Int64s, right: Int64s) -> Bools:
        """Where another pattern has the same hash."""
        apart: Bools = (np.asarray(self.patterns.rows.take_column("left", rows)) != left) | (
            np.asarray(self.patterns.rows.take_column("right", rows)) != right
        )
        return apart

    def claim(self, hashes: UInt64s) -> None:
        """There is a partner for these: from now on pairs of them are made, and those that were not are about to be."""
        taken = self.patterns.take(self.watch, hashes)
        if taken is not None:
            self._claimed = taken, self.now
        if len(self._known):
            kernels.forget(self._known, hashes.view(np.int64), MIN_TIME)

    def unmark(self, out: Output) -> None:
        """Make what is claimed."""
        for left, right in self.claimed():
            if self.producer.listener is not None:
                self.producer.say(UNMARK, self.owner, self.pattern.values(stored(self.rows, left, right)), self.pattern.different)
            made = self.producer.remake(left, right, out)
            self.patterns.woken += made
            self.watch.wake(made, self.saves)
        if self.watch.resting:
            self.rest()

    def claimed(self) -> Iterator[tuple[Int64s, Int64s]]:
        """The rows of both windows whose pairs were not made, as far as hashes tell."""
        if self._claimed is None:
            return
        (taken, until), self._claimed = self._claimed, None
        (which, lefts), (others, rights) = (
            self.rows[side].having(self.pattern.of(side), _of(taken, name).view(np.uint64)) for side, name in enumerate(("left", "right"))
        )
        if not len(lefts) or not len(rights):
            return
        for a, b in _equal(_keyed(self.rows[LEFT], lefts, which), _keyed(self.rows[RIGHT], rights, others)):
            (low, high), (begin, end) = self.rows[LEFT].spans(lefts[a]), self.rows[RIGHT].spans(rights[b])
            born = np.maximum(self.rows[LEFT].numbers(lefts[a]), self.rows[RIGHT].numbers(rights[b]))
            due = (which[a] == others[b]) & (low <= end) & (begin <= high) & (born >= _of(taken, "since")[which[a]]) & (born < until)
            a, b = a[due], b[due]
            if len(a):
                values = self.pattern.values(stored(self.rows, lefts[a], rights[b]))
                same = self.pattern.hashes(values)[0].view(np.int64) == _of(taken, "pattern")[which[a]]
                yield lefts[a[same]], rights[b[same]]

    def forget(self) -> bool:
        """Where one side has no tuples there are no pairs that might be made."""
        if not len(self.patterns) or all(len(window) for window in self.rows):
            return False
        self.rest()
        self.producer.epoch.turn()
        return self.patterns.expired(MAX_TIME) is not None

    def rest(self) -> None:
        """What was known, or made to find tuples by, is not needed for some time, or true no longer."""
        self._known = np.empty((0, 3), dtype=np.int64)
        for window in self.rows:
            window.forget_chains()

    def refresh(self) -> None:
        """After a restart numbers go on behind those that patterns know of: the tuples that had them may have gone unwritten."""
        self.rest()
        last = int(_of(self.patterns.all(), "since").max()) if len(self.patterns) else 0
        for window in self.rows:
            window.count_from(last)


def _of(batch: pa.RecordBatch, name: str) -> Int64s:
    return np.asarray(batch.column(name))


def _keyed(window: RowWindow, rows: Int64s, which: Int64s) -> UInt64s:
    """A hash of the keys of rows, and of what they are looked up for."""
    keyed: UInt64s = window.hashes(rows) ^ (which.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return keyed


def _equal(left: UInt64s, right: UInt64s) -> Iterator[tuple[Int64s, Int64s]]:
    """Positions of equal values, some at a time."""
    order = np.argsort(right, kind="stable")
    first, last = (np.searchsorted(right[order], left, side) for side in ("left", "right"))
    counts = last - first
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(left):
        before = ends[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(ends, before + _CHUNK, "right")))
        chosen = counts[begin:stop]
        a = np.repeat(np.arange(begin, stop), chosen)
        within = np.arange(len(a)) - np.repeat(np.cumsum(chosen) - chosen, chosen)
        if len(a):
            yield a, order[first[a] + within]
        begin = stop
