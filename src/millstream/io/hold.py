"""A hold on a directory: what one run writes to, no other may write to at the same time."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from millstream.errors import SinkProblem
from millstream.io.staging import writing


def make_directories(path: str) -> list[str]:
    """Make a directory and those above it; returns those that were not there, the outermost first."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    made = []
    for directory in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(directory)
            made.append(directory)
    return made


def remove_directories(made: list[str]) -> None:
    """Remove the directories of `make_directories` in which nothing is."""
    with suppress(OSError):
        while made:
            os.rmdir(made.pop())


def is_at(file: int, path: str) -> bool:
    """True when an open file is still the one at a path: nobody has removed it since."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


class Hold:
    """A lock of the kernel, which ends with its process, however that dies.

    Several runs may share a directory if all of them say so. A directory that is not there is made, and goes with
    the hold when nothing was written.
    """

    def __init__(self, owner: str, directory: str, *, shared: bool) -> None:
        self._file: int | None = None
        self._made: list[str] = []
        self._lock = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        while self._file is None:
            with writing(owner, directory):
                self._made += make_directories(directory)
                self._file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(self._file, self._lock)
            except BlockingIOError:
                self._let_go()
                hint = "wait for its end, choose another path, or set mode = 'append' for both"
                raise SinkProblem(
                    f"{owner}: another run is writing to {directory}", hint=hint, passing=True
                ) from None
            except OSError:
                pass  # a file system without locks
            if not is_at(self._file, directory):
                self._let_go()

    def release(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # another run shares it
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_directories(self._made)
            self._let_go()

    def _let_go(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.release()
