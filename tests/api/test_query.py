"""A query in the background: its answer so far, its metrics, its picture, and its end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import millstream as ms
from millstream.core.types import TIMESTAMP
from millstream.errors import MillstreamWarning

SCHEMA = pa.schema([("k", pa.int64()), ("ts", TIMESTAMP)])


def batch(*rows: tuple[int, int]) -> pa.RecordBatch:
    """(k, seconds)"""
    return pa.RecordBatch.from_arrays(
        [pa.array([k for k, _ in rows], pa.int64()), pa.array([s * 1_000_000 for _, s in rows], TIMESTAMP)], schema=SCHEMA
    )


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_query_that_is_fed_while_it_runs() -> None:
    source = ms.ListSource("S", SCHEMA, ended=False)
    session = ms.Session("local")
    counts = session.add_stream("S", source, time="ts", clauses="ETS NONE").window("1 minute").group_by("k").agg(n="count(*)")
    with counts.start() as query:
        assert (query.ended, query.error) == (False, None)
        source.push(batch((1, 0), (1, 30), (2, 30)))
        until(lambda: query.metrics().tuples_in == {"S": 3})
        assert query.to_arrow().num_rows == 0
        assert query.running
        source.push(batch((1, 61)))
        until(lambda: query.to_arrow().num_rows == 2)
        assert sorted((r["k"], r["n"]) for r in query.to_arrow().to_pylist()) == [(1, 2), (2, 1)]
        query.stop()
        assert not query.running
        assert query.metrics().stopped
        operators = query.metrics().operators
        assert [o.name.split()[0] for o in operators] == ["project", "aggregate", "project"]
        assert [(o.tuples_in, o.tuples_out) for o in operators] == [(4, 4), (4, 2), (2, 2)]
        assert all(f"#{o.number} {o.name}" in query.explain("graph") for o in operators)
    assert (query.ended, query.error) == (False, None)
    assert query.to_arrow().num_rows == 2  # the open window stays open: the stream has not ended
    assert repr(query).startswith("<Query stopped: 4 tuples in, 2 out")


def test_a_query_that_ends_by_itself() -> None:
    session = ms.Session("local")
    rows = [{"k": 1, "ts": 0}, {"k": 1, "ts": 1}]
    query = session.add_stream("S", rows, schema=SCHEMA, time="ts").where("k > 5").start().wait(60)
    assert query.to_arrow().schema == SCHEMA
    assert query.to_arrow().num_rows == 0
    query.stop()  # does no harm
    assert (query.ended, query.error, query.metrics().stopped) == (True, None, False)


def test_a_query_shows_its_dead_letters() -> None:
    session = ms.Session("local")
    rows = [{"k": 1, "ts": 5}, {"k": 1, "ts": 1}, {"k": 2, "ts": None}]
    query = session.add_stream("S", rows, schema=SCHEMA, time="ts").start().wait(60)
    assert repr(query).startswith("<Query ended: 3 tuples in, 1 out, dead letters: 1 late, 1 null-timestamp, ")


def test_a_query_whose_wait_is_interrupted_goes_on() -> None:
    session = ms.Session("local")
    source = ms.ListSource("S", SCHEMA, ended=False)
    query = session.add_stream("S", source, time="ts").start()
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        query.wait(60)
    assert query.running and not query.ended
    source.push(batch((1, 0)))
    source.end()
    assert query.wait(60).to_arrow().num_rows == 1
    assert query.ended


def test_what_goes_wrong_is_raised_where_one_waits() -> None:
    class Broken(ms.ListSource):
        def latest(self, start: object, limit: object) -> dict[str, int]:
            raise ms.errors.SourceProblem("the line is dead")

    session = ms.Session("local")
    query = session.add_stream("S", Broken("S", SCHEMA), time="ts").start()
    for ask in (query.wait, query.to_arrow, query.stop):
        with pytest.raises(ms.MillstreamError, match="the line is dead"):
            ask()
    with pytest.raises(ms.MillstreamError, match="the line is dead"), session.stream("S").start():
        time.sleep(0.1)  # nobody asks
    with session.stream("S").start() as query, pytest.raises(ms.MillstreamError, match="the line is dead"):
        query.wait()
    with pytest.raises(KeyError, match="of the block"), session.stream("S").start():
        raise KeyError("of the block")
    assert repr(query).startswith("<Query failed")
    assert isinstance(query.error, ms.errors.SourceProblem) and not query.ended


def test_a_query_that_is_stopped_when_its_streams_have_ended_has_ended() -> None:
    stop = threading.Event()

    class Last(ms.ListSource):
        def finished(self, position: object) -> bool:
            over = super().finished(position)  # type: ignore[arg-type]
            if over:
                stop.set()
            return over

    session = ms.Session("local")
    stream = session.add_stream("S", Last("S", SCHEMA, [batch((1, 1))]), time="ts")
    stream.insert_into(session.add_sink("Out").name)
    status = session.run(stop=stop)
    assert stop.is_set() and not status.stopped and status.written == {"Out": 1}


def test_plans_and_pictures() -> None:
    session = ms.Session("local")
    handle = session.add_stream("S", ms.ListSource("S", SCHEMA), time="ts").window("1 minute").group_by("k").agg(n="count(*)")
    query = handle.start().wait()
    assert query.explain("graph").startswith("#0 source S")
    assert query.explain() == handle.explain()
    for shown in (query, handle):
        assert (shown._repr_png_() or b"").startswith(b"\x89PNG")
        assert 'src="data:image/png;base64,' in shown._repr_html_()


def test_a_step_that_can_not_run_yet_has_no_picture() -> None:
    session = ms.Session("local")
    one, two = (session.add_stream(name, ms.ListSource(name, SCHEMA), time="ts") for name in ("One", "Two"))
    pairs = one.join(two, on="One.k = Two.k")
    assert pairs._repr_png_() is None
    assert pairs._repr_html_() == "<div>&lt;Stream One: k BIGINT, ts TIMESTAMP, k_1 BIGINT, ts_1 TIMESTAMP&gt;</div>"


def test_dead_letters_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = ms.Session("local")
    stream = session.add_stream("S", [(1, 50_000_000), (2, 0)], schema=SCHEMA, time="ts")
    query = stream.start().wait()
    assert query.to_arrow().num_rows == 1
    assert [(letter.stream, letter.kind) for letter in query.letters] == [("S", "late")]
    assert query.metrics().letters == {"late": 1}
    assert list(tmp_path.iterdir()) == []
    session.set("dead_letters.path", "letters")
    assert stream.start().wait().letters == []
    assert [file.name for file in (tmp_path / "letters").iterdir()] == ["S.jsonl"]


def test_dead_letters_in_memory_stand_in_no_directory_of_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run would write its letters into the working directory, which the stream reads."""
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("k,ts\n1,2026-01-01 12:00:00\n")
    session = ms.Session("local")
    session.sql(
        "CREATE STREAM A (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = '.', format = 'csv');"
        "CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out SELECT k FROM A"
    )
    assert session.stream("A").start().wait().to_arrow().num_rows == 1
    with pytest.raises(ms.MillstreamError, match=r"the dead letters would go to .*; choose another place"):
        session.run()


def test_the_last_dead_letters_of_a_stream_without_end_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.session.session.LETTERS", 10)
    late = batch((0, 50), *((k, 0) for k in range(1, 31)))
    for ended, kept in ((False, 10), (True, 30)):
        session = ms.Session("local")
        with session.add_stream(
            "S", ms.ListSource("S", SCHEMA, [late], ended=ended), time="ts"
        ).start() as query:
            until(lambda query=query: query.metrics().letters == {"late": 30})  # type: ignore[misc]
            assert [letter.line for letter in query.letters] == list(range(32 - kept, 32))


@pytest.mark.slow
def test_on_spark_two_queries_in_one_session(spark: object) -> None:
    session = ms.Session("spark", "local[2]")
    stream = session.add_stream("S", [{"k": i % 3, "ts": i * 1_000_000} for i in range(100)], schema=SCHEMA, time="ts")
    first = stream.window("1 minute").group_by("k").agg(n="count(*)").start()
    second = stream.where("k = 1").start()
    assert sorted(r["n"] for r in first.wait().to_arrow().to_pylist()) == [13, 13, 14, 20, 20, 20]
    assert second.wait().to_arrow().num_rows == 33
    assert second.metrics().tuples_in == {"S": 100}


def test_the_answer_over_a_stream_without_end_keeps_its_last_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.io.memory.KEPT", 10)
    session = ms.Session("local")
    source = ms.ListSource("S", SCHEMA, [batch(*((k, k) for k in range(100)))], ended=False)
    endless = session.add_stream("S", source, time="ts")
    session.add_stream(
        "Bounded", ms.ListSource("Bounded", SCHEMA, [batch(*((k, k) for k in range(100)))]), time="ts"
    )
    bounded = session.stream("Bounded")
    with endless.start() as query, endless.start(limit=30) as more, endless.start(limit=0) as every:
        for each, count in ((query, 10), (more, 30), (every, 100)):
            until(lambda each=each: each.metrics().tuples_out == 100)  # type: ignore[misc]
            said = f"keeps the last {count} rows, {100 - count} older ones are gone"
            with pytest.warns(MillstreamWarning, match=said) if count < 100 else nullcontext():
                assert each.to_arrow()["k"].to_pylist() == list(range(100 - count, 100))
            assert each.metrics().written == {"answer": 100}
        query.change("CREATE SINK Brought WITH (connector = 'memory'); INSERT INTO Brought SELECT k FROM S")
        source.push(batch(*((k, k) for k in range(100, 200))))
        until(lambda: query.metrics().tuples_out == 300)
        with pytest.warns(
            MillstreamWarning, match="sink Brought keeps the last 10 rows, 90 older ones are gone"
        ):
            assert query.to_arrow("Brought").num_rows == 10
    with pytest.warns(MillstreamWarning, match="90 older"):
        assert bounded.start(limit=10).wait().to_arrow().num_rows == 10
    assert bounded.start().wait().to_arrow().num_rows == 100


def test_memory_sinks_of_a_run_keep_the_last_rows_of_streams_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("millstream.io.memory.KEPT", 10)
    session = ms.Session("local")
    for name, ended in (("Endless", False), ("Bounded", True)):
        session.add_stream(
            name, ms.ListSource(name, SCHEMA, [batch(*((k, k) for k in range(100)))], ended=ended), time="ts"
        )
    session.sql(
        "CREATE SINK Last WITH (connector = 'memory'); INSERT INTO Last SELECT k FROM Endless;"
        "CREATE SINK Both WITH (connector = 'memory');"
        "INSERT INTO Both SELECT a.k AS k FROM Bounded [NOW] AS a, Endless [NOW] AS b WHERE a.k = b.k;"
        "CREATE SINK Every WITH (connector = 'memory'); INSERT INTO Every SELECT k FROM Bounded;"
        "CREATE SINK Wanted WITH (connector = 'memory', limit = 20);"
        "INSERT INTO Wanted SELECT k + 1 AS k FROM Bounded;"
    )
    handed = session.add_sink("Handed")
    session.stream("Endless").insert_into("Handed")
    stop = threading.Event()
    status = session.run(stop=stop, on_status=lambda status: stop.set() if status.tuples_out >= 500 else None)
    assert status.written == dict.fromkeys(("Last", "Both", "Every", "Wanted", "Handed"), 100)
    with pytest.warns(MillstreamWarning) as told:
        found = {name: session.to_arrow(name).num_rows for name in status.written}
    assert found == {"Last": 10, "Both": 10, "Every": 100, "Wanted": 20, "Handed": 10}
    assert len(told) == 4 and handed.gone == 90
    source = session.pipeline.catalog.relations.need("Endless").source
    assert ms.testing.run(session, {"Endless": source._batches[0]}).tables["Last"].num_rows == 100
    live = ms.testing.Live(session)
    live.push("Endless", source._batches[0])
    assert len(live.rows("Last")) == 100
    live = ms.testing.Live(session)
    live.change("CREATE SINK Brought WITH (connector = 'memory'); INSERT INTO Brought SELECT k FROM Endless")
    live.push("Endless", source._batches[0])
    assert len(live.rows("Last")) == len(live.rows("Brought")) == 100


def test_a_sink_in_memory_holds_what_the_last_run_wrote() -> None:
    session = ms.Session("local")
    session.add_stream("S", [(1, 1), (2, 2)], schema=SCHEMA, time="ts")
    session.add_sink("Ready")
    session.sql(
        "CREATE SINK Declared WITH (connector = 'memory'); INSERT INTO Declared SELECT k FROM S;"
        "INSERT INTO Ready SELECT k FROM S"
    )
    for _ in range(2):
        session.run()
        assert session.to_arrow("Ready").num_rows == session.to_arrow("Declared").num_rows == 2
    session.sql("DROP QUERY Ready; INSERT INTO Ready SELECT k, ts FROM S")
    session.run()
    assert session.to_arrow("Ready").schema.names == ["k", "ts"]


def test_what_gives_arrow_gives_pandas() -> None:
    session = ms.Session("local")
    stream = session.add_stream("S", [(1, 1), (2, 2)], schema=SCHEMA, time="ts")
    session.add_sink("Ready")
    stream.insert_into("Ready")
    session.run()
    live = ms.testing.Live(session)
    live.push("S", [(1, 1), (2, 2)])
    live.end()
    frames = [
        stream.start().wait().to_pandas(),
        session.to_pandas("Ready"),
        session.pipeline.catalog.sinks.need("Ready").sink.to_pandas(),
        ms.testing.run(session, {"S": [(1, 1), (2, 2)]}).to_pandas(),
        live.to_pandas("Ready"),
    ]
    for frame in frames:
        pd.testing.assert_frame_equal(
            frame,
            pd.DataFrame({"k": [1, 2], "ts": pd.to_datetime([1, 2], unit="us", utc=True).as_unit("us")}),
        )
    assert session.add_stream("Again", frames[0], time="ts").start().wait().to_pandas().equals(frames[0])
