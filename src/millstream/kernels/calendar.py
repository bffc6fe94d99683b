"""Rows by their time, as a hierarchical timing wheel in flat arrays.

Times are 64 bits, read as eight digits of base 256. A row hangs in the list of (the highest digit in which its
time differs from the last mark, its value of that digit). Moving the mark empties the lists it has passed
whole, and spreads only the one list it has landed in over lower digits: a row moves at most eight times in its life,
whatever the distances between times, and in practice once or twice.

Roads not taken: a heap costs log(n) per row; a table of buckets `time >> shift` has one shift for all, and a few
outliers make it so coarse that every mark scans the same crowded bucket again.
"""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Bools, Index, Int64s, UInt64s, compiled

LATE = 8 * 256  # the list of rows whose time had passed when they came
LISTS = LATE + 1
_DIGIT = np.uint64(255)
_SIGN = np.uint64(1 << 63)  # flips the order of int64 into the order of uint64
_8 = np.uint64(8)


@compiled
def _append(row: int, where: Index, following: Int64s, heads: Int64s, tails: Int64s) -> None:
    following[row] = -1
    if heads[where] < 0:
        heads[where] = row
    else:
        following[tails[where]] = row
    tails[where] = row


@compiled
def _list_of(time: np.uint64, last: np.uint64) -> Index:
    if time < last:
        return LATE
    level = 0
    difference = time ^ last
    while difference > _DIGIT:
        difference >>= _8
        level += 1
    return level * 256 + np.int64((time >> np.uint64(8 * level)) & _DIGIT)


@compiled
def place(times: UInt64s, following: Int64s, heads: Int64s, tails: Int64s, last: np.uint64, first: int, stop: int) -> None:
    """Hang rows first..stop-1 into their lists."""
    where = _list_of(times[first] ^ _SIGN, last) if first < stop else 0
    for row in range(first, stop):
        if row > first and times[row] != times[row - 1]:
            where = _list_of(times[row] ^ _SIGN, last)
        _append(row, where, following, heads, tails)


@compiled
def hang(times: UInt64s, following: Int64s, heads: Int64s, tails: Int64s, last: np.uint64, rows: Int64s) -> None:
    """Hang rows that are in no list into one."""
    for row in rows:
        _append(row, _list_of(times[row] ^ _SIGN, last), following, heads, tails)


@compiled
def _drain(where: Index, following: Int64s, heads: Int64s, alive: Bools, out: Int64s, count: int) -> int:
    row = heads[where]
    heads[where] = -1
    while row >= 0:
        if alive[row]:
            out[count] = row
            count += 1
        row = following[row]
    return count


@compiled
def _sift(
    where: Index,
    times: UInt64s,
    following: Int64s,
    heads: Int64s,
    tails: Int64s,
    last: np.uint64,
    mark: np.uint64,
    alive: Bools,
    out: Int64s,
    count: int,
) -> int:
    """Empty one list: rows before the mark go out, the others find their place anew."""
    row = heads[where]
    heads[where] = -1
    while row >= 0:
        after = following[row]
        if alive[row]:
            time = times[row] ^ _SIGN
            if time < mark:
                out[count] = row
                count += 1
            else:
                _append(row, _list_of(time, last), following, heads, tails)
        row = after
    return count


@compiled
def pop(
    times: UInt64s,
    following: Int64s,
    heads: Int64s,
    tails: Int64s,
    last: np.uint64,
    mark: np.uint64,
    alive: Bools,
    out: Int64s,
) -> int:
    """Move the mark from `last`; the alive rows before it go to `out`. Dead rows met on the way are forgotten."""
    count = 0
    if heads[LATE] >= 0:
        count = _sift(LATE, times, following, heads, tails, max(last, mark), mark, alive, out, count)
    if mark <= last:
        return count
    level = 0
    difference = mark ^ last
    while difference > _DIGIT:
        difference >>= _8
        level += 1
    for where in range(level * 256):
        if heads[where] >= 0:
            count = _drain(where, following, heads, alive, out, count)
    shift = np.uint64(8 * level)
    landed = level * 256 + np.int64((mark >> shift) & _DIGIT)
    for where in range(level * 256 + np.int64((last >> shift) & _DIGIT), landed):
        if heads[where] >= 0:
            count = _drain(where, following, heads, alive, out, count)
    return _sift(landed, times, following, heads, tails, mark, mark, alive, out, count)


@compiled
def earliest(times: UInt64s, following: Int64s, heads: Int64s, alive: Bools) -> np.uint64:
    """The least time of an alive row, its sign flipped; all ones when none is alive. Lists stand in order of time, but for LATE."""
    least = ~np.uint64(0)
    for at in range(-1, LATE):
        row = heads[LATE if at < 0 else at]
        while row >= 0:
            if alive[row]:
                least = min(least, times[row] ^ _SIGN)
            row = following[row]
        if at >= 0 and least != ~np.uint64(0) and heads[at] >= 0:
            break
    return least


@compiled
def ascending(rows: Int64s) -> bool:
    for i in range(1, len(rows)):  # noqa: SIM110 (numba has no generator expressions)
        if rows[i] < rows[i - 1]:
            return False
    return True
