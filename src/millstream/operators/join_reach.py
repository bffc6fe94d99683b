"""How long tuples of a join may still be needed by what sleeps before it, or is made again from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.operators.join_links import Downstream
from millstream.operators.join_promises import shift

if TYPE_CHECKING:
    from millstream.operators.join_feedback import JoinFeedback

LEFT, RIGHT = 0, 1
_ALL = (MAX_TIME, MAX_TIME)


class Reach:
    """Of one join; a tuple expires by the least of its times plus how far each of them reaches."""

    def __init__(self, join: JoinFeedback) -> None:
        self.join = join
        self._bounds = (-1, _ALL)

    def bounds(self) -> tuple[int, int]:
        """For each side: what expires before is of no use to anything that sleeps, or is made again. MAX_TIME where nothing is."""
        left, right = self.sleepers()
        if self.join.lends is None:
            return left, right
        lent = self.join.lends.bounds()
        return min(left, lent[LEFT]), min(right, lent[RIGHT])

    def sleepers(self) -> tuple[int, int]:
        """The same for what sleeps alone, and so for how long it is to sleep itself."""
        if self.join.epoch.quiet and not self.join.epoch.waking:
            return _ALL
        if self._bounds[0] != self.join.epoch.number:
            found = [self.needed(each) for each in self._holding()]
            both = min((left for left, _ in found), default=MAX_TIME), min((right for _, right in found), default=MAX_TIME)
            self._bounds = (self.join.epoch.number, both)
        return self._bounds[1]

    def needed(self, downstream: Downstream) -> tuple[int, int]:
        """The same for what sleeps on account of one consumer, if anything does."""
        return self.expiries(downstream.least())

    def expiries(self, known: dict[str, int]) -> tuple[int, int]:
        """When tuples of each side expire, at least, that are a part of results with such values or later ones."""
        least = self._least(known)
        lasting = [(band.left, band.high) for band in self.join.config.bands if band.left != self.join.config.latest]
        reach = [shift(least[name], high) for name, high in lasting if high is not None]
        right = min((shift(least.get(name, MIN_TIME), by) for name, by in self.join.config.right_reach), default=MIN_TIME)
        return min(reach, default=MIN_TIME), right

    def _holding(self) -> list[Downstream]:
        """The consumers for which something may sleep here or above."""
        return [each for each in self.join.downstream if each.owner.waking or any(watch.sleepers for watch in each.owner.ready())]

    def _least(self, known: dict[str, int]) -> dict[str, int]:
        """The least values that results still to be asked for can have: by what is known of them, and by each other."""
        bands = self.join.config.moving
        least = dict.fromkeys([name for band in bands for name in (band.left, band.right)], MIN_TIME) | known
        for band in bands:
            if band.low is not None:
                least[band.right] = max(least[band.right], shift(least[band.left], band.low))
        for band in bands:
            if band.high is not None:
                least[band.left] = max(least[band.left], shift(least[band.right], -band.high))
        return least

    def least(self, owner: JoinFeedback) -> dict[str, int]:
        """The least values in columns of its inputs that may still be asked for by this consumer, or by one behind it."""
        return self.floors() if owner is self.join else self._least(self.behind(owner).least())

    def floors(self) -> dict[str, int]:
        """What is woken here has at least these values in the columns of the fed input: its partner is still to come.

        From outside, or because it is woken for a consumer further on, which then has something to say of both.
        """
        found: dict[str, int] = {}
        for band in self.join.config.moving:
            if self.join.fed == LEFT and band.high is not None:
                found[band.left] = max(found.get(band.left, MIN_TIME), shift(self.join.progress(RIGHT, band.right), -band.high))
            elif self.join.fed == RIGHT and band.low is not None:
                found[band.right] = max(found.get(band.right, MIN_TIME), shift(self.join.progress(LEFT, band.left), band.low))
        for each in self._holding():
            least = self._least(each.least())
            found = {name: min(bound, least[name]) for name, bound in found.items()}
        return found

    def behind(self, owner: JoinFeedback) -> Downstream:
        """The way to a consumer further on."""
        return next(each for each in self.join.downstream if each.owner is owner)
