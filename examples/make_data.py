"""Writes the data of the examples: seeded, so that it comes out the same every time.

    python examples/make_data.py

Each folder gets a `data` directory with files in several formats; together they stay below 200 kB.
Where a stream is declared with SLACK its tuples are shuffled within that slack.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
START = datetime(2008, 8, 24, 12, 0, 0, tzinfo=UTC)
Row = dict[str, Any]


def main() -> None:
    make_oop(HERE / "oop" / "data")
    make_auction(HERE / "auction" / "data")
    make_feedback(HERE / "feedback" / "data")
    make_shop(HERE / "shop" / "data")
    make_sensors(HERE / "sensors" / "data")


# Network packets (paper 004)

PACKET = pa.schema(
    [
        ("srcIP", pa.string()),
        ("srcPort", pa.int32()),
        ("destIP", pa.string()),
        ("destPort", pa.int32()),
        ("len", pa.int32()),
        ("ts", pa.timestamp("us", tz="UTC")),
    ]
)


def make_oop(place: Path) -> None:
    """Two busy links and a quiet one, and four links whose packets answer each other."""
    rng = random.Random(4)
    hosts = [f"10.0.0.{n}" for n in range(1, 9)]
    main1 = packets(rng, 300, 360, lambda: (rng.choice(hosts), rng.choice((80, 443)), rng.choice(hosts), rng.choice((5000, 5001))))
    # The other link carries the answers: ends swapped, up to 20 s later, and some packets of its own.
    main2 = [
        {**swapped(row), "len": rng.randrange(40, 1500), "ts": row["ts"] + seconds(rng.choice((0, 0, 1, 5, 12, 20)))}
        for row in rng.sample(main1, 180)
    ]
    main2 += packets(rng, 60, 360, lambda: (rng.choice(hosts), rng.choice((5000, 5001)), rng.choice(hosts), rng.choice((80, 443))))
    control = [{**swapped(row), "len": 40} for row in rng.sample(main1, 20)]
    write_parquet(place / "main1", PACKET, in_order(main1), files=3)
    write_csv(place / "main2", disordered(rng, main2, 5), files=2)
    write_jsonl(place / "control", in_order(control), files=1)

    ends = [(rng.choice(hosts), rng.choice((80, 443)), rng.choice(hosts), 5000) for _ in range(12)]
    for name in ("a", "b"):
        write_csv(place / name, in_order(packets(rng, 70, 120, lambda: rng.choice(ends))), files=1)
    for name in ("c", "d"):
        back = packets(rng, 70, 120, lambda: rng.choice(ends))
        write_csv(place / name, disordered(rng, [swapped(row) for row in back], 3), files=1)

    # Connections: a SYN on one link, a SYN_ACK on the other within seconds, times rounded to the second (section 7).
    asked, answered = [], []
    for row in packets(rng, 120, 300, lambda: (rng.choice(hosts), rng.randrange(5000, 5004), rng.choice(hosts), rng.choice((80, 443)))):
        asked.append({**row, "flag": rng.choice(("SYN", "SYN", "SYN", "FIN"))})
        if rng.random() < 0.8:
            flag, later = rng.choice(("SYN_ACK", "SYN_ACK", "RST")), seconds(rng.randrange(4))
            answered.append({**swapped(row), "flag": flag, "ts": row["ts"] + later})
    write_csv(place / "s0", in_order(asked), files=1)
    write_csv(place / "s1", disordered(rng, answered, 5), files=1)


def packets(rng: random.Random, count: int, span: int, ends: Callable[[], tuple[str, int, str, int]]) -> list[Row]:
    rows = []
    for _ in range(count):
        source, source_port, target, target_port = ends()
        rows.append(
            {
                "srcIP": source,
                "srcPort": source_port,
                "destIP": target,
                "destPort": target_port,
                "len": rng.randrange(40, 1500),
                "ts": START + seconds(rng.randrange(span)),
            }
        )
    return rows


def swapped(row: Row) -> Row:
    return {**row, "srcIP": row["destIP"], "destIP": row["srcIP"], "srcPort": row["destPort"], "destPort": row["srcPort"]}


# Auctions (paper 002)


def make_auction(place: Path) -> None:
    """Auctions open for 1 to 24 hours; when one ends, a row of the Bid stream says so."""
    rng = random.Random(2)
    auctions, bids = [], []
    for item in range(180, 220):
        opened = START + timedelta(minutes=rng.randrange(24 * 60))
        lasts = timedelta(minutes=rng.randrange(60, 24 * 60))
        auctions.append({"item_id": item, "seller_id": rng.randrange(10), "start_price": round(rng.uniform(1, 99), 2), "ts": opened})
        for _ in range(rng.choice((0, 3, 8, 20))):
            at = opened + lasts * rng.random()
            bid = {"item_id": item, "bidder_id": rng.randrange(50), "bid_price": round(rng.uniform(1, 500), 2), "ts": at, "closed": False}
            bids.append(bid)
        bids.append({"item_id": item, "bidder_id": None, "bid_price": None, "ts": opened + lasts, "closed": True})
    schema = pa.schema(
        [
            ("item_id", pa.int64()),
            ("bidder_id", pa.int64()),
            ("bid_price", pa.float64()),
            ("ts", pa.timestamp("us", tz="UTC")),
            ("closed", pa.bool_()),
        ]
    )
    write_csv(place / "auction", in_order(auctions), files=1)
    write_parquet(place / "bid", schema, in_order(bids), files=4)


# Three sensors in a factory (paper 003)


def make_feedback(place: Path) -> None:
    rng = random.Random(3)
    for name, columns in (("a", ("x", "y")), ("b", ("x",)), ("c", ("y",))):
        rows = []
        for _ in range(120):
            values: Row = {column: rng.randrange(1, 31) for column in columns}
            rows.append({**values, "reading": round(rng.gauss(20, 5), 1), "ts": START + seconds(rng.randrange(1800))})
        write_csv(place / name, in_order(rows), files=2)


# A shop


def make_shop(place: Path) -> None:
    """Orders, most of them paid within the hour, some twice; some refunded. Amounts are decimals, currencies may be missing."""
    rng = random.Random(5)
    orders, payments, refunds = [], [], []
    for number in range(1, 151):
        at = START + seconds(rng.randrange(4 * 3600))
        amount = f"{rng.randrange(100, 50000) / 100:.2f}"
        currency = rng.choice(("EUR", "USD", "GBP", "SEK", None))
        orders.append({"order_id": number, "customer": rng.choice("abcdefgh"), "amount": amount, "currency": currency, "ts": at})
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            payments.append({"order_id": number, "method": rng.choice(("card", "cash")), "ts": at + seconds(rng.randrange(-60, 5400))})
        if rng.random() < 0.15:
            refunds.append({"order_id": number, "ts": at + seconds(rng.randrange(7200))})
    write_csv(place / "orders", disordered(rng, orders, 120), files=2)
    write_jsonl(place / "payments", in_order(payments), files=2)
    write_csv(place / "refunds", in_order(refunds), files=1)
    rates = [("EUR", 1.0), ("USD", 0.92), ("GBP", 1.17)]
    write_csv_file(place / "rates.csv", [{"currency": c, "factor": f} for c, f in rates])


# Sensors


def make_sensors(place: Path) -> None:
    rng = random.Random(7)
    rows = []
    for number in range(400):
        at = START + seconds(number * 3 + rng.randrange(3))
        value = round(rng.gauss(20, 4), 2)
        rows.append({"sensor": f"s{rng.randrange(6)}", "room": rng.choice(("hall", "cellar")), "celsius": value, "ts": at})
    write_csv(place / "readings", disordered(rng, rows, 10), files=3)

    # The same kind of stream with trouble: times that break the slack, lines that are no tuples.
    lines = []
    for row in disordered(rng, rows[:120], 10):
        line = f"{row['sensor']},{row['celsius']},{stamp(row['ts'])}"
        chance = rng.random()
        if chance < 0.05:
            line = f"{row['sensor']},{row['celsius']},{stamp(row['ts'] - seconds(rng.randrange(60, 300)))}"
        elif chance < 0.08:
            line = f"{row['sensor']},warm,{stamp(row['ts'])}"
        elif chance < 0.10:
            line = f"{row['sensor']},{row['celsius']},"
        lines.append(line)
    place.mkdir(parents=True, exist_ok=True)
    (place / "troubled.csv").write_text("sensor,celsius,ts\n" + "\n".join(lines) + "\n")

    # A door that is seldom opened and says every minute that it is still there; in between its tuples come in any order.
    events: list[Row] = []
    for minute in range(20):
        opened = [minute * 60 + rng.randrange(60) for _ in range(rng.choice((0, 0, 1, 3)))]
        rng.shuffle(opened)
        events += [{"kind": "open", "door": rng.choice(("front", "back")), "ts": START + seconds(at)} for at in opened]
        events.append({"kind": "heartbeat", "door": None, "ts": START + seconds(minute * 60 + 60)})
    write_jsonl(place / "doors", events, files=2)
    lamps = []
    for _ in range(120):
        lamps.append({"lamp": rng.choice(("one", "two")), "watts": rng.randrange(5, 60), "ts": START + seconds(rng.randrange(1200))})
    write_csv(place / "lamps", in_order(lamps), files=1)


# Files


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["ts"])


def disordered(rng: random.Random, rows: Iterable[Row], slack: int) -> list[Row]:
    """Sorted by time plus a delay of at most `slack` seconds: nobody comes later than the slack allows."""
    return sorted(rows, key=lambda row: row["ts"] + seconds(rng.uniform(0, slack)))


def stamp(value: Any) -> Any:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ").replace(".000000Z", "Z") if isinstance(value, datetime) else value


def pieces(rows: Sequence[Row], files: int) -> Iterable[tuple[int, Sequence[Row]]]:
    size = -(-len(rows) // files)
    return ((number, rows[number * size : (number + 1) * size]) for number in range(files))


def write_csv(place: Path, rows: Sequence[Row], files: int) -> None:
    for number, part in pieces(rows, files):
        write_csv_file(place / f"{number}.csv", part)


def write_csv_file(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: stamp(value) for name, value in row.items()} for row in rows)


def write_jsonl(place: Path, rows: Sequence[Row], files: int) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for number, part in pieces(rows, files):
        text = "".join(json.dumps({name: stamp(value) for name, value in row.items()}) + "\n" for row in part)
        (place / f"{number}.jsonl").write_text(text)


def write_parquet(place: Path, schema: pa.Schema, rows: Sequence[Row], files: int) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for number, part in pieces(rows, files):
        pq.write_table(pa.Table.from_pylist(list(part), schema=schema), place / f"{number}.parquet")


if __name__ == "__main__":
    main()
