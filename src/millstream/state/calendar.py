"""Rows by an int64 time axis: `pop(mark)` costs what it gives back, for any times in any order."""

from __future__ import annotations

import numpy as np

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.kernels import calendar as wheel
from millstream.kernels.compiled import Bools, Int64s
from millstream.state.bridge import grown, squeezed
from millstream.state.column_kinds import room


class Calendar:
    """Rows are numbered from 0 in the order they came; their owner says which are alive.

    Popped rows leave the calendar, dead ones when a pop meets them. Marks may go back; only late rows
    (those that came below the mark) are then looked at again each time.
    """

    def __init__(self) -> None:
        self.axis: Int64s = np.empty(0, dtype=np.int64)
        self._following: Int64s = np.empty(0, dtype=np.int64)
        self._last = _unsigned(MIN_TIME)
        self._aim = MIN_TIME
        self.clear()

    def clear(self) -> None:
        self._rows = 0
        self._prolonged = False  # whether rows may hang where their time has been
        self.latest = MIN_TIME  # of all rows that came, dead or alive, but for those that no mark reaches
        self._popped: Int64s = np.empty(0, dtype=np.int64)  # by `due`, and perhaps still alive
        self._heads = np.full(wheel.LISTS, -1, dtype=np.int64)
        self._tails = np.full(wheel.LISTS, -1, dtype=np.int64)

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        return self.axis.nbytes + self._following.nbytes + self._heads.nbytes + self._tails.nbytes

    def reserve(self, capacity: int, written: int = 0) -> None:
        """Make room; `written` times already stand in `axis`, though not all of their rows have been added."""
        if capacity > len(self.axis):
            self.axis = grown(self.axis, capacity, max(self._rows, written))
            self._following = grown(self._following, capacity, self._rows)

    def add(self, axis: Int64s) -> None:
        """The next rows, with their times."""
        stop = self._rows + len(axis)
        if stop > len(self.axis):
            self.reserve(room(len(self.axis), stop))
        self.axis[self._rows : stop] = axis
        self.add_written(len(axis))

    def add_written(self, rows: int) -> None:
        """The next rows, whose times already stand in `axis`."""
        stop = self._rows + rows
        times = self.axis[self._rows : stop]
        latest = int(times.max(initial=MIN_TIME))
        if latest == MAX_TIME:  # a masked maximum of all would take a tenth of the time of an insert
            latest = int(times[times < MAX_TIME].max(initial=MIN_TIME))
        self.latest = max(self.latest, latest)
        wheel.place(self.axis.view(np.uint64), self._following, self._heads, self._tails, self._last, self._rows, stop)
        self._rows = stop

    def prolong(self, rows: Int64s, axis: Int64s) -> None:
        """Rows get later times, where these are later. They stay in their lists, and are hung anew when they are met there."""
        np.maximum.at(self.axis, rows, axis)
        self.latest = max(self.latest, int(axis[axis < MAX_TIME].max(initial=MIN_TIME)))
        self._prolonged = True

    def pop(self, mark: int, alive: Bools) -> Int64s:
        """The alive rows with axis < mark that were not popped before, in the order they came."""
        out = np.empty(self._rows, dtype=np.int64)
        target = _unsigned(mark)
        count = wheel.pop(self.axis.view(np.uint64), self._following, self._heads, self._tails, self._last, target, alive, out)
        self._last = max(self._last, target)
        rows = out[:count].copy() if count * 2 < len(out) else out[:count]
        if self._prolonged:
            later = self.axis[rows] >= mark
            wheel.hang(self.axis.view(np.uint64), self._following, self._heads, self._tails, self._last, rows[later])
            rows = rows[~later]
        if not wheel.ascending(rows):
            rows.sort()
        return rows

    def due(self, mark: int, alive: Bools) -> Int64s:
        """Like `pop`, but rows popped before that are still alive come again."""
        rows = self.pop(mark, alive)
        left = self._popped[alive[self._popped]]
        if not len(left):
            self._popped = rows
            return rows
        self._popped = np.sort(np.concatenate([left, rows]))
        return self._popped[self.axis[self._popped] < mark]

    @property
    def aim(self) -> int:
        """A mark beyond this pops every row that was there when it was chosen; when that has been reached, the next one is.

        So a mark that clears all is asked for from time to time. Where rows keep coming, the latest of them would always be ahead.
        """
        if self._aim == MIN_TIME or self._last > _unsigned(self._aim):
            self._aim = self.latest
        return self._aim

    def earliest(self, alive: Bools) -> int:
        """The least time of an alive row; MAX_TIME when there is none."""
        if self._prolonged:
            return int(self.axis[: self._rows][alive[: self._rows]].min(initial=MAX_TIME))
        found = int(wheel.earliest(self.axis.view(np.uint64), self._following, self._heads, alive)) - 2**63
        left = self._popped[alive[self._popped]]
        return min(found, int(self.axis[left].min(initial=MAX_TIME)))

    def keep(self, rows: Int64s, capacity: int) -> None:
        """Row i becomes what row `rows[i]` was, and all of these are in the calendar (again)."""
        self.axis = squeezed(self.axis, rows, capacity)
        if len(self._following) != capacity:
            self._following = np.empty(capacity, dtype=np.int64)
        self.clear()
        self.add_written(len(rows))


def _unsigned(time: int) -> np.uint64:
    """The order of int64 as an order of uint64; the kernels flip the sign bit of the axis in the same way."""
    return np.uint64(int(time) + 2**63)
