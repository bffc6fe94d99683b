"""Memory and CPU of a process and all its children, as the kernel counts them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

JVM, DRIVER, WORKERS = "jvm", "driver", "workers"


def family(root: int) -> list[int]:
    """The process and everything below it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError):
                parents.setdefault(int(_stat(int(entry.name))[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may hold spaces itself."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def memory(root: int) -> dict[str, int]:
    """Bytes in use by kind of process; a page shared by several processes counts once (PSS)."""
    total = {JVM: 0, DRIVER: 0, WORKERS: 0}
    for pid in family(root):
        with suppress(OSError, StopIteration, ValueError):
            java = Path(f"/proc/{pid}/comm").read_text().strip() == "java"
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            used = int(next(line for line in lines if line.startswith("Pss:")).split()[1]) * 1024
            total[DRIVER if pid == root else JVM if java else WORKERS] += used
    return total


def cpu(root: int) -> float:
    """Seconds of CPU used so far, ended children included."""
    total = 0
    for pid in family(root):
        with suppress(OSError, ValueError):
            total += sum(int(field) for field in _stat(pid)[11:15])
    return total / TICKS


def cpu_during(root: int, seconds: float) -> float:
    """Seconds of CPU that a process and all below it use from now on, be it that some of them end: looked at ten times a second."""
    used: dict[int, int] = {}
    first: dict[int, int] = {}
    until = time.monotonic() + seconds
    while True:
        for pid in family(root):
            with suppress(OSError, ValueError):
                used[pid] = sum(int(field) for field in _stat(pid)[11:13])
        first = first or dict(used)
        if time.monotonic() >= until:
            return sum(now - first.get(pid, 0) for pid, now in used.items()) / TICKS
        time.sleep(0.1)


class Watch:
    """Looks at a process tree now and then, while it runs."""

    def __init__(self, root: int, every: float = 0.5) -> None:
        self.root = root
        self.every = every
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(self.every):
            self.peak = max(self.peak, sum(memory(self.root).values()))


def sizes(folder: str) -> Iterator[int]:
    """Bytes of every file below a folder."""
    for path in Path(folder).rglob("*"):
        with suppress(OSError):
            if path.is_file():
                yield path.stat().st_size
