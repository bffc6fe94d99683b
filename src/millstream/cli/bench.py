"""`millstream bench NAME`: one comparison, both sides in one run, with the ratio."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from millstream.bench.compare import NAMES, ROWS, compare


def bench(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(NAMES)}, soak.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    rows: Annotated[int, typer.Option(help="Tuples altogether.")] = ROWS,
    repeats: Annotated[int, typer.Option(help="How often each side runs.")] = 3,
    minutes: Annotated[float, typer.Option(help="How long a soak lasts.")] = 15.0,
    out: Annotated[str, typer.Option(help="Where a soak's samples and picture go; what is there is removed.")] = "soak",
) -> None:
    """Measure one comparison: every side in its own process on one core, answers checked against each other."""
    if name == "soak":
        _soak(minutes, out, as_json)
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


def _soak(minutes: float, out: str, as_json: bool) -> None:
    from millstream.bench.soak import STEADY, soak

    verdict = soak(minutes, out, lambda text: print(text, file=sys.stderr, flush=True))
    growth = {
        "memory": verdict.growth(lambda s: s.memory_mb),
        "state": verdict.growth(lambda s: s.state_rows),
        "batch": verdict.growth(lambda s: s.batch_seconds),
        "checkpoint": verdict.growth(lambda s: s.checkpoint_mb),
    }
    last = verdict.samples[-1]
    if as_json:
        answers = {"answers": verdict.checked, "late": verdict.late, "tuples": last.tuples_in, "batches": last.batches}
        print(json.dumps({"benchmark": "soak", "minutes": minutes, "steady": verdict.steady, "growth": growth, **answers}, indent=2))
        return
    print(f"{last.tuples_in:,} tuples in {last.batches:,} micro-batches; as DuckDB has it: " + ", ".join(
        f"{n:,} {name}" for name, n in {**verdict.checked, "late tuples": verdict.late}.items()
    ))  # fmt: skip
    print("growth after the warm-up: " + ", ".join(f"{name} {value:+.1%}" for name, value in growth.items()))
    print(f"memory is {'steady' if verdict.steady else 'NOT steady'} (less than {STEADY:.0%}): {out}/soak.csv, {out}/soak.png")
