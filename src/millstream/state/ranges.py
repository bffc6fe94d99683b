"""A set of integers as disjoint ranges in order: neighbours merge, so that a million of them may cost kilobytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.punctuation import OneOf, Punctuation, Range
from millstream.core.types import MAX_TIME, MIN_TIME, from_axis
from millstream.kernels.compiled import Bools, Int64s, given
from millstream.kernels.ranges import within

LEAST = 256
"""Ranges that wait beside the others before they are merged with them, at least."""
SHOWN = 64
"""Values of a range up to which it is told as a list."""
_NONE = np.empty(0, dtype=np.int64)


class Ranges:
    """Both ends of a range belong to it. What came last waits in a short list, so that one more value never costs a copy of all."""

    def __init__(self) -> None:
        self._all: tuple[Int64s, Int64s] = (_NONE, _NONE)
        self._recent: tuple[Int64s, Int64s] = (_NONE, _NONE)
        self._spent: tuple[Int64s, Int64s] = (_NONE, _NONE)

    def grow(self, more: tuple[Int64s, Int64s]) -> None:
        """Add ranges, in any order."""
        self._recent = _union(self._recent, more)
        if len(self._recent[0]) > max(LEAST, 2 * int(len(self._all[0]) ** 0.5)):
            self._merge()

    def shrink(self, less: Int64s) -> None:
        """Nobody asks for these values any more: they go where that leaves fewer ranges."""
        self._spent = _union(self._spent, runs(less))

    @property
    def many(self) -> bool:
        """So many ranges that it is worth while to take values away."""
        return len(self._all[0]) > LEAST

    def _merge(self) -> None:
        self._all, self._recent = _union(self._all, self._recent), (_NONE, _NONE)
        if self.many and len(self._spent[0]):
            left = _without(self._all, _common(self._all, self._spent))
            if len(left[0]) < len(self._all[0]):
                self._all = left
        self._spent = (_NONE, _NONE)

    @classmethod
    def of(cls, first: int, last: int) -> Ranges:
        made = cls()
        if first <= last:
            made.grow((np.array([first]), np.array([last])))
        return made

    def common(self, other: Ranges) -> Ranges:
        """What both hold."""
        made = Ranges()
        made._all = _common(self.ranges, other.ranges)
        return made

    def told(self, column: str, kind: pa.DataType) -> Iterator[Punctuation]:
        """As punctuations: short ranges as one list of their values, each longer one as a range."""
        firsts, lasts = self.ranges
        wide = lasts.view(np.uint64) - firsts.view(np.uint64) >= SHOWN
        for first, last in zip(firsts[wide].tolist(), lasts[wide].tolist(), strict=True):
            low, high = (None if first == MIN_TIME else first), (None if last == MAX_TIME else last)
            yield Punctuation.of({column: Range(low=low, high=high, high_inclusive=high is not None)})
        if not wide.all():
            values = np.concatenate([a + np.arange(b - a + 1) for a, b in zip(firsts[~wide], lasts[~wide], strict=True)])
            yield Punctuation.of({column: OneOf(from_axis(values, kind))})

    def holds(self, values: Int64s) -> Bools:
        found, values = np.zeros(len(values), dtype=np.bool_), given(values, np.int64)
        for firsts, lasts in (self._all, self._recent):
            if len(firsts):
                within(firsts, lasts, values, found)
        return found

    @property
    def ranges(self) -> tuple[Int64s, Int64s]:
        """First and last values, in order."""
        if len(self._recent[0]):
            self._merge()
        return self._all

    def __len__(self) -> int:
        return len(self.ranges[0])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self._all, *self._recent, *self._spent))


def runs(values: Int64s) -> tuple[Int64s, Int64s]:
    """Values as ranges."""
    if not (values[1:] >= values[:-1]).all():
        values = np.sort(values)  # np.unique, which hashes first, takes four times as long
    return _joined(values, values)


def _union(one: tuple[Int64s, Int64s], other: tuple[Int64s, Int64s]) -> tuple[Int64s, Int64s]:
    if not len(other[0]):
        return one
    firsts, lasts = np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])
    order = np.argsort(firsts, kind="stable")
    return _joined(firsts[order], np.maximum.accumulate(lasts[order]))


def _common(one: tuple[Int64s, Int64s], other: tuple[Int64s, Int64s]) -> tuple[Int64s, Int64s]:
    """Ranges of what lies in ranges of both."""
    (firsts, lasts), (others, ends) = one, other
    begin = np.searchsorted(ends, firsts)
    stop = np.searchsorted(others, lasts, side="right")
    counts = np.maximum(stop - begin, 0)
    mine = np.repeat(np.arange(len(firsts)), counts)
    theirs = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(begin, counts)
    return np.maximum(firsts[mine], others[theirs]), np.minimum(lasts[mine], ends[theirs])


def _without(ranges: tuple[Int64s, Int64s], holes: tuple[Int64s, Int64s]) -> tuple[Int64s, Int64s]:
    """What is left of ranges when holes, each within one of them, are cut out."""
    inner = (holes[0] > MIN_TIME) & (holes[1] < MAX_TIME)  # the ends of the axis have no neighbours
    firsts = np.sort(np.concatenate([ranges[0], holes[1][inner] + 1]))
    lasts = np.sort(np.concatenate([ranges[1], holes[0][inner] - 1]))
    some = firsts <= lasts
    return firsts[some], lasts[some]


def _joined(firsts: Int64s, lasts: Int64s) -> tuple[Int64s, Int64s]:
    """Ranges in order of their firsts, with lasts that never fall: those that touch become one."""
    if len(firsts) < 2:
        return firsts, lasts
    after, before = firsts[1:], lasts[:-1]
    gap: npt.NDArray[np.bool_] = (after > before) & (after.view(np.uint64) - before.view(np.uint64) > 1)
    begins = np.concatenate([[True], gap])
    ends = np.concatenate([gap, [True]])
    return firsts[begins], lasts[ends]
