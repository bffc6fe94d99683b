"""The scheduler gives each component of the graph its share of the time, by weight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from millstream.runtime.local.feed import Feed


@dataclass(eq=False)
class Component:
    """A connected part of the graph: the streams that feed it, its weight, and the time it has had."""

    feeds: list[Feed]
    weight: float = 1.0
    used: float = 0.0

    @property
    def turn(self) -> float:
        return self.used / self.weight


class Scheduler:
    """Stride scheduling: whoever has had least for its weight goes first; who has slept does not get back what it did not use."""

    def __init__(self, components: Sequence[Component] = ()) -> None:
        self.components = list(components)
        self.awake: set[Component] = set()

    def changed(self, parts: Sequence[tuple[list[Feed], float]]) -> Scheduler:
        """Other components, as streams and a weight each: those with streams that were there go on where they were.

        A new one begins with the least of those that are awake: it has no claim to the time before it came.
        """
        known = {feed: component for component in self.components for feed in component.feeds}
        least = min((component.turn for component in self.awake), default=max((c.turn for c in self.components), default=0.0))
        made = Scheduler()
        for feeds, weight in parts:
            before = {known[feed] for feed in feeds if feed in known}
            component = Component(feeds, weight, max((each.turn for each in before), default=least) * weight)
            made.components.append(component)
            if before & self.awake:
                made.awake.add(component)
        return made

    def turns(self) -> list[Component]:
        """In the order in which they should be asked for something to do."""
        return sorted(self.components, key=lambda component: component.turn)

    def ran(self, component: Component, time: float, asleep: Iterable[Component]) -> None:
        """One of them has run for so long, after those before it had nothing to do."""
        self.awake -= set(asleep)
        if component not in self.awake:
            least = min((other.turn for other in self.awake), default=component.turn)
            component.used = max(component.used, least * component.weight)
            self.awake.add(component)
        component.used += time
