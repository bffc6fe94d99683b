"""Where the records of a CSV text begin and end: in bulk where the quotes are regular, one by one where they are not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millstream.core.types import Int64s

NEWLINE, RETURN = 10, 13
Cell = tuple[bytes, bool]
"""The text of a field and whether it was quoted."""


@dataclass(frozen=True)
class Layout:
    """The records that can be told at once: `cut` bytes hold `starts.size` records; what follows needs more text or a second look."""

    cut: int
    starts: Int64s
    ends: Int64s  # exclusive, without the line end
    lines: Int64s  # newlines before each record
    regular: bool  # False when the text after `cut` must be read record by record


def layout(text: bytes, delimiter: int, quote: int | None) -> Layout:
    """Quotes are regular when each stands at the edge of a field or is doubled inside one.

    Then a newline lies inside a field exactly when an odd number of quotes precede it.
    """
    whole = np.frombuffer(text, np.uint8)
    newlines = np.flatnonzero(whole == NEWLINE)
    limit = len(text)
    after = np.append(whole, NEWLINE)
    if b"\r" in text:
        returns = np.flatnonzero(whole == RETURN)
        lone = returns[after[returns + 1] != NEWLINE]
        limit = int(lone[0]) if lone.size else limit
    breaks = newlines
    if quote is not None and bytes((quote,)) in text:
        quotes = np.flatnonzero(whole == quote)
        openers, closers = quotes[0::2], quotes[1::2]
        before = np.where(openers > 0, whole[np.maximum(openers - 1, 0)], NEWLINE)
        follow = after[closers + 1]
        stray = openers[(before != delimiter) & (before != NEWLINE) & (before != quote)]
        loose = closers[(follow != delimiter) & (follow != NEWLINE) & (follow != RETURN) & (follow != quote)]
        limit = min(limit, *(int(found[0]) for found in (stray, loose) if found.size), limit)
        breaks = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    breaks = breaks[: np.searchsorted(breaks, limit)]
    cut = int(breaks[-1]) + 1 if breaks.size else 0
    starts = np.concatenate(([0], breaks[:-1] + 1)) if breaks.size else np.zeros(0, np.int64)
    ends = breaks - (whole[np.maximum(breaks - 1, 0)] == RETURN) if breaks.size else breaks
    return Layout(cut, starts, np.maximum(ends, starts), np.searchsorted(newlines, starts), limit == len(text))


@dataclass(frozen=True)
class Record:
    """One record read with care; `reason` says why it is broken."""

    cells: tuple[Cell, ...]
    end: int  # where the next record begins
    reason: str | None = None


def record_at(text: bytes, start: int, delimiter: bytes, quote: bytes | None, last: bool) -> Record | None:
    """The record that begins at `start`, or None when its end has not come yet. `last`: nothing will follow `text`."""
    cells: list[Cell] = []
    at = start
    while True:
        if quote and text.startswith(quote, at):
            close = _closing(text, at + 1, quote)
            if close is None:
                line_end = text.find(b"\n", at)
                if not last:
                    return None
                return Record((), len(text) if line_end < 0 else line_end + 1, "a quote is opened and never closed")
            cells.append((text[at + 1 : close].replace(quote * 2, quote), True))
            at = close + 1
            if not (text.startswith((delimiter, b"\n", b"\r\n"), at) or at >= len(text)):
                line_end = text.find(b"\n", at)
                if line_end < 0 and not last:
                    return None
                return Record((), len(text) if line_end < 0 else line_end + 1, "there is text after a closing quote")
        else:
            line_end = text.find(b"\n", at)
            stop = text.find(delimiter, at, line_end if line_end >= 0 else len(text))
            if stop < 0 and line_end < 0 and not last:
                return None
            if stop < 0:
                stop = line_end if line_end >= 0 else len(text)
                if stop > at and text[stop - 1] == RETURN and line_end >= 0:
                    stop -= 1
            cells.append((text[at:stop], False))
            at = stop
        if text.startswith(delimiter, at):
            at += 1
            continue
        if at >= len(text) and not last:
            return None
        at += 2 if text.startswith(b"\r\n", at) else 1
        return Record(tuple(cells), min(at, len(text)))


def _closing(text: bytes, at: int, quote: bytes) -> int | None:
    while (found := text.find(quote, at)) >= 0:
        if not text.startswith(quote, found + 1):
            return found
        at = found + 2
    return None
