"""Dead letters kept in this process, for runs whose answers are kept there too."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.core.letters import DeadLetter


class LetterList:
    """Stands where a `LetterBox` would write files."""

    path = None

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []
        self.epoch = -1

    def put(self, letters: Iterable[DeadLetter]) -> None:
        self.letters += letters

    def deliver(self, epoch: int, letters: Iterable[DeadLetter]) -> None:
        """The letters of an epoch, once."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.put(letters)

    def finish(self) -> None: ...
