"""Walks tuples in their order of arrival where each is a promise about those after it: unique keys and clusters."""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Bools, Int64s, compiled

NEVER, ALWAYS = -(2**63), 2**63 - 1


@compiled
def walk(codes: Int64s, uniques: int, groups: int, late: Bools, current: Int64s, begins: Bools, times: Int64s, until: Int64s) -> None:
    """`codes[c, i]` is what tuple i has under clause c, -1 for nothing: first the unique keys, then the clusters.

    Tuples that break what the ones before them promised become late, and late ones promise nothing. `current` holds the
    open value of each cluster clause, or -1; `begins` tells where another one was opened. A unique key counts as used before `until`.
    """
    clauses, rows = codes.shape
    spent = np.full((clauses, groups), NEVER)
    for i in range(rows):
        if late[i]:
            continue
        for c in range(clauses):
            code = codes[c, i]
            if code >= 0 and times[i] < spent[c, code] and (c < uniques or code != current[c - uniques]):
                late[i] = True
        if late[i]:
            continue
        for c in range(clauses):
            code = codes[c, i]
            if c < uniques:
                if code >= 0:
                    spent[c, code] = max(spent[c, code], until[c, i])
            elif code != current[c - uniques]:
                if current[c - uniques] >= 0:
                    spent[c, current[c - uniques]] = ALWAYS
                current[c - uniques] = code
                begins[c - uniques, i] = True
