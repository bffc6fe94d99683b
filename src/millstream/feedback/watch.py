"""A watch is one node of a consumer's lattice at work: who has a partner there, who sleeps, and whether that earns what it costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.feedback.nodes import Node
from millstream.feedback.wanted import Wanted
from millstream.kernels.compiled import Bools, UInt64s
from millstream.state.journal import Segment, Segments
from millstream.state.keys import hash_columns

TRIAL = 8192
"""Tuples asked about before it is judged whether that was worth it."""
WORTH = 20
"""It was when one in so many has slept, and not been woken."""
PAUSE = 8
"""Doublings of a pause at most."""


class Watch:
    """It rests where it does not earn what it costs, each time twice as long, and counts nothing meanwhile.

    It is state that no journal holds: after a restart it is counted anew, from what is stored and who sleeps.
    """

    def __init__(self, node: Node, number: int) -> None:
        self.node, self.number = node, number
        self.wanted = Wanted()
        self.counted = False
        self.mixed = np.uint64(number * 0x9E3779B97F4A7C15 % 2**64)
        self.asked = self.slept = self.woken = 0
        """Tuples since it was judged last."""
        self.pauses = 0
        self.resting = False
        self.left = 0
        """Tuples that it will not be asked about."""

    def partners(self, batch: pa.RecordBatch) -> tuple[UInt64s, Bools]:
        return hashes_of(batch, self.node.partners)

    @property
    def poor(self) -> bool:
        """Whether it has been tried, and has not been worth it."""
        if self.asked < TRIAL:
            return False
        poor = (self.slept - self.woken) * WORTH < self.asked
        self.asked = self.slept = self.woken = 0
        self.pauses = min(self.pauses + 1, PAUSE) if poor else 0
        return poor

    def rest(self) -> None:
        self.resting, self.left = True, TRIAL << self.pauses
        self.wanted.clear()

    def ask(self, hashes: UInt64s) -> Bools:
        """Who has a partner."""
        wanted = self.wanted.ask(hashes)
        self.asked += len(wanted)
        self.slept += len(wanted) - int(np.count_nonzero(wanted))
        return wanted

    # -- as state -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return self.wanted.nbytes

    def changes(self, number: int = 0, since: int = 0) -> Segment | None:
        return None

    def restore(self, segments: Segments) -> None:
        self.wanted.clear()
        self.counted = self.resting = False


def hashes_of(batch: pa.RecordBatch, columns: Sequence[str]) -> tuple[UInt64s, Bools]:
    """Of the values in some columns, be there none; a null is equal to nothing."""
    if not columns:
        return np.zeros(batch.num_rows, dtype=np.uint64), np.ones(batch.num_rows, dtype=np.bool_)
    hashes, valid, _ = hash_columns([batch.column(name) for name in columns])
    return hashes, valid
