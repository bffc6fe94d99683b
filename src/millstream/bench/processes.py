"""The memory of a process and of all that it has started, as Linux tells it."""

from __future__ import annotations

import os
from contextlib import suppress

JVM, DRIVER, WORKERS = "jvm", "driver", "workers"


def members(root: int) -> list[int]:
    """The process and its descendants."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found, waiting = [], [root]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def memory(root: int) -> dict[str, float]:
    """Megabytes by kind of process. Shared pages count in proportion (PSS), so that forked workers are not counted twice."""
    total = {JVM: 0.0, DRIVER: 0.0, WORKERS: 0.0}
    for pid in members(root):
        with suppress(OSError, ValueError):
            with open(f"/proc/{pid}/comm") as file:
                name = file.read().strip()
            kind = DRIVER if pid == root else JVM if name == "java" else WORKERS
            with open(f"/proc/{pid}/smaps_rollup") as file:
                line = next(line for line in file if line.startswith("Pss:"))
            total[kind] += int(line.split()[1]) / 1024
    return total
