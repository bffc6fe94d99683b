"""Draws what happened in the demo: who spoke when, and how soon results came out."""

from __future__ import annotations

import os
from typing import Any

from millstream.demo.halls import Auction
from millstream.demo.watch import Result

INK, QUIET, GREEN, RED, BLUE = "#24292f", "#8c959f", "#1a7f37", "#cf222e", "#0969da"


def draw(auction: Auction, results: list[Result], path: str) -> str:
    """Above: bids of both halls over time. Below: each result at its time, and how long after it was there."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    start, silent = auction.began, auction.boston.last - auction.began
    end = auction.london.last - start
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(9, 5), sharex=True, gridspec_kw={"height_ratios": [1, 2.2], "hspace": 0.12}, layout="constrained"
    )
    for axis in (above, below):
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
        axis.axvspan(silent, end + 1.5, color=RED, alpha=0.06, lw=0)
    above.hlines(1, 0, end, color=BLUE, lw=7)
    above.hlines(0, 0, silent, color=BLUE, lw=7)
    above.text(silent + (end - silent) / 2, 0, "Boston is silent", color=RED, ha="center", va="center", fontsize=10)
    above.set_yticks([0, 1], ["Boston", "London"])
    above.set_ylim(-0.6, 1.6)
    above.set_title("A source falls silent, and nothing waits for it", loc="left", fontsize=13, color=INK, pad=10)
    live = [r for r in results if r.due > start]
    _delays(below, [r for r in live if r.sink == "turnover"], start, "2 s windows over both halls", GREEN, "o")
    _delays(below, [r for r in live if r.sink == "sold"], start, "items closed by their hammer (punctuation)", BLUE, "D")
    held = [r for r in results if r.sink == "turnover" and r.due > auction.boston.last]
    if held:
        # Without enabling timestamps a window after the last bid from Boston would wait until Boston speaks again.
        xs = [r.due - start for r in held]
        label = "the same windows, had they waited for Boston (so far)"
        below.plot(xs, [end + 1.5 - x for x in xs], ls=":", color=RED, lw=1.6, label=label)
    below.set_ylabel("seconds until the result was there")
    below.set_xlabel("seconds since the auction began")
    below.set_xlim(0, end + 1.5)
    below.set_ylim(bottom=0)
    below.grid(axis="y", color=QUIET, alpha=0.25)
    below.legend(frameon=False, loc="upper right", fontsize=9)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def _delays(axis: Any, results: list[Result], start: float, label: str, colour: str, marker: str) -> None:
    axis.plot([r.due - start for r in results], [r.delay for r in results], marker, color=colour, ms=6, label=label)
