"""Shows what `millstream bench latency` measured."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from millstream.bench.latency import LATENT_SIDE, Latency


def show(sides: list[Latency], *, as_json: bool) -> None:
    """One line a side, in milliseconds; the last column says how many times latent time each takes."""
    if as_json:
        print(json.dumps({"benchmark": "latency", "sides": [_figures(side) for side in sides]}, indent=2))
        return
    title = f"latency: one tuple at a time, {sides[0].operators} operators, {len(sides[0].seconds):,} tuples; ms"
    table = Table(title=title)
    table.add_column("")
    for column in ("median", "99 %", "quiet", "to latent"):
        table.add_column(column, justify="right")
    latent = next(side.median for side in sides if side.name == LATENT_SIDE)
    for side in sides:
        table.add_row(side.name, _ms(side.median), _ms(side.late), _ms(side.quietest), f"{side.median / latent:.2f} x")
    Console().print(table)
    print("from handing a tuple to its source until the sink has it; quiet: the median of the fastest round.")


def _figures(side: Latency) -> dict[str, object]:
    return {
        "side": side.name,
        "operators": side.operators,
        "tuples": len(side.seconds),
        "median_ms": round(side.median * 1000, 4),
        "p99_ms": round(side.late * 1000, 4),
        "quietest_ms": round(side.quietest * 1000, 4),
    }


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3f}"
