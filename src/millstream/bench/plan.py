"""Planning times of chains of 10 and of 100 views, of each kind; nothing runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from millstream.pipeline import Pipeline

FEW, MANY = 10, 100
MOST_TIMES, MOST_SECONDS = 15.0, 2.0
"""Limits of the time that planning MANY views takes, against FEW and altogether."""

STREAMS = """
CREATE STREAM A (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
CREATE STREAM B (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
CREATE SINK Out WITH (connector = 'memory');
CREATE VIEW V0 AS SELECT k, ts FROM A;
"""

KINDS: dict[str, str] = {
    "case": "SELECT CASE WHEN k > 5 THEN k - 1 ELSE k END AS k, ts FROM {below}",
    "filters": "SELECT k + 1 AS k, ts FROM {below} WHERE k <> {number}",
    "joins": (
        "SELECT x.k AS k, x.ts AS ts FROM {below} [RANGE 5 SECONDS] AS x "
        "JOIN B [RANGE 5 SECONDS] AS b ON x.k = b.k"
    ),
    "unions": "SELECT k, ts FROM {below} UNION ALL SELECT k, ts FROM B",
}
"""A view over the one before it, by kind."""


@dataclass(frozen=True)
class Planning:
    """The seconds that one kind takes, from the text to the graph."""

    kind: str
    few: float
    many: float

    @property
    def ratio(self) -> float:
        return self.many / self.few

    @property
    def within(self) -> bool:
        return self.ratio <= MOST_TIMES and self.many <= MOST_SECONDS


def text(kind: str, views: int) -> str:
    """A chain of views, and a query over the last one."""
    numbers = range(1, views + 1)
    made = [f"CREATE VIEW V{n} AS {KINDS[kind].format(below=f'V{n - 1}', number=n)};" for n in numbers]
    return STREAMS + "\n".join(made) + f"\nINSERT INTO Out SELECT k FROM V{views} WHERE k > 0;"


def measure(repeats: int = 3, tell: Callable[[str], None] = lambda text: None) -> list[Planning]:
    """The median of some runs, of which few and many views take turns; one more goes before them and does not count."""
    _seconds("joins", FEW)
    found = []
    for kind in KINDS:
        tell(f"{kind}: {FEW} and {MANY} views")
        runs = [(_seconds(kind, FEW), _seconds(kind, MANY)) for _ in range(repeats)]
        found.append(Planning(kind, median(few for few, _ in runs), median(many for _, many in runs)))
    return found


def _seconds(kind: str, views: int) -> float:
    statements = text(kind, views)
    began = time.perf_counter()
    pipeline = Pipeline()
    pipeline.add_text(statements)
    pipeline.graph()
    return time.perf_counter() - began
