"""Run every side of a comparison in turn, several times, and say how they compare."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from typing import Any

from millstream.bench.registry import find
from millstream.bench.tree import Watch
from millstream.errors import DataProblem


@dataclass(frozen=True)
class Side:
    """What one side of a comparison showed."""

    name: str
    rows: int
    runs: tuple[dict[str, Any], ...]

    @property
    def rate(self) -> float:
        """Tuples a second, by the median run: once it runs steadily, where that can be told apart from the start."""
        return median(self.rates)

    @property
    def rates(self) -> list[float]:
        return [run.get("steady", self.rows / run["seconds"]) for run in self.runs]

    @property
    def whole(self) -> float:
        """Tuples a second from the start to the end."""
        return self.rows / float(median(run["seconds"] for run in self.runs))

    def most(self, what: str) -> int | None:
        found = [run[what] for run in self.runs if what in run]
        return max(found) if found else None


def compare(name: str, *, rows: int | None = None, repeats: int = 3, tell: Callable[[str], None] = lambda text: None) -> list[Side]:
    """Each side `repeats` times, taking turns, each in a process of its own; their answers must be equal."""
    benchmark = find(name)
    rows = rows or benchmark.rows
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in benchmark.sides}
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        import_module(benchmark.module).prepare(name, rows, folder)
        for number in range(repeats):
            for side in runs:
                tell(f"run {number + 1} of {repeats}: {side}")
                runs[side].append(_measure(name, side, rows, folder))
    answers = {(r["answer_rows"], r["digest"]) for results in runs.values() for r in results}
    if len(answers) != 1:
        raise DataProblem(f"the sides of {name} give different answers: {answers}")
    return [Side(side, rows, tuple(results)) for side, results in runs.items()]


def _measure(name: str, side: str, rows: int, folder: str) -> dict[str, Any]:
    before = set(os.listdir(folder))
    command = [sys.executable, "-m", "millstream.bench.side", name, side, str(rows), folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with Watch(process.pid) as watch:
        out, err = process.communicate()
    for made in set(os.listdir(folder)) - before:
        shutil.rmtree(os.path.join(folder, made), ignore_errors=True)
    if process.returncode:
        last = (err.strip().splitlines() or ["no message"])[-1]
        raise DataProblem(f"{name}: {side} failed: {last}", hint="the benchmark needs DuckDB: install millstream[dev]")
    result: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return {**result, "peak_bytes": watch.peak}
