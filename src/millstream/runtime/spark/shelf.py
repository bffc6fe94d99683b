"""Hot state lies on a shelf of the host, where any worker finds it: arrays in shared memory, the rest pickled beside them.

Spark gives a bucket now to one worker, now to another. What a worker leaves on the shelf the next one maps into its own
memory: nothing is copied, and the host holds one copy however many workers there are. The state store stays the truth:
a shelf counts only under the token of the stored state, and whoever takes from it takes it away until the work is done,
so that a worker that dies half-way leaves nothing behind that could be mistaken for a state.
"""

from __future__ import annotations

import errno
import mmap
import os
import pickle
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from millstream.runtime.scratch import process_name

LEAST = 1 << 16
"""Bytes from which an array gets a file of its own; smaller ones are pickled."""
MEMORY = "/dev/shm"
PREFIX = "millstream-hot-"


@dataclass(frozen=True)
class Mapped:
    """A file of the shelf in this process's memory."""

    name: str
    memory: mmap.mmap
    address: int


_mapped: dict[str, dict[str, Mapped]] = {}
"""By folder and file. Kept from batch to batch: mapping a page again costs as much as copying a small one."""


class Shelf:
    """The place of one bucket of one stage."""

    def __init__(self, run: str, stage: int, bucket: int, root: str | None = None) -> None:
        self.run = os.path.join(root or base(), PREFIX + run)
        self.folder = os.path.join(self.run, f"{stage}-{bucket}")
        self.state = os.path.join(self.folder, "state")

    def take(self, token: bytes) -> Any:
        """What was left here as the state of this token; None when it is not there. It is nobody else's from now on."""
        claimed = os.path.join(self.folder, f"taken-{os.getpid()}-{os.urandom(4).hex()}")
        try:
            os.rename(self.state, claimed)
            with open(claimed, "rb") as file:
                left, names, body = pickle.load(file)
            os.unlink(claimed)
            if left != token:
                return None
            return pickle.loads(body, buffers=[self._map(name) for name in names])
        except FileNotFoundError:
            return None

    def put(self, token: bytes, contents: Any) -> bool:
        """Leave a state for whoever comes next; False when there is no room for it."""
        names: list[str] = []

        def aside(buffer: pickle.PickleBuffer) -> bool:
            memory = buffer.raw()
            if memory.nbytes < LEAST:
                return True
            names.append(self._place(memory))
            return False

        self._open()
        try:
            body = pickle.dumps(contents, protocol=5, buffer_callback=aside)
            self._write("state.new", pickle.dumps((token, names, body), protocol=5))
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._forget(())
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM):
                return False
            raise
        os.replace(os.path.join(self.folder, "state.new"), self.state)
        for name in set(os.listdir(self.folder)) - {*names, "state"}:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, name))
        self._forget(names)
        return True

    def _open(self) -> None:
        if not os.path.isdir(self.run):
            sweep()  # once a run and host, also where the daemon is not ours
            os.makedirs(self.run, mode=0o700, exist_ok=True)
        os.makedirs(self.folder, exist_ok=True)
        owner = os.path.join(self.run, owner_name(os.getppid()))
        if not os.path.exists(owner):
            Path(owner).touch()

    def _map(self, name: str) -> mmap.mmap:
        mapped = _mapped.setdefault(self.folder, {})
        found = mapped.get(name)
        if found is None:
            with open(os.path.join(self.folder, name), "r+b") as file:
                memory = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
            found = mapped[name] = Mapped(name, memory, _address(memory))
        return found.memory

    def _place(self, memory: memoryview) -> str:
        """The file that this memory is, or a new one that it is copied to."""
        address = _address(memory)
        for mapping in _mapped.get(self.folder, {}).values():
            if mapping.address == address and len(mapping.memory) == memory.nbytes:
                return mapping.name
        name = f"array-{os.getpid()}-{os.urandom(6).hex()}"
        self._write(name, memory)
        return name

    def _write(self, name: str, data: bytes | memoryview) -> None:
        """By `write`, which says when there is no room; a mapping would be killed by the first page too many."""
        with open(os.path.join(self.folder, name), "wb", buffering=0) as file:
            view, at = memoryview(data), 0
            while at < len(view):
                at += file.write(view[at : at + (1 << 30)])

    def _forget(self, names: Iterable[str]) -> None:
        kept = set(names)
        mapped = _mapped.get(self.folder, {})
        _mapped[self.folder] = {name: mapping for name, mapping in mapped.items() if name in kept}


def _address(memory: Any) -> int:
    return int(np.frombuffer(memory, dtype=np.uint8).__array_interface__["data"][0])


def let_go() -> None:
    """Unmap what others have replaced since: a mapped file keeps its memory even when it has been removed."""
    for folder, mapped in list(_mapped.items()):
        there = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        for name in [name for name in mapped if name not in there]:
            del mapped[name]
        if not mapped:
            del _mapped[folder]


@cache
def base() -> str:
    """Shared memory where there is plenty of it, otherwise Spark's local directory."""
    with suppress(OSError, ValueError):
        free = os.statvfs(MEMORY)
        if os.access(MEMORY, os.W_OK) and free.f_bavail * free.f_frsize >= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4:
            return MEMORY
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()


def remove(run: str) -> None:
    """The run is over."""
    for root in {base(), MEMORY}:
        shutil.rmtree(os.path.join(root, PREFIX + run), ignore_errors=True)


def sweep(leaving: int | None = None) -> None:
    """Remove what runs have left that are no more: those whose every owner has died, or is the process that is leaving."""
    for folder in Path(base()).glob(PREFIX + "*"):
        with suppress(OSError):
            owners = [(path.name, int(path.name.split("-")[1])) for path in folder.iterdir() if path.name.startswith("owner-")]
            if owners and not any(pid != leaving and name == owner_name(pid) for name, pid in owners):
                shutil.rmtree(folder, ignore_errors=True)


def owner_name(pid: int) -> str:
    return f"owner-{process_name(pid)}"
