"""FOR: how long a promise about values is remembered, to tell late tuples by."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.errors import SyntaxProblem
from millstream.state.listing import Listing

SQL = """CREATE STREAM A (k STRING, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts {order} {clause} ETS NONE WITH (connector = 'list');
CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out {query}"""


def at(second: int) -> str:
    return f"2026-01-01 {12 + second // 3600}:{second // 60 % 60:02d}:{second % 60:02d}"


def live(clause: str, query: str = "SELECT k, ts FROM A", order: str = "SLACK 1 HOUR") -> ms.testing.Live:
    session = ms.Session("local")
    session.sql(SQL.format(clause=clause, query=query, order=order))
    return ms.testing.Live(session)


CLOSED = "PUNCTUATE ON (k) WHEN closed FOR 10 SECONDS"
CASES = [
    (CLOSED, [("a", False, 0), ("a", True, 5), ("a", False, 3), ("a", False, 15), ("a", False, 16), ("b", False, 20)], [0, 16, 20]),
    ("UNIQUE (k) FOR 10 SECONDS", [("a", False, s) for s in (0, 10, 11, 5, 21, 22)], [0, 11, 22]),
]


@pytest.mark.parametrize("cut", [1, 2, 6])
@pytest.mark.parametrize(("clause", "rows", "kept"), CASES)
def test_by_the_times_of_tuples_alone(clause: str, rows: list[tuple[str, bool, int]], kept: list[int], cut: int) -> None:
    run = live(clause)
    for first in range(0, len(rows), cut):
        run.push("A", [(k, closed, at(second)) for k, closed, second in rows[first : first + cut]])
    run.end()
    assert [row["ts"].second for row in run.rows()] == kept


@pytest.mark.parametrize("clause", [CLOSED, "UNIQUE (k) FOR 10 SECONDS"])
def test_values_are_forgotten_when_their_time_has_passed(clause: str) -> None:
    """And groups still come out the moment their value is closed."""
    run = live(clause, "SELECT k, count(*) AS n FROM A GROUP BY k", "ORDERED")
    (gate,) = run._run.stage.gates.values()
    most = 0
    for second in range(100):
        names = [f"value {second} {number}" for number in range(200)]
        run.push("A", [(name, False, at(second)) for name in names] + [(name, True, at(second)) for name in names if clause == CLOSED])
        most = max(most, sum(len(kept) for _, kept in gate.closed.places() if isinstance(kept, Listing)))
        assert len(run.rows()) == 200 * (second + 1)
    assert 2000 < most < 8000
    run.push("A", [("value 95 3", False, at(99)), ("value 0 3", False, at(99))])
    assert len(run.rows()) == 200 * 100 + clause.startswith("UNIQUE")  # one is late; nobody remembers the other


@pytest.mark.parametrize(
    ("clause", "why"),
    [
        ("CLUSTERED BY (k) FOR 1 DAY", "of clusters"),
        ("PUNCTUATE ON (k, ts) WHEN closed FOR 1 DAY", "has its end in itself"),
        ("PUNCTUATE ON (ts) WHEN closed FOR 1 DAY", "has its end in itself"),
    ],
)
def test_where_it_has_no_meaning(clause: str, why: str) -> None:
    with pytest.raises(SyntaxProblem, match=why):
        live(clause)
