"""Shows what `millstream bench punctuated-join` measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from millstream.bench.compare import Side

NAMES = {"millstream": "Millstream\non Spark", "millstream, one process": "Millstream,\none process", "spark": "Spark's own\noperators"}
NOTES = """\
After the end: how much further the streams had been read when an auction's result came out than to the row that closes it,
in the time of the streams; a micro-batch on Spark reads {span} of it. Results that only the end of the streams brought out do not count."""
LESS = """\
Spark's own operators got the auctions that open first, {given:,} tuples (--native-rows); there all answers are the same."""


def show(sides: list[Side], *, as_json: bool) -> None:
    """A column per side."""
    ours, native = sides[0], sides[-1]
    if as_json:
        figures = [{"side": s.name, "tuples": s.given, "ratio": round(s.rate / native.rate, 2), "runs": s.runs} for s in sides]
        print(json.dumps({"benchmark": "punctuated-join", "rows": ours.rows, "repeats": len(ours.runs), "sides": figures}, indent=2))
        return
    table = Table(title=f"punctuated-join: {ours.given:,} tuples, median of {len(ours.runs)}")
    table.add_column("", no_wrap=True)
    for s in sides:
        table.add_column(NAMES[s.name], justify="right")

    def line(title: str, of: Callable[[Side], str]) -> None:
        table.add_row(title, *(of(s) for s in sides))

    line("tuples given", lambda s: rate(s.given))
    line("tuples/s, steady", lambda s: rate(s.rate))
    line("  slowest run", lambda s: rate(min(s.rates)))
    line("  fastest run", lambda s: rate(max(s.rates)))
    line("tuples/s, with the start", lambda s: rate(s.whole))
    line("memory, at most", lambda s: megabytes(s.most("peak_bytes")))
    line("state, at most: tuples", lambda s: f"{s.most('state_tuples'):,}")
    line("  bytes", lambda s: megabytes(s.most("state_bytes")))
    line("  in the checkpoint", lambda s: megabytes(s.most("state_written")))
    line("after the end, median", lambda s: _of(s, "delay", 0, span))
    line("  99 %", lambda s: _of(s, "delay", 1, span))
    line("  micro-batches, median", lambda s: _of(s, "later", 0, "{:g}".format))
    line("  99 %", lambda s: _of(s, "later", 1, "{:g}".format))
    line("times Spark's tuples/s", lambda s: "" if s is native else f"{s.rate / native.rate:.1f} x")
    Console().print(table)
    print(NOTES.format(span=span(ours.runs[0]["batch_span"])))
    if native.given < ours.given:
        print(LESS.format(given=native.given))


def _of(side: Side, what: str, at: int, shown: Callable[[float], str]) -> str:
    """The median over the runs."""
    found: list[Any] = [run[what][at] for run in side.runs if run.get(what)]
    return shown(median(found)) if found else "-"


def span(seconds: float) -> str:
    """A length of time in two units."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.3g} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def rate(tuples: float) -> str:
    return f"{tuples / 1e6:.2f} M" if tuples >= 1e6 else f"{tuples / 1e3:.0f} k"


def megabytes(count: int | None) -> str:
    return "" if count is None else f"{count / 1e6:,.0f} MB"
