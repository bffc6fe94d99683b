"""The local runtime on one core beside DuckDB over the finished table: a window count and a band join."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.bench.answer import digest
from millstream.core.types import TIMESTAMP
from millstream.io import ListSource, MemorySink
from millstream.pipeline import Pipeline
from millstream.plan.catalog import Stream
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_local

KEYS = 100_000
WARM = 200_000
START = 1_700_000_000_000_000

DECLARE = """
CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
"""
WINDOW = "INSERT INTO Out SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k;"
JOIN = "INSERT INTO Out SELECT A.k, A.ts AS ats, B.ts AS bts FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k;"

DUCK_WINDOW = "SELECT k, count(*) AS n, (epoch_us(ts) // 10000000) AS w FROM A GROUP BY ALL"
DUCK_JOIN = """
SELECT A.k, A.ts AS ats, B.ts AS bts
FROM A JOIN B ON A.k = B.k AND B.ts BETWEEN A.ts - INTERVAL 5 SECONDS AND A.ts + INTERVAL 5 SECONDS
"""
# The same answer with time cut into buckets of the band's width by hand: what an expert would write.
DUCK_JOIN_BUCKETS = """
SELECT A.k, A.ts AS ats, B.ts AS bts
FROM (SELECT *, unnest([epoch_us(ts) // 5000000 - 1, epoch_us(ts) // 5000000, epoch_us(ts) // 5000000 + 1]) AS w FROM A) A
JOIN (SELECT *, epoch_us(ts) // 5000000 AS w FROM B) B ON A.k = B.k AND A.w = B.w
WHERE B.ts BETWEEN A.ts - INTERVAL 5 SECONDS AND A.ts + INTERVAL 5 SECONDS
"""


def table(rows: int, seed: int) -> pa.Table:
    """One tuple a millisecond, keys at random."""
    keys = np.random.default_rng(seed).integers(0, KEYS, rows)
    times = START + 1000 * np.arange(rows, dtype=np.int64)
    return pa.table({"k": keys, "ts": pa.array(times).view(TIMESTAMP)})


def inputs(work: str, rows: int) -> dict[str, pa.Table]:
    """`rows` tuples altogether."""
    if work == "window":
        return {"A": table(rows, 1)}
    return {"A": table(rows // 2, 1), "B": table(rows - rows // 2, 2)}


def millstream(work: str, rows: int) -> dict[str, Any]:
    given = inputs(work, rows)
    pipeline = Pipeline()
    pipeline.add_text("CREATE SINK Out WITH (connector = 'memory');" + "".join(DECLARE.format(name=name) for name in given))
    for stream in list(pipeline.catalog.relations):
        assert isinstance(stream, Stream)
        object.__setattr__(stream, "source", ListSource(stream.name, stream.read_schema, given[stream.name].to_batches()))
    sink = MemorySink("Out")
    object.__setattr__(pipeline.catalog.sinks.need("Out"), "sink", sink)
    pipeline.add_text(WINDOW if work == "window" else JOIN)
    launch = Launch.prepare(pipeline)
    began = time.perf_counter()
    run_local(launch)
    answer = sink.to_arrow()
    seconds = time.perf_counter() - began
    if work == "window":
        answer = answer.append_column("w", pa.array(np.asarray(answer["window_start"].cast(pa.int64())) // 10_000_000))
    return {"seconds": seconds, **digest(answer.select(_columns(work)))}


def duckdb(work: str, rows: int, sql: str) -> dict[str, Any]:
    import duckdb as duck

    connection = duck.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    for name, given in inputs(work, rows).items():
        connection.register("given", given)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")
    began = time.perf_counter()
    answer = connection.sql(sql).to_arrow_table()
    seconds = time.perf_counter() - began
    return {"seconds": seconds, **digest(answer.select(_columns(work)))}


def _columns(work: str) -> list[str]:
    return ["k", "n", "w"] if work == "window" else ["k", "ats", "bts"]


def prepare(name: str, rows: int, folder: str) -> None:
    """Nothing: each side makes its tables in memory."""


def run(name: str, side: str, rows: int, folder: str) -> dict[str, Any]:
    SIDES[name][side](min(WARM, rows))  # compiles kernels, loads libraries
    return SIDES[name][side](rows)


SIDES: dict[str, dict[str, Callable[[int], dict[str, Any]]]] = {
    "local-window": {
        "millstream": lambda rows: millstream("window", rows),
        "duckdb": lambda rows: duckdb("window", rows, DUCK_WINDOW),
    },
    "local-join": {
        "millstream": lambda rows: millstream("join", rows),
        "duckdb": lambda rows: duckdb("join", rows, DUCK_JOIN),
        "duckdb, time buckets by hand": lambda rows: duckdb("join", rows, DUCK_JOIN_BUCKETS),
    },
}
