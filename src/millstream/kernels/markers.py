"""Marker rows and tuples of one block in their order of arrival: which tuples come after a row that closed their value."""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Bools, Int64s, compiled

NEVER = 2**63 - 1


@compiled
def follow_keys(groups: Int64s, times: Int64s, rows: Int64s, closed: Int64s, until: Int64s, bounds: Int64s, late: Bools) -> None:
    """Closer j stands at `rows[j]` (ascending) and closes group `closed[j]` for times before `until[j]`.

    `groups` has the group of each tuple, -1 for one that nobody closes. `bounds` is what each group is closed for so far, and after.
    """
    at = 0
    for i in range(len(groups)):
        while at < len(rows) and rows[at] < i:
            bounds[closed[at]] = max(bounds[closed[at]], until[at])
            at += 1
        late[i] = groups[i] >= 0 and times[i] < bounds[groups[i]]
    while at < len(rows):
        bounds[closed[at]] = max(bounds[closed[at]], until[at])
        at += 1


@compiled
def first_cover(values: Int64s, firsts: Int64s, lasts: Int64s) -> Int64s:
    """For each of the ascending values the first of the ranges, both ends included, that holds it; NEVER for none."""
    found = np.full(len(values), NEVER, dtype=np.int64)
    after = np.arange(len(values) + 1)  # the next value from here on that no range holds yet
    for j in range(len(firsts)):
        i = np.searchsorted(values, firsts[j])
        while True:
            while after[i] != i:
                after[i] = after[after[i]]
                i = after[i]
            if i == len(values) or values[i] > lasts[j]:
                break
            found[i] = j
            after[i] = i + 1
    return found
