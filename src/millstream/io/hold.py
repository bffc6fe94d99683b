"""A hold on a directory: what one run writes to, no other may write to at the same time."""

from __future__ import annotations

import fcntl
import os

from millstream.errors import SinkProblem
from millstream.io.staging import writing


class Hold:
    """By the kernel, which lets go when the process dies, however it dies; several runs may share a directory if all of them say so."""

    def __init__(self, owner: str, directory: str, *, shared: bool) -> None:
        self._file: int | None = None
        with writing(owner, directory):
            self._file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            hint = "wait for its end, choose another path, or set mode = 'append' for both"
            raise SinkProblem(f"{owner}: another run is writing to {directory}", hint=hint) from None
        except OSError:
            pass  # a file system without locks

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.release()
