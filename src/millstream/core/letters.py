"""A dead letter is a tuple that could not be used, kept with the reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeadLetter:
    """A tuple that could not be used, with its place and the reason; nothing is lost in silence."""

    stream: str
    kind: str  # "broken", "late", "null-timestamp", "check", "error"
    reason: str
    file: str | None = None
    line: int | None = None
    punctuation: str | None = None
    content: str | None = None  # the text of the row, or the tuple as JSON
