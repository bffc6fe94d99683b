"""What waits is traced back to the marks of streams: as far as needed and no further, and only then a silent stream is asked."""

# ruff: noqa: E501 - a query reads best on one line

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.block import Block
from millstream.core.punctuation import Punctuation
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.io.contract import Reading, Unit
from millstream.operators.aggregate import Aggregate
from millstream.operators.contract import Due, Output
from millstream.progress.demand import Outlook, called
from tests.progress.live import SECOND, Live

A = "CREATE STREAM A (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;"
B = "CREATE STREAM B (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;"


def needs(live: Live) -> list[dict[str, float]]:
    """What is waited for, in seconds; None for a stream of which only the end would do."""
    found = live.run.demand.needs(live.run.stage.executor.due())
    return [{name: None if mark == MAX_TIME else mark / SECOND for name, mark in need.items()} for need in found]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("query", "needed"),
    [
        ("SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k", [{"A": 20}]),
        ("SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY k", [{"A": 15}]),
        ("SELECT count(*) AS n FROM A UNION ALL B [RANGE 10 SECONDS]", [{"A": 20, "B": 20}]),
        ("SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM A GROUP BY 1", [{"A": 60}]),
        ("SELECT k, ts FROM A UNION ALL SELECT k, ts FROM B ORDER BY ts", [{"A": 13.000001, "B": 13.000001}]),
        # A left tuple that found nobody may come out once the right side is past its window; the others are only forgotten.
        ("SELECT A.k FROM A [RANGE 5 SECONDS] LEFT ANTI JOIN B [RANGE 3 SECONDS] ON A.k = B.k", [{"B": 17.000001}, {"A": 19.000001}]),
        ("SELECT A.k FROM A [RANGE 5 SECONDS] JOIN B [RANGE 3 SECONDS] ON A.k = B.k", [{"B": 18.000001}, {"A": 19.000001}]),
        ("SELECT DISTINCT k FROM A [RANGE 10 SECONDS]", [{"A": 20}]),
        # A count of tuples closes this window: no time does.
        ("SELECT count(*) AS n FROM A [ROWS 10]", [{"A": None}]),
        # A window over windows: the second is complete when the first can bring no more of it.
        ("SELECT count(*) AS m FROM (SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k) AS w [RANGE 1 MINUTE WA window_end]", [{"A": 20}]),
        ("SELECT k FROM A WHERE k > 0", []),
    ],
)  # fmt: skip
def test_what_is_needed(query: str, needed: list[dict[str, float]]) -> None:
    live = Live(A + B, query)
    live.push("B", (7, 14), (8, 16))
    live.push("A", (1, 12), (2, 13))
    while live.run.step():
        pass
    assert needs(live) == needed


QUERIES = [
    "SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS SLIDE 3 SECONDS] GROUP BY k",
    "SELECT count(*) AS n FROM A UNION ALL B [RANGE 7 SECONDS]",
    "SELECT date_trunc('minute', ts + INTERVAL 10 SECONDS) AS m, k, count(DISTINCT k) AS n FROM A UNION ALL B GROUP BY 1, k",
    "SELECT DISTINCT k FROM A UNION ALL B [RANGE 4 SECONDS]",
    "SELECT k, ts FROM A UNION ALL SELECT k, ts FROM B ORDER BY ts",
    "SELECT a.k FROM A [RANGE 3 SECONDS] AS a, B [RANGE 5 SECONDS] AS b WHERE a.k = b.k",
    "SELECT a.k FROM A [RANGE 3 SECONDS] AS a LEFT JOIN B [RANGE 5 SECONDS] AS b ON a.k = b.k",
    "SELECT a.k FROM A AS a JOIN B AS b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL 3 SECONDS AND b.ts + INTERVAL 5 SECONDS",
    "SELECT k, count(*) AS n FROM (SELECT a.k AS k FROM A [RANGE 3 SECONDS] AS a, B [RANGE 2 SECONDS] AS b WHERE a.k = b.k) AS z [RANGE 5 SECONDS] GROUP BY k",
    "SELECT k, count(*) AS n FROM (SELECT a.k AS k FROM A [RANGE 3 SECONDS] AS a LEFT JOIN B [RANGE 2 SECONDS] AS b ON a.k = b.k) AS z [RANGE 5 SECONDS] GROUP BY k",
    "SELECT m, count(*) AS c FROM (SELECT k AS m, count(*) AS n FROM A UNION ALL B [RANGE 4 SECONDS] GROUP BY k) AS w [RANGE 12 SECONDS WA window_start] GROUP BY m",
]  # fmt: skip


# What a semi join matched has left before its time. The mark that is named is still the last that could matter.
LEAVES_EARLY = "SELECT a.k FROM A [RANGE 3 SECONDS] AS a LEFT SEMI JOIN B [RANGE 3 SECONDS] AS b ON a.k = b.k"


@pytest.mark.parametrize("query", [*QUERIES, LEAVES_EARLY])
@given(data=st.data())
def test_streams_that_reach_what_is_needed_let_it_go_and_not_before(query: str, data: st.DataObject) -> None:
    live = Live(A + B, query)
    times = st.lists(st.integers(0, 40), min_size=1, max_size=6).map(sorted)
    for stream in ("A", "B"):
        live.push(stream, *((data.draw(st.integers(1, 2)), ts) for ts in data.draw(times)))
    while live.run.step():
        pass
    run = live.run

    def promise(name: str, mark: int) -> None:
        feed = run.by_name[name]
        if mark > max(feed.mark, feed.enabled):
            run._take(feed.enable(mark))

    while waiting := run.stage.executor.due():
        chosen = data.draw(st.sampled_from(waiting))
        (need,) = run.demand.needs([chosen])
        behind = [name for name, mark in need.items() if max(run.by_name[name].mark, run.by_name[name].enabled) < mark]
        assert behind, "it waits for what is there already"
        last = data.draw(st.sampled_from(behind))
        for name, mark in need.items():
            promise(name, mark - (name == last))
        left = run.stage.executor.due()
        assert chosen in left or (query == LEAVES_EARLY and not any(due.port == chosen[1].port for _, due in left))
        promise(last, need[last])
        assert chosen not in run.stage.executor.due()


def test_a_stream_is_asked_only_where_all_others_are_or_could_be() -> None:
    behind, ready = Outlook(5, 8), Outlook(5, 12)
    assert called([{"A": 10, "B": 10}], {"A": ready, "B": Outlook(11, 11)}) == {"A"}
    assert called([{"A": 10, "B": 10}], {"A": ready, "B": ready}) == {"A", "B"}
    assert called([{"A": 10, "B": 10}], {"A": ready, "B": behind}) == set()
    assert called([{"A": 10, "B": 10}], {"A": ready, "B": Outlook(5, 5, moves=True)}) == {"A"}  # it rides along
    assert called([{"A": 4, "B": 4}], {"A": ready, "B": ready}) == set()
    assert called([{"A": MAX_TIME}], {"A": ready}) == set()
    assert called([{"A": 10, "B": MAX_TIME}], {"A": ready, "B": Outlook(MAX_TIME, MAX_TIME)}) == {"A"}


def test_state_that_waits_for_nothing_reachable_asks_for_nothing() -> None:
    live = Live(A, "SELECT k, count(*) AS n FROM A [RANGE 1 HOUR] GROUP BY k", now=100)
    live.push("A", (1, 1))
    for _ in range(50):
        live.settle(after=10)
    assert live.run.by_name["A"].enabled == MIN_TIME
    assert [row["n"] for row in live.settle(after=3600)] == [1]


def aggregate(live: Live) -> Aggregate:
    return next(v.config for v in live.launch.graph.vertices if isinstance(v.config, Aggregate))


def test_no_mark_on_a_windowed_column_is_asked_of_its_groups() -> None:
    """Marks on the ends of the windows come out in its place."""
    config = aggregate(Live(A, "SELECT ts, k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY ts, k"))
    assert config.ways("ts", 7 * SECOND) == ()
    assert config.ways("window_end", 20 * SECOND) == ((Due(0, "ts", 10 * SECOND),),)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT m, count(*) AS n"
        " FROM (SELECT ts, date_trunc('minute', ts) AS m FROM A) [RANGE 1 HOUR] GROUP BY m",
        "SELECT h, m, count(*) AS n FROM"
        " (SELECT date_trunc('hour', ts) AS h, date_trunc('minute', ts) AS m FROM A) GROUP BY h, m",
    ],
)
def test_groups_that_another_mark_closes_wait_for_it_after_a_restart_too(query: str) -> None:
    config = aggregate(Live(A, query))
    values = {"m": [0, 60], "h": [0, 0], "ts": [12, 70], "k": [1, 2]}
    arrays = [
        pa.array([v * (1 if f.name == "k" else SECOND) for v in values[f.name]], pa.int64()).view(f.type)
        for f in config.input
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=config.input)
    operator, fresh = config.build(journal=True), config.build(journal=True)
    operator.handle(Block(batch, (Punctuation.linear("m", 0),)), Output())
    for old, new in zip(operator.state, fresh.state, strict=True):
        segment = old.changes(1)
        assert segment is not None
        new.restore([(1, segment.data)])
    assert Due(0, "m", 1) in fresh.due()
    assert list(fresh.due()) == list(operator.due())


def test_what_is_only_forgotten_is_forgotten_at_once() -> None:
    """A join holds tuples that expire one after the other: one enabling timestamp for all of them, not one for each."""
    live = Live(A + B, "SELECT a.k FROM A [RANGE 5 SECONDS] AS a JOIN B [RANGE 5 SECONDS] AS b ON a.k = b.k", now=20)
    live.push("B", (9, 0))
    live.push("A", *((1, ts) for ts in range(20)))
    live.settle()
    made = set()
    for _ in range(400):
        live.settle(after=0.1)
        made.add(live.run.by_name["B"].enabled)
    assert live.held == 0
    assert len(made - {MIN_TIME}) == 1


def test_a_partner_that_never_pauses_does_not_keep_a_silent_stream_from_being_asked() -> None:
    live = Live(A + B, "SELECT count(*) AS n FROM A UNION ALL B [RANGE 10 SECONDS]", now=0)
    live.push("B", (1, 0))
    live.settle()
    live.clock.advance(30 * SECOND)
    for ts in range(5, 35, 5):
        live.push("A", (1, ts))
    results = []
    while live.run.step():
        live.run._flush()
        results.append(len(live.sink.to_arrow()))
    assert results == [0, 1, 1, 2, 2, 3]


def test_every_window_comes_out_at_its_end_beside_a_silent_partner() -> None:
    """A tuple every 5 ms for 5 s, and one at the start from the partner: no window is later than the tuple that ends it."""
    live = Live(A + B, "SELECT count(*) AS n FROM A UNION ALL B [RANGE 1 SECOND]", now=0)
    live.push("B", (1, 0))
    live.settle()
    seen: dict[float, float] = {}
    for step in range(1, 1001):
        live.push("A", (1, step * 0.005))
        for row in live.settle(after=0.005):
            seen.setdefault(row["window_end"], step * 0.005)
    assert seen == {end: end for end in (1.0, 2.0, 3.0, 4.0, 5.0)}


def test_what_comes_after_the_last_look_is_not_late_by_an_enabling_timestamp() -> None:
    """While a long piece of A is read the clock goes on, and B brings a tuple: nobody has looked since."""
    live = Live(A + B, "SELECT count(*) AS n FROM A UNION ALL B [RANGE 10 SECONDS]", now=0)
    live.push("B", (1, 0))
    live.push("A", (1, 0), (1, 1))
    live.settle()
    read = live.sources["A"].read

    def slowly(unit: Unit, batch_size: int) -> Iterator[Reading]:
        live.clock.advance(3 * SECOND)
        live.push("B", (1, 9))
        live.clock.advance(3 * SECOND)
        yield from read(unit, batch_size)

    live.sources["A"].read = slowly  # type: ignore[method-assign]
    live.push("A", (1, 11))
    live.settle(after=6)
    assert live.letters == []
    assert [row["n"] for row in live.settle(after=4)] == [4]
