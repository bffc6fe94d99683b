"""The auction halls: a thread that writes bids as files while the pipeline runs."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

TICK = 0.25
"""Seconds between two files of a hall."""
ITEM_SECONDS = 3.0
"""How long an item is up for sale."""


@dataclass
class Hall:
    """One source: a directory that gets a file of bids every tick."""

    name: str
    directory: str
    first_item: int
    chance: random.Random
    item: int = 0
    price: float = 0.0
    opened: float = 0.0
    files: int = 0
    last: float = 0.0
    hammers: dict[int, float] = field(default_factory=dict)

    def write(self, now: float) -> None:
        """The bids of one tick; when an item's time is over, the row that closes it."""
        rows = []
        if not self.item:
            self.item, self.price, self.opened = self.first_item, 100.0, now
        for _ in range(self.chance.randint(3, 8)):
            self.price += round(self.chance.random() * 40, 2)
            rows.append(self._row(self.price, False, now))
        if now - self.opened >= ITEM_SECONDS:
            rows.append(self._row(None, True, now))
            self.hammers[self.item] = now
            self.item, self.price, self.opened = self.item + 1, 100.0, now
        self.last = now
        self._publish(rows)

    def _row(self, price: float | None, closed: bool, now: float) -> dict[str, object]:
        stamp = datetime.fromtimestamp(now, UTC).isoformat(timespec="microseconds")
        return {"item": self.item, "price": price, "closed": closed, "ts": stamp}

    def _publish(self, rows: list[dict[str, object]]) -> None:
        """Written under a hidden name, then renamed: a reader never sees half a file."""
        os.makedirs(self.directory, exist_ok=True)
        hidden = os.path.join(self.directory, ".next")
        with open(hidden, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        os.replace(hidden, os.path.join(self.directory, f"{self.files:06d}.jsonl"))
        self.files += 1


class Auction(threading.Thread):
    """Runs both halls for `seconds`; Boston falls silent after `silent_after` and stays so."""

    def __init__(self, directory: str, seconds: float, silent_after: float, seed: int = 7) -> None:
        super().__init__(daemon=True)
        self.seconds, self.silent_after = seconds, silent_after
        self.london = Hall("London", os.path.join(directory, "london"), 100, random.Random(seed))
        self.boston = Hall("Boston", os.path.join(directory, "boston"), 900, random.Random(seed + 1))
        self.began = 0.0
        self.over = threading.Event()

    def prepare(self) -> None:
        """One file each, so that the query has something to begin with."""
        now = time.time()
        self.london.write(now)
        self.boston.write(now)

    def is_silent(self) -> bool:
        """True once Boston has missed a few ticks."""
        now = time.time()
        return bool(self.began) and now - self.began > self.silent_after and now - self.boston.last > 3 * TICK

    def run(self) -> None:
        self.began = self.london.opened = self.boston.opened = time.time()
        while (now := time.time()) - self.began < self.seconds:
            self.london.write(now)
            if now - self.began < self.silent_after:
                self.boston.write(now)
            time.sleep(TICK)
        self.over.set()
