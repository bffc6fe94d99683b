"""Temporary files of a process: in one directory that bears its name, so that a later one can tell what the dead have left."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

PREFIX = "millstream-of-"


def directory(what: str) -> str:
    """A new directory, gone with this process at the latest."""
    return tempfile.mkdtemp(prefix=f"{what}-", dir=_own(os.getpid()))


@cache
def _own(pid: int) -> str:
    """Once a process: make room for it, and remove what processes have left that are no more."""
    place = os.path.join(tempfile.gettempdir(), f"{PREFIX}{socket.gethostname()}-{process_name(pid)}")
    _sweep(os.path.dirname(place))
    os.makedirs(place, mode=0o700, exist_ok=True)
    atexit.register(_leave, pid, place)
    return place


def _leave(pid: int, place: str) -> None:
    if os.getpid() == pid:  # a fork that ends is not its parent
        shutil.rmtree(place, ignore_errors=True)


def _sweep(root: str) -> None:
    here = f"{PREFIX}{socket.gethostname()}-"
    for folder in Path(root).glob(here + "*"):
        with suppress(OSError, ValueError):
            name = folder.name.removeprefix(here)
            if name != process_name(int(name.split("-")[0])):
                shutil.rmtree(folder, ignore_errors=True)


def process_name(pid: int) -> str:
    """A process, told apart from a later one of the same number by when it began."""
    try:
        began = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        began = "gone"
    return f"{pid}-{began}"
