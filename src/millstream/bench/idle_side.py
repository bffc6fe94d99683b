"""One side of the idle-partner benchmark in a process of its own: it runs until told to stop, and notes when each window came out."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.io import MemorySink
from millstream.pipeline import Pipeline
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_local, run_spark
from millstream.runtime.spent import begin_of
from millstream.runtime.status import Status

STREAM = "CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH ({options});"
QUERY = """
CREATE SINK Out WITH (connector = 'memory');
SET dead_letters.path = '{place}/letters';
INSERT INTO Out SELECT count(*) AS n FROM (SELECT k, ts FROM Fast UNION ALL SELECT k, ts FROM Slow) AS u [RANGE 1 SECOND];
"""
CORES = 2


class Noted(MemorySink):
    """Notes when results become visible."""

    def __init__(self, name: str, place: Path) -> None:
        super().__init__(name)
        self.place = place
        self.windows: list[tuple[float, int, float]] = []

    def _take(self, batches: list[pa.RecordBatch]) -> None:
        super()._take(batches)
        now = time.time()
        (self.place / "flows").touch()
        for batch in batches:
            self.windows += [(row["window_end"].timestamp(), row["n"], now) for row in batch.to_pylist()]


def _millstream(
    place: Path, options: Callable[[str], str], run: Callable[[Launch, threading.Event, Callable[[Status], None]], object]
) -> dict[str, Any]:
    pipeline = Pipeline()
    pipeline.add_text("".join(STREAM.format(name=name, options=options(name)) for name in ("Fast", "Slow")) + QUERY.format(place=place))
    sink = Noted("Out", place)
    object.__setattr__(pipeline.catalog.sinks.need("Out"), "sink", sink)
    stop = threading.Event()
    threading.Thread(target=_until_stopped, args=(place, stop), daemon=True).start()
    launch = Launch.prepare(pipeline)
    begun: list[float] = []
    _ready(place)
    run(launch, stop, lambda status: begun.append(status.batch.began))
    return {"windows": sink.windows, "batches": sorted(set(begun))}


def on_spark(place: Path) -> dict[str, Any]:
    return _millstream(
        place,
        lambda name: f"path = '{place / name.lower()}', format = 'parquet', watch = true",
        lambda launch, stop, note: run_spark(launch, master=f"local[{CORES}]", stop=stop, on_status=note),
    )


def on_local(place: Path) -> dict[str, Any]:
    ports = json.loads((place / "ports").read_text())
    return _millstream(
        place,
        lambda name: f"connector = 'socket', host = '127.0.0.1', port = {ports[name.lower()]}, format = 'csv'",
        lambda launch, stop, note: run_local(launch, stop=stop),
    )


def native(place: Path, policy: str) -> dict[str, Any]:
    """Spark's own union, watermarks and window count over the same files."""
    from pyspark.sql import DataFrame, functions

    from millstream.runtime.spark.session import get_session

    spark = get_session(f"local[{CORES}]").newSession()
    for key, value in {
        "spark.sql.streaming.multipleWatermarkPolicy": policy,
        "spark.sql.shuffle.partitions": str(CORES),
        "spark.sql.streaming.noDataMicroBatches.enabled": "true",  # without it its results wait for the next input
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
    }.items():
        spark.conf.set(key, value)
    streams = [
        spark.readStream.schema("k bigint, ts timestamp").parquet(str(place / name)).withWatermark("ts", "0 seconds")
        for name in ("fast", "slow")
    ]
    windows: list[tuple[float, int, float]] = []

    def note(frame: DataFrame, epoch: int) -> None:
        rows = frame.select(functions.unix_millis("window.end").alias("end"), "count").collect()
        now = time.time()
        windows.extend((row["end"] / 1000, row["count"], now) for row in rows)
        (place / "flows").touch()  # by the first micro-batch: the first result of `min` takes as long as the silence

    counts = streams[0].union(streams[1]).groupBy(functions.window("ts", "1 second")).count()
    with tempfile.TemporaryDirectory() as checkpoint:
        query = counts.writeStream.foreachBatch(note).outputMode("append").option("checkpointLocation", checkpoint).start()
        _ready(place)
        _until_stopped(place, threading.Event())
        begun = [begin_of(report) for report in query.recentProgress if report["durationMs"].get("addBatch")]
        query.stop()
    return {"windows": windows, "batches": begun}


SIDES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "millstream, spark": on_spark,
    "spark, min": lambda place: native(place, "min"),
    "spark, max": lambda place: native(place, "max"),
    "millstream, local": on_local,
}


def _ready(place: Path) -> None:
    (place / "ready").touch()


def _until_stopped(place: Path, stop: threading.Event) -> None:
    while not (place / "stop").exists():
        time.sleep(0.2)
    stop.set()


if __name__ == "__main__":
    result = SIDES[sys.argv[1]](Path(sys.argv[2]))
    Path(sys.argv[2], "result.json").write_text(json.dumps(result))
