"""How far the partner of a join's fed input has to move on until what sleeps for want of it is let go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.operators.contract import Due

if TYPE_CHECKING:
    from millstream.operators.join_feedback import JoinFeedback

LEFT, RIGHT = 0, 1


class Waits:
    """A time is waited for until it is reached, as in `Calendar.aim`; so not all that sleeps is looked at each time."""

    def __init__(self, join: JoinFeedback) -> None:
        self.join = join
        self._offsets: list[tuple[str, JoinFeedback, tuple[int, int]]] = []
        """For each column of the partner and each join where somebody may sleep: what expires there, counted from a time in that column."""
        self._aims: dict[str, int] = {}

    @property
    def _partner(self) -> int:
        return RIGHT if self.join.fed == LEFT else LEFT

    def learn(self) -> None:
        """While nobody sleeps yet: what is let go where one column of the partner has come to 0 and the others are nowhere."""
        join, real = self.join, self.join.progress
        reaching = [(band.right, band.high) if join.fed == LEFT else (band.left, band.low) for band in join.config.moving]
        try:
            for ending in dict.fromkeys(name for name, by in reaching if by is not None):

                def progress(side: int, attribute: str | None, ending: str = ending) -> int:
                    return 0 if (side, attribute) == (self._partner, ending) else MIN_TIME

                join.progress = progress
                self._offsets += [
                    (ending, holder, holder.reach.needed(holder.reach.behind(join)))
                    for holder in join.holders()
                ]
        finally:
            join.progress = real

    def refresh(self) -> None:
        """What sleeps has become something else."""
        self._aims = {}

    def due(self) -> Iterator[Due]:
        """Where promises wait for what sleeps, the first of it is waited for."""
        join, other = self.join, self._partner
        if join.fed is None or not any(watch.sleepers for watch in join.ready()):
            return
        hurry = any(holder.held for holder in join.holders())
        reached = [join.progress(other, ending) >= aim for ending, aim in self._aims.items()]
        if hurry or not reached or any(reached):
            kept = {ending: aim for ending, aim in self._aims.items() if join.progress(other, ending) < aim}
            self._aims = {ending: min(kept.get(ending, end), end) for ending, end in self._ends(hurry).items()}
        yield from (Due(other, ending, aim) for ending, aim in self._aims.items())

    def _ends(self, hurry: bool) -> dict[str, int]:
        """Where columns of the partner end the sleep of the last, or the first."""
        ends: dict[str, int] = {}
        choose = min if hurry else max
        for ending, holder, (left, right) in self._offsets:
            for sleepers, by in zip(holder.sleeping, (left, right, left), strict=True):
                expiry = sleepers.rows.earliest if hurry else sleepers.rows.latest
                if expiry < MAX_TIME and by > MIN_TIME:
                    end = expiry - by + 1
                    ends[ending] = choose(ends.get(ending, end), end)
        return ends
