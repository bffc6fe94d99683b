"""Streams of the generator as queries read them, on each runtime, against DuckDB over the same streams."""

from __future__ import annotations

import pyarrow as pa
import pytest

import millstream as ms
from millstream.io import open_source
from millstream.plan.catalog import Stream
from tests.runtimes.case import RUNTIMES
from tests.runtimes.compare import assert_same
from tests.runtimes.oracle import ask

STREAM = """
CREATE STREAM {name} (k BIGINT, v BIGINT, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts {order} PUNCTUATE ON (k) WHEN closed
  WITH (connector = 'generator', pattern = '{pattern}', every = '10 ms', tuples = {tuples}, unit = {unit}, disorder = '{disorder}');
"""
SINKS = "CREATE SINK Pairs WITH (connector = 'memory'); CREATE SINK Groups WITH (connector = 'memory');"
QUERIES = """
INSERT INTO Pairs SELECT A.k, A.v AS a, B.v AS b FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k;
INSERT INTO Groups SELECT k, count(*) AS n, max(v) AS last FROM B GROUP BY k;
"""
ORACLE = {
    "Pairs": "SELECT A.k, A.v AS a, B.v AS b FROM A, B WHERE A.k = B.k AND NOT A.closed AND NOT B.closed "
    "AND A.ts BETWEEN B.ts - INTERVAL 5 SECONDS AND B.ts + INTERVAL 5 SECONDS",
    "Groups": "SELECT k, count(*) AS n, max(v) AS last FROM B WHERE NOT closed GROUP BY k",
}


def finished(stream: Stream) -> pa.Table:
    source = open_source(stream.name, stream.read_schema, stream.options)
    position, batches = source.initial(), []
    while not source.finished(position):
        end = source.latest(position, None)
        batches += [reading.batch for unit in source.units(position, end) for reading in source.read(unit, 1000)]
        position = end
    return pa.Table.from_batches(batches, stream.read_schema)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_two_streams_meet(runtime: str, request: pytest.FixtureRequest) -> None:
    """A pattern in order and one out of order within its slack: no tuple is late, no punctuation is broken."""
    tuples, unit = 6000, 700
    if runtime == "spark":
        request.getfixturevalue("spark")
        tuples, unit = 2000, 500
    session = ms.Session(runtime, *(["local[2]"] if runtime == "spark" else []))
    session.sql(STREAM.format(name="A", order="ORDERED", pattern="punct-asc-30-40", tuples=tuples, unit=unit, disorder="0 s"))
    session.sql(STREAM.format(name="B", order="SLACK 1 SECOND", pattern="punct-random-30-40", tuples=tuples, unit=unit, disorder="1 s"))
    session.sql(SINKS + QUERIES)
    status = session.run()
    assert not sum(status.letters.values())
    tables = {s.name: finished(s) for s in session.pipeline.catalog.relations if isinstance(s, Stream)}
    for sink, query in ORACLE.items():
        rows = session.to_arrow(sink).to_pylist()
        assert len(rows) > 50
        assert_same(rows, ask(query, tables), sink)


def test_by_the_clock_in_one_process() -> None:
    """A stream that follows the clock ends when its last tuple has come, and shows the same tuples."""
    session = ms.Session("local")
    session.sql(
        "CREATE STREAM A (k BIGINT, v BIGINT) TIMESTAMP INTERNAL AS ts"
        " WITH (connector = 'generator', pattern = 'cluster-asc-5', every = '1 ms', tuples = 500, seed = 2, pace = 'clock')"
    )
    session.sql("CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out SELECT k, v FROM A")
    session.run()
    found = session.to_arrow("Out")
    whole = open_source(
        "A",
        pa.schema([("k", pa.int64()), ("v", pa.int64())]),
        {"connector": "generator", "pattern": "cluster-asc-5", "tuples": "500", "seed": "2"},
    )
    [unit] = whole.units(whole.initial(), whole.latest(whole.initial(), None))
    [reading] = whole.read(unit, 1000)
    assert found.to_pylist() == reading.batch.to_pylist()
