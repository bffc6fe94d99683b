"""Watches the demo's results appear, and knows how long after their time each came out."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from millstream.demo.halls import Auction


@dataclass(frozen=True)
class Result:
    """One line of a sink: what it says, when it was due, and when it was there."""

    sink: str
    row: dict[str, Any]
    due: float
    seen: float

    @property
    def delay(self) -> float:
        return self.seen - self.due


class Watcher:
    """Reads what is new in the part files of the sinks; a file's own time tells when its last results came out."""

    def __init__(self, directory: str, auction: Auction) -> None:
        self.directory = directory
        self.auction = auction
        self.read: dict[str, int] = {}
        self.results: list[Result] = []

    def look(self) -> list[Result]:
        """What has come since the last look."""
        fresh = []
        for sink in ("turnover", "sold"):
            folder = os.path.join(self.directory, sink)
            names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
            for name in names:
                path = os.path.join(folder, name)
                size, seen = os.stat(path).st_size, os.stat(path).st_mtime
                if not name.endswith(".jsonl") or size == self.read.get(path, 0):
                    continue
                with open(path) as file:
                    file.seek(self.read.get(path, 0))
                    text = file.read()
                whole = text[: text.rfind("\n") + 1]
                self.read[path] = self.read.get(path, 0) + len(whole.encode())
                fresh += [self._result(sink, json.loads(line), seen) for line in whole.splitlines()]
        self.results += fresh
        return fresh

    def _result(self, sink: str, row: dict[str, Any], seen: float) -> Result:
        if sink == "turnover":
            due = datetime.fromisoformat(row["window_end"]).timestamp()
        else:
            due = self.auction.london.hammers.get(row["item"], seen)
        return Result(sink, row, due, seen)
