"""Temporary files of a process: in one directory that bears its name, so that a later one can tell what the dead have left."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

PREFIX = "millstream-"


def directory(what: str) -> str:
    """A new directory, gone with this process at the latest."""
    return tempfile.mkdtemp(prefix=f"{what}-", dir=_own(os.getpid(), tempfile.gettempdir()))


def short_directory(most: int) -> str | None:
    """A directory for sockets, whose path has at most so many characters; None where there is none."""
    for root in dict.fromkeys((tempfile.gettempdir(), "/tmp")):
        place = os.path.join(root, f"{_name(os.getpid())}-12345678", "s")  # mkdtemp adds as many characters
        if len(os.fsencode(place)) <= most and os.access(root, os.W_OK):
            place = os.path.join(_own(os.getpid(), root), "s")
            os.makedirs(place, mode=0o700, exist_ok=True)
            return place
    return None


@cache
def _own(pid: int, root: str) -> str:
    """Once a process: make room for it, and remove what processes have left that are no more."""
    _sweep(root)
    place = tempfile.mkdtemp(prefix=f"{_name(pid)}-", dir=root)
    atexit.register(_leave, pid, place)
    return place


def _name(pid: int) -> str:
    return f"{_here()}{process_name(pid)}"


def _here() -> str:
    """The beginning of the names on this host: of fixed length, as the paths of sockets must be short."""
    return f"{PREFIX}{hashlib.sha256(socket.gethostname().encode()).hexdigest()[:6]}-"


def _leave(pid: int, place: str) -> None:
    if os.getpid() == pid:  # a fork that ends is not its parent
        shutil.rmtree(place, ignore_errors=True)


def _sweep(root: str) -> None:
    here = _here()
    for folder in Path(root).glob(here + "*"):
        with suppress(OSError, ValueError):
            name = folder.name.removeprefix(here).rpartition("-")[0]
            if name != process_name(int(name.split("-")[0])):
                shutil.rmtree(folder, ignore_errors=True)


def process_name(pid: int) -> str:
    """A process, told apart from a later one of the same number by when it began."""
    try:
        began = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        began = "gone"
    return f"{pid}-{began}"
