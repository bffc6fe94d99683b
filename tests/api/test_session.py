"""A session takes statements, streams from memory and sinks, and runs what it was told."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import millstream as ms
from tests.api.kit import new_session, tuples


def test_statements_and_variables(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,ts\n1,2026-01-01 12:00:00\n2,2026-01-01 12:00:01\n")
    session = ms.Session("local")
    added = session.sql(
        """
        CREATE STREAM A (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = '${at}/a.csv');
        CREATE SINK Out WITH (connector = 'memory');
        INSERT INTO Out SELECT k FROM A WHERE k > ${least};
        """,
        at=tmp_path,
        least=1,
    )
    assert added is None
    status = session.run()
    assert (status.tuples_in, status.written) == ({"A": 2}, {"Out": 1})
    assert session.to_arrow("out").to_pylist() == [{"k": 2}]


def test_explain_comes_back_as_text() -> None:
    session = new_session()
    plan = session.sql("EXPLAIN GRAPH SELECT k FROM A; EXPLAIN INSERT INTO Out SELECT v FROM B")
    assert isinstance(plan, str)
    assert plan.startswith("#0 source A")
    assert "insert into Out (v)" in plan
    assert repr(plan) == str(plan)
    assert session.pipeline.queries == []


def test_a_query_alone_is_a_handle() -> None:
    session = new_session()
    handle = session.sql("-- the dear ones\nSELECT k FROM A WHERE v > ${least}", least=3)
    assert isinstance(handle, ms.StreamHandle)
    assert "filter v > 3" in handle.explain()


def test_streams_tables_and_sinks_from_memory() -> None:
    session = ms.Session("local")
    people = session.add_table("People", pa.table({"k": [1, 2], "name": ["Ada", "Bo"]}))
    assert people.columns == ["k", "name"]
    seen = session.add_stream(
        "Seen", tuples((1, 1.0, 3), (2, 2.0, 1), (1, 3.0, 70)), schema="k BIGINT, v DOUBLE, ts TIMESTAMP", time="ts", slack="2 s"
    )
    out = session.add_sink("Out")
    seen.join(people, on="Seen.k = People.k").select("Seen.ts", "People.name", "Seen.v").insert_into("Out")
    assert session.run().tuples_out == 3
    assert [(row["name"], row["v"]) for row in out.to_arrow().to_pylist()] == [("Ada", 1.0), ("Bo", 2.0), ("Ada", 3.0)]
    assert session.to_arrow("Out").num_rows == 3


def test_an_arrow_table_brings_its_columns() -> None:
    session = ms.Session("local")
    times = pa.array([0, 61], pa.timestamp("s"))
    table = pa.table({"k": pa.array([1, 1], pa.uint32()), "name": pa.array(["x", "y"]).dictionary_encode(), "ts": times})
    stream = session.add_stream("S", table, time="ts")
    assert repr(stream) == "<Stream S: k BIGINT, name STRING, ts TIMESTAMP>"
    rows = stream.window("1 minute").group_by("k").agg(n="count(*)").start().wait().to_arrow().to_pylist()
    assert [row["n"] for row in rows] == [1, 1]


def test_a_handle_says_what_it_is() -> None:
    session = ms.Session("local")
    people = session.add_table("People", [{"k": 1, "name": "Ada"}])
    seen = session.add_stream("Seen", [{"k": 1}])
    assert repr(people) == "<Table People: k BIGINT, name STRING>"
    assert repr(people.alias("P")) == "<Table P: k BIGINT, name STRING>"
    assert repr(seen.join(people, on="Seen.k = People.k").select("name")) == "<Stream Seen: name STRING>"


def test_further_clauses() -> None:
    session = ms.Session("local")
    rows = [{"k": 1, "done": False}, {"k": 1, "done": True}, {"k": 2, "done": False}]
    stream = session.add_stream("S", rows, clauses="TIMESTAMP INTERNAL AS ts PUNCTUATE ON (k) WHEN done")
    table = stream.group_by("k").agg(n="count(*)").start().wait().to_arrow()
    assert sorted(map(tuple, (row.values() for row in table.to_pylist()))) == [(1, 1), (2, 1)]


def test_memory_is_only_where_it_is() -> None:
    session = new_session()
    with pytest.raises(ms.MillstreamError, match="sink Out holds nothing in memory; run the session first"):
        session.to_arrow("Out")
    with pytest.raises(ms.MillstreamError, match="no query to run"):
        session.run()


def test_wrong_runtime() -> None:
    with pytest.raises(ms.MillstreamError, match="no runtime `flink`; there is `spark`, `local`"):
        ms.Session("flink")


def test_a_session_shows_what_it_holds() -> None:
    assert repr(ms.Session()) == "<Session spark: empty>"
    session = new_session()
    session.set("execution.batch", 7)
    session.sql("INSERT INTO Out SELECT k FROM Big")
    shown = "streams A, B, C; table T; view Big; sink Out; 1 query; execution.batch = 7"
    assert repr(session) == f"<Session local: {shown}>"
    for number in range(5):
        session.add_stream(f"S{number}", [{"k": 1}]).insert_into("Out")
    assert repr(session).startswith(
        "<Session local: streams A, B, C, S0, S1, S2 and 2 more; table T; view Big; sink Out; 6 queries; "
    )


def test_settings() -> None:
    session = new_session()
    session.set("execution.batch", 7)
    assert session.pipeline.settings.get("execution.batch") == 7
    with pytest.raises(ms.MillstreamError, match=r"did you mean `execution\.batch`"):
        session.set("execution.bach", 7)


@pytest.mark.parametrize("value", ["10", "ten seconds", "10 secs ago", "-5 seconds"])
def test_an_interval_is_a_length_of_time(value: str) -> None:
    with pytest.raises(ms.MillstreamError, match=r"execution\.interval takes a length of time"):
        new_session().sql(f"SET execution.interval = '{value}'")


def test_a_length_of_time_without_a_unit_is_told_as_such() -> None:
    with pytest.raises(ms.MillstreamError, match="`10` has no unit of time; write a number and a unit"):
        new_session().sql("SET execution.interval = '10'")


def test_a_run_in_one_process_says_that_an_interval_has_no_effect() -> None:
    useless = "execution.interval has no effect: a run in one process has no micro-batches"
    for interval, remarks in (("0 seconds", []), ("10 seconds", [useless])):
        session = ms.Session("local")
        session.add_stream(
            "S", tuples((1, 2.0, 3)), schema="k BIGINT, v DOUBLE, ts TIMESTAMP", time="ts", slack="0 seconds"
        )
        session.add_sink("Sums")
        session.sql(f"SET execution.interval = '{interval}'; INSERT INTO Sums SELECT k FROM S;")
        assert session.run().remarks == remarks


def test_columns_of_an_answer_differ_by_more_than_their_case() -> None:
    session = new_session()
    session.sql("CREATE VIEW W AS SELECT k, v AS K, k AS k_1, ts FROM A")
    assert session.stream("W").columns == ["k", "K_1", "k_1_1", "ts"]
    counted = session.sql("SELECT k AS Window_Start, count(*) AS n FROM A [RANGE 1 SECOND] GROUP BY k")
    assert counted.columns == ["Window_Start", "n", "window_start_1", "window_end"]
