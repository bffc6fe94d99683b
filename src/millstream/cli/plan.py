"""Shows what `millstream bench plan` measured."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from millstream.bench.plan import FEW, MANY, MOST_SECONDS, MOST_TIMES, Planning


def show(found: list[Planning], *, as_json: bool) -> None:
    """One line a kind, in seconds; the last column says whether the kind keeps within its bounds."""
    if as_json:
        print(json.dumps({"benchmark": "plan", "kinds": [_figures(each) for each in found]}, indent=2))
        return
    table = Table(title=f"plan: chains of {FEW} and of {MANY} views, from the text to the graph; s")
    for number, title in enumerate(("", f"{FEW} views", f"{MANY} views", "ratio", "within")):
        table.add_column(title, justify="right" if number else "left")
    for each in found:
        times = (f"{each.few:.3f}", f"{each.many:.3f}", f"{each.ratio:.1f} x")
        table.add_row(each.kind, *times, "yes" if each.within else "no")
    Console().print(table)
    print(f"within: at most {MOST_TIMES:g} times as long, and at most {MOST_SECONDS:g} s.")


def _figures(planning: Planning) -> dict[str, object]:
    return {
        "kind": planning.kind,
        "few_s": round(planning.few, 4),
        "many_s": round(planning.many, 4),
        "ratio": round(planning.ratio, 2),
        "within": planning.within,
    }
