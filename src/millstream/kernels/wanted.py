"""Who is wanted: for each key hash, until when there are partners, and whether somebody sleeps until one comes.

A slot is two words, the hash and its state: twice the time when the last partner expires, plus one where somebody sleeps; `FREE` for
a free slot. Times are no more than `FAR` from 0. Slots without partner and sleeper stay until the next rebuild.
"""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Bools, Index, Int64s, compiled

FREE = -(2**63)
FAR = 2**61
_NEVER = -2 * FAR


@compiled
def _slot(slots: Int64s, hash: np.int64) -> Index:
    """Where a hash is, or the free slot where it would be."""
    mask = len(slots) - 1
    at = (hash ^ (hash >> np.int64(32))) & mask
    while slots[at, 1] != FREE and slots[at, 0] != hash:
        at = (at + 1) & mask
    return at


@compiled
def come(slots: Int64s, hashes: Int64s, valid: Bools, untils: Int64s, woken: Int64s) -> tuple[int, int]:
    """Partners come, and when they expire. Fills `woken` with the hashes under which somebody slept.

    Tells how many these are, and how many slots are new.
    """
    count, created = 0, 0
    for i in range(len(hashes)):
        if not valid[i]:
            continue
        at = _slot(slots, hashes[i])
        state = slots[at, 1]
        if state == FREE:
            slots[at, 0] = hashes[i]
            created += 1
            state = _NEVER
        if state & 1:
            woken[count] = hashes[i]
            count += 1
            state -= 1
        slots[at, 1] = max(state, 2 * untils[i])
    return count, created


@compiled
def ask(slots: Int64s, hashes: Int64s, bound: np.int64, wanted: Bools) -> tuple[int, int]:
    """Whether there are partners that expire at `bound` or later. Who has none is to sleep.

    Tells how many hashes that is new for, and how many slots are new.
    """
    flagged, created = 0, 0
    for i in range(len(hashes)):
        at = _slot(slots, hashes[i])
        state = slots[at, 1]
        wanted[i] = state >> 1 >= bound and state != FREE
        if wanted[i] or (state & 1 and state != FREE):
            continue
        if state == FREE:
            slots[at, 0] = hashes[i]
            created += 1
            state = _NEVER
        slots[at, 1] = state + 1
        flagged += 1
    return flagged, created


@compiled
def look(slots: Int64s, hashes: Int64s, states: Int64s) -> None:
    for i in range(len(hashes)):
        states[i] = slots[_slot(slots, hashes[i]), 1]


@compiled
def means(state: np.int64, bound: np.int64) -> bool:
    """Whether there are partners, or somebody sleeps."""
    return bool(state != FREE and (state & 1 == 1 or state >> 1 >= bound))


@compiled
def meant(slots: Int64s, bound: np.int64) -> int:
    count = 0
    for i in range(len(slots)):
        count += means(slots[i, 1], bound)
    return count


@compiled
def rebuild(slots: Int64s, bound: np.int64, into: Int64s) -> int:
    """Copy the slots that mean something; how many these are."""
    count = 0
    for i in range(len(slots)):
        if means(slots[i, 1], bound):
            at = _slot(into, slots[i, 0])
            into[at, 0] = slots[i, 0]
            into[at, 1] = slots[i, 1]
            count += 1
    return count
