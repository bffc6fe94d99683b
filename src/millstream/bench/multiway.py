"""Four streams joined by user, one of which few users are in: one join of Millstream beside three of Spark's own stream-stream joins."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millstream.bench.answer import digest
from millstream.bench.local import START
from millstream.bench.spark import native_session, run_ours, run_theirs
from millstream.bench.tree import sizes
from millstream.core.types import TIMESTAMP

NATIVE_ROWS = 1_000_000
"""What Spark's own joins are given by default: the first minutes, so that they end within minutes."""
BATCH = 250_000
"""Tuples of a micro-batch, on both sides: a file of each stream."""
USERS = 7_000
"""In twenty seconds each of them is three times in each stream."""
FLAGGED = 70
"""Those among them whom an alert may be about."""
SELECTIVE = 0.01
"""The share of alerts among all tuples."""
STREAMS = ("Login", "View", "Cart", "Alert")
TIMES = tuple(f"{stream.lower()}_ts" for stream in STREAMS)
NATIVE = "spark"
CHOICES = {
    "millstream": "",
    "millstream, without feedback": "SET join.feedback = false;",
    "millstream, m-join": "SET join.tree = 'm-join';",
}

STREAM = """
CREATE STREAM {name} (user_id BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = '{folder}/{name}', format = 'parquet');
"""
QUERY = """
SET source.max_files_per_batch = 1;
CREATE SINK Out WITH (path = '{out}', format = 'parquet');
INSERT INTO Out
SELECT L.user_id, L.ts AS login_ts, V.ts AS view_ts, C.ts AS cart_ts, A.ts AS alert_ts
FROM Login [RANGE 10 SECONDS] AS L, View [RANGE 10 SECONDS] AS V, Cart [RANGE 10 SECONDS] AS C, Alert [RANGE 10 SECONDS] AS A
WHERE L.user_id = V.user_id AND V.user_id = C.user_id AND C.user_id = A.user_id;
"""


def prepare(name: str, rows: int, folder: str, native_rows: int | None = None) -> None:
    """Write the streams, `rows` tuples altogether, a file of each for every micro-batch; what comes first once more for Spark's own."""
    batches = max(1, rows // BATCH)
    compared = min(batches, max(1, (native_rows or NATIVE_ROWS) // BATCH))
    size = rows // batches
    random = np.random.default_rng(1)
    for number in range(batches):
        for stream in STREAMS:
            count = round(size * SELECTIVE) if stream == "Alert" else round(size * (1 - SELECTIVE) / 3)
            users = random.integers(0, FLAGGED if stream == "Alert" else USERS, count) * 7_919
            span = size * (1 - SELECTIVE) / 3 * 1000  # microseconds, at a thousand tuples a second
            times = START + np.sort(random.integers(round(number * span), round((number + 1) * span), count))
            table = pa.table({"user_id": users, "ts": pa.array(times).view(TIMESTAMP)})
            for part in ("all", "first") if number < compared else ("all",):
                path = Path(folder) / part / stream / f"{number:05d}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(table, path)
                os.utime(path, (number + 1, number + 1))  # Spark reads files in the order of their age
    until = START + round(compared * size * (1 - SELECTIVE) / 3 * 1000)
    (Path(folder) / "given.json").write_text(json.dumps({"until": until, "size": size}))


def run(name: str, side: str, rows: int, folder: str) -> dict[str, Any]:
    place = Path(folder)
    known = json.loads((place / "given.json").read_text())
    given = place / ("first" if side == NATIVE else "all")
    out, checkpoint = place / f"out-{side}", place / f"checkpoint-{side}"
    found = native(given, str(out), str(checkpoint)) if side == NATIVE else millstream(CHOICES[side], given, str(out), str(checkpoint))
    answer = pq.read_table(out, columns=["user_id", *TIMES])
    whole = {} if side == NATIVE else {"complete": digest(answer)["digest"]}
    full = found["batches"][2:-1] or found["batches"]  # the first micro-batches start workers and compile
    return {
        **found,
        "rows": sum(pq.read_metadata(path).num_rows for path in given.rglob("*.parquet")),
        "steady": known["size"] / median(full),
        "batches": [round(each, 3) for each in found["batches"]],
        "state_written": sum(sizes(str(checkpoint / "state"))),
        **whole,
        **digest(_until(answer, known["until"])),
    }


def _until(answer: pa.Table, until: int) -> pa.Table:
    """The results of tuples that all sides were given."""
    end = pa.scalar(until, pa.int64()).cast(pa.timestamp("us"))
    for name in TIMES:
        column = answer[name].cast(pa.timestamp("us", answer[name].type.tz)).cast(pa.timestamp("us"))
        answer = answer.filter(pc.less(column, end))
    return answer


def millstream(choice: str, given: Path, out: str, checkpoint: str) -> dict[str, Any]:
    streams = "".join(STREAM.format(name=name, folder=given) for name in STREAMS)
    return run_ours(f"{choice} {streams} {QUERY.format(out=out)}", checkpoint)


def native(given: Path, out: str, checkpoint: str) -> dict[str, Any]:
    """As a user of Spark has to write it: each join with all conditions that it can have; after it one time is left to Spark, that of
    the login, and the others are numbers (MULTIPLE_EVENT_TIME_COLUMNS otherwise)."""
    from pyspark.sql import functions as f

    spark = native_session()

    def read(stream: str) -> Any:
        reader = spark.readStream.schema("user_id long, ts timestamp").option("maxFilesPerTrigger", 1)
        return reader.parquet(str(given / stream)).withWatermark("ts", "0 seconds")

    first, *others = STREAMS
    joined = read(first).withColumnRenamed("ts", TIMES[0])
    known: list[str] = []
    for stream, time in zip(others, TIMES[1:], strict=True):
        right = read(stream).withColumnRenamed("user_id", "other_id")
        parts = ["user_id = other_id", f"ts BETWEEN {TIMES[0]} - INTERVAL 10 SECONDS AND {TIMES[0]} + INTERVAL 10 SECONDS"]
        parts += [f"unix_micros(ts) BETWEEN {other} - 10000000 AND {other} + 10000000" for other in known]
        joined = joined.join(right, f.expr(" AND ".join(parts)))
        joined = joined.selectExpr("user_id", TIMES[0], *known, f"unix_micros(ts) AS {time}")
        known.append(time)
    times = [f"timestamp_micros({time}) AS {time}" for time in known]
    return run_theirs(joined.selectExpr("user_id", TIMES[0], *times), out, checkpoint)
