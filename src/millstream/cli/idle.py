"""Shows what `millstream bench spark-idle` measured."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from millstream.bench.idle import REST, Outcome


def show(outcomes: list[Outcome], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"benchmark": "spark-idle", "sides": [_figures(o) for o in outcomes]}, indent=2))
        return
    table = Table(title="spark-idle: from a window's end to its result, beside a nearly silent stream")
    headings = ("side", "windows", "median", "worst", "micro-batches", "lost", f"CPU in {REST} s of silence", "micro-batches in it")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "side" else "right")
    for o in outcomes:
        (half, worst), (batches, most) = o.seconds, o.batches
        counted = f"{batches:g}, at most {most}" if most else "-"
        lost = f"{o.lost:,} of {o.tuples:,}" if o.lost else "nothing"
        silent = f"{o.idle_batches}" if most else "-"
        table.add_row(o.side, str(len(o.delays)), f"{half:.3f} s", f"{worst:.3f} s", counted, lost, f"{o.idle_cpu:.1%} of a core", silent)
    Console().print(table)


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
