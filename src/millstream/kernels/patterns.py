"""Which patterns were noted lately: the hashes of a pattern and of its left part, and until when, in a table that may forget."""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Bools, Int64s, compiled


@compiled
def note(known: Int64s, hashes: Int64s, others: Int64s, until: Int64s, more: int, fresh: Bools) -> None:
    """Which are not known up to their time; they are from now on, and some time more. Later ones may take the place of earlier ones."""
    mask = len(known) - 1
    for i in range(len(hashes)):
        at = (hashes[i] ^ (hashes[i] >> np.int64(32))) & mask
        fresh[i] = known[at, 0] != hashes[i] or known[at, 1] != others[i] or known[at, 2] < until[i]
        if fresh[i]:
            known[at, 0] = hashes[i]
            known[at, 1] = others[i]
            known[at, 2] = until[i] + more


@compiled
def forget(known: Int64s, hashes: Int64s, never: int) -> None:
    mask = len(known) - 1
    for i in range(len(hashes)):
        at = (hashes[i] ^ (hashes[i] >> np.int64(32))) & mask
        if known[at, 0] == hashes[i]:
            known[at, 2] = never
