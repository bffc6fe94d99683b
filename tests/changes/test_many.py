"""A thousand queries over one stream: the last costs no more than the tenth, and they share one buffer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import millstream as ms

MANY = 1000


def calls_of(work: Callable[[], None]) -> int:
    """How many functions a piece of work calls: a measure of it that does not depend on the machine."""
    count = 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_a_thousand_queries() -> None:
    session = ms.Session("local")
    session.sql("""
        CREATE STREAM Bid (auction BIGINT, price BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'list');
        CREATE SINK Q0 WITH (connector = 'memory');
        INSERT INTO Q0 SELECT auction, price FROM Bid WHERE price > 0;
    """)
    live = ms.testing.Live(session)
    costs = {}

    def add(number: int) -> None:
        launch, run = live._launch, live._run
        launch.change(f"""
            CREATE SINK Q{number} WITH (connector = 'memory');
            INSERT INTO Q{number} SELECT auction, price FROM Bid WHERE price > {number};
        """)
        run.change(launch)

    for number in range(1, MANY):
        costs[number] = calls_of(lambda number=number: add(number)) if number % 10 == 9 else add(number)  # type: ignore[misc]
    assert costs[MANY - 1] < 2 * costs[9], costs
    live.push("Bid", [{"auction": n, "price": n, "ts": "2026-01-01 12:00:00"} for n in (500, 1500)])
    assert len(live.rows("Q499")) == 2 and len(live.rows("Q500")) == len(live.rows(f"Q{MANY - 1}")) == 1
    book = live._run.stage.executor.book
    assert book.rows == 0 and book.peak <= 2 * 3  # the block that all of them read, and what the one that runs makes of it
