"""Draw docs/images/feedback.png: what demand feedback is, in three panels."""

from __future__ import annotations

import sys
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK, SOFT, ASLEEP, TOLD, DONE = "#222222", "#9a9a9a", "#7a8bb5", "#c0392b", "#2e8b57"


def join(ax: Any, x: float, y: float, name: str) -> None:
    ax.text(x, y, name, ha="center", va="center", fontsize=12, color=INK, bbox={"boxstyle": "round,pad=0.35", "fc": "white", "ec": INK})


def line(ax: Any, x: float, y: float, to_x: float, to_y: float) -> None:
    ax.plot([x, to_x], [y, to_y], color=INK, lw=1.2, zorder=0)


def chip(ax: Any, x: float, y: float, text: str, color: str, *, faint: bool = False) -> None:
    shape = {"boxstyle": "round,pad=0.22", "fc": color if not faint else "white", "ec": color, "ls": "--" if faint else "-"}
    ax.text(x, y, text, ha="center", va="center", fontsize=8.5, color=color if faint else "white", bbox=shape)


def tree(ax: Any, title: str) -> None:
    ax.set_xlim(0, 10)
    ax.set_ylim(0, 10.2)
    ax.axis("off")
    ax.set_title(title, fontsize=12.5, color=INK, pad=10)
    for ends in ((5, 8, 5, 9.2), (5, 8, 2.6, 4.6), (5, 8, 7.6, 6.4), (2.6, 4.6, 1.0, 2.6), (2.6, 4.6, 4.2, 2.6)):
        line(ax, *ends)
    join(ax, 5, 8, "join on y")
    join(ax, 2.6, 4.6, "join on x")
    for x, y, name in ((1.0, 2.2, "A"), (4.2, 2.2, "B"), (7.6, 6.0, "C")):
        ax.text(x, y, name, ha="center", va="center", fontsize=12, weight="bold", color=INK)


def states(ax: Any, *, asleep: bool) -> None:
    for place, name in enumerate(("a1", "a2")):
        chip(ax, 0.5 + 1.0 * place, 1.3, name, ASLEEP if asleep else SOFT, faint=asleep)
    for place in range(4):
        chip(ax, 3.0 + 0.95 * place, 1.3, f"b{place + 1}", SOFT)


def main(out: str) -> None:
    figure, (without, told, woken) = plt.subplots(1, 3, figsize=(14, 4.9))
    tree(without, "Without feedback")
    states(without, asleep=False)
    for row in range(2):
        for place in range(4):
            chip(without, 5.9 + 1.3 * place, 3.9 - 0.85 * row, f"a{row + 1}b{place + 1}", TOLD)
    without.text(7.85, 4.6, "eight partial results\nmade and stored", ha="center", va="bottom", fontsize=9, color=TOLD)
    without.text(8.1, 6.0, "no y = 100", ha="left", va="center", fontsize=9, color=INK)
    without.text(5, 0.25, "a1 and a2 have y = 100, C has not: all for nothing.", ha="center", fontsize=9.5, color=INK)

    tree(told, "With feedback")
    states(told, asleep=True)
    arrow = {"arrowstyle": "-|>", "color": TOLD, "lw": 1.6, "connectionstyle": "arc3,rad=0.35"}
    told.annotate("", xy=(2.1, 5.15), xytext=(4.0, 8.1), arrowprops=arrow)
    told.text(0.9, 7.3, "“nobody needs\ny = 100”", ha="center", va="center", fontsize=10, color=TOLD)
    told.text(8.1, 6.0, "no y = 100", ha="left", va="center", fontsize=9, color=INK)
    told.text(5, 0.25, "a1 and a2 sleep beside the join. Nothing is made.", ha="center", fontsize=9.5, color=INK)

    tree(woken, "The moment a partner comes")
    states(woken, asleep=False)
    chip(woken, 8.5, 6.0, "c1", DONE)
    woken.text(8.95, 6.0, "y = 100", ha="left", va="center", fontsize=8.5, color=INK)
    arrow = {**arrow, "color": DONE}
    woken.annotate("", xy=(2.1, 5.15), xytext=(4.0, 8.1), arrowprops=arrow)
    woken.text(1.1, 7.3, "“wake\ny = 100”", ha="center", va="center", fontsize=10, color=DONE)
    for place, name in enumerate(("a1b1c1", "a1b2c1", "…", "a2b4c1")):
        if name == "…":
            woken.text(2.35 + 2.0 * place, 9.75, name, ha="center", va="center", fontsize=11, color=DONE)
        else:
            chip(woken, 2.6 + 2.1 * place - (0.9 if place > 2 else 0), 9.75, name, DONE)
    woken.text(5, 0.25, "They come in as if they had been late. The answer is the same.", ha="center", fontsize=9.5, color=INK)
    figure.tight_layout(w_pad=3)
    figure.savefig(out, dpi=110, facecolor="white")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/images/feedback.png")
