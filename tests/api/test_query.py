"""A query in the background: its answer so far, its metrics, its picture, and its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import millstream as ms
from millstream.core.types import TIMESTAMP

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
    assert query.to_arrow().num_rows == 2  # the open window stays open: the stream has not ended
    assert repr(query).startswith("<Query ended: 4 tuples in, 2 out")


def test_a_query_that_ends_by_itself() -> None:
    session = ms.Session("local")
    rows = [{"k": 1, "ts": 0}, {"k": 1, "ts": 1}]
    query = session.add_stream("S", rows, schema=SCHEMA, time="ts").where("k > 5").start().wait(60)
    assert query.to_arrow().schema == SCHEMA
    assert query.to_arrow().num_rows == 0
    query.stop()  # does no harm


def test_what_goes_wrong_is_raised_where_one_waits() -> None:
    class Broken(ms.ListSource):
        def latest(self, start: object, limit: object) -> dict[str, int]:
            raise ms.errors.SourceProblem("the line is dead")

    session = ms.Session("local")
    query = session.add_stream("S", Broken("S", SCHEMA), time="ts").start()
    for ask in (query.wait, query.to_arrow, query.stop):
        with pytest.raises(ms.MillstreamError, match="the line is dead"):
            ask()
    assert repr(query).startswith("<Query failed")


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


@pytest.mark.slow
def test_on_spark_two_queries_in_one_session(spark: object) -> None:
    session = ms.Session("spark", "local[2]")
    stream = session.add_stream("S", [{"k": i % 3, "ts": i * 1_000_000} for i in range(100)], schema=SCHEMA, time="ts")
    first = stream.window("1 minute").group_by("k").agg(n="count(*)").start()
    second = stream.where("k = 1").start()
    assert sorted(r["n"] for r in first.wait().to_arrow().to_pylist()) == [13, 13, 14, 20, 20, 20]
    assert second.wait().to_arrow().num_rows == 33
    assert second.metrics().tuples_in == {"S": 100}
