"""Who is wanted: for each key hash, how many partners there are, and whether somebody sleeps until one comes.

A slot is two words, the hash and its state: twice the number of partners, plus one where somebody sleeps; -1 for a free slot.
Slots without partner and sleeper stay until the next rebuild.
"""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Bools, Index, Int64s, compiled

FREE = -1


@compiled
def _slot(slots: Int64s, hash: np.int64) -> Index:
    """Where a hash is, or the free slot where it would be."""
    mask = len(slots) - 1
    at = (hash ^ (hash >> np.int64(32))) & mask
    while slots[at, 1] != -1 and slots[at, 0] != hash:
        at = (at + 1) & mask
    return at


@compiled
def come(slots: Int64s, hashes: Int64s, valid: Bools, woken: Int64s) -> tuple[int, int]:
    """Partners come. Fills `woken` with the hashes under which somebody slept; how many these are, and how many slots are new."""
    count, created = 0, 0
    for i in range(len(hashes)):
        if not valid[i]:
            continue
        at = _slot(slots, hashes[i])
        state = slots[at, 1]
        if state == -1:
            slots[at, 0] = hashes[i]
            slots[at, 1] = 2
            created += 1
            continue
        if state & 1:
            woken[count] = hashes[i]
            count += 1
            state -= 1
        slots[at, 1] = state + 2
    return count, created


@compiled
def go(slots: Int64s, hashes: Int64s, valid: Bools) -> None:
    """Partners go that have come before."""
    for i in range(len(hashes)):
        if valid[i]:
            slots[_slot(slots, hashes[i]), 1] -= 2


@compiled
def ask(slots: Int64s, hashes: Int64s, wanted: Bools) -> tuple[int, int]:
    """Whether there are partners. Who has none is to sleep; how many hashes that is new for, and how many slots are new."""
    flagged, created = 0, 0
    for i in range(len(hashes)):
        at = _slot(slots, hashes[i])
        state = slots[at, 1]
        wanted[i] = state > 1
        if state > 1 or state == 1:
            continue
        if state == -1:
            slots[at, 0] = hashes[i]
            created += 1
        slots[at, 1] = 1
        flagged += 1
    return flagged, created


@compiled
def look(slots: Int64s, hashes: Int64s, states: Int64s) -> None:
    for i in range(len(hashes)):
        states[i] = slots[_slot(slots, hashes[i]), 1]


@compiled
def rebuild(slots: Int64s, into: Int64s) -> int:
    """Copy the slots that mean something; how many these are."""
    count = 0
    for i in range(len(slots)):
        if slots[i, 1] > 0:
            at = _slot(into, slots[i, 0])
            into[at, 0] = slots[i, 0]
            into[at, 1] = slots[i, 1]
            count += 1
    return count
