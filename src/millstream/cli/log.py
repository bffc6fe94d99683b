"""Lines on standard error; those of a run have the time where they go to a log and not to a terminal."""

from __future__ import annotations

import sys
import time

_running = False


def begin(running: bool = True) -> None:
    """Let the lines from here on be those of a run."""
    global _running
    _running = running


def say(line: str) -> None:
    """Print a line, in UTC as all times are."""
    stamp = ""
    if _running and not sys.stderr.isatty():
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime())
    print(f"{stamp}{line}", file=sys.stderr, flush=True)
