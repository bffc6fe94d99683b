"""Several queries at a time: they read what they share once, and each ends by itself."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import millstream as ms
from millstream.io.contract import Reading, Unit

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
RUNTIMES = ["local", pytest.param("spark", marks=pytest.mark.slow)]


def rows(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values), pa.array([v * 1_000_000 for v in values], SCHEMA.field("ts").type)], schema=SCHEMA)


def until(condition: Callable[[], bool], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_queries_that_run_together_read_a_stream_once(runtime: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if runtime == "spark":
        request.getfixturevalue("spark")
    record = tmp_path / "reads"

    class Counting(ms.ListSource):
        def read(self, unit: Unit, batch_size: int) -> Iterator[Reading]:
            with record.open("a") as file:
                file.write(f"{self.name} {unit.number}\n")
            return super().read(unit, batch_size)

    session = ms.Session(runtime, "local[2]" if runtime == "spark" else None)
    first = session.add_stream("First", Counting("First", SCHEMA, [rows(1, 2), rows(3), rows(4, 5)]), time="ts")
    second = session.add_stream("Second", Counting("Second", SCHEMA, [rows(1, 2, 3)]), time="ts")
    for name in ("Small", "Sums", "Pairs"):
        session.add_sink(name)
    first.where("k < 3").insert_into("Small")
    first.window("1 minute").agg(total="sum(k)").insert_into("Sums")
    first.window("1 minute").join(second.window("1 minute"), on="First.k = Second.k").select(k="First.k").insert_into("Pairs")
    session.run()
    assert sorted(session.to_arrow("Small")["k"].to_pylist()) == [1, 2]
    assert session.to_arrow("Sums")["total"].to_pylist() == [15]
    assert sorted(session.to_arrow("Pairs")["k"].to_pylist()) == [1, 2, 3]
    reads = Counter(record.read_text().splitlines())
    assert reads == dict.fromkeys(["First 0", "First 1", "First 2", "Second 0"], 1)


@pytest.mark.slow
def test_on_spark_one_query_stops_and_the_other_goes_on(spark: object, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    def land(name: str, *values: int) -> None:
        (tmp_path / ".part").write_text("k,ts\n" + "".join(f"{v},2026-01-01 12:00:{v:02d}\n" for v in values))
        (tmp_path / ".part").rename(tmp_path / "in" / name)

    def keys(query: ms.Query) -> list[Any]:
        return sorted(query.to_arrow()["k"].to_pylist())

    session = ms.Session("spark", "local[2]")
    session.sql(
        "CREATE STREAM S (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = '${in}', format = 'csv', watch = true)",
        **{"in": str(tmp_path / "in")},
    )
    odd = session.stream("S").where("k % 2 = 1").start(checkpoint=str(tmp_path / "odd"))
    counts = session.stream("S").window("10 seconds").agg(k="count(*)").start(checkpoint=str(tmp_path / "counts"))
    land("1.csv", 1, 2, 3)
    until(lambda: keys(odd) == [1, 3] and counts.metrics().tuples_in == {"S": 3})
    odd.stop()
    assert not odd.running and odd.metrics().stopped and counts.running
    land("2.csv", 15)
    until(lambda: keys(counts) == [3])
    assert keys(odd) == [1, 3]
    again = session.stream("S").where("k % 2 = 1").start(checkpoint=str(tmp_path / "odd"))
    until(lambda: keys(again) == [15])  # it goes on behind what it had read
    for query in (again, counts):
        query.stop()
        metrics = query.metrics()
        assert sum(metrics.batch.parts.values()) == pytest.approx(metrics.batch.seconds) and metrics.batch.ours > 0
        assert sum(metrics.spent.values()) >= metrics.batch.seconds
        assert metrics.mean_in > 0 and metrics.behind["S"] > 0
    # Of this life of the run: what was read before the restart is not in it. The selection runs where the stream is read.
    select = next(o for o in again.metrics().operators if o.name.startswith("select"))
    assert (select.tuples_in, select.tuples_out, select.selectivity) == (1, 1, 1.0) and select.latency is not None
    aggregate = next(o for o in counts.metrics().operators if o.name.startswith("aggregate"))
    assert (aggregate.tuples_in, aggregate.tuples_out) == (4, 1) and aggregate.busy > 0 and aggregate.punctuations_in > 0
    for checkpoint in ("odd", "counts"):  # the micro-batch in hand was finished
        offsets, commits = ({f.name for f in (tmp_path / checkpoint / kind).iterdir()} for kind in ("offsets", "commits"))
        assert offsets == commits
