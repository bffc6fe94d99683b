"""Wanted tells which sub-tuples have a partner at a consumer, and remembers those that sleep until one comes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from millstream.core.types import MIN_TIME
from millstream.kernels import wanted as kernels
from millstream.kernels.compiled import Bools, Int64s, UInt64s, given


def _free(capacity: int) -> Int64s:
    made = np.zeros((capacity, 2), dtype=np.int64)
    made[:, 1] = kernels.FREE
    return made


SOME = 2048
"""Hashes for which room is made at a time: most of them are mostly known."""


class Wanted:
    """By the hash of their join values, so that a sub-tuple learns from all earlier ones with the same values.

    It is the consumer's buffer of minimal non-demanded sub-tuples and its filter over the opposite state in one (paper 003,
    sections III-A and IV-A): a lookup tells both. Two values of one hash count as one, which can only wake somebody too early.
    Nothing here is written to a journal: it follows from what is stored, and from who sleeps. Of partners it is known when the last one
    expires, so nobody has to tell that they have gone; one that goes before its time is a reason to be awake for no more than a while.
    """

    def __init__(self) -> None:
        self.move(MIN_TIME)
        self.clear()

    def clear(self) -> None:
        self._slots = _free(64)
        self._used = 0
        self.asleep = 0
        """Hashes under which somebody sleeps, or has slept until it expired."""

    def come(self, hashes: UInt64s, valid: Bools, until: Int64s) -> UInt64s:
        """Partners that have come, and when each expires; gives the hashes under which somebody sleeps, who has to be woken."""
        woken, count = np.empty(len(hashes), dtype=np.int64), 0
        hashes, valid, until = given(hashes, np.uint64), given(valid, np.bool_), np.clip(given(until, np.int64), -kernels.FAR, kernels.FAR)
        for some in self._some(len(hashes)):
            found, created = kernels.come(self._slots, hashes[some].view(np.int64), valid[some], until[some], woken[count:])
            self._used += created
            count += found
        self.asleep -= count
        return woken[:count].view(np.uint64)

    def move(self, bound: int) -> None:
        """What expires before counts no longer."""
        self._bound = np.int64(min(max(bound, 1 - kernels.FAR), kernels.FAR))

    def ask(self, hashes: UInt64s) -> Bools:
        """Which have a partner; the others are to sleep."""
        wanted, hashes = np.empty(len(hashes), dtype=np.bool_), given(hashes, np.uint64)
        for some in self._some(len(hashes)):
            flagged, created = kernels.ask(self._slots, hashes[some].view(np.int64), self._bound, wanted[some])
            self._used += created
            self.asleep += flagged
        return wanted

    def sleeping(self, hashes: UInt64s) -> Bools:
        """Under which somebody sleeps."""
        states = self._states(hashes)
        asleep: Bools = (states != kernels.FREE) & (states & 1 == 1)
        return asleep

    def there(self, hashes: UInt64s) -> Bools:
        """Which have a partner; nobody is to sleep for the others."""
        partners: Bools = self._states(hashes) >> 1 >= self._bound
        return partners

    def _states(self, hashes: UInt64s) -> Int64s:
        states = np.empty(len(hashes), dtype=np.int64)
        kernels.look(self._slots, given(hashes, np.uint64).view(np.int64), states)
        return states

    def _some(self, count: int) -> Iterator[slice]:
        """Places of so many hashes, for which there is room."""
        for at in range(0, count, SOME):
            self._reserve(min(SOME, count - at))
            yield slice(at, at + SOME)

    def _reserve(self, more: int) -> None:
        if 3 * (self._used + more) <= 2 * len(self._slots):
            return
        meant = kernels.meant(self._slots, self._bound)
        slots = _free(max(64, 1 << (7 * (meant + more) // 4).bit_length()))
        self._used = kernels.rebuild(self._slots, self._bound, slots)
        self._slots = slots

    def __len__(self) -> int:
        """Hashes of which something is known."""
        return self._used

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes
