"""Open addressing from (axis, key hash) to group numbers, exact on what it is given.

A slot is two words: a tag, mixed from axis and hash, and the group's number plus one (zero: empty). For one axis
value the tag is a bijection of the hash, so equal tag and equal axis mean equal hash. Dead groups stay as
tombstones until the table is rebuilt, and slots are never used twice: groups of one tag stand in order of their numbers.
"""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Bools, Int64s, UInt64s, compiled

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_29, _32 = np.uint64(29), np.uint64(32)


@compiled
def _tag(hash: np.uint64, axis: np.uint64) -> np.int64:
    """Hashes come mixed; the axis (often small numbers in a row) is what needs spreading."""
    spread = (axis * _GAMMA) ^ ((axis * _GAMMA) >> _29)
    return np.int64(hash ^ (spread * _FIRST))


@compiled
def find_or_add(
    slots: Int64s,
    tags: Int64s,
    axes: Int64s,
    alive: Bools,
    top: int,
    hashes: UInt64s,
    axis: Int64s,
    position: int,
    groups: Int64s,
    first: Int64s,
    created: int,
) -> tuple[int, int, int]:
    """The group of each position, new groups numbered from `top` on; stops early when the arrays are full.

    Returns the position to go on from, the new top and the number of `first` positions.
    """
    mask = len(slots) // 2 - 1
    capacity = len(tags)
    while position < len(hashes):
        time = axis[position]
        tag = _tag(hashes[position], np.uint64(time))
        slot = tag & mask
        while True:
            group = slots[2 * slot + 1] - 1
            if group < 0:
                if top == capacity:
                    return position, top, created
                slots[2 * slot] = tag
                slots[2 * slot + 1] = top + 1
                tags[top] = tag
                axes[top] = time
                alive[top] = True
                groups[position] = top
                first[created] = position
                created += 1
                top += 1
                break
            if slots[2 * slot] == tag and axes[group] == time and alive[group]:
                groups[position] = group
                break
            slot = (slot + 1) & mask
        position += 1
    return position, top, created


@compiled
def find_further(
    slots: Int64s,
    tags: Int64s,
    axes: Int64s,
    alive: Bools,
    top: int,
    positions: Int64s,
    at: int,
    groups: Int64s,
    first: Int64s,
    created: int,
) -> tuple[int, int, int]:
    """For positions whose group has their hash but another key: the next group of that hash, or a new one."""
    mask = len(slots) // 2 - 1
    capacity = len(tags)
    while at < len(positions):
        position = positions[at]
        wrong = groups[position]
        tag, time = tags[wrong], axes[wrong]
        slot = tag & mask
        while slots[2 * slot + 1] - 1 != wrong:
            slot = (slot + 1) & mask
        while True:
            slot = (slot + 1) & mask
            group = slots[2 * slot + 1] - 1
            if group < 0:
                if top == capacity:
                    return at, top, created
                slots[2 * slot] = tag
                slots[2 * slot + 1] = top + 1
                tags[top] = tag
                axes[top] = time
                alive[top] = True
                groups[position] = top
                first[created] = position
                created += 1
                top += 1
                break
            if slots[2 * slot] == tag and axes[group] == time and alive[group]:
                groups[position] = group
                break
        at += 1
    return at, top, created


@compiled
def rebuild(slots: Int64s, tags: Int64s, alive: Bools, top: int) -> None:
    """Enter groups 0..top-1 into empty slots, in order; dead ones only keep their numbers."""
    mask = len(slots) // 2 - 1
    for group in range(top):
        if alive[group]:
            slot = tags[group] & mask
            while slots[2 * slot + 1] != 0:
                slot = (slot + 1) & mask
            slots[2 * slot] = tags[group]
            slots[2 * slot + 1] = group + 1
