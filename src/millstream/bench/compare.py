"""Run every side of a comparison in turn, several times, and say how they compare."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from millstream.errors import DataProblem, NameProblem

NAMES: dict[str, dict[str, str]] = {
    "local-window": {
        "millstream": "a 10 s tumbling count per key, local runtime",
        "duckdb": "the same over the finished table, one thread",
    },
    "local-join": {
        "millstream": "a join on the key within 5 s either way, local runtime",
        "duckdb": "the same over the finished tables, one thread",
        "duckdb, time buckets by hand": "the same, with time cut into buckets in the query",
    },
}
ROWS = 12_000_000
WARM = 200_000


@dataclass(frozen=True)
class Side:
    """What one side of a comparison showed."""

    name: str
    seconds: tuple[float, ...]
    rows: int
    peak_mb: int
    answer_rows: int

    @property
    def rate(self) -> float:
        """Tuples a second, by the median run."""
        return self.rows / median(self.seconds)

    @property
    def spread(self) -> tuple[float, float]:
        return self.rows / max(self.seconds), self.rows / min(self.seconds)


def compare(name: str, *, rows: int = ROWS, repeats: int = 3, tell: Callable[[str], None] = lambda text: None) -> list[Side]:
    """Each side `repeats` times, taking turns, each in a process of its own on one core; their answers must be equal."""
    if name not in NAMES:
        raise NameProblem.unknown("benchmark", name, NAMES)
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in NAMES[name]}
    for number in range(repeats):
        for side in runs:
            tell(f"run {number + 1} of {repeats}: {side}")
            runs[side].append(_measure(name, side, rows))
    answers = {(r["answer_rows"], r["digest"]) for results in runs.values() for r in results}
    if len(answers) != 1:
        raise DataProblem(f"the sides of {name} give different answers: {answers}")
    return [
        Side(side, tuple(r["seconds"] for r in results), rows, max(r["peak_mb"] for r in results), results[0]["answer_rows"])
        for side, results in runs.items()
    ]


def _measure(name: str, side: str, rows: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "millstream.bench.side", name, side, str(rows), str(min(WARM, rows))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise DataProblem(f"{name}: {side} failed: {last}", hint="the benchmark needs DuckDB: install millstream[dev]")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result
