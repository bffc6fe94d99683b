"""A feed reads one stream piece by piece, and knows how far it has come."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.core.clock import Clock
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.io.contract import Position, Source, Unit
from millstream.progress.demand import Outlook
from millstream.progress.ets import enabling_timestamp
from millstream.runtime.ingest import Ingest, Piece, older


class Feed:
    """One stream of a local run: the units taken so far, the one being read, and its low-water mark."""

    def __init__(self, ingest: Ingest, clock: Clock) -> None:
        self.ingest = ingest
        self.clock = clock
        self.source: Source = ingest.source
        self.position: Position = self.source.initial()
        self.waiting: list[Unit] = []
        self.reading: Iterator[Piece] | None = None
        self.units = 0
        self.ended = False
        self.mark = MIN_TIME
        self.enabled = MIN_TIME
        self.rows = 0
        self.arrived: int | None = None
        self.looked = 0
        """When we last looked whether something is there, by the clock: what has come since is not known yet."""
        self.last_arrival = 0
        """When a tuple came last, by the clock: an enabling timestamp grows from there."""
        self.lag: int | None = None
        """How old tuples have been when they arrived, at most."""

    def next(self) -> Piece | None:
        """The next piece, or None when there is nothing to read now."""
        while not self.ended:
            if self.reading is not None:
                piece = next(self.reading, None)
                if piece is not None:
                    self._note(piece)
                    return piece
                self.reading = None
            if not self.waiting and not self.look():
                return self._end()
            if self.waiting:
                unit = self.waiting.pop(0)
                self.arrived = self.source.arrived(unit)
                self.units = unit.number + 1
                # The machine's clock may be set back; a stream's own time is not.
                self.reading = self.ingest.read(
                    unit, max(self.clock.now(), self.enabled, self.mark), self.clock.now()
                )
        return None

    def silent(self) -> bool:
        """True when a look shows that there is still nothing to read."""
        return not self.ended and self.reading is None and not self.waiting and not self.look()

    def look(self) -> bool:
        """True when something is there to read that was not before."""
        self.looked = self.clock.now()
        position = self.source.latest(self.position, None)
        if position == self.position:
            return False
        self.waiting = list(self.source.units(self.position, position))
        self.position = position
        return True

    def _end(self) -> Piece | None:
        if not (self.source.bounded and self.source.finished(self.position)):
            return None
        self.ended = True
        self.mark = MAX_TIME
        return self.ingest.mark(self.units, None)

    def _note(self, piece: Piece) -> None:
        self.rows += piece.rows
        for arrival in piece.arrivals:
            self.mark = max(self.mark, arrival.step.mark)
        if piece.rows:
            self.last_arrival = self.arrived or self.clock.now()
            self.lag = older(self.lag, piece.lag(self.last_arrival))

    def outlook(self, silent: bool) -> Outlook:
        """How far this stream is, and how far an enabling timestamp would take it; only a silent one makes any."""
        mark = max(self.mark, self.enabled)
        if not silent or self.ended:
            return Outlook(mark, mark)
        made = enabling_timestamp(self.ingest.stream, self.mark, self.last_arrival, self.looked, self.enabled, self.lag)
        return Outlook(mark, mark if made is None else made)

    def enable(self, mark: int) -> Piece:
        """An enabling timestamp, because this stream is silent and holds others back."""
        self.enabled = mark
        return self.ingest.mark(self.units, mark, self.looked)
