"""A graph changes while it runs: queries come and go, strategies and break points are set, and no tuple is lost or repeated."""

from __future__ import annotations

import pytest

import millstream as ms

STREAMS = """
CREATE STREAM Bid (auction BIGINT, price BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'list');
CREATE STREAM Ask (auction BIGINT, price BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'list');
CREATE SINK All WITH (connector = 'memory');
INSERT INTO All SELECT auction, count(*) AS n FROM Bid [RANGE 1 MINUTE] GROUP BY auction;
"""
MORE = """
CREATE SINK Dear WITH (connector = 'memory');
INSERT INTO Dear SELECT auction, max(price) AS best FROM Bid [RANGE 1 MINUTE] WHERE price > 10 GROUP BY auction;
"""


def live(text: str = STREAMS) -> ms.testing.Live:
    session = ms.Session("local")
    session.sql(text)
    return ms.testing.Live(session)


def bid(auction: int, price: int, second: int) -> dict[str, object]:
    return {"auction": auction, "price": price, "ts": f"2026-01-01 12:{second // 60:02d}:{second % 60:02d}"}


def shown(run: ms.testing.Live, sink: str) -> list[tuple[object, ...]]:
    return sorted((*list(row.values())[:-2], row["window_start"].minute) for row in run.rows(sink))


def test_a_query_that_comes_sees_what_comes_from_then_on() -> None:
    run = live()
    run.push("Bid", [bid(1, 50, 0), bid(1, 60, 1)])
    run.change(MORE)
    run.push("Bid", [bid(1, 20, 2), bid(1, 5, 3), bid(2, 30, 61)])
    run.end()
    assert shown(run, "All") == [(1, 4, 0), (2, 1, 1)]
    assert shown(run, "Dear") == [(1, 20, 0), (2, 30, 1)]


def test_a_query_that_goes_leaves_the_others_alone() -> None:
    run = live(STREAMS + MORE)
    run.push("Bid", [bid(1, 50, 0), bid(1, 60, 61)])
    run.change("DROP QUERY Dear")
    run.push("Bid", [bid(1, 70, 62), bid(1, 80, 125)])
    run.end()
    assert shown(run, "All") == [(1, 1, 0), (1, 1, 2), (1, 2, 1)]
    assert shown(run, "Dear") == [(1, 50, 0)]
    assert run.state_rows == 0


def test_one_that_comes_hears_what_was_promised_before() -> None:
    """Bid has ended: nobody will say so again, and yet the join that comes must know."""
    run = live()
    run.push("Bid", [bid(1, 50, 0)])
    run.end("Bid")
    run.change("""
        CREATE SINK Without WITH (connector = 'memory');
        INSERT INTO Without SELECT A.auction FROM Ask [RANGE 1 HOUR] AS A LEFT ANTI JOIN Bid [RANGE 1 HOUR] AS B ON A.auction = B.auction;
    """)
    run.push("Ask", [bid(7, 1, 5)])
    assert run.rows("Without") == [{"auction": 7}]


def test_late_is_late_for_queries_that_come_too() -> None:
    run = live()
    run.push("Bid", [bid(1, 50, 30)])
    run.change(MORE)
    run.push("Bid", [bid(1, 40, 10), bid(1, 45, 31)])
    run.end()
    assert shown(run, "Dear") == [(1, 45, 0)]
    assert [letter.kind for letter in run.letters] == ["late"]


def test_a_stream_that_nobody_read_is_read_from_its_beginning() -> None:
    run = live()
    run.push("Ask", [bid(3, 1, 5)])
    run.change("CREATE SINK Asks WITH (connector = 'memory'); INSERT INTO Asks SELECT auction FROM Ask;")
    run.push("Ask", [bid(4, 1, 6)])
    assert [row["auction"] for row in run.rows("Asks")] == [3, 4]


def test_the_last_reader_of_a_stream_goes_and_another_comes() -> None:
    run = live(STREAMS + "CREATE SINK Asks WITH (connector = 'memory'); INSERT INTO Asks SELECT auction FROM Ask;")
    run.push("Ask", [bid(3, 1, 5)])
    run.change("DROP QUERY Asks")
    run.change("INSERT INTO Asks SELECT auction + 100 AS auction FROM Ask")
    run.push("Ask", [bid(4, 1, 6)])
    assert [row["auction"] for row in run.rows("Asks")] == [3, 103, 104]  # read anew, since nobody had kept the place


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("DROP QUERY Dearest", "no query into a sink `Dearest`|unknown"),
        ("DROP QUERY All", "statement 1, line 1, column 1: no query would be left; stop the run instead"),
        ("INSERT INTO All SELECT price FROM Bid", "two queries write different columns into sink `All`"),
        ("SET execution.order = 'in-order'", "execution.order can not be changed while queries run"),
        ("SET execution.breaks = '1 -> 99'", "there is no buffer from #1 to #99"),
        ("SET execution.breaks = 'here'", "takes 'none', 'auto' or buffers such as"),
        ("SET execution.weights = 'All: 0'", "whole numbers of at least 1"),
        ("SET execution.strategies = 'All: sideways'", "sideways"),
        ("EXPLAIN SELECT auction FROM Bid", "a run explains nothing"),
        ("CREATE SINK More WITH (connector = 'memory', limits = 5)", "no option `limits` in sink More; did you mean `limit`?"),
        (MORE + "INSERT INTO Nowhere SELECT auction FROM Bid;", "Nowhere"),
    ],
)
def test_a_wrong_change_changes_nothing(text: str, said: str) -> None:
    run = live()
    with pytest.raises(ms.MillstreamError, match=said):
        run.change(text)
    run.push("Bid", [bid(1, 50, 0)])
    run.end()
    assert shown(run, "All") == [(1, 1, 0)]
    run.change(MORE)  # its sink is not taken by the text that failed
