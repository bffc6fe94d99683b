"""What became of the tuples that came to a join: how many results each makes."""

from __future__ import annotations

from dataclasses import dataclass

TELLING = 1000
"""Tuples that tell what a tuple makes; fewer do not."""


@dataclass
class Work:
    """Of the last tuples: what was long ago counts less."""

    memory: int = 1 << 16
    taken: float = 0.0
    made: float = 0.0

    def add(self, taken: int, made: int) -> None:
        self.taken, self.made = self.taken + taken, self.made + made
        if self.taken > self.memory:
            self.taken, self.made = self.taken / 2, self.made / 2

    def each(self, unknown: float) -> float:
        """Results of a tuple, or a guess as long as there were few."""
        return self.made / self.taken if self.taken > TELLING else unknown
