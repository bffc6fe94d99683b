"""A window groups tuples by a stretch of a progressing attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from millstream.errors import Place

WINDOW_START = "window_start"
WINDOW_END = "window_end"
DAY = 86_400_000_000
PAIRS = 1 << 22
"""Pairs of a tuple and a window that are worked on together."""


def end_names(taken: Sequence[str]) -> tuple[str, str]:
    """Names for a window's ends that are not taken: what it works on may be windows too."""
    suffixes = ("", *(f"_{number}" for number in range(1, len(taken) + 2)))
    suffix = next(s for s in suffixes if WINDOW_START + s not in taken and WINDOW_END + s not in taken)
    return WINDOW_START + suffix, WINDOW_END + suffix


@dataclass(frozen=True)
class Window:
    """`[RANGE range SLIDE slide]`: window w covers `[w * slide, w * slide + range)` of the attribute.

    On a join input only the range counts: how long a tuple stays a possible partner.
    """

    attribute: str
    range: int
    slide: int
    rows: bool = False
    slides: bool = False
    """True when SLIDE was written, which only an aggregate understands."""
    optional: bool = False
    """True when the attribute may be null, because a left join brought it: then no pair is bound by it."""
    days: bool = False
    """True when range and slide count days, as a DATE does, and not microseconds."""
    place: Place | None = field(default=None, compare=False, metadata={"fact": False})

    def in_days(self) -> Window:
        """The window on a DATE; NOW and no window stay what they are."""
        return replace(self, range=self.range // DAY, slide=max(self.slide // DAY, 1), days=True)

    @property
    def overlap(self) -> int:
        """The most windows that one tuple is in."""
        return -(-self.range // self.slide)

    @property
    def stretch(self) -> int:
        """Tuples that are put into their windows together: each takes memory for each window it is in."""
        return max(PAIRS // self.overlap, 1)

    def first_open(self, mark: int) -> int:
        """The smallest window id that a tuple at or after `mark` can still fall into."""
        return (mark - self.range) // self.slide + 1

    def closing(self, window: int) -> int:
        """The mark that closes this window and those before it: the smallest whose `first_open` is behind it."""
        return window * self.slide + self.range

    def opening(self, start: int) -> int:
        """The smallest mark from which on every open window begins at or after `start`."""
        return self.closing(-(-start // self.slide) - 1)

    def start(self, window: int) -> int:
        return window * self.slide

    def __str__(self) -> str:
        unit = "rows" if self.rows else "days" if self.days else "us"
        return f"{self.range} {unit} slide {self.slide} on {self.attribute}"
