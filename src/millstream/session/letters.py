"""Dead letters kept in this process, for runs whose answers are kept there too."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from millstream.core.letters import DeadLetter

LETTERS = 100_000
"""Letters that a query over streams without end keeps."""


class LetterList:
    """Stands where a `LetterBox` would write files, and keeps the last `most` letters."""

    path = None

    def __init__(self, most: int | None = None) -> None:
        self._kept: deque[DeadLetter] = deque(maxlen=most)
        self.epoch = -1

    @property
    def letters(self) -> list[DeadLetter]:
        return list(self._kept)

    def put(self, letters: Iterable[DeadLetter]) -> None:
        self._kept += letters

    def deliver(self, epoch: int, letters: Iterable[DeadLetter]) -> None:
        """The letters of an epoch, once."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.put(letters)

    def finish(self) -> None: ...
