"""Draws the pictures of a report: lines or bars, one file each."""

from __future__ import annotations

import os
from typing import Any

from millstream.figures.report import Picture

INK, QUIET = "#24292f", "#8c959f"
COLOURS = ("#cf222e", "#0969da", "#1a7f37", "#8250df", "#bf8700", "#57606a")
FEW = 15
"""Points up to which each is marked, on the line and below it."""
MARKERS = ("o", "s", "^", "D", "v", "P")


def draw(picture: Picture, directory: str) -> str:
    """The path of the file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_title(picture.title, loc="left", fontsize=12, color=INK, pad=10)
    axes.grid(axis="y", color=QUIET, alpha=0.25)
    axes.set_axisbelow(True)
    axes.set_ylabel(picture.y)
    axes.set_xlabel(picture.x)
    if picture.log_y:
        axes.set_yscale("log")
    if picture.bars:
        _bars(axes, picture)
    else:
        _lines(axes, picture)
    if picture.log_y:
        _plain(axes)
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, f"{picture.name}.png")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _bars(axes: Any, picture: Picture) -> None:
    values = [curve.ys[0] for curve in picture.curves]
    colours = [COLOURS[at if curve.colour is None else curve.colour] for at, curve in enumerate(picture.curves)]
    bars = axes.bar([_wrapped(curve.name) for curve in picture.curves], values, color=colours, width=0.55)
    axes.bar_label(bars, [f"{shown(value)} {picture.unit}" for value in values], padding=3, fontsize=9, color=INK)
    axes.margins(y=0.15)


def _wrapped(name: str) -> str:
    return name.replace(", ", ",\n").replace(" over", "\nover").replace(": ", ":\n")


def _plain(axes: Any) -> None:
    """Numbers as people write them, where they are neither tiny nor huge; between powers of ten only where those are few."""
    low, high = axes.get_ylim()
    if low < 1e-3 or high > 1e4:
        return
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if high < 100 * low and f"{value:e}"[0] in "125" else "")


def _lines(axes: Any, picture: Picture) -> None:
    if picture.log_x:
        axes.set_xscale("log")
    xs = sorted({x for curve in picture.curves for x in curve.xs})
    for curve, colour, marker in zip(picture.curves, COLOURS, MARKERS, strict=False):
        if curve.xs:
            axes.plot(curve.xs, curve.ys, color=colour, marker=marker if len(xs) <= FEW else None, ms=5, lw=1.6, label=curve.name)
        else:
            axes.plot([xs[0], xs[-1]], [curve.ys[0]] * 2, color=colour, lw=1.8, ls="--", label=f"{curve.name} ({shown(curve.ys[0])})")
    if not picture.log_y:
        axes.set_ylim(bottom=0)
        most = max(y for curve in picture.curves for y in curve.ys)
        if most >= 10_000:
            unit, name = (1_000_000, "million") if most >= 1_000_000 else (1_000, "thousand")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value / unit:g}")
            axes.set_ylabel(f"{picture.y}, {name}")
    if not picture.log_x and len(xs) <= FEW:
        axes.set_xticks(xs, [f"{x:g}" for x in xs])
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))


def shown(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
