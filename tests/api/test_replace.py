"""A cell of a notebook may run twice: names are replaced, and the same INSERT is there once."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.errors import MillstreamWarning, NameProblem, PlanProblem
from tests.api.kit import tuples

COLUMNS = "k BIGINT, v DOUBLE, ts TIMESTAMP"
CELL = """
CREATE OR REPLACE STREAM A (k BIGINT, v DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = 'a');
CREATE OR REPLACE TABLE T (k BIGINT, name STRING) WITH (path = 't.csv');
CREATE OR REPLACE VIEW Big AS SELECT k, ts FROM A WHERE v > 100;
CREATE OR REPLACE SINK Out WITH (connector = 'memory');
INSERT INTO Out SELECT Big.k AS k, T.name AS name FROM Big, T WHERE Big.k = T.k;
"""


def session_of(text: str = CELL) -> ms.Session:
    session = ms.Session("local")
    session.sql(text)
    return session


def test_a_cell_that_runs_twice_leaves_what_it_left_once() -> None:
    session = session_of()
    plan = session.explain()
    with pytest.warns(
        MillstreamWarning,
        match="statement 5, line 6, column 1: the same query writes into sink `Out` already",
    ):
        session.sql(CELL)
    assert session.explain() == plan
    assert [query.sink.name for query in session.pipeline.queries] == ["Out"]


def test_queries_read_what_replaced_a_name() -> None:
    session = ms.Session("local")
    session.add_stream("A", tuples((1, 1.0, 0)), schema=COLUMNS, time="ts")
    session.add_table("T", [{"k": 1, "name": "Ada"}])
    session.sql("CREATE VIEW V AS SELECT A.k AS k, v, name FROM A, T WHERE A.k = T.k")
    session.add_sink("Out")
    session.sql("INSERT INTO Out SELECT * FROM V")
    session.add_stream("A", tuples((1, 7.0, 0), (2, 8.0, 1)), schema=COLUMNS, time="ts", replace=True)
    session.add_table("t", [{"k": 1, "name": "Eve"}, {"k": 2, "name": "Bo"}], replace=True)
    session.sql("CREATE OR REPLACE VIEW V AS SELECT A.k AS k, -v AS v, name FROM A, T WHERE A.k = T.k")
    out = session.add_sink("Out", replace=True)
    session.run()
    assert [tuple(row.values()) for row in out.to_arrow().to_pylist()] == [(1, -7.0, "Eve"), (2, -8.0, "Bo")]


def test_what_no_longer_fits_is_named_and_nothing_changes() -> None:
    session = session_of()
    session.sql(
        "CREATE SINK Sums WITH (connector = 'memory');"
        "INSERT INTO Sums SELECT sum(v) AS s FROM A [RANGE 1 MINUTE]"
    )
    plan = session.explain()
    without_v = "STREAM A (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'list')"
    with pytest.raises(PlanProblem) as told:
        session.sql(f"CREATE OR REPLACE {without_v}")
    assert str(told.value).startswith(
        "statement 1, line 1, column 1: `A` is not replaced, because view `Big` and the query into `Out`"
        " and the query into `Sums` would no longer fit: no column `v` in A"
    )
    assert "DROP QUERY" in str(told.value)
    with pytest.raises(PlanProblem, match="because the query into `Out` would no longer fit: no column `k`"):
        session.sql("CREATE OR REPLACE VIEW Big AS SELECT k + 1 AS other, ts FROM A")
    with pytest.raises(PlanProblem, match="`A` is not replaced, because view `Big`"):
        session.add_stream("A", [{"k": 1}], replace=True)
    assert session.explain() == plan
    assert session.stream("A").columns == ["k", "v", "ts"]
    session.sql("DROP QUERY Sums; DROP QUERY Out; CREATE OR REPLACE VIEW Big AS SELECT k, ts FROM A")
    session.sql(f"CREATE OR REPLACE {without_v}")
    assert session.stream("Big").columns == session.stream("A").columns == ["k", "ts"]


def test_queries_into_one_sink_keep_writing_the_same_columns() -> None:
    session = session_of("CREATE STREAM A (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = 'a');")
    session.sql("CREATE VIEW V AS SELECT k FROM A; CREATE SINK Out WITH (connector = 'memory');")
    session.sql("INSERT INTO Out SELECT k FROM V; INSERT INTO Out SELECT k + 1 AS k FROM A;")
    plan = session.explain()
    said = "`V` is not replaced, because the query into `Out` would no longer fit: another query writes other columns"
    with pytest.raises(PlanProblem, match=said):
        session.sql("CREATE OR REPLACE VIEW V AS SELECT CAST(k AS STRING) AS k FROM A")
    assert session.explain() == plan


def test_a_query_that_would_never_answer_no_longer_fits() -> None:
    session = ms.Session("local")
    stream = (
        "STREAM A (k BIGINT, done BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts ORDERED {} WITH (connector = 'list')"
    )
    session.sql(
        f"CREATE {stream.format('PUNCTUATE ON (k) WHEN done')}; CREATE SINK Out WITH (connector = 'memory')"
    )
    session.sql("INSERT INTO Out SELECT k, count(*) AS n FROM A GROUP BY k")
    with pytest.raises(
        PlanProblem, match="the query into `Out` would no longer fit: the groups of this GROUP BY"
    ):
        session.sql(f"CREATE OR REPLACE {stream.format('')}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM Big",
        "SELECT k FROM Bigger",
        "SELECT a.k FROM A [NOW] AS a, (SELECT * FROM Bigger) [NOW] AS b",
    ],
)
def test_a_view_can_not_come_to_read_itself(query: str) -> None:
    session = session_of()
    session.sql("CREATE VIEW Bigger AS SELECT k, ts FROM Big WHERE k > 1000")
    with pytest.raises(PlanProblem, match="line 1, column 1: view `Big` would read itself"):
        session.sql(f"CREATE OR REPLACE VIEW Big AS {query}")


def test_a_name_that_is_there_needs_or_replace() -> None:
    session = session_of()
    for again in (
        lambda: session.sql("CREATE SINK OUT WITH (connector = 'memory')"),
        lambda: session.add_sink("Out"),
        lambda: session.add_stream("Big", [{"k": 1}]),
        lambda: session.add_table("a", [{"k": 1}]),
    ):
        with pytest.raises(
            NameProblem,
            match="is declared twice; choose another name; outside a run CREATE OR REPLACE replaces it",
        ):
            again()


def test_a_new_name_may_be_said_to_replace() -> None:
    session = ms.Session("local")
    session.sql("CREATE OR REPLACE SINK New WITH (connector = 'memory')")
    session.add_stream("A", [{"k": 1}], replace=True)
    assert session.stream("A").columns == ["k"]


def test_the_same_insert_from_a_handle_is_there_once() -> None:
    session = ms.Session("local")
    stream = session.add_stream("A", tuples((1, 1.0, 0), (2, 2.0, 1)), schema=COLUMNS, time="ts")
    session.add_sink("Out")
    session.add_sink("Other")
    stream.where("v > 1").insert_into("Out")
    with pytest.warns(
        MillstreamWarning, match="the same query writes into sink `Out` already, this INSERT changes nothing"
    ) as told:
        stream.where("v > 1").insert_into("Out")
    assert told[0].filename == __file__
    with pytest.warns(MillstreamWarning):
        session.sql("INSERT INTO OUT SELECT * FROM a WHERE v > 1")
    stream.where("v > 1").insert_into("Other")
    stream.where("v > 0").insert_into("Out")
    assert session.run().written == {"Out": 3, "Other": 1}
    session.sql("DROP QUERY Out; INSERT INTO Out SELECT * FROM A WHERE v > 1")
    assert session.run().written == {"Out": 1, "Other": 1}


def test_while_a_run_goes_on_nothing_is_replaced_and_the_same_insert_changes_nothing() -> None:
    session = ms.Session("local")
    session.sql(
        f"CREATE STREAM A ({COLUMNS}) TIMESTAMP BY ts ORDERED WITH (connector = 'list');"
        "CREATE VIEW Big AS SELECT * FROM A; CREATE SINK Out WITH (connector = 'memory');"
        "INSERT INTO Out SELECT k FROM A"
    )
    live = ms.testing.Live(session)
    for statement in (
        "SINK Out WITH (connector = 'memory')",
        "VIEW Big AS SELECT k FROM A",
        "STREAM A (k INT) WITH (connector = 'list')",
        "TABLE New (k INT) WITH (path = 't.csv')",
    ):
        name = statement.split()[1]
        with pytest.raises(
            PlanProblem,
            match=f"line 1, column 1: `{name}` can not be replaced while queries run; choose another name",
        ):
            live.change(f"CREATE OR REPLACE {statement}")
    with pytest.warns(
        MillstreamWarning, match="line 1, column 1: the same query writes into sink `Out` already"
    ):
        live.change("INSERT INTO Out SELECT k FROM A")
    live.push("A", tuples((1, 1.0, 0)))
    assert live.rows("Out") == [{"k": 1}]
    live.change("DROP QUERY Out; INSERT INTO Out SELECT k FROM A")
    live.push("A", tuples((2, 1.0, 1)))
    assert live.rows("Out") == [{"k": 1}, {"k": 2}]


def test_a_sink_that_was_replaced_holds_no_results_of_the_other() -> None:
    session = ms.Session("local")
    session.add_stream("A", tuples((1, 1.0, 0)), schema=COLUMNS, time="ts")
    session.sql("CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out SELECT k FROM A")
    session.run()
    assert session.to_arrow().num_rows == 1
    session.sql("CREATE OR REPLACE SINK Out WITH (connector = 'memory')")
    with pytest.raises(NameProblem, match="sink Out holds nothing in memory; run the session first"):
        session.to_arrow()
    session.run()
    assert session.to_arrow().num_rows == 1


def test_a_cell_with_a_mistake_adds_nothing() -> None:
    """Otherwise the corrected cell would fail at the names of the first attempt."""
    session = session_of()
    before = (repr(session), session.explain())
    cell = "CREATE SINK More WITH (connector = 'memory'); SET execution.batch = 5; DROP QUERY Out;"
    cell += "INSERT INTO More SELECT {} FROM A"
    with pytest.raises(NameProblem, match=r"statement 4, line 1, .*no column `w`"):
        session.sql(cell.format("w"))
    assert (repr(session), session.explain()) == before
    session.sql(cell.format("v"))
    assert repr(session).endswith("; sinks Out, More; 1 query; execution.batch = 5>")
