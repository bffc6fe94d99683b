"""Tells on standard error how a run goes: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.io import FileSink
from millstream.runtime.launch import Launch, Status

if TYPE_CHECKING:
    from rich.text import Text

EVERY = 1.0
"""Seconds between two plain lines."""


class Reporter:
    """A context in which `update` shows a status. Plain lines come at most once a second, and only with news."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.began = self.told = time.monotonic()
        self.status = Status()
        self.line = ""
        self.live: Any = None
        streams = [v.config.stream for v in launch.graph.sources]  # type: ignore[attr-defined]
        self.timed = {s.name: pa.types.is_timestamp(s.schema.field(s.time).type) for s in streams}

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            # Where answers appear on the same terminal, rich must know of them to keep its line below.
            both = sys.stdout.isatty()
            console = Console(stderr=True)
            self.live = Live(console=console, get_renderable=self._shown, refresh_per_second=4, transient=True, redirect_stdout=both)
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def update(self, status: Status) -> None:
        self.status = status
        if self.live is None and time.monotonic() - self.told >= EVERY:
            line = self.describe(status)
            if line != self.line:
                self.line, self.told = line, time.monotonic()
                self.say(f"{time.monotonic() - self.began:.1f} s: {line}")

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def _shown(self) -> Text:
        from rich.text import Text

        line = f"{time.monotonic() - self.began:.0f} s: {self.describe(self.status)}"
        return Text(line, no_wrap=True, overflow="ellipsis", style="dim")

    def describe(self, status: Status) -> str:
        """`in 12,000 (Bid), out 31, low-water mark 2026-01-01 12:00:30 (Bid), state 512`."""
        parts = ["in " + (", ".join(f"{n:,} ({name})" for name, n in status.tuples_in.items()) or "0"), f"out {status.tuples_out:,}"]
        mark = self._mark(status.marks)
        if mark:
            parts.append(mark)
        parts.append(f"state {status.state_rows:,}")
        parts += [f"{kind} {n:,}" for kind, n in status.letters.items() if n]
        return ", ".join(parts)

    def _mark(self, marks: Mapping[str, int]) -> str:
        """The stream that is furthest behind, and where it is."""
        moving = {name: mark for name, mark in marks.items() if mark != MAX_TIME}
        if not moving:
            return ""
        name, mark = min(moving.items(), key=lambda item: item[1])
        if mark == MIN_TIME:
            return f"no low-water mark yet ({name})"
        return f"low-water mark {_moment(mark) if self.timed.get(name) else mark} ({name})"

    def summary(self, status: Status) -> str:
        """The last line: what was read, what was written and where, and how long it took."""
        paths = {sink.name: f"{sink.name} ({_short(sink.path)})" for sink in self.launch.sinks if isinstance(sink, FileSink)}
        read = [f"{_counted(n, 'tuple')} from {name}" for name, n in status.tuples_in.items()]
        wrote = [f"{n:,} to {paths.get(name, name)}" for name, n in status.written.items()]
        parts = ["read " + (" and ".join(read) or "nothing"), "wrote " + (" and ".join(wrote) or "nothing")]
        letters = sum(status.letters.values())
        if letters:
            kinds = ", ".join(f"{n:,} {kind}" for kind, n in status.letters.items())
            where = f" in {_short(status.letters_path)}" if status.letters_path else ""
            parts.append(f"{_counted(letters, 'dead letter')}{where} ({kinds})")
        parts.append(f"{time.monotonic() - self.began:.1f} s")
        return ("stopped: " if status.stopped else "") + ", ".join(parts)


def _moment(mark: int) -> str:
    try:
        return (datetime(1970, 1, 1) + timedelta(microseconds=mark)).isoformat(" ")
    except OverflowError:
        return str(mark)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _short(path: str) -> str:
    """A directory as seen from here, unless it is elsewhere."""
    near = os.path.relpath(path)
    return (path if near.startswith("..") else near).rstrip("/") + "/"
