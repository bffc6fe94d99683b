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
    for heading in ("side", "windows", "median", "worst", "batches", "lost", "idle"):
        table.add_column(heading, justify="left" if heading == "side" else "right", no_wrap=True)
    for o in outcomes:
        (half, worst), (batches, most) = o.seconds, o.batches
        counted, idle = (f"{batches:g} to {most}", f", {o.idle_batches}") if most else ("-", "")
        table.add_row(o.side, str(len(o.delays)), f"{half:.3g} s", f"{worst:.3g} s", counted, f"{o.lost:,}", f"{o.idle_cpu:.1%}{idle}")
    Console().print(table)
    print("batches: micro-batches that begin between a window's end and its result, median to worst. lost: tuples that no result counts.")
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
