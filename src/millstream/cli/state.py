"""How `millstream bench spark-state` shows its figures."""

from __future__ import annotations

import json
from dataclasses import asdict
from statistics import median

from rich.console import Console
from rich.table import Table

from millstream.bench.state import BATCH, Point


def show(runs: list[list[Point]], *, as_json: bool) -> None:
    """One line per size of state, medians of all runs; the last one says how much more the largest state costs than the smallest."""
    if as_json:
        print(json.dumps([[asdict(point) for point in points] for points in runs], indent=2))
        return
    title = f"spark-state: a join, {BATCH:,} tuples a micro-batch; microseconds and\nbytes written per tuple, median of {len(runs)}"
    table = Table(title=title)
    for column in ("state", "time", "slowest to fastest", "join", "its state", "CPU", "bytes", "memory", "peak"):
        table.add_column(column, justify="right")
    lines = [list(points) for points in zip(*runs, strict=True)]
    for points in lines:
        walls = [point.wall for point in points]
        table.add_row(
            f"{points[0].state / 1e6:g} M",
            _micro(median(walls)),
            f"{_micro(max(walls))} to {_micro(min(walls))}",
            _micro(median(point.work for point in points)),
            _micro(median(point.keep for point in points)),
            _micro(median(point.cpu for point in points)),
            f"{median(point.written for point in points):.0f}",
            f"{median(point.held_bytes for point in points) / 1e6:,.0f} MB",
            f"{max(point.memory for point in points) / 1e6:,.0f} MB",
        )
    Console().print(table)
    first, last = lines[0], lines[-1]
    ratios = [
        f"{name} {median(getattr(p, field) for p in last) / median(getattr(p, field) for p in first):.2f} times"
        for name, field in (("time", "wall"), ("CPU", "cpu"), ("bytes written", "written"))
    ]
    print(f"from {first[0].state:,} to {last[0].state:,} tuples of state: {', '.join(ratios)}")


def _micro(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:.2f}"
