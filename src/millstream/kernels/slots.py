"""Open addressing from (axis, key hash) to group numbers, exact on what it is given.

A group has an identity of two words, its axis and a tag mixed from axis and hash: for one axis value the tag is a bijection
of the hash, so equal identities mean equal hashes. A slot is one word, the upper half of the tag and the group's
number plus one (zero: empty); its place is given by the upper bits of the tag, so a greater table is filled from a
smaller one in one sweep over both. Slots are never used twice before a rebuild, and groups of one tag stand in
order of their numbers. The tag of a dead group is inverted and so never met again.

Slots of two words (whole tag, number) looked at one line fewer on a hit, but were twice as wide: 24 ns per new
group in a block of 64k where this takes 12.
"""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Bools, Int64s, UInt64s, compiled

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_29 = np.uint64(29)
_UPPER = np.uint64(0xFFFFFFFF00000000)
_LOWER = np.uint64(0x00000000FFFFFFFF)
_EMPTY = np.uint64(0)


@compiled
def _tag(hash: np.uint64, axis: np.uint64) -> np.uint64:
    """Hashes come mixed, but those of one bucket share their upper bits: the last product brings the lower ones up."""
    spread = axis * _GAMMA
    return (hash ^ ((spread ^ (spread >> _29)) * _FIRST)) * _SECOND


@compiled
def find_or_add(
    slots: UInt64s,
    shift: np.uint64,
    tags: UInt64s,
    axes: Int64s,
    top: int,
    hashes: UInt64s,
    axis: Int64s,
    position: int,
    groups: Int64s,
    first: Int64s,
    created: int,
    ahead: UInt64s,
) -> tuple[int, int, int]:
    """The group of each position, new groups numbered from `top` on; stops early when the arrays are full.

    Returns the position to go on from, the new top and the number of `first` positions. `shift` is 64 less the
    bits of a slot's number. Tags are made and slots read some positions ahead, `len(ahead)` at a time, because these loads
    do not wait for each other or for a branch: a new group among 400,000 took 81 ns without, and takes 38.
    """
    mask = len(slots) - 1
    capacity = len(tags)
    base, known = position, position
    while position < len(hashes):
        if position == known:
            base, known = position, min(position + len(ahead) - 1, len(hashes))
            warm = _EMPTY
            for i in range(base, known):
                tag = _tag(hashes[i], np.uint64(axis[i]))
                ahead[i - base] = tag
                warm ^= slots[np.int64(tag >> shift)]
            ahead[-1] = warm  # nobody reads it, but a load without a use would not be compiled
        time = axis[position]
        tag = ahead[position - base]
        fragment = tag & _UPPER
        slot = np.int64(tag >> shift)
        while True:
            entry = slots[slot]
            if entry == _EMPTY:
                if top == capacity:
                    return position, top, created
                slots[slot] = fragment | np.uint64(top + 1)
                tags[top] = tag
                axes[top] = time
                groups[position] = top
                first[created] = position
                created += 1
                top += 1
                break
            if (entry & _UPPER) == fragment:
                group = np.int64(entry & _LOWER) - 1
                if tags[group] == tag and axes[group] == time:
                    groups[position] = group
                    break
            slot = (slot + 1) & mask
        position += 1
    return position, top, created


@compiled
def find_further(
    slots: UInt64s,
    shift: np.uint64,
    tags: UInt64s,
    axes: Int64s,
    top: int,
    positions: Int64s,
    at: int,
    groups: Int64s,
    first: Int64s,
    created: int,
) -> tuple[int, int, int]:
    """For positions whose group has their hash but another key: the next group of that hash, or a new one."""
    mask = len(slots) - 1
    capacity = len(tags)
    while at < len(positions):
        position = positions[at]
        wrong = groups[position]
        tag, time = tags[wrong], axes[wrong]
        fragment = tag & _UPPER
        slot = np.int64(tag >> shift)
        while np.int64(slots[slot] & _LOWER) - 1 != wrong:
            slot = (slot + 1) & mask
        while True:
            slot = (slot + 1) & mask
            entry = slots[slot]
            if entry == _EMPTY:
                if top == capacity:
                    return at, top, created
                slots[slot] = fragment | np.uint64(top + 1)
                tags[top] = tag
                axes[top] = time
                groups[position] = top
                first[created] = position
                created += 1
                top += 1
                break
            if (entry & _UPPER) == fragment:
                group = np.int64(entry & _LOWER) - 1
                if tags[group] == tag and axes[group] == time:
                    groups[position] = group
                    break
        at += 1
    return at, top, created


@compiled
def look_up(
    slots: UInt64s,
    shift: np.uint64,
    tags: UInt64s,
    axes: Int64s,
    hashes: UInt64s,
    axis: Int64s,
    positions: Int64s,
    groups: Int64s,
) -> None:
    """The first group of these positions' hashes, or the next after the one they have; -1 when there is none."""
    mask = len(slots) - 1
    for position in positions:
        time = axis[position]
        tag = _tag(hashes[position], np.uint64(time))
        fragment = tag & _UPPER
        slot = np.int64(tag >> shift)
        wrong = groups[position]
        if wrong >= 0:
            while np.int64(slots[slot] & _LOWER) - 1 != wrong:
                slot = (slot + 1) & mask
            slot = (slot + 1) & mask
        groups[position] = -1
        while slots[slot] != _EMPTY:
            group = np.int64(slots[slot] & _LOWER) - 1
            if (slots[slot] & _UPPER) == fragment and tags[group] == tag and axes[group] == time:
                groups[position] = group
                break
            slot = (slot + 1) & mask


@compiled
def rebuild(slots: UInt64s, shift: np.uint64, tags: UInt64s, top: int) -> None:
    """Enter groups 0..top-1, all alive, into empty slots, in order."""
    mask = len(slots) - 1
    for group in range(top):
        slot = np.int64(tags[group] >> shift)
        while slots[slot] != _EMPTY:
            slot = (slot + 1) & mask
        slots[slot] = (tags[group] & _UPPER) | np.uint64(group + 1)


@compiled
def transfer(old: UInt64s, slots: UInt64s, shift: np.uint64) -> None:
    """Enter the old slots into greater, empty ones. Begins behind an empty slot, so that no run is cut in two."""
    mask, old_mask = len(slots) - 1, len(old) - 1
    begin = 0
    while old[begin] != _EMPTY:
        begin += 1
    for i in range(1, len(old)):
        entry = old[(begin + i) & old_mask]
        if entry != _EMPTY:
            slot = np.int64(entry >> shift)
            while slots[slot] != _EMPTY:
                slot = (slot + 1) & mask
            slots[slot] = entry


@compiled
def bury(alive: Bools, tags: UInt64s, groups: Int64s, buried: Int64s) -> int:
    """Mark groups dead; those that were alive go to `buried`, in the order given."""
    count = 0
    for i in range(len(groups)):
        group = groups[i]
        if alive[group]:
            alive[group] = False
            tags[group] = ~tags[group]
            buried[count] = group
            count += 1
    return count
