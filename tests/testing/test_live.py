"""`ms.testing.Live`: a test says when tuples come and how time passes, and sees exactly when an answer comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream as ms


def session_of(text: str) -> ms.Session:
    session = ms.Session("local")
    session.sql(text + "CREATE SINK Out WITH (connector = 'console');")
    return session


DOORS = """\
CREATE STREAM Door (door INT) TIMESTAMP INTERNAL AS ts {0} WITH (connector = 'socket', port = 9009);
CREATE STREAM Gate (door INT) TIMESTAMP INTERNAL AS ts {0} WITH (connector = 'socket', port = 9010);
"""
UNION = "INSERT INTO Out SELECT door, count(*) AS n FROM Door UNION ALL Gate [RANGE 1 MINUTE] GROUP BY door"


def test_internal_time_closes_a_window_though_both_streams_are_silent() -> None:
    session = session_of(DOORS.format(""))
    session.sql(UNION)
    live = ms.testing.Live(session)
    live.push("Door", [(1,), (1,)])
    assert (live.rows(), live.state_rows) == ([], 1)
    live.advance("59 seconds")
    assert live.rows() == []
    live.advance("1 second")
    assert [(row["door"], row["n"]) for row in live.rows()] == [(1, 2)]
    assert live.state_rows == 0


def test_without_enabling_timestamps_the_window_waits_for_the_silent_stream() -> None:
    session = session_of(DOORS.format("ETS NONE"))
    session.sql(UNION)
    live = ms.testing.Live(session)
    live.push("Door", [(1,)])
    live.advance("1 hour")
    live.push("Door", [(2,)])
    assert live.rows() == []
    live.push("Gate", [(3,)])
    assert [row["door"] for row in live.rows()] == [1]
    live.end()
    assert sorted(row["door"] for row in live.rows()) == [1, 2, 3]


def test_external_time_moves_with_the_clock_less_the_skew() -> None:
    session = session_of(
        "CREATE STREAM S (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW 5 SECONDS WITH (path = 'x.csv');"
    )
    session.sql("INSERT INTO Out SELECT k, count(*) AS n FROM S [RANGE 1 MINUTE] GROUP BY k")
    live = ms.testing.Live(session)
    live.push("S", [(1, "2026-01-01 12:00:50")])
    live.advance("14 seconds")
    assert live.rows() == []
    live.advance("1 second")  # 12:00:50 + 15 s - 5 s
    assert [row["n"] for row in live.rows()] == [1]
    live.push("S", [(1, "2026-01-01 12:00:55")])
    assert [letter.kind for letter in live.letters] == ["late"]


def test_values_and_the_end_of_one_stream() -> None:
    session = session_of(
        "CREATE STREAM A (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = 'x.csv');"
        "CREATE STREAM B (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = 'x.csv');"
    )
    session.sql("INSERT INTO Out SELECT A.k FROM A [RANGE 5 SECONDS] LEFT ANTI JOIN B [RANGE 5 SECONDS] ON A.k = B.k")
    live = ms.testing.Live(session)
    live.push("A", [(1, "2026-01-01 12:00:00"), (2, "2026-01-01 12:00:01")])
    live.push("B", [(1, "2026-01-01 12:00:02")])
    assert live.rows() == []
    live.end("B")
    assert live.rows("Out") == [{"k": 2}]


@pytest.mark.parametrize("back", ["-5 seconds", -1])
def test_time_does_not_go_back(back: str | int) -> None:
    session = session_of(DOORS.format(""))
    session.sql(UNION)
    with pytest.raises(ms.MillstreamError, match="time does not go back"):
        ms.testing.Live(session).advance(back)


def test_wrong_names() -> None:
    session = session_of(DOORS.format(""))
    session.sql(UNION)
    live = ms.testing.Live(session)
    with pytest.raises(ms.MillstreamError, match="no stream `Dor`; did you mean `Door`"):
        live.push("Dor", [])
    with pytest.raises(ms.MillstreamError, match="no sink `Aut`"):
        live.rows("Aut")


def test_a_change_writes_to_no_file(tmp_path: Path) -> None:
    session = session_of(DOORS.format(""))
    session.sql(UNION)
    live = ms.testing.Live(session)
    for options in (f"path = '{tmp_path}/out'", "connector = 'console'"):
        with pytest.raises(
            ms.MillstreamError, match="sink More is not in memory; write CREATE SINK More WITH"
        ):
            live.change(f"CREATE SINK More WITH ({options}); INSERT INTO More SELECT door FROM Door")
    assert list(tmp_path.iterdir()) == []
    live.change("CREATE SINK More WITH (connector = 'memory'); INSERT INTO More SELECT door FROM Door")
    live.push("Door", [(1,)])
    assert live.rows("More") == [{"door": 1}]
