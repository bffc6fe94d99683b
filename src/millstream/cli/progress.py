"""Tells on standard error how a run goes: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from millstream.cli import log
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.io import FileSink
from millstream.runtime.launch import Launch
from millstream.runtime.runs import Resumed
from millstream.runtime.spent import SPARK, TRANSFER
from millstream.runtime.status import Status

if TYPE_CHECKING:
    from rich.text import Text

EVERY = 2.0
"""Seconds between two plain lines."""


class Reporter:
    """A context in which `update` shows a status. Plain lines come every two seconds at most, and only with news."""

    launch: Launch | None = None
    known: frozenset[str] = frozenset()
    """The streams of which tuples came in an earlier life of the run."""

    def __init__(self) -> None:
        self.began = self.told = time.monotonic()
        self.status = Status()
        self.news: Any = None
        self.live: Any = None
        self.console: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            # Where answers appear on the same terminal, rich must know of them to keep its line below.
            both = sys.stdout.isatty()
            self.console = Console(stderr=True)
            self.live = Live(console=self.console, get_renderable=self._shown, refresh_per_second=4, transient=True, redirect_stdout=both)
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def update(self, status: Status) -> None:
        self.remark(status)
        news = (status.tuples_in, status.tuples_out, status.marks, status.letters, status.state_rows)
        if self.live is None and time.monotonic() - self.told >= EVERY and news != self.news:
            self.news, self.told = news, time.monotonic()
            self.say(f"{time.monotonic() - self.began:.1f} s: {self.describe(status)}")

    def remark(self, status: Status) -> None:
        """Say the remarks that are new; at the end of a run, too, because a short one has no update."""
        for line in status.remarks[len(self.status.remarks) :]:
            self.say(line)
        self.status = status

    def say(self, line: str) -> None:
        log.say(line)

    def goes_on(self, resumed: Resumed | None) -> None:
        """Tell from where a run goes on, and how much is unread."""
        if resumed is None:
            return
        self.known = resumed.begun
        when = datetime.fromtimestamp(resumed.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        batch = f"with micro-batch {resumed.batch}, which began at {when} and was cut off"
        if resumed.whole:
            batch = f"after micro-batch {resumed.batch}, which ended at {when}"
        unread = [
            f"{_counted(n, 'file')} of {name} ({size(b)})" for name, (n, b) in resumed.unread.items() if n
        ]
        self.say(f"goes on {batch}" + (f"; unread: {' and '.join(unread)}" if unread else ""))

    def _shown(self) -> Text:
        from rich.text import Text

        head = f"{time.monotonic() - self.began:.0f} s: "
        return Text(head + self.describe(self.status, self.console.width - len(head)), no_wrap=True, overflow="ellipsis", style="dim")

    def describe(self, status: Status, width: int | None = None) -> str:
        """`in 1.2 M (52 k/s), out 31 (3/s), Bid 12:00:30 (2.1 s behind), state 512 (40 kB), late 3, batch 0.42 s (36 % ours, 50 % Spark)`.

        In a given width the most dispensable parts are left out: what is in brackets from the right, then whole parts.
        """
        if not status.seconds:
            return "starting ..."
        parts = list(self._parts(status))
        line = _joined(parts)
        for short in (len(parts) - number for number in range(1, len(parts) + 1)):
            if width is None or len(line) <= width:
                break
            parts[short] = parts[short][0], ""
            line = _joined(parts)
        while width is not None and len(line) > width and len(parts) > 1:
            parts.pop()
            line = _joined(parts)
        return line

    def _parts(self, status: Status) -> Iterator[tuple[str, str]]:
        """What is said, and what is said of it in brackets."""
        yield f"in {short(sum(status.tuples_in.values()))}", f"{short(status.rate_in)}/s"
        yield f"out {short(status.tuples_out)}", f"{short(status.rate_out)}/s"
        silent = [name for name in self._streams(status) if self._waits(name, status)]
        if silent:
            yield f"waiting for the first tuple of {' and '.join(silent)}", ""
        for name, mark in sorted(status.marks.items()):
            if name in silent:
                continue
            if mark != MAX_TIME:
                behind = status.behind.get(name)
                yield f"{name} {'-' if mark == MIN_TIME else moment(mark)}", "" if behind is None else f"{lasting(behind)} behind"
        yield f"state {short(status.state_rows)}", size(status.state_bytes)
        for kind, count in status.letters.items():
            if count:
                yield f"{kind} {count:,}", ""
        if status.batch.seconds:
            time = status.batch
            ours = time.ours / time.seconds
            yield f"batch {lasting(time.seconds)}", f"{ours:.0%} ours, {time.share(TRANSFER):.0%} transfer, {time.share(SPARK):.0%} Spark"

    def _streams(self, status: Status) -> list[str]:
        return sorted({*status.tuples_in, *(() if self.launch is None else self.launch.streams)})

    def _waits(self, name: str, status: Status) -> bool:
        """True when a stream has not ended, and no tuple of it has come in this life of the run or before."""
        ended = status.marks.get(name) == MAX_TIME
        return not ended and not status.tuples_in.get(name) and name not in self.known

    def summary(self, status: Status) -> str:
        """The last line: what was read, what was written and where, and how long it took."""
        launch = self.launch
        assert launch is not None
        paths = {
            sink.name: f"{sink.name} ({_short(sink.path)})"
            for sink in launch.sinks
            if isinstance(sink, FileSink)
        }
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


def _joined(parts: list[tuple[str, str]]) -> str:
    return ", ".join(f"{said} ({more})" if more else said for said, more in parts)


def short(number: float) -> str:
    """Three digits: 7, 0.5, 51.2 k, 1.20 M."""
    for unit in ("", " k", " M", " G"):
        if abs(number) < 999.5 or unit == " G":
            break
        number /= 1000
    if not unit and (number >= 10 or number == int(number)):
        return f"{number:.0f}"
    return f"{number:.1f}{unit}" if not unit or number >= 100 else f"{number:.3g}{unit}"


def size(count: int) -> str:
    number, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5 or unit == "GB":
            break
        number /= 1000
    return f"{number:.3g} {unit}"


def lasting(seconds: float) -> str:
    """A length of time in the unit that suits it."""
    for least, unit, name in ((172_800, 86_400, "d"), (7_200, 3_600, "h"), (180, 60, "min")):
        if abs(seconds) >= least:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s" if abs(seconds) >= 10 else f"{seconds:.1f} s" if abs(seconds) >= 1 else f"{seconds * 1000:.0f} ms"


def moment(mark: int) -> str:
    """The time of day, with the date when it is another than today's; of a mark that is no time the number."""
    try:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=mark)
    except OverflowError:
        return str(mark)
    return when.strftime("%H:%M:%S" if when.date() == datetime.now(UTC).date() else "%Y-%m-%d %H:%M:%S")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _short(path: str) -> str:
    """A directory as seen from here, unless it is elsewhere."""
    near = os.path.relpath(path)
    return (path if near.startswith("..") else near).rstrip("/") + "/"
