"""`--operators`: how each operator of a run did, as a table on standard error."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from millstream.cli.progress import short
from millstream.runtime.gauges import OperatorMetrics

WIDTH = 100
TITLES = "idle- waiting, queue, peak, latency, steps, busy, tuples in, out, out/in, punct. in, out"
ASLEEP = ", slept, woken"
"""Where some tuple did."""


def show(operators: Sequence[OperatorMetrics], execution: str) -> None:
    """In at most 100 columns: names give way to numbers. `execution` says how they were run."""
    console = Console(stderr=True)
    if not console.is_terminal or console.width > WIDTH:
        console = Console(stderr=True, width=WIDTH)
    asleep = any(o.slept for o in operators)
    lines = [_numbers(o) + ([short(o.slept), short(o.woken)] if asleep else []) for o in operators]
    titles = ["\n".join(t.split()) if " " in t else f"\n{t}" for t in (TITLES + (ASLEEP if asleep else "")).split(", ")]
    widths = [max(len(cell) for cell in (*title.split("\n"), *cells)) for title, *cells in zip(titles, *lines, strict=True)]
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column("\noperator", no_wrap=True, overflow="ellipsis", max_width=max(8, console.width - sum(widths) - len(widths)))
    for title, width in zip(titles, widths, strict=True):
        table.add_column(title, justify="right", no_wrap=True, min_width=width)
    for o, line in zip(operators, lines, strict=True):
        table.add_row(Text(f"#{o.number} {o.name}"), *line)
    console.print(table)
    console.print(f"execution: {execution}", markup=False, highlight=False)


def _numbers(o: OperatorMetrics) -> list[str]:
    return [
        f"{o.idle:.1%}" if o.idle else "-",
        short(o.queue),
        short(o.peak),
        "-" if o.latency is None else brief(o.latency),
        short(o.steps),
        brief(o.busy),
        short(o.tuples_in),
        short(o.tuples_out),
        "-" if o.selectivity is None else f"{o.selectivity:.3g}",
        short(o.punctuations_in),
        short(o.punctuations_out),
    ]


def brief(seconds: float) -> str:
    """Three digits in the unit that suits: 7 us, 1.25 ms, 42.1 s."""
    number, unit = seconds * 1e6, "us"
    for unit in ("us", "ms", "s"):
        if number < 999.5 or unit == "s":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if number >= 100 or unit == "us" else f"{number:.3g} {unit}"
