"""`millstream bench NAME`: one comparison, both sides in one run, with the ratio."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from millstream.bench.compare import Side, compare
from millstream.bench.registry import BENCHMARKS
from millstream.cli.punctuated import megabytes, rate
from millstream.cli.punctuated import show as show_punctuated
from millstream.errors import NameProblem

OTHERS = ("latency", "plan", "spark-state", "spark-idle", "soak")
"""Benchmarks that are no comparison of equal answers, and have a form of their own."""
NATIVE = ("punctuated-join", "multiway")
"""Those that may give Spark's own operators less than the others."""


def _idle(seconds: int, plot: str, *, as_json: bool) -> None:
    from millstream.bench import idle
    from millstream.cli.idle import show

    outcomes = idle.measure(seconds, tell=lambda text: print(text, file=sys.stderr))
    if plot:
        idle.plot(outcomes, plot)
    show(outcomes, as_json=as_json)


def _latency(tuples: int | None, *, as_json: bool) -> None:
    from millstream.bench import latency
    from millstream.cli.latency import show

    show(latency.measure(tuples or latency.TUPLES, tell=lambda text: print(text, file=sys.stderr)), as_json=as_json)


def _plan(repeats: int, *, as_json: bool) -> None:
    from millstream.bench import plan
    from millstream.cli.plan import show

    show(plan.measure(repeats, tell=lambda text: print(text, file=sys.stderr)), as_json=as_json)


def _state(repeats: int, *, as_json: bool) -> None:
    from millstream.bench import state
    from millstream.cli.state import show

    show(state.grow(repeats=repeats, tell=lambda text: print(text, file=sys.stderr)), as_json=as_json)


def bench(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join([*BENCHMARKS, *OTHERS])}.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    rows: Annotated[
        int | None,
        typer.Option(help="Tuples altogether; 12 million by default (multiway: 8, punctuated-join: 22, latency: 0.01 a side)."),
    ] = None,
    native_rows: Annotated[int | None, typer.Option(help="Tuples for Spark's own operators (punctuated-join, multiway).")] = None,
    repeats: Annotated[int, typer.Option(help="How often each side runs.")] = 3,
    seconds: Annotated[int, typer.Option(help="Seconds of tuples for each side (spark-idle).")] = 60,
    plot: Annotated[str, typer.Option(help="Draw the delay of each window into this file (spark-idle).")] = "",
    minutes: Annotated[float, typer.Option(help="How long a soak lasts.")] = 15.0,
    out: Annotated[str, typer.Option(help="Where a soak's samples and picture go; what is there is removed.")] = "soak",
) -> None:
    """Measure one comparison: every side in its own process, answers checked against each other."""
    if name not in BENCHMARKS and name not in OTHERS:
        raise NameProblem.unknown("benchmark", name, [*BENCHMARKS, *OTHERS])
    if name == "latency":
        _latency(rows, as_json=as_json)
        return
    if name == "plan":
        _plan(repeats, as_json=as_json)
        return
    if name == "spark-idle":
        _idle(seconds, plot, as_json=as_json)
        return
    if name == "spark-state":
        _state(repeats, as_json=as_json)
        return
    if name == "soak":
        from millstream.bench.soak import report, soak

        print(report(soak(minutes, out, lambda text: print(text, file=sys.stderr, flush=True)), as_json))
        return
    options = {"native_rows": native_rows} if native_rows is not None and name in NATIVE else {}
    sides = compare(name, rows=rows, repeats=repeats, tell=lambda text: print(text, file=sys.stderr), **options)
    if name == "punctuated-join":
        show_punctuated(sides, as_json=as_json)
    elif as_json:
        figures = [{"side": s.name, "ratio": round(sides[0].rate / s.rate, 2), "runs": s.runs} for s in sides]
        print(json.dumps({"benchmark": name, "rows": sides[0].rows, "repeats": repeats, "sides": figures}, indent=2))
    else:
        Console().print(_table(name, sides, repeats))


def _table(name: str, sides: list[Side], repeats: int) -> Table:
    """A column per side: that fits any terminal."""
    ours = sides[0]
    table = Table(title=f"{name}: {ours.given:,} tuples, median of {repeats}")
    table.add_column("")
    for s in sides:
        table.add_column(s.name, justify="right")

    def line(title: str, of: Callable[[Side], str]) -> None:
        table.add_row(title, *(of(s) for s in sides))

    on_spark = "steady" in ours.runs[0]
    if len({s.given for s in sides}) > 1:
        line("tuples given", lambda s: rate(s.given))
    line("results compared", lambda s: f"{s.runs[0]['answer_rows']:,}")
    line("tuples/s" + (", steady" if on_spark else ""), lambda s: rate(s.rate))
    line("  slowest to fastest run", lambda s: f"{rate(min(s.rates))} to {rate(max(s.rates))}")
    if on_spark:
        line("tuples/s, with the start", lambda s: rate(s.whole))
    line("peak memory", lambda s: megabytes(s.most("peak_bytes")))
    if on_spark:
        line("state, at most: tuples", lambda s: f"{s.most('state_tuples') or 0:,}")
        line("  bytes", lambda s: megabytes(s.most("state_bytes")))
        line("  in the checkpoint", lambda s: megabytes(s.most("state_written")))
    line("millstream is faster by", lambda s: "" if s is ours else f"{ours.rate / s.rate:.2f} x")
    return table
