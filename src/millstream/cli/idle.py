"""Shows what `millstream bench spark-idle` measured."""

from __future__ import annotations

import json
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from millstream.bench.idle import REST, Outcome


def _batches(o: Outcome) -> str:
    median, worst = o.batches
    return f"{median:g} to {worst}" if worst else "-"


FIGURES: dict[str, Callable[[Outcome], str]] = {
    "delay, median": lambda o: f"{o.seconds[0]:.3f} s",
    "delay, worst": lambda o: f"{o.seconds[1]:.3f} s",
    "micro-batches": _batches,
    "tuples lost": lambda o: f"{o.lost:,}",
    "idle: CPU": lambda o: f"{o.idle_cpu:.1%}",
    "idle: micro-batches": lambda o: str(o.idle_batches) if o.batches[1] else "-",
}


def show(outcomes: list[Outcome], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"benchmark": "spark-idle", "sides": [_figures(o) for o in outcomes]}, indent=2))
        return
    table = Table(title=f"spark-idle: from a window's end to its result, {len(outcomes[0].delays)} windows")
    table.add_column("")
    for o in outcomes:
        table.add_column(o.side.replace(", ", "\n"), justify="right")
    for title, figure in FIGURES.items():
        table.add_row(title, *(figure(o) for o in outcomes))
    Console().print(table)
    print("micro-batches: those that begin between a window's end and its result, median to worst.")
    print(f"idle: share of one core, and micro-batches, in {REST} s without input.")


def _figures(o: Outcome) -> dict[str, object]:
    (half, worst), (batches, most) = o.seconds, o.batches
    return {
        "side": o.side,
        "windows": len(o.delays),
        "median_seconds": round(half, 3),
        "worst_seconds": round(worst, 3),
        "median_batches": batches,
        "worst_batches": most,
        "lost": o.lost,
        "tuples": o.tuples,
        "idle_cpu": round(o.idle_cpu, 4),
        "idle_batches": o.idle_batches,
        "delays": [round(delay, 3) for _, delay, _ in o.delays],
    }
