"""A watch is one node of a consumer's lattice at work: who has a partner there, who sleeps, and whether that earns what it costs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.feedback.nodes import Node
from millstream.feedback.wanted import Wanted
from millstream.kernels.compiled import Bools, UInt64s
from millstream.state.journal import Segment, Segments
from millstream.state.keys import hash_rows

ASKING, SLEEPING, WAKING, CALL = 0.15, 0.75, 1.5, 150.0
"""What it costs to ask about a tuple, to let it sleep and to wake it, and each time to ask or count at all, be it for one tuple:
measured by what it costs to make a partial result among many, to try it on and to store it, which is about a third of a microsecond."""
SMALL = 64
"""A trial of blocks as small as this is over sooner."""
PAUSE = 8
"""Doublings of a pause at most."""


class Watch:
    """It rests where it does not earn what it costs, each time twice as long, and counts nothing meanwhile.

    It is state that no journal holds: after a restart it is counted anew, from what is stored and who sleeps.
    """

    def __init__(self, node: Node, number: int, trial: int) -> None:
        """After `trial` tuples it is judged; with 0 it never is, and does not rest."""
        self.node, self.number, self.trial = node, number, trial
        self.wanted = Wanted()
        self.counted = False
        self.mixed = np.uint64(number * 0x9E3779B97F4A7C15 % 2**64)
        self.asked = self.slept = self.woken = self.calls = 0
        """Tuples, and how often it was needed, since it was judged last."""
        self.pauses = 0
        self.proven = True
        """Whether the last trial was worth it; before the first one it is thought to be."""
        self.resting = False
        self.left = 0
        """Tuples that it will not be asked about."""

    def partners(self, batch: pa.RecordBatch) -> tuple[UInt64s, Bools]:
        self.calls += 1
        hashes, valid, _ = hash_rows(batch, self.node.partners)
        return hashes, valid

    def poor(self, saved: float) -> bool:
        """Whether it has been tried and has not been worth it; `saved` are the results that a tuple makes where it does not sleep."""
        if not self.trial or (self.asked < self.trial and self.calls * SMALL < self.trial):
            return False
        cost = ASKING * self.asked + SLEEPING * self.slept + WAKING * self.woken + CALL * self.calls
        poor = saved * (self.slept - self.woken) < cost
        self.asked = self.slept = self.woken = self.calls = 0
        self.pauses = min(self.pauses + 1, PAUSE) if poor else 0
        self.proven = not poor
        return poor

    def rest(self, least: int = 0) -> None:
        """For some tuples: to begin again, all that is stored has to be counted, so it should be as many at least."""
        self.counted = self.resting = True
        self.left = max(self._pause, least)
        self.wanted.clear()

    @property
    def _pause(self) -> int:
        return self.trial << (4 + self.pauses if self.pauses else 0)

    @property
    def room(self) -> int | None:
        """Tuples that it is to be asked about at most, in a trial."""
        return None if self.proven else max(self.trial - self.asked, 0)

    def rested(self, saved: float) -> bool:
        """Whether it is time, and worth a trial; otherwise it goes on resting."""
        if self.left > 0:
            return False
        if saved > SLEEPING:
            return True
        self.pauses = min(self.pauses + 1, PAUSE)
        self.left = self._pause
        return False

    def ask(self, hashes: UInt64s) -> Bools:
        """Who has a partner."""
        self.calls += 1
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
