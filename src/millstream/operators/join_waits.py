"""How far the partner of a join's fed input has to move on until what sleeps for want of it is let go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.core.types import to_axis
from millstream.operators.contract import Due

if TYPE_CHECKING:
    from millstream.operators.join_feedback import JoinFeedback

LEFT, RIGHT = 0, 1


class Waits:
    """A time is waited for until it is reached, as in `Calendar.aim`; so not all that sleeps is looked at each time."""

    def __init__(self, join: JoinFeedback) -> None:
        self.join = join
        self._aims: dict[str, int] = {}

    def due(self) -> Iterator[Due]:
        """Where promises wait for what sleeps, the first of it is waited for."""
        join = self.join
        link = join.links[join.fed] if join.fed is not None else None
        if link is None or not any(watch.sleepers for watch in join.ready()):
            return
        other = RIGHT if join.fed == LEFT else LEFT
        hurry = any(holder.held for holder in join.holders())
        reached = [join.progress(other, ending) >= aim for ending, aim in self._aims.items()]
        if hurry or not reached or any(reached):
            ends = self._latest(min if hurry else max)
            kept = {ending: aim for ending, aim in self._aims.items() if join.progress(other, ending) < aim}
            self._aims = {ending: min(kept.get(ending, end), end) for ending, end in ends.items()}
        yield from (Due(other, ending, aim) for ending, aim in self._aims.items())

    def _latest(self, choose: Callable[[int, int], int]) -> dict[str, int]:
        """Where columns of the other input end the sleep of the last, or the first."""
        ends: dict[str, int] = {}
        for holder, tuples in [(each, tuples) for each in self.join.holders() for tuples in _held_back(each)]:
            here = {holder.called(self.join, column): column for column in tuples.schema.names}
            for name, ending, by in self._ends():
                if name in here:
                    times = to_axis(tuples.column(here[name]))
                    end = int(choose(times.min(), times.max())) + by + 1
                    ends[ending] = choose(ends.get(ending, end), end)
        return ends

    def _ends(self) -> list[tuple[str, str, int]]:
        """Columns of the fed input, those of the other one that end their sleep, and how far they reach."""
        config = self.join.config
        if self.join.fed == LEFT:
            return [(band.left, band.right, band.high) for band in config.bands if band.high is not None and band.left != config.latest]
        return [(name, str(config.left_time), reach) for name, reach in config.right_reach]


def _held_back(holder: JoinFeedback) -> Iterator[pa.RecordBatch]:
    """The tuples that sleep, and those whose pairs are not made."""
    yield from (sleepers.all() for sleepers in holder.asleep if len(sleepers))
    if holder.marks is not None and len(holder.patterns):
        yield from (tuples for tuples in holder.marks.tuples() if tuples.num_rows)
