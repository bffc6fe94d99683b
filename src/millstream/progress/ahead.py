"""Tuples that lie too far after their arrival: the limit, and streams whose times are of another zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from millstream.core.letters import DeadLetter
from millstream.io.contract import Source
from millstream.language.durations import NO_LIMIT, spell
from millstream.plan.catalog import Stream

FIRST = 1_000
"""Tuples of a stream after which it is judged."""


@dataclass(frozen=True)
class Limit:
    """The distance from the arrival of a unit that its tuples may not exceed, both in microseconds.

    A limit relative to the stream's own time would refuse the first tuple after any gap.
    """

    arrived: int
    ahead: int

    @property
    def last(self) -> int:
        """The greatest time that is allowed."""
        return self.arrived + self.ahead

    def reason(self, stream: Stream) -> str:
        return f"`{stream.time}` lies more than {spell(self.ahead)} after the time at which the tuple arrived"


def distance(stream: Stream, source: Source, by_clock: bool) -> int | None:
    """The limit that the stream declares, else that of its source; None for any distance.

    Under a clock that is moved by hand only a declared limit holds.
    """
    declared = stream.timestamp.ahead
    if declared is not None:
        return None if declared == NO_LIMIT else declared
    return getattr(source, "ahead", None) if by_clock else None


class Ahead:
    """The streams of a run of which half of the first tuples lay ahead; each is told once."""

    def __init__(self) -> None:
        self.letters: dict[str, int] = {}
        self.judged: set[str] = set()
        self.told: list[str] = []

    def put(self, letters: Iterable[DeadLetter]) -> None:
        for letter in letters:
            if letter.kind == "ahead":
                self.letters[letter.stream] = self.letters.get(letter.stream, 0) + 1

    def lines(self, read: Mapping[str, int]) -> list[str]:
        """The lines about streams that were judged so far, given the tuples read of each."""
        for stream, count in read.items():
            if count >= FIRST and stream not in self.judged:
                self.judged.add(stream)
                ahead = self.letters.get(stream, 0)
                if 2 * ahead >= count:
                    self.told.append(
                        f"stream {stream}: {ahead:,} of the first {count:,} tuples lie too far after their"
                        " arrival, probably because their times are of another time zone and not UTC;"
                        " correct them, or declare AHEAD with a greater limit"
                    )
        return list(self.told)
