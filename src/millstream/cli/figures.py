"""`millstream figures NAME`: a paper's figures from runs of our own, with its claims beside what was measured."""

from __future__ import annotations

import json
import os
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from millstream.errors import NameProblem
from millstream.figures.drawing import draw
from millstream.figures.registry import FIGURES
from millstream.figures.report import Options, Report

WIDTH = 100
"""Columns that the table takes at most."""
REAL = 30.0
"""Seconds of each run by the machine's clock."""


def figures(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(FIGURES)}.")],
    out: Annotated[str, typer.Option(help="Where the pictures and the data go.", metavar="DIR")] = "figures",
    seconds: Annotated[
        float | None, typer.Option(help="Virtual seconds of the longest runs; each figure has its own default.", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the arrivals; the same seed gives the same numbers.", min=0)] = 1,
    real: Annotated[
        bool, typer.Option("--real", help=f"Also run by the machine's clock, mostly {REAL:.0f} s each, where the rates allow it.")
    ] = False,
) -> None:
    """Run what a paper ran, print its claims beside what was measured, and draw its figures."""
    if name not in FIGURES:
        raise NameProblem.unknown("figures", name, FIGURES)
    show, tell = _progress()
    with show:
        report = FIGURES[name](Options(seconds, seed, REAL if real else 0.0, tell))
        paths = [draw(picture, out) for picture in report.pictures]
    data = os.path.join(out, f"{report.name}.json")
    with open(data, "w", encoding="utf-8") as file:
        json.dump({"seed": seed, "claims": [asdict(claim) for claim in report.claims], "runs": report.runs}, file, indent=1)
    _show(report)
    print(f"{len(paths)} pictures and {os.path.basename(data)} in {out}")


def _progress() -> tuple[AbstractContextManager[Any], Callable[[str], None]]:
    """One live line on a terminal, plain lines elsewhere."""
    began = time.monotonic()
    if sys.stderr.isatty():
        status = Console(stderr=True).status("starting ...")
        return status, lambda text: status.update(f"{time.monotonic() - began:.0f} s: {text}")
    return nullcontext(), lambda text: print(f"{time.monotonic() - began:.0f} s: {text}", file=sys.stderr, flush=True)


def _show(report: Report) -> None:
    """Why a claim does not hold, or on what it depends, stands below the table."""
    console = Console()
    table = Table(title=report.title, width=min(WIDTH, max(console.width, 80)))
    for column, ratio in (("figure", None), ("the paper, or our target", 10), ("measured", 10), ("", None)):
        table.add_column(column, ratio=ratio)
    notes: list[str] = []
    for claim in report.claims:
        mark = ""
        if claim.reason:
            notes.append(claim.reason)
            mark = f" ({len(notes)})"
        table.add_row(claim.figure, claim.says, claim.measured + mark, "reached" if claim.holds else "NOT")
    console.print(table)
    for number, note in enumerate(notes, 1):
        print(textwrap.fill(f"({number}) {note}", WIDTH, subsequent_indent="    "))
