"""The two streams of an auction house (paper 002, section 1.2) as files in the order of time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from millstream.bench.local import START
from millstream.core.types import TIMESTAMP

Longs = NDArray[np.int64]

ROWS = 22
"""Rows of the files for each auction: itself, 20 bids on average, and the one that closes it."""
DAYS = 2
"""The time in which auctions are opened, however many there are."""
LASTS = 600, 3600
"""Seconds from the opening of an auction to its last bid, at least and at most."""
FILE = 250_000
"""Rows per file, of Auction and Bid together; less where there would be fewer than 16 files."""
CLOSING = -1
"""The item of one last auction, a day later: Spark's watermark only moves with tuples, and closes nothing at the end of a stream."""
SECOND = 1_000_000


@dataclass(frozen=True)
class Auctions:
    """Auctions by number, in the order in which they open; bids and closing rows in the order of time."""

    opened: Longs
    items: Longs
    times: Longs
    closed: NDArray[np.bool_]

    @classmethod
    def make(cls, rows: int, seed: int = 1) -> Auctions:
        """Bids fall anywhere into the life of an auction. In the second of the last one its closing row follows."""
        rng, number = np.random.default_rng(seed), max(1, rows // ROWS)
        opened = START + SECOND * np.sort(rng.integers(0, DAYS * 86400, number))
        lasts = rng.integers(*LASTS, number, endpoint=True)
        items = rng.integers(0, number, number * (ROWS - 2))
        times = opened[items] + SECOND * np.floor(rng.random(len(items)) * (lasts[items] + 1)).astype(np.int64)
        last = opened.copy()
        np.maximum.at(last, items, times)
        items, times = np.concatenate([items, np.arange(number)]), np.concatenate([times, last])
        closed = np.arange(len(items)) >= len(items) - number
        order = np.argsort(2 * times + closed, kind="stable")
        return cls(opened, items[order], times[order], closed[order])

    def __len__(self) -> int:
        return len(self.opened)

    @property
    def rows(self) -> int:
        return len(self.opened) + len(self.items)

    @property
    def ended(self) -> Longs:
        """When each auction is closed."""
        found = np.empty(len(self), np.int64)
        found[self.items[self.closed]] = self.times[self.closed]
        return found

    def first(self, number: int) -> Auctions:
        """The auctions that open first, with all that belongs to them."""
        mine = self.items < number
        return Auctions(self.opened[:number], self.items[mine], self.times[mine], self.closed[mine])

    def write(self, folder: Path) -> None:
        """As many files of either stream, each with the same stretch of time in both, and one with the last auction."""
        files = max(16, -(-self.rows // FILE))
        cuts = np.linspace(0, len(self.items), files + 1).astype(np.int64)
        upto = [0, *np.searchsorted(self.opened, self.times[cuts[1:-1] - 1], side="right"), len(self)]
        for stream, table, ends in (("Auction", self._auctions(), upto), ("Bid", self._bids(), cuts)):
            (folder / stream).mkdir(parents=True)
            pieces = [table.slice(at, to - at) for at, to in pairwise(ends)]
            for number, piece in enumerate([*pieces, self._last(table.schema)]):
                path = folder / stream / f"{number:05d}.parquet"
                pq.write_table(piece, path)
                os.utime(path, (number + 1, number + 1))  # Spark reads files in the order of their age

    def _auctions(self) -> pa.Table:
        rng = np.random.default_rng(2)
        sellers, prices = rng.integers(0, 10_000, len(self)), rng.integers(1, 100, len(self)).astype(float)
        times = pa.array(self.opened).view(TIMESTAMP)
        return pa.table({"item_id": np.arange(len(self)), "seller_id": sellers, "start_price": prices, "ts": times})

    def _bids(self) -> pa.Table:
        rng = np.random.default_rng(3)
        bidders = pa.array(rng.integers(0, 100_000, len(self.items)), mask=self.closed)
        prices = pa.array(rng.integers(1, 1000, len(self.items)).astype(float), mask=self.closed)
        times = pa.array(self.times).view(TIMESTAMP)
        return pa.table({"item_id": self.items, "bidder_id": bidders, "bid_price": prices, "ts": times, "closed": self.closed})

    def _last(self, schema: pa.Schema) -> pa.Table:
        values = {"item_id": CLOSING, "ts": int(self.times[-1]) + 86400 * SECOND, "closed": False}
        return pa.table({field.name: pa.array([values.get(field.name)], field.type) for field in schema}, schema=schema)
