"""A watch is one node of a consumer's lattice at work: who has a partner there, who sleeps, and whether that earns what it costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from millstream.feedback.nodes import Node
from millstream.feedback.wanted import Wanted
from millstream.kernels.compiled import Bools, Int64s, UInt64s
from millstream.state.journal import Segment, Segments
from millstream.state.keys import hash_rows

ASKING, SLEEPING, WAKING, CALL = 0.15, 0.75, 1.5, 800.0
"""What it costs to ask about a tuple, to let it sleep and to wake it, and each time to ask or count at all, be it for one tuple:
measured by what it costs to make a partial result among many, to try it on and to store it, which is about a third of a microsecond."""
SMALL = 64
"""A trial of blocks as small as this is over sooner."""
LOSS, SOME = 1000.0, 256
"""What a trial may cost more than it saves: it is over then, if there were some tuples to tell by. Before it, some are looked at."""
UNASKED = 4096
"""Partners that are counted at least though nobody asks."""
PAUSE = 8
"""Doublings of a pause at most."""


class Watch:
    """It rests where it does not earn what it costs, each time twice as long, and counts nothing meanwhile.

    It is state that no journal holds: after a restart it is counted anew, from what is stored and who sleeps.
    """

    def __init__(self, node: Node, number: int, trial: int) -> None:
        self.node, self.number = node, number
        self.wanted = Wanted()
        self.counted = False
        self.sleepers = 0
        """Tuples that sleep under it."""
        self.dormant = False
        """Whether it counts nothing for the time being, because nobody asks."""
        self.unasked = 0
        """Partners that have come since somebody asked."""
        self.mixed = np.uint64(number * 0x9E3779B97F4A7C15 % 2**64)
        self._settle()
        self.pauses = 0
        self.proven = False
        """Whether the last trial was worth it."""
        self.begin(trial)

    def begin(self, trial: int) -> None:
        """After `trial` tuples it is judged; with 0 it never is, and does not rest."""
        self.trial = self.tried = trial
        """Tuples of a trial, and of the last one there was."""
        self.resting = trial > 0
        self.left = trial // 8 if self.node.level < 2 else trial
        """Tuples that it will not be asked about: at first until it is known how much they make, and larger sub-tuples later."""

    def partners(self, batch: pa.RecordBatch) -> tuple[UInt64s, Bools]:
        self.calls += 1
        hashes, valid, _ = hash_rows(batch, self.node.partners)
        return hashes, valid

    def come(self, batch: pa.RecordBatch, until: Int64s) -> UInt64s:
        """Partners come, and when they expire; gives the hashes of those who have to be woken."""
        self.unasked += batch.num_rows
        return self.wanted.come(*self.partners(batch), until)

    def stop(self) -> bool:
        """Count no more until somebody asks, if it is long since anybody did: then all that is stored has to be counted."""
        self.dormant = self.unasked > max(UNASKED, 2 * len(self.wanted)) and not self.sleepers
        if self.dormant:
            self.wanted.clear()
        return self.dormant

    def _settle(self) -> None:
        """Begin to count anew."""
        self.asked = self.slept = self.woken = self.calls = 0
        """Tuples, and how often it was needed."""
        self.saved = 0.0
        """Results that were not made."""

    def poor(self) -> bool:
        """Whether it has been tried and has not been worth it."""
        if not self.trial or (self.asked < self.trial and self.calls * SMALL < self.trial and not self._hopeless):
            return False
        return not self._judged()

    def _judged(self) -> bool:
        """Whether it was worth it."""
        self.proven = self._lost <= 0
        self.tried = max(self.asked, 1)
        self._settle()
        self.pauses = 0 if self.proven else min(self.pauses + 1, PAUSE)
        return self.proven

    @property
    def _hopeless(self) -> bool:
        """Whether a trial need not go on."""
        return not self.proven and self.asked >= SOME and self._lost > LOSS

    @property
    def _lost(self) -> float:
        """What it has cost more than it has saved since it was judged last."""
        cost = ASKING * self.asked + SLEEPING * self.slept + WAKING * self.woken + CALL * self.calls
        return cost - self.saved

    def rest(self, least: int = 0) -> None:
        """For some tuples: to begin again, all that is stored has to be counted, so it should be as many at least."""
        self.counted = self.resting = True
        self.left = max(self._pause, least)
        self.wanted.clear()

    @property
    def _pause(self) -> int:
        return self.tried << (4 + self.pauses)

    @property
    def room(self) -> int | None:
        """Tuples that it is to be asked about at most, in a trial; none where it has cost too much."""
        if self.proven or not self.trial:
            return None
        return 0 if self._hopeless else max(self.trial - self.asked, 0)

    def sift(self, batch: pa.RecordBatch, ask: Callable[[pa.RecordBatch], pa.RecordBatch]) -> pa.RecordBatch:
        """What is left of tuples when it has been asked about as many as it is to be."""
        kept = []
        while batch.num_rows and (room := self.room) != 0:
            tried = batch if room is None else batch.slice(0, room)
            batch = batch.slice(tried.num_rows)
            kept.append(ask(tried))
            if not self.proven and self.asked >= self.trial > 0 >= self._lost:
                self._judged()
        kept = [piece for piece in (*kept, batch) if piece.num_rows] or [batch]
        return kept[0] if len(kept) == 1 else pa.concat_batches(kept)

    def rested(self, makes: float) -> bool:
        """Whether it is time, and worth a trial, by the results that a tuple makes; otherwise it goes on resting."""
        if self.left > 0:
            return False
        if makes > SLEEPING:
            self._settle()  # whom the last rest woke is not on this trial's account
            return True
        self._pass()
        return False

    def worth(self, hashes: UInt64s, makes: float, tuples: int) -> bool:
        """Whether a trial may earn what it costs, by how many of some tuples have no partner now; otherwise it goes on resting.

        They are the first of so many. A short trial shows that by itself.
        """
        lonely = 1 - np.count_nonzero(self.wanted.there(hashes)) / max(len(hashes), 1)
        if 0 < self.trial <= SOME or lonely * (makes - SLEEPING) > ASKING + 2 * CALL / tuples:  # asking, and counting at the consumer
            return True
        self.rest()
        self._pass()
        return False

    def _pass(self) -> None:
        """It was not even tried, so the pause may be short."""
        self.pauses = min(self.pauses + 1, PAUSE)
        self.left = min(self.tried, SOME) << (4 + self.pauses)

    def ask(self, hashes: UInt64s, makes: float) -> Bools:
        """Who has a partner; the others are to sleep, and do not make so many results each."""
        self.calls += 1
        self.unasked = 0
        wanted = self.wanted.ask(hashes)
        slept = len(wanted) - int(np.count_nonzero(wanted))
        self.asked, self.slept, self.saved = self.asked + len(wanted), self.slept + slept, self.saved + slept * makes
        return wanted

    def wake(self, count: int, makes: float) -> None:
        """So many sleep no longer."""
        self.woken, self.saved = self.woken + count, self.saved - count * makes

    # -- as state -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return self.wanted.nbytes

    def changes(self, number: int = 0, since: int = 0) -> Segment | None:
        return None

    def refresh(self) -> None:
        """Who is there and who sleeps may have changed."""
        self.counted &= self.resting
        self.dormant = False

    def restore(self, segments: Segments) -> None:
        self.wanted.clear()
        self.sleepers = 0
        self.counted = self.resting = self.dormant = False
