"""Writes docs/support.md, the table of what each runtime supports, from the registry of cases.

python -m tests.runtimes.support
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.runtimes.case import RUNTIMES, Case
from tests.runtimes.cases import TOPICS

PAGE = Path(__file__).parents[2] / "docs" / "support.md"
HEAD = """# What runs where

One suite runs on every runtime. Each line stands for at least one of its cases; DuckDB over the finished streams says what must come out.
This page is written by `python -m tests.runtimes.support` from the registry in `tests/runtimes/cases/`; a test checks that it is current.
"""


def page() -> str:
    text = HEAD
    for topic, cases in TOPICS.items():
        text += f"\n## {topic}\n\n| | " + " | ".join(RUNTIMES) + " | cases |\n| --- |" + " --- |" * (len(RUNTIMES) + 1) + "\n"
        features: dict[str, list[Case]] = {}
        for case in cases:
            features.setdefault(case.feature, []).append(case)
        for feature, members in features.items():
            cells = [_cell(members, runtime) for runtime in RUNTIMES]
            text += f"| {_escaped(feature)} | {' | '.join(cells)} | {', '.join(f'`{case.name}`' for case in members)} |\n"
    return text


def _cell(cases: Sequence[Case], runtime: str) -> str:
    """yes, or why not."""
    for case in cases:
        if case.pending:
            return f"not yet: {_escaped(case.pending)}"
        if runtime in case.gaps:
            return f"refused: {_escaped(case.gaps[runtime])}"
    return "yes"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page())
