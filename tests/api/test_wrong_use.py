"""Wrong calls of the Python API end in one line where they are made, and none is passed over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

import millstream as ms
from millstream.errors import NameProblem, PlanProblem, SetupProblem, SinkProblem, SourceProblem, TypeProblem
from tests.api.kit import new_session, tuples


def _without_sinks() -> ms.StreamHandle:
    return ms.Session("local").add_stream("S", [{"k": 1}])


TEXT = "a condition, column or window is a text, not a value of type "
CALLS: dict[str, tuple[Callable[[ms.Session], object], type[ms.MillstreamError], str]] = {
    "where": (lambda s: s.stream("A").where(None), TypeProblem, TEXT + "NoneType"),
    "select": (lambda s: s.stream("A").select(k=1), TypeProblem, TEXT + "int"),
    "on": (lambda s: s.stream("A").join(s.stream("B"), on=["k"]), TypeProblem, TEXT + "list"),
    "on a name": (
        lambda s: s.stream("A").window("1 s").join(s.stream("B").window("1 s"), on="k"),
        PlanProblem,
        "on takes a condition, and `k` is a column of both sides; write on='A.k = B.k'",
    ),
    "slack": (
        lambda s: s.add_stream("N", [{"k": 1, "ts": 0}], schema="k INT, ts TIMESTAMP", time="ts", slack=timedelta(seconds=30)),
        TypeProblem,
        "stream N: slack is a text, not a value of type timedelta; write a number and a unit: 30 seconds",
    ),
    "clauses": (
        lambda s: s.add_stream("N", [{"k": 1}], schema="k INT", clauses=["UNIQUE (k)"]),
        TypeProblem,
        "stream N: clauses is a text, not a value of type list; write them one after the other: UNIQUE (k) CHECK (k > 0)",
    ),
    "join": (lambda s: s.stream("A").join("B"), TypeProblem, "a handle is needed, not a value of type str; write session.stream("),
    "union": (lambda s: s.stream("A").union("B"), TypeProblem, "a handle is needed, not a value of type str; write session.stream("),
    "window": (lambda s: s.stream("A").window(timedelta(1)), TypeProblem, "the length of a window is a text, not a value of type"),
    "slide": (lambda s: s.stream("A").window("1 s", timedelta(1)), TypeProblem, "the slide of a window is a text, not a value of type"),
    "alias": (lambda s: s.stream("A").alias(None), TypeProblem, "an alias is a text, not a value of type NoneType"),
    "no alias": (lambda s: s.stream("A").alias(""), PlanProblem, "an alias is empty; give it a name"),
    "order": (lambda s: s.stream("A").order_by(), PlanProblem, "order_by has no column; name a progressing time"),
    "more order": (lambda s: s.stream("A").order_by("ts LIMIT 5"), PlanProblem, "`ts LIMIT 5` is more than a column and its direction"),
    "sink": (
        lambda s: s.stream("A").insert_into(s.add_sink("P")),
        TypeProblem,
        "the name of a sink is a text, not a value of type MemorySink; insert_into('Out') takes the name",
    ),
    "stream": (lambda s: s.stream(s.stream("A")), TypeProblem, "the name of a stream is a text, not a value of type StreamHandle"),
    "setting": (lambda s: s.set(5, 5), TypeProblem, "the name of a setting is a text, not a value of type int"),
    "sql": (lambda s: s.sql(None), TypeProblem, "SQL is a text, not a value of type NoneType"),
    "file": (lambda s: s.sql(Path("a.sql")), TypeProblem, "sql takes the text of a file, not its name; write sql(path.read_text())"),
    "table": (lambda s: s.stream("T").start(), PlanProblem, "a query must read FROM a stream; a table alone has no progress"),
    "explained table": (lambda s: s.sql("EXPLAIN SELECT k FROM T"), PlanProblem, "statement 1, line 1, column 16: a query must read FROM"),
    "form": (lambda s: s.stream("A").explain("grap"), NameProblem, "no form of a plan `grap`; did you mean `graph`?"),
    "form of all": (lambda s: s.explain(None), NameProblem, "no form of a plan `None`; there is `logical`, `graph`, `spark`"),
    "checkpoint": (lambda s: s.stream("A").start(checkpoint="c"), SetupProblem, "the local runtime has no checkpoint; use ms.Session("),
    "runs": (lambda s: s.run(checkpoint="c"), SetupProblem, "the local runtime has no checkpoint; use ms.Session("),
    "limit": (lambda s: s.stream("A").start(limit="many"), SinkProblem, "sink answer: `limit` is 'many'; give a number of rows"),
    "runtime": (lambda s: ms.Session(None), NameProblem, "no runtime `None`; there is `spark`, `local`"),
    "name": (lambda s: s.add_sink("P", ms.MemorySink("Q")), SinkProblem, "sink P: the name of its object is Q; name both alike"),
    "no name": (lambda s: s.add_sink(""), NameProblem, "the name of a sink is empty; give it a name"),
    "sessions": (
        lambda s: s.stream("A").join(new_session().stream("B"), on="A.k = B.k"),
        PlanProblem,
        "`A` and `B` are of two sessions; declare both streams in one",
    ),
    "variable": (lambda s: s.sql("SELECT * FROM A WHERE k > ${n}"), NameProblem, "statement 1, line 1, column 27: no value for"),
    "no sink": (lambda s: ms.Session("local").to_arrow(), NameProblem, "there are 0 sinks; declare one with add_sink(name)"),
    "unknown sink": (lambda s: _without_sinks().insert_into("P"), NameProblem, "no sink `P`; no sink is declared yet"),
    "two sinks": (lambda s: (s.add_sink("P"), s.to_arrow()), NameProblem, "there are 2 sinks; say which with to_arrow(name): Out, P"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_one_line(name: str) -> None:
    call, kind, message = CALLS[name]
    session = new_session()
    session.stream("A").select("k").insert_into("Out")
    with pytest.raises(kind) as told:
        call(session)
    assert str(told.value).startswith(message)


def test_nothing_of_spark_is_given_to_the_local_runtime() -> None:
    for given in ({"master": "local[2]"}, {"config": {"spark.ui.enabled": "true"}}):
        with pytest.raises(SetupProblem, match="the local runtime has no master and no settings of Spark"):
            ms.Session("local", **given)  # type: ignore[arg-type]


def test_a_change_is_a_text() -> None:
    session = ms.Session("local")
    source = ms.ListSource("S", session.add_stream("Like", [{"k": 1}]).schema, ended=False)
    with session.add_stream("S", source).start() as query, pytest.raises(TypeProblem, match="a change is a text, not a value of type"):
        query.change(None)  # type: ignore[arg-type]


def test_a_sink_takes_one_set_of_columns() -> None:
    """A cell that was changed and runs again is refused before the session can no longer run."""
    session = ms.Session("local")
    session.add_stream("A", tuples((1, 1.0, 0)), schema="k BIGINT, v DOUBLE, ts TIMESTAMP", time="ts")
    session.add_sink("Out")
    session.sql("INSERT INTO Out SELECT k FROM A")
    with pytest.raises(PlanProblem) as told:
        session.sql("INSERT INTO Out SELECT k, v FROM A")
    said = "statement 1, line 1, column 1: another query writes other columns into sink `Out`; write DROP QUERY Out before"
    assert str(told.value).startswith(said)
    assert session.run().written == {"Out": 1}
    session.sql("DROP QUERY Out; INSERT INTO Out SELECT k, v FROM A")
    session.run()
    assert session.to_arrow().to_pylist() == [{"k": 1, "v": 1.0}]


def test_spellings_that_work() -> None:
    session = new_session()
    a, b = session.stream("A").window("1 s"), session.stream("B").window("1 s")
    assert a.join(b, on="A.k = B.k", how="LEFT").explain() == a.join(b, on="A.k = B.k", how="left").explain()
    assert session.stream("A").explain("GRAPH") == session.stream("A").explain("graph")
    by_sql = session.sql("SELECT * FROM A ORDER BY ts, v DESC, k NULLS LAST")
    assert isinstance(by_sql, ms.StreamHandle)
    for handle in (session.stream("A").order_by("ts", "v DESC", "k NULLS LAST"), session.stream("A").order_by("ts, v DESC, k NULLS LAST")):
        assert handle._bound() == by_sql._bound()


def test_a_list_that_is_fed_is_refused_on_spark_before_spark_starts() -> None:
    """Processes of Spark have a copy, and would wait for its end for ever."""
    session = ms.Session("spark")
    source = ms.ListSource("S", session.add_stream("Like", [{"k": 1}]).schema, ended=False)
    stream = session.add_stream("S", source)
    session.add_sink("Out")
    stream.insert_into("Out")
    said = r"stream S is fed while it runs, which processes of Spark do not see; use ms.Session\('local'\)"
    for run in (stream.start, session.run):
        with pytest.raises(SourceProblem, match=said):
            run()
    source.end()
    session.prepare().close()


def test_a_sink_that_does_not_pickle_is_named() -> None:
    from millstream.runtime.spark.wire import Shipment

    class Locked(ms.MemorySink):
        def __getstate__(self) -> dict[str, object]:
            return {"lock": threading.Lock()}

    session = ms.Session("spark")
    session.add_stream("S", [{"k": 1}]).insert_into(session.add_sink("P", Locked("P")).name)
    launch = session.prepare()
    program = SimpleNamespace(sources=tuple(launch.sources.items()), sinks=tuple(launch.sinks))
    with pytest.raises(
        SetupProblem,
        match="sink P can not be sent to processes of Spark: cannot pickle",
    ):
        Shipment.pack(program, "run")  # type: ignore[arg-type]
    program.sinks = ()
    assert Shipment.pack(program, "run").data  # type: ignore[arg-type]
    program.sources = (("S", threading.Lock()),)
    with pytest.raises(SetupProblem, match="the source of stream S can not be sent to processes of Spark"):
        Shipment.pack(program, "run")  # type: ignore[arg-type]
