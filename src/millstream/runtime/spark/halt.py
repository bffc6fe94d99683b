"""A word between two processes: the user's asks for no more input, and the source, beside the driver, says that it takes none."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from millstream.runtime import scratch


@dataclass(frozen=True)
class Halt:
    """A directory with a file for each of the two. Spark asks for an offset only when no micro-batch is under way, so an answer to
    that means that the last one is done, its commit included."""

    path: str

    @classmethod
    def new(cls) -> Halt:
        return cls(scratch.directory("halt"))

    def ask(self) -> None:
        _touch(os.path.join(self.path, "asked"))

    def answer(self) -> None:
        _touch(os.path.join(self.path, "answered"))

    @property
    def asked(self) -> bool:
        return os.path.exists(os.path.join(self.path, "asked"))

    @property
    def answered(self) -> bool:
        return os.path.exists(os.path.join(self.path, "answered"))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _touch(path: str) -> None:
    with open(path, "w"):
        pass
