"""`millstream bench NAME`: one comparison, both sides in one run, with the ratio."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from millstream.bench.compare import NAMES, ROWS, compare

IDLE = "spark-idle"


def _idle(seconds: int, plot: str, *, as_json: bool) -> None:
    from millstream.bench import idle
    from millstream.cli.idle import show

    outcomes = idle.measure(seconds, tell=lambda text: print(text, file=sys.stderr))
    if plot:
        idle.plot(outcomes, plot)
    show(outcomes, as_json=as_json)


def bench(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join([*NAMES, IDLE])}.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    rows: Annotated[int, typer.Option(help="Tuples altogether.")] = ROWS,
    repeats: Annotated[int, typer.Option(help="How often each side runs.")] = 3,
    seconds: Annotated[int, typer.Option(help=f"Seconds of tuples for each side ({IDLE}).")] = 60,
    plot: Annotated[str, typer.Option(help=f"Draw the delay of each window into this file ({IDLE}).")] = "",
) -> None:
    """Measure one comparison: every side in its own process on one core, answers checked against each other."""
    if name == IDLE:
        _idle(seconds, plot, as_json=as_json)
        return
    sides = compare(name, rows=rows, repeats=repeats, tell=lambda text: print(text, file=sys.stderr))
    ours = sides[0]
    if as_json:
        figures = [
            {
                "side": s.name,
                "rows_per_second": round(s.rate),
                "slowest": round(s.spread[0]),
                "fastest": round(s.spread[1]),
                "peak_mb": s.peak_mb,
                "answer_rows": s.answer_rows,
                "ratio": round(ours.rate / s.rate, 2),
            }
            for s in sides
        ]
        print(json.dumps({"benchmark": name, "rows": rows, "repeats": repeats, "sides": figures}, indent=2))
        return
    table = Table(title=f"{name}: {rows:,} tuples, {ours.answer_rows:,} results, median of {repeats}")
    for heading in ("side", "tuples/s", "slowest to fastest", "peak memory", "millstream is faster by"):
        table.add_column(heading, justify="left" if heading == "side" else "right")
    for s in sides:
        low, high = s.spread
        ratio = "" if s is ours else f"{ours.rate / s.rate:.2f} x"
        table.add_row(s.name, f"{s.rate / 1e6:.2f} M", f"{low / 1e6:.2f} to {high / 1e6:.2f} M", f"{s.peak_mb:,} MB", ratio)
    Console().print(table)
