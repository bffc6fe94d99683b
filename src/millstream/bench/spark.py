"""Millstream on Spark beside Spark's own operators: the same files, cores, trigger sizes and state store."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millstream.bench.answer import digest
from millstream.bench.local import table
from millstream.bench.tree import sizes

FILE = 250_000
"""Tuples per file."""
BATCH = 1_000_000
"""Tuples per micro-batch, on both sides."""
CLOSING = -1
"""The key of one last tuple, an hour later: Spark's watermark only moves with tuples, and closes nothing at the end of a stream."""

STREAM = """
CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = '{path}', format = 'parquet');
"""
WINDOW = "INSERT INTO Out SELECT k, window_start, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k;"
JOIN = "INSERT INTO Out SELECT A.k, A.ts AS ats, B.ts AS bts FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k;"


def prepare(name: str, rows: int, folder: str) -> None:
    """Write the streams, `rows` tuples altogether, as parquet files in the order of time."""
    for number, stream in enumerate(streams(name), 1):
        given = table(rows // len(streams(name)), number)
        (Path(folder) / stream).mkdir(parents=True)
        closing = pa.table({"k": [CLOSING], "ts": pa.array([given["ts"][-1].value + 3_600_000_000]).view(given["ts"].type)})
        pieces = [given.slice(at, FILE) for at in range(0, given.num_rows, FILE)] + [closing]
        for at, piece in enumerate(pieces):
            pq.write_table(piece, Path(folder) / stream / f"{at:05d}.parquet")
            os.utime(Path(folder) / stream / f"{at:05d}.parquet", (at + 1, at + 1))  # Spark reads files in the order of their age


def streams(name: str) -> tuple[str, ...]:
    return ("A",) if name == "spark-window" else ("A", "B")


def files_per_batch(name: str) -> int:
    return BATCH // FILE // len(streams(name))


def run(name: str, side: str, rows: int, folder: str) -> dict[str, Any]:
    work = millstream if side == "millstream" else native
    out, checkpoint = Path(folder) / f"out-{side}", Path(folder) / f"checkpoint-{side}"
    began = time.perf_counter()
    found = work(name, folder, str(out), str(checkpoint))
    seconds = time.perf_counter() - began
    # The first micro-batches start workers and compile; the last ones hold less than a full load.
    full = found["batches"][2 : rows // BATCH] or found["batches"]
    answer = pq.read_table(out, columns=["k", "window_start", "n"] if name == "spark-window" else ["k", "ats", "bts"])
    answer = answer.filter(pc.not_equal(answer["k"], CLOSING))
    return {
        "seconds": found["seconds"],
        "whole": seconds,
        "steady": min(rows, BATCH) / median(full),
        "batches": [round(s, 3) for s in found["batches"]],
        "state_bytes": found["state_bytes"],
        "state_written": sum(sizes(str(checkpoint / "state"))),
        **digest(answer),
    }


def millstream(name: str, folder: str, out: str, checkpoint: str) -> dict[str, Any]:
    streams_text = "".join(STREAM.format(name=stream, path=Path(folder) / stream) for stream in streams(name))
    sink = f"CREATE SINK Out WITH (path = '{out}', format = 'parquet');"
    query = WINDOW if name == "spark-window" else JOIN
    return run_ours(f"SET source.max_files_per_batch = {files_per_batch(name)}; {streams_text} {sink} {query}", checkpoint)


def run_ours(text: str, checkpoint: str) -> dict[str, Any]:
    """A pipeline on Spark, looked at after each micro-batch."""
    from millstream.pipeline import Pipeline
    from millstream.runtime.launch import Launch
    from millstream.runtime.runs import run_spark
    from millstream.runtime.spark.session import get_session
    from millstream.runtime.status import Status

    pipeline = Pipeline()
    pipeline.add_text(text)
    get_session()
    batches: dict[int, float] = {}
    state = [(0, 0)]

    def look(status: Status) -> None:
        state.append((status.state_rows, status.state_bytes))
        if status.batches:
            batches[status.batches] = status.batch.seconds

    began = time.perf_counter()
    run_spark(Launch.prepare(pipeline, checkpoint), on_status=look)
    return {
        "seconds": time.perf_counter() - began,
        "batches": list(batches.values()),
        "state_tuples": max(held for held, _ in state),
        "state_bytes": max(held for _, held in state),
    }


def native_session() -> Any:
    """Spark as its own operators want it."""
    from pyspark.sql import SparkSession

    from millstream.runtime.spark.session import driver_memory

    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", driver_memory(4))  # twice ours: its rows live in the JVM
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", os.cpu_count() or 2)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.stateStore.providerClass", PROVIDER)
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def native(name: str, folder: str, out: str, checkpoint: str) -> dict[str, Any]:
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    spark = native_session()

    def read(stream: str) -> DataFrame:
        reader = spark.readStream.schema("k long, ts timestamp").option("maxFilesPerTrigger", files_per_batch(name))
        return reader.parquet(str(Path(folder) / stream)).withWatermark("ts", "0 seconds")

    if name == "spark-window":
        counted = read("A").groupBy("k", f.window("ts", "10 seconds").alias("w")).count()
        answer = counted.select("k", f.col("w.start").alias("window_start"), f.col("count").alias("n"))
    else:
        a, b = read("A").alias("a"), read("B").alias("b")
        within = f.expr("a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts + INTERVAL 5 SECONDS")
        answer = a.join(b, within).select(f.col("a.k").alias("k"), f.col("a.ts").alias("ats"), f.col("b.ts").alias("bts"))
    return run_theirs(answer, out, checkpoint)


def run_theirs(answer: Any, out: str, checkpoint: str) -> dict[str, Any]:
    """A query of Spark's own operators, until all files are read."""
    began = time.perf_counter()
    query = answer.writeStream.format("parquet").option("checkpointLocation", checkpoint).trigger(availableNow=True).start(out)
    query.awaitTermination()
    seconds = time.perf_counter() - began
    reports = query.recentProgress
    held = [[sum(s[what] for s in report["stateOperators"]) for what in ("numRowsTotal", "memoryUsedBytes")] for report in reports]
    return {
        "seconds": seconds,
        "batches": [report["durationMs"]["triggerExecution"] / 1000 for report in reports],
        "state_tuples": max(tuples for tuples, _ in held),
        "state_bytes": max(size for _, size in held),
    }


PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
