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
        return [run.get("steady", self.given / run["seconds"]) for run in self.runs]

    @property
    def whole(self) -> float:
        """Tuples a second from the start to the end."""
        return self.given / float(median(run["seconds"] for run in self.runs))

    @property
    def given(self) -> int:
        """Tuples that this side had to take, where that is less than all."""
        return int(self.runs[0].get("rows", self.rows))

    def most(self, what: str) -> int | None:
        found = [run[what] for run in self.runs if what in run]
        return max(found) if found else None


def compare(
    name: str, *, rows: int | None = None, repeats: int = 3, tell: Callable[[str], None] = lambda text: None, **options: Any
) -> list[Side]:
    """Each side `repeats` times, taking turns, each in its own process; their answers must be equal. Options are the benchmark's own."""
    benchmark = find(name)
    rows = rows or benchmark.rows
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in benchmark.sides}
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        import_module(benchmark.module).prepare(name, rows, folder, **options)
        for number in range(repeats):
            for side in runs:
                tell(f"run {number + 1} of {repeats}: {side}")
                runs[side].append(_measure(name, side, rows, folder))
    found = [result for results in runs.values() for result in results]
    answers = {(result["answer_rows"], result["digest"]) for result in found}
    complete = {result["complete"] for result in found if "complete" in result}  # of sides that were given more than others
    if len(answers) != 1 or len(complete) > 1:
        raise DataProblem(f"the sides of {name} give different answers: {answers} {complete or ''}".rstrip())
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
