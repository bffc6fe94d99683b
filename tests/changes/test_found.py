"""Changes that went wrong once."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import millstream as ms
from millstream.runtime.control import Control
from millstream.runtime.status import Status
from millstream.testing import ManualClock
from tests.changes.test_running import SUMS, complete, counts, minute, place, running, told, until

__all__ = ["place"]

STREAMS = """
CREATE STREAM Bid (auction BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE WITH (connector = 'list');
CREATE STREAM Ask (auction BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE WITH (connector = 'list');
CREATE SINK Bids WITH (connector = 'memory');
CREATE SINK Asks WITH (connector = 'memory');
INSERT INTO Bids SELECT auction FROM Bid;
INSERT INTO Asks SELECT auction FROM Ask;
"""
MEMORY = "WITH (connector = 'memory')"


def live(text: str = STREAMS, clock: ManualClock | None = None) -> ms.testing.Live:
    session = ms.Session("local")
    session.sql(text)
    return ms.testing.Live(session, clock)


def tuples(*numbers: int, at: int = 0) -> list[tuple[int, str]]:
    return [(number, f"2026-01-01 12:{(at or number) // 60:02d}:{(at or number) % 60:02d}") for number in numbers]


def auctions(run: ms.testing.Live, sink: str) -> list[int]:
    return [row["auction"] for row in run.rows(sink)]


def test_a_query_that_comes_and_goes_in_one_change() -> None:
    run = live()
    run.change(f"CREATE SINK X {MEMORY}; INSERT INTO X SELECT auction FROM Bid; DROP QUERY X")
    run.change(f"CREATE SINK Y {MEMORY}; INSERT INTO Y SELECT auction FROM Bid")
    run.change(f"INSERT INTO X SELECT auction FROM Bid; DROP QUERY X; CREATE SINK Z {MEMORY}; INSERT INTO Z SELECT auction FROM Ask")
    run.push("Bid", tuples(1))
    run.push("Ask", tuples(2))
    assert (auctions(run, "Bids"), auctions(run, "Y"), auctions(run, "Z")) == ([1], [1], [2])


def test_the_only_reader_of_a_stream_is_replaced() -> None:
    """The stream goes on where it is, and remembers what it has promised."""
    run = live()
    run.push("Ask", tuples(1, 100))
    run.change("DROP QUERY Asks; INSERT INTO Asks SELECT auction + 1000 AS auction FROM Ask")
    run.push("Ask", tuples(50, 101))
    assert auctions(run, "Asks") == [1, 100, 1101]
    assert [letter.kind for letter in run.letters] == ["late"]


def test_a_component_that_comes_later_has_no_claim_to_the_time_before() -> None:
    run = live(STREAMS.replace("INSERT INTO Asks SELECT auction FROM Ask;", ""))
    (component,) = run._run.scheduler.components
    run._run.scheduler.ran(component, 1000.0, ())
    run.change("INSERT INTO Asks SELECT auction FROM Ask")
    scheduler = run._run.scheduler
    assert [component.turn for component in scheduler.components] == [1000.0, 1000.0]
    assert [component.feeds[0].source.name for component in scheduler.awake] == ["Bid"]
    run.change("SET execution.limit = 3")
    assert len(run._run.scheduler.awake) == 1


def test_each_component_has_the_weights_of_its_sinks() -> None:
    run = live(STREAMS.replace("INTO Asks", "INTO Bids") + "SET execution.weights = 'Bids: 3'")
    assert [component.weight for component in run._run.scheduler.components] == [3, 3]


def test_break_points_go_with_their_buffers() -> None:
    run = live()
    run.change(f"CREATE SINK X {MEMORY}; INSERT INTO X SELECT auction FROM Bid WHERE auction > 1")
    last = max(v.number for v in run._launch.graph.vertices)
    arc = f"{run._launch.graph[last].inputs[0]} -> {last}"
    run.change(f"SET execution.breaks = '{arc}'")
    run.change("DROP QUERY X")
    with pytest.raises(ms.MillstreamError, match="there is no buffer from"):
        run.change(f"SET execution.breaks = '{arc}'")


def test_a_setting_that_is_misspelt() -> None:
    with pytest.raises(ms.MillstreamError, match=r"no setting `execution.stratgy`; did you mean `execution.strategy`"):
        live().change("SET execution.stratgy = 'breadth-first'")
    with pytest.raises(ms.MillstreamError, match="there is no statement in it"):
        live().change("-- nothing")
    with pytest.raises(ms.MillstreamError, match=r"01\.sql: there is no statement in it"):
        live()._launch.change("-- nothing", file="01.sql")


def test_enabling_timestamps_that_wait_for_each_other() -> None:
    start, second = 1_700_000_000_000_000, 1_000_000
    streams = "".join(
        f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW 1 SECOND WITH (connector = 'list');"
        for name in "AB"
    )
    query = f"CREATE SINK Q {MEMORY}; INSERT INTO Q SELECT k, ts FROM A UNION ALL SELECT k, ts FROM B ORDER BY ts"
    run = live(streams + query, ManualClock(start))
    run.push("A", [(2, start)])
    run.push("B", [(1, start - second)])
    run.advance("1 hour")
    assert [row["k"] for row in run.rows()] == [1, 2]


@pytest.mark.parametrize("ets", ["", "ETS NONE"])
def test_latent_tuples_wait_for_nobody_in_order_either(ets: str) -> None:
    run = live(
        f"""
        SET execution.order = 'in-order';
        CREATE STREAM A (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED {ets} WITH (connector = 'list');
        CREATE STREAM B (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE WITH (connector = 'list');
        CREATE STREAM L (k BIGINT) TIMESTAMP LATENT WITH (connector = 'list');
        CREATE SINK Mixed {MEMORY};
        INSERT INTO Mixed SELECT k FROM A UNION ALL SELECT k FROM L UNION ALL SELECT k FROM B;
        """,
        ManualClock(1_700_000_000_000_000),
    )
    run.push("L", [(1,)])
    assert [row["k"] for row in run.rows("Mixed")] == [1]
    run.push("A", [(2, 1_600_000_000_000_000)])
    assert [row["k"] for row in run.rows("Mixed")] == [1]  # B may bring an earlier one
    run.push("B", [(3, 1_600_000_000_000_001)])
    run.push("L", [(4,)])
    assert [row["k"] for row in run.rows("Mixed")] == [1, 2, 4] if ets else [1, 2, 3, 4]  # A may bring an earlier one than 3
    run.end()
    assert sorted(row["k"] for row in run.rows("Mixed")) == [1, 2, 3, 4]


@pytest.mark.parametrize("first", "AB")
@pytest.mark.parametrize("join", ["JOIN", "LEFT SEMI JOIN"])
def test_results_come_in_the_order_of_time(first: str, join: str) -> None:
    """Also where nobody asks for the time of the results."""
    columns = "A.auction" if "SEMI" in join else "A.auction, B.auction AS b"
    run = live(f"""
        SET execution.order = 'in-order';
        CREATE STREAM A (auction BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'list');
        CREATE STREAM B (auction BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'list');
        CREATE SINK Out {MEMORY};
        CREATE SINK Both {MEMORY};
        INSERT INTO Out SELECT {columns} FROM A [RANGE 1 MINUTE] AS A {join} B [NOW] AS B ON A.auction = B.auction;
        INSERT INTO Both SELECT auction FROM (
          SELECT A.auction, A.ts FROM A [RANGE 1 MINUTE] AS A {join} B [NOW] AS B ON A.auction = B.auction
          UNION ALL SELECT auction, ts FROM B WHERE auction > 100) AS u;
    """)
    given = {"A": [*tuples(1, 2, 3), (9, "2026-01-01 12:00:40")], "B": []}
    given["B"] = [(number, f"2026-01-01 12:00:{at}") for number, at in ((3, 10), (2, 11), (1, 12), (8, 41))]
    for stream in (first, "B" if first == "A" else "A"):
        run.push(stream, given[stream])
    run.end()
    by_time = [1, 2, 3] if "SEMI" in join else [3, 2, 1]  # the later of both times
    assert auctions(run, "Out") == auctions(run, "Both") == by_time


def test_windows_come_in_the_order_of_time() -> None:
    query = "SELECT auction, count(*) AS n FROM Bid [RANGE 4 SECONDS SLIDE 1 SECOND] GROUP BY auction"
    run = live(STREAMS + f"CREATE SINK W {MEMORY}; INSERT INTO W {query}")
    run.push("Bid", tuples(1, 2, 3, 4, 5, 9))
    run.end()
    starts = [row["window_start"] for row in run.rows("W")]
    assert starts == sorted(starts)


def test_what_a_change_has_brought_is_seen() -> None:
    """In the answer of a sink in memory, and in the plan."""
    session = ms.Session("local")
    source = ms.testing.ListSource("S", pa.schema([("k", pa.int64())]), ended=False)
    query = session.add_stream("S", source).start()
    query.change(f"CREATE SINK Large {MEMORY}; INSERT INTO Large SELECT k FROM S WHERE k > 1; SET execution.strategy = 'breadth-first'")
    assert "select k > 1" in query.explain("graph") and "BFS-" in query.explain("graph") and "k > 1" in query.explain()
    assert query.to_arrow("large").num_rows == 0
    source.push(pa.RecordBatch.from_pydict({"k": [1, 2]}))
    source.end()
    query.wait()
    assert (query.to_arrow()["k"].to_pylist(), query.to_arrow("Large")["k"].to_pylist()) == ([1, 2], [2])
    with pytest.raises(ms.MillstreamError, match="no sink `Nowhere`"):
        query.to_arrow("Nowhere")


FILES = """
CREATE STREAM S (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = '{place}/in', format = 'csv', watch = true);
CREATE SINK Base WITH (path = '{place}/base', format = 'jsonl');
INSERT INTO Base SELECT k FROM S;
"""


def test_a_sink_that_can_not_be_opened_changes_nothing(place: Path) -> None:
    """And dropped ones let go of their files."""
    session, control, stop = ms.Session("local"), Control(), threading.Event()
    session.sql(FILES.replace("{place}", str(place)))
    ended: list[object] = []
    thread = threading.Thread(target=lambda: ended.append(session.run(stop=stop, control=control)))
    thread.start()
    (place / "bad").mkdir()
    (place / "bad" / "_millstream").write_text("in the way")
    control.ask(f"CREATE SINK Good WITH (path = '{place}/good', format = 'jsonl'); INSERT INTO Good SELECT k FROM S")
    with pytest.raises(ms.MillstreamError, match="sink Bad"):
        control.ask(f"""
            CREATE SINK Fine WITH (path = '{place}/fine', format = 'jsonl'); INSERT INTO Fine SELECT k FROM S;
            CREATE SINK Bad WITH (path = '{place}/bad', format = 'jsonl', mode = 'append'); INSERT INTO Bad SELECT k FROM S;
        """)
    open_files = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        control.ask(f"CREATE SINK X{number} WITH (path = '{place}/x{number}', format = 'jsonl'); INSERT INTO X{number} SELECT k FROM S")
        control.ask(f"DROP QUERY X{number}")
    assert len(os.listdir("/proc/self/fd")) <= open_files
    control.ask("DROP QUERY Good")
    control.ask("INSERT INTO Good SELECT k + 100 AS k FROM S")
    (place / "in" / ".1").write_text("k,ts\n1,2026-01-01 12:00:00\n")
    (place / "in" / ".1").rename(place / "in" / "1.csv")
    until(lambda: any(file.read_text() for file in (place / "good").glob("part-*")))
    stop.set()
    thread.join(30)
    assert ended
    assert [json.loads(file.read_text())["k"] for file in (place / "base").glob("part-*")] == [1]
    assert [json.loads(file.read_text())["k"] for file in (place / "good").glob("part-*") if file.stat().st_size] == [101]


def test_a_socket_is_left_with_its_last_reader(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        session, control, stop = ms.Session("local"), Control(), threading.Event()
        session.sql(FILES.replace("{place}", str(place)))
        thread = threading.Thread(target=lambda: session.run(stop=stop, control=control))
        thread.start()
        port = server.getsockname()[1]
        try:
            control.ask(f"""
                CREATE STREAM N (line STRING) TIMESTAMP LATENT WITH (connector = 'socket', format = 'text', port = {port});
                CREATE SINK Lines WITH (connector = 'memory'); INSERT INTO Lines SELECT line FROM N;
            """)
            server.settimeout(20)
            connection, _ = server.accept()
            with connection:
                connection.settimeout(20)
                control.ask("DROP QUERY Lines")
                assert connection.recv(1) == b""
        finally:
            stop.set()
            thread.join(30)


def test_a_control_directory_that_goes_away_and_files_that_change(place: Path) -> None:
    said: list[str] = []
    control = Control(str(place / "control"), say=said.append)
    (place / "control" / "1.sql").write_text("one")
    taken: list[str] = []

    def serve() -> None:
        control._looked = 0.0
        control.serve(lambda request: bool(taken.append(request.text)) or True)

    serve()
    (place / "control" / "1.sql").write_text("another")
    serve()
    serve()
    shutil.rmtree(place / "control")  # with the outcome that was noted there
    serve()
    serve()
    assert taken == ["one"]
    assert [line.replace(str(place), "") for line in said] == [
        "changed by /control/1.sql",
        "/control/1.sql is another one than was taken before under this name; give it a new name",
        "no changes can be taken from /control: No such file or directory",
    ]


@pytest.mark.slow
def test_what_was_refused_stays_refused_and_variables_stay_as_they_were(
    place: Path, spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the next life of a run: the file that failed could succeed then, and the environment may be another."""
    checkpoint = str(place / "checkpoint")
    monkeypatch.setenv("WHERE_TO", str(place / "sums"))
    (place / "extra").mkdir()
    (place / "control" / "1.sql").write_text("DROP QUERY Sums")
    (place / "control" / "2.sql").write_text(SUMS.replace("{place}/sums", "${WHERE_TO}"))
    (place / "control" / "3.sql").write_text(f"""
        CREATE STREAM Extra (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = '{place}/extra', format = 'csv', watch = true);
        CREATE SINK Extras WITH (connector = 'memory'); INSERT INTO Extras SELECT k FROM Extra;
    """)
    (place / "control" / "4.sql").write_text("DROP QUERY Extras")
    with running(place, "spark", checkpoint, place / "control"):
        minute(place, 0)
        minute(place, 1)
        until(complete(place, "sums", 0))
        until(lambda: (place / "checkpoint/millstream-spool/changes.jsonl").read_text().count("\n") == 4)
        time.sleep(1)
    (place / "extra").rmdir()
    monkeypatch.setenv("WHERE_TO", str(place / "elsewhere"))
    with running(place, "spark", checkpoint, place / "control"):
        minute(place, 2)
        until(complete(place, "sums", 1))
    assert {row[0] for row in told(place, "sums")} == {0, 1}
    assert not (place / "elsewhere").exists()


@pytest.mark.slow
def test_the_only_reader_of_a_stream_is_replaced_on_spark(place: Path, spark: object) -> None:
    """It goes on where it is, and what was promised is known: a tuple of a minute that is over opens no window."""
    with running(place, "spark") as control:
        minute(place, 0)
        minute(place, 1)
        until(complete(place, "counts", 0))
        control.ask("DROP QUERY Counts; INSERT INTO Counts SELECT k, count(*) AS n FROM S [RANGE 1 MINUTE] WHERE v >= 0 GROUP BY k")
        (place / "in" / "0015.csv").write_text("k,v,ts\n0,0,2026-01-01 12:00:30\n")
        minute(place, 2)
        minute(place, 3)
        until(complete(place, "counts", 2))
    assert told(place, "counts") == counts(range(1)) + counts(range(2, 3))


@pytest.mark.slow
def test_operators_keep_their_counts_on_spark(place: Path, spark: object) -> None:
    seen: list[Status] = []
    session = ms.Session("spark", "local[2]")
    session.sql(FILES.replace("{place}", str(place)))
    control, stop = Control(), threading.Event()
    thread = threading.Thread(target=lambda: session.run(stop=stop, control=control, on_status=seen.append))
    thread.start()
    for number in range(2):
        (place / "in" / f"{number}.csv").write_text(f"k,ts\n{number},2026-01-01 12:00:0{number}\n")
        until(lambda number=number: seen and seen[-1].tuples_in.get("S") == number + 1)  # type: ignore[misc]
        control.ask(f"SET execution.limit = {number + 1}")
    until(lambda: max(operator.tuples_in for operator in seen[-1].operators) == 2)
    stop.set()
    thread.join(60)
