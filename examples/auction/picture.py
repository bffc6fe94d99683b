"""Draws what punctuations do to the auction query: the state that is held, and how long each answer is waited for.

    .venv/bin/python examples/auction/picture.py auction.png

Three days at an auction house, made here from a seed, are played to auction.sql and to by_time.sql. Every five minutes
of their time we note what each query holds, and which answers have come out.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import millstream as ms

HERE = Path(__file__).parent
START = datetime(2008, 8, 24, tzinfo=UTC)
DAYS = 3
STEP = timedelta(minutes=5)
WINDOW = timedelta(hours=12)
HOUR = timedelta(hours=1)
Row = dict[str, Any]


@dataclass
class House:
    """Auctions and bids in the order of time, and when each auction is closed."""

    auctions: list[Row] = field(default_factory=list)
    bids: list[Row] = field(default_factory=list)
    closed: dict[int, datetime] = field(default_factory=dict)

    @classmethod
    def make(cls, seed: int = 2) -> House:
        """Up to 40 auctions an hour, most of them in the evening. Half are over within 2 hours, one in 25 lasts for more than 12."""
        rng, house = random.Random(seed), cls()
        at = START
        while (at := at + timedelta(minutes=rng.expovariate(1 / 1.5))) < START + timedelta(days=DAYS):
            busy = 0.15 + 0.85 * max(0.0, 1 - abs((at - START) / HOUR % 24 - 18) / 10)
            if rng.random() < busy:
                house._add(rng, len(house.auctions), at)
        house.bids.sort(key=lambda bid: (bid["ts"], bid["closed"]))
        return house

    def _add(self, rng: random.Random, item: int, at: datetime) -> None:
        lasts = min(20.0, max(0.3, rng.lognormvariate(0.7, 1))) * HOUR
        self.auctions.append({"item_id": item, "seller_id": rng.randrange(99), "start_price": 1.0, "ts": at})
        self.closed[item] = at + lasts
        for _ in range(rng.randrange(1, 20)):
            bid = {"bidder_id": rng.randrange(999), "bid_price": round(rng.uniform(1, 500), 2), "ts": at + lasts * rng.random()}
            self.bids.append({"item_id": item, **bid, "closed": False})
        self.bids.append({"item_id": item, "bidder_id": None, "bid_price": None, "ts": at + lasts, "closed": True})

    def final(self, item: int) -> datetime:
        """From when on the answer for an auction can not change: it is closed, or its 12 hours are over."""
        return min(self.closed[item], self.auctions[item]["ts"] + WINDOW)

    def open_at(self, at: datetime) -> int:
        return sum(auction["ts"] <= at < self.closed[auction["item_id"]] for auction in self.auctions)


@dataclass
class Watched:
    """What a query held at each step, and when each of its answers came out."""

    times: list[datetime] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    out: dict[int, datetime] = field(default_factory=dict)
    bids: dict[int, int] = field(default_factory=dict)


def play(file: str, house: House) -> Watched:
    session = ms.Session(runtime="local")
    session.sql((HERE / file).read_text(), **{"in": "in", "out": "out"})  # lists take their places
    live, watched = ms.testing.Live(session), Watched()
    streams = {"Auction": iter(house.auctions), "Bid": iter(house.bids)}
    heads = {name: next(rows, None) for name, rows in streams.items()}
    now = START
    while now < START + timedelta(days=DAYS):
        now += STEP
        for name, rows in streams.items():
            due = []
            while (head := heads[name]) is not None and head["ts"] <= now:
                due.append(head)
                heads[name] = next(rows, None)
            if due:
                live.push(name, due)
        watched.times.append(now)
        watched.held.append(live.state_rows)
        for row in live.rows()[len(watched.out) :]:
            watched.out[row["item_id"]], watched.bids[row["item_id"]] = now, row["bids"]
    return watched


INK, QUIET, WITH, WITHOUT = "#24292f", "#8c959f", "#0969da", "#cf222e"


def draw(house: House, told: Watched, by_time: Watched, path: str) -> None:
    figure, (state, delay) = plt.subplots(2, 1, figsize=(9, 6.5), sharex=True, layout="constrained")

    def hours(times: Any) -> list[float]:
        return [(at - START) / HOUR for at in times]

    state.plot(hours(by_time.times), by_time.held, color=WITHOUT, lw=1.6, label="without punctuations")
    state.plot(hours(told.times), told.held, color=WITH, lw=1.6, label="with punctuations")
    state.plot(hours(told.times), [house.open_at(at) for at in told.times], color=INK, lw=1, ls=":", label="open auctions")
    state.set_title("What the query holds: tuples and groups", loc="left", fontsize=12, color=INK)
    for watched, colour in ((by_time, WITHOUT), (told, WITH)):
        waited = [(at - house.final(item)) / HOUR for item, at in watched.out.items()]
        delay.scatter(hours(house.final(item) for item in watched.out), waited, s=7, color=colour, lw=0, alpha=0.7)
    delay.set_title("How long after the end of an auction its answer is out, hours", loc="left", fontsize=12, color=INK)
    ticks = range(0, 24 * DAYS + 1, 12)
    delay.set_xticks(ticks, [f"day {hour // 24 + 1}" if hour % 24 == 0 else "noon" for hour in ticks])
    delay.set_xlim(0, 24 * DAYS)
    delay.set_yticks(range(0, 13, 3))
    delay.set_ylim(-0.4, 12.4)
    state.set_ylim(bottom=0)
    for axes in (state, delay):
        axes.grid(color=QUIET, alpha=0.25)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.legend(*state.get_legend_handles_labels(), frameon=False, loc="outside upper left", ncols=3)
    figure.savefig(path, dpi=110)


def main(path: str) -> None:
    house = House.make()
    told, by_time = play("auction.sql", house), play("by_time.sql", house)
    both = told.bids.keys() & by_time.bids.keys()
    if any(told.bids[item] != by_time.bids[item] for item in both):
        raise SystemExit("the two queries give different answers")
    draw(house, told, by_time, path)
    print(f"{len(house.auctions):,} auctions, {len(house.bids):,} rows of Bid; {len(both):,} answers of both queries are the same")
    for name, watched in (("with punctuations", told), ("without", by_time)):
        waits = sorted((at - house.final(item)) / HOUR for item, at in watched.out.items())
        print(f"{name}: {max(watched.held):,} tuples and groups at most, {waits[len(waits) // 2]:.2f} h until an answer (median)")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "auction.png")
