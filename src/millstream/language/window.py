"""The stream window `[RANGE 5 MINUTES SLIDE 1 MINUTE]`, the one node the language adds to SQL's."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp

from millstream.language.durations import spell

KEY = "stream_window"
"""The argument of a Table, Subquery or Select under which its window hangs."""


class StreamWindow(exp.Expression):
    """`kind` is range, rows or now; `range` and `slide` are microseconds, or tuples for rows; `attribute` is the WA column."""

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "range": True, "slide": False, "attribute": False}

    @property
    def kind(self) -> str:
        return str(self.args["kind"])

    @property
    def range(self) -> int:
        return int(self.args["range"])

    @property
    def slide(self) -> int | None:
        return self.args.get("slide")

    @property
    def attribute(self) -> exp.Column | None:
        return self.args.get("attribute")


def window_of(expression: Any) -> StreamWindow | None:
    """The window written after a stream, a subquery or a select list, if there is one."""
    window = expression.args.get(KEY)
    return window if isinstance(window, StreamWindow) else None


def window_sql(window: StreamWindow, attribute: str) -> str:
    """The spelling that parses to the same window again."""
    if window.kind == "now":
        parts = ["NOW"]
    else:
        length = spell if window.kind == "range" else str
        parts = [f"{window.kind.upper()} {length(window.range)}"]
        if window.slide is not None:
            parts.append(f"SLIDE {length(window.slide)}")
    if attribute:
        parts.append(f"WA {attribute}")
    return f"[{' '.join(parts)}]"
