"""Results come out when progress allows, not at the end; state goes with them; enabling timestamps are promises like others."""

# ruff: noqa: E501 - a query reads best on one line

from __future__ import annotations

import pytest

from tests.progress.live import Live

A = "CREATE STREAM A (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;"
B = "CREATE STREAM B (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;"
C = "CREATE STREAM C (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;"
COUNT = "SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k"


def test_a_window_comes_out_when_the_mark_reaches_its_end() -> None:
    live = Live(A, COUNT)
    live.push("A", (1, 1), (1, 9))
    assert live.settle() == []
    live.push("A", (2, 10))
    assert live.settle() == [{"k": 1, "n": 2, "window_start": 0, "window_end": 10}]
    assert live.held == 1


def test_an_enabling_timestamp_closes_the_window_of_a_silent_stream() -> None:
    live = Live(A, COUNT, now=100)
    live.push("A", (1, 1))
    assert live.settle() == []
    assert live.settle(after=8) == []
    assert [row["n"] for row in live.settle(after=1)] == [1]


def test_a_tuple_that_breaks_an_enabling_timestamp_is_late() -> None:
    """The unit that follows an enabling timestamp must hear of it."""
    live = Live(A, COUNT, now=100)
    live.push("A", (1, 1))
    live.settle()
    assert len(live.settle(after=9)) == 1
    live.push("A", (1, 5), (1, 12))
    live.settle()
    assert [(letter.kind, letter.content) for letter in live.letters] == [("late", '{"k": 1, "ts": "1970-01-01 00:00:05+00:00"}')]
    clock = "an enabling timestamp made from the clock at 1970-01-01 00:01:49.000000Z"
    assert live.letters[0].reason == f"it came after <ts < 1970-01-01 00:00:10.000000Z>, {clock}"
    assert [(row["n"], row["window_start"]) for row in live.end()] == [(1, 0), (1, 10)]


def test_arrival_numbers_go_on_after_an_enabling_timestamp() -> None:
    live = Live(A, "SELECT count(*) AS n FROM A [ROWS 2]", now=100)
    live.push("A", (1, 1))
    live.settle()
    live.settle(after=1)
    live.push("A", (1, 3), (1, 4))
    live.settle()
    assert [(row["n"], row["window_start"]) for row in live.end()] == [(2, 0), (1, 2)]


def test_a_silent_partner_holds_no_unmatched_tuple_back_for_ever() -> None:
    live = Live(A + B, "SELECT A.k FROM A [RANGE 5 SECONDS] LEFT ANTI JOIN B [RANGE 5 SECONDS] ON A.k = B.k", now=100)
    live.push("B", (7, 1))
    live.push("A", (1, 2))
    assert live.settle() == []
    assert live.settle(after=7) == [{"k": 1}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k FROM A [RANGE 3 SECONDS] AS a, B [RANGE 5 SECONDS] AS b WHERE a.k = b.k",
        "SELECT a.k FROM A AS a JOIN B AS b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL 3 SECONDS AND b.ts + INTERVAL 5 SECONDS",
        "SELECT a.k FROM A AS a JOIN B AS b ON date_trunc('minute', a.ts) = date_trunc('minute', b.ts)",
        "SELECT a.k FROM A [RANGE 3 SECONDS] AS a LEFT JOIN B [RANGE 5 SECONDS] AS b ON a.k = b.k",
        "SELECT k, count(*) AS n FROM (SELECT a.k AS k FROM A [RANGE 3 SECONDS] AS a, B [NOW] AS b WHERE a.k = b.k) AS z [RANGE 5 SECONDS] GROUP BY k",
        "SELECT k, date_trunc('second', ts) AS s, count(*) AS n FROM A UNION ALL B GROUP BY k, 2",
        "SELECT DISTINCT k FROM A UNION ALL B [RANGE 2 SECONDS]",
        "SELECT k, ts FROM A UNION ALL SELECT k, ts FROM B ORDER BY ts",
        "SELECT a.k FROM A [RANGE 3 SECONDS] AS a LEFT ANTI JOIN B [RANGE 3 SECONDS] AS b ON a.k = b.k",
    ],
)
def test_state_stays_small_while_streams_go_on(query: str) -> None:
    """Two streams side by side for 300 s: what is held belongs to the last windows."""
    live = Live(A + B, query)
    most = 0
    for second in range(0, 300, 2):
        live.push("A", (second % 7, second), (1, second))
        live.push("B", (second % 5, second), (1, second + 1))
        live.settle()
        most = max(most, live.held)
    assert most <= 150
    assert live.settle()
    live.end()
    assert live.held == 0


def test_internal_time_never_goes_back() -> None:
    live = Live(
        "CREATE STREAM D (k BIGINT) TIMESTAMP INTERNAL AS ts;", "SELECT k, count(*) AS n FROM D [RANGE 10 SECONDS] GROUP BY k", now=15
    )
    live.push("D", (1,))
    live.settle()
    live.settle(after=10)
    live.clock.advance(-12_000_000)
    live.push("D", (1,))
    live.settle()
    assert [(row["n"], row["window_start"]) for row in live.end()] == [(1, 10), (1, 20)]
    assert live.letters == []


def test_latent_tuples_are_stamped_where_a_time_is_needed() -> None:
    live = Live("CREATE STREAM L (k BIGINT) TIMESTAMP LATENT;", "SELECT count(*) AS n FROM L [RANGE 10 SECONDS]", now=15)
    live.push("L", (1,), (2,))
    live.settle()
    assert [row["n"] for row in live.settle(after=6)] == [2]


def test_a_value_punctuation_closes_groups_and_purges_joins() -> None:
    bids = "CREATE STREAM A (k BIGINT, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts PUNCTUATE ON (k) WHEN closed;"
    items = "CREATE STREAM B (k BIGINT, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts PUNCTUATE ON (k) WHEN closed;"
    live = Live(bids + items, "SELECT a.k AS k, count(*) AS n FROM B AS b JOIN A AS a ON a.k = b.k GROUP BY a.k")
    live.push("B", (1, False, 0), (2, False, 0))
    live.push("A", (1, False, 1), (1, False, 2), (2, False, 3))
    assert live.settle() == []
    live.push("B", (1, True, 4))
    live.push("A", (1, True, 4))
    assert live.settle() == [{"k": 1, "n": 2}]
    assert live.held == 3  # the pair of auction 2, and its group


def test_a_value_punctuation_purges_a_join_of_unequal_integers() -> None:
    """The key of one side is cast to the other's type; the promise goes along."""
    a = "CREATE STREAM A (k INT, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts PUNCTUATE ON (k) WHEN closed;"
    b = "CREATE STREAM B (k BIGINT, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts PUNCTUATE ON (k) WHEN closed;"
    live = Live(a + b, "SELECT a.ts AS at FROM A AS a JOIN B AS b ON a.k = b.k")
    live.push("A", (1, False, 0), (2, False, 0))
    live.push("B", (1, False, 0), (2, False, 0))
    assert len(live.settle()) == 2
    assert live.held == 4
    live.push("A", (1, True, 1))
    live.push("B", (2, True, 1))
    live.settle()
    assert live.held == 2


@pytest.mark.parametrize(("narrow", "wide", "key"), [("INT", "BIGINT", None), ("FLOAT", "DOUBLE", float("nan"))])
@pytest.mark.parametrize("others", [(), (0,)])
def test_a_closed_null_or_nan_closes_the_group_of_a_key_that_was_cast(
    narrow: str, wide: str, key: float | None, others: tuple[int, ...]
) -> None:
    clauses = "closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts ORDERED PUNCTUATE ON (k) WHEN closed;"
    streams = f"CREATE STREAM A (k {narrow}, {clauses} CREATE STREAM B (k {wide}, {clauses}"
    live = Live(streams, "SELECT a.k, count(*) AS n FROM A AS a LEFT JOIN B AS b ON a.k = b.k GROUP BY a.k")
    live.push("A", *((each, False, 1) for each in (key, *others)))
    assert live.settle() == []
    live.push("A", *((each, True, 2) for each in (key, *others)))
    live.push("B", *((each, True, 2) for each in (key, *others)))
    assert len(live.settle()) == 1 + len(others)
    assert live.held == 0


def test_history_in_a_watched_directory_waits_for_its_own_tuples() -> None:
    """Old data under today's clock: nothing may be called late because time has passed here."""
    live = Live(A.replace("ORDERED", "SLACK 30 SECONDS"), COUNT, now=20_000_000)
    live.push("A", (1, 5), (1, 12))
    live.settle()
    assert live.settle(after=3600) == []
    live.push("A", (1, 13), (1, 60))
    assert [row["n"] for row in live.settle()] == [1, 2]
    assert live.letters == []


DAY = 86_400
DAILY = "(SELECT CAST(ts AS DATE) AS d, count(*) AS n FROM A GROUP BY CAST(ts AS DATE))"


@pytest.mark.parametrize("select", ["sum(n) AS n", "DISTINCT n"])
def test_a_window_on_dates_closes_at_midnight(select: str) -> None:
    live = Live(A, f"SELECT {select} FROM {DAILY} [RANGE 2 DAYS]", now=DAY)
    live.push("A", (1, DAY), (1, DAY + 5))
    assert live.settle() == []
    live.settle(after=DAY - 1)
    assert live.held == 1  # the group of the day
    assert [row["n"] for row in live.settle(after=1)] == [2]
    live.settle(after=DAY)
    assert live.held == 0


def test_a_date_joined_with_a_timestamp_waits_no_longer_than_its_window() -> None:
    query = f"SELECT x.d, y.k FROM {DAILY} [RANGE 1 DAY] AS x LEFT JOIN B [RANGE 0 SECONDS] AS y ON y.k > 0"
    live = Live(A + B, query, now=DAY)
    live.push("A", (1, DAY))
    live.push("B", (5, DAY + 7))
    live.settle()
    assert [row["k"] for row in live.settle(after=DAY)] == [5]
    live.push("A", (1, 2 * DAY))
    live.settle()
    assert [row["k"] for row in live.settle(after=DAY)] == [5]
    assert [row["k"] for row in live.settle(after=1)] == [5, None]
    assert live.held == 0


COPIED = (
    "SELECT a.k AS k, b.t2 AS ts FROM A AS a JOIN (SELECT k, ts, ts AS t2 FROM B) AS b"
    " ON a.k = b.k AND b.t2 BETWEEN a.ts AND a.ts + INTERVAL 2 SECONDS"
)


def test_a_copy_of_a_time_lets_go_above_a_join() -> None:
    live = Live(
        A + B + C,
        f"SELECT q.k FROM ({COPIED}) AS q JOIN C AS c"
        " ON q.k = c.k AND c.ts BETWEEN q.ts - INTERVAL 20 SECONDS AND q.ts",
    )
    held = []
    for second in range(0, 500, 100):
        for stream in "ABC":
            live.push(stream, (1, second), (1, second + 1))
        live.settle()
        held.append(live.held)
    assert len(set(held)) == 1


def test_a_window_on_a_copy_of_a_time_above_a_join() -> None:
    copied = "SELECT *, ts AS et FROM A"
    pairs = f"SELECT a.et AS et FROM ({copied}) AS a JOIN B AS b ON a.k = b.k"
    pairs += " AND b.ts BETWEEN a.et AND a.et + INTERVAL 5 SECONDS"
    live = Live(A + B, f"SELECT count(*) AS n FROM ({pairs}) [RANGE 10 SECONDS WA et]")
    live.push("A", (1, 1), (1, 100))
    live.push("B", (1, 2), (1, 100))
    assert live.settle() == [{"n": 1, "window_start": 0, "window_end": 10}]


def test_groups_of_the_found_times_of_a_left_join() -> None:
    pairs = "A [RANGE 5 SECONDS] AS a LEFT JOIN B [RANGE 5 SECONDS] AS b ON a.k = b.k"
    live = Live(A + B, f"SELECT b.ts AS bt, count(*) AS n FROM {pairs} WHERE b.ts IS NOT NULL GROUP BY b.ts")
    live.push("A", (1, 1), (2, 1), (9, 100))
    live.push("B", (1, 2), (9, 100))
    assert live.settle() == [{"bt": 2, "n": 1}]
    assert live.held == 3


def test_a_join_is_let_go_by_two_times_of_one_side() -> None:
    windows = "SELECT k, count(*) AS n FROM B [RANGE 10 SECONDS] GROUP BY k"
    live = Live(
        A + B,
        f"SELECT w.n FROM A AS a JOIN ({windows}) AS w"
        " ON a.k = w.k AND a.ts >= w.window_start AND a.ts < w.window_end",
    )
    held = []
    for second in range(0, 500, 100):
        for stream in "AB":
            live.push(stream, (1, second), (1, second + 1))
        live.settle()
        held.append(live.held)
    assert len(set(held[1:])) == 1
