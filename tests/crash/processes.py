"""Finds and kills the processes of a run, as a machine that is lost would: without a word."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    command: str

    @property
    def kind(self) -> str:
        """ "jvm" (the driver's), "executor", "source" (asked for news), "worker" (a Python worker or its daemon) or "other"."""
        if "CoarseGrainedExecutorBackend" in self.command:
            return "executor"
        if "java" in self.command.split("\0")[0]:
            return "jvm"
        if "python_streaming_source_runner" in self.command:
            return "source"
        return "worker" if "millstream.runtime.spark.daemon" in self.command or "pyspark" in self.command else "other"


def below(root: int) -> list[Process]:
    """All processes that descend from one, nearest first."""
    everyone = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                command = (entry / "cmdline").read_text(errors="replace")
            except OSError:
                continue  # it has just ended
            everyone[int(entry.name)] = Process(int(entry.name), int(stat.rpartition(")")[2].split()[1]), command)
    found: list[Process] = []
    parents = [root]
    while parents:
        children = [p for p in everyone.values() if p.parent in parents]
        found += children
        parents = [p.pid for p in children]
    return found


def kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_gone(pids: list[int], seconds: float) -> list[int]:
    """Those that are still there after so long."""
    until = time.monotonic() + seconds
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < until:
        time.sleep(0.05)
    return left
