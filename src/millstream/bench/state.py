"""What a tuple costs while a join holds ever more of them: time, CPU, and bytes written to the state store, on Spark."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.bench import tree
from millstream.bench.local import START
from millstream.core.types import TIMESTAMP
from millstream.pipeline import Pipeline
from millstream.runtime.launch import Launch, Status, run_spark
from millstream.runtime.spark.session import get_session

SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
BATCH = 100_000
"""Tuples of a measured micro-batch, half of them from each stream."""
FILL = 500_000
"""Tuples of a micro-batch that fills the state before."""
MEASURED = 12
WARM = 3

QUERY = """
SET source.max_files_per_batch = 1;
CREATE STREAM A (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = '{folder}/A', format = 'parquet');
CREATE STREAM B (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = '{folder}/B', format = 'parquet');
CREATE SINK Out WITH (path = '{folder}/out', format = 'parquet');
INSERT INTO Out SELECT A.k, A.ts AS ats, B.ts AS bts FROM A [RANGE {range} MILLISECONDS], B [RANGE {range} MILLISECONDS] WHERE A.k = B.k;
"""


@dataclass(frozen=True)
class Point:
    """A join that holds `state` tuples, tuples coming and going at the same rate."""

    state: int
    held: int
    """What it said that it held, in tuples."""
    held_bytes: int
    seconds: float
    """Per micro-batch."""
    wall_ns: float
    """Per tuple, as are the others."""
    cpu_ns: float
    written: float
    memory: int
    results: int


def grow(sizes: tuple[int, ...] = SIZES, tell: Callable[[str], None] = lambda text: None) -> list[Point]:
    """One query per size, all in one session; the first is run once before, for the workers to be warm."""
    get_session()
    _point(sizes[0])
    points = []
    for size in sizes:
        tell(f"{size:,} tuples of state")
        points.append(_point(size))
    return points


def _point(size: int) -> Point:
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        fills = _write(size, folder)
        pipeline = Pipeline()
        pipeline.add_text(QUERY.format(folder=folder, range=size // 2))
        looks: list[tuple[float, float, int, Status]] = []
        state = os.path.join(folder, "checkpoint", "state")

        def look(status: Status) -> None:
            looks.append((time.perf_counter(), tree.cpu(os.getpid()), sum(tree.sizes(state)), status))

        checkpoint = os.path.join(folder, "checkpoint")
        with tree.Watch(os.getpid()) as watch:
            run_spark(Launch.prepare(pipeline, checkpoint), on_status=look)
        measured = looks[fills + WARM - 1 : fills + WARM + MEASURED]
        (_, cpu, written, _), (_, cpu_after, written_after, last) = measured[0], measured[-1]
        tuples = BATCH * (len(measured) - 1)
        seconds = median(status.batch_seconds for *_, status in measured[1:])
        return Point(
            size,
            last.state_rows,
            last.state_bytes,
            seconds,
            mean(status.batch_seconds for *_, status in measured[1:]) / BATCH * 1e9,
            (cpu_after - cpu) / tuples * 1e9,
            (written_after - written) / tuples,
            watch.peak,
            last.tuples_out,
        )


def _write(size: int, folder: str) -> int:
    """The streams: first what fills the state, then what is measured. Returns the number of micro-batches that fill."""
    fill = -(-size * 11 // 10 // FILL) if size > FILL else -(-size // BATCH)
    part = min(FILL, BATCH if size <= FILL else FILL) // 2
    pieces = [part] * fill + [BATCH // 2] * (WARM + MEASURED)
    for seed, name in enumerate("AB"):
        random = np.random.default_rng(seed)
        Path(folder, name).mkdir()
        at = 0
        for number, rows in enumerate(pieces):
            times = START + 1000 * np.arange(at, at + rows, dtype=np.int64)
            # As many keys as tuples of one side: each finds two partners, however large the state.
            keys = random.integers(0, size // 2, rows) * 7_919
            pq.write_table(pa.table({"k": keys, "ts": pa.array(times).view(TIMESTAMP)}), f"{folder}/{name}/{number:05d}.parquet")
            at += rows
    return fill


if __name__ == "__main__":
    chosen = tuple(int(float(text) * 1e6) for text in sys.argv[1:]) or SIZES
    for point in grow(chosen, lambda text: print(text, file=sys.stderr)):
        print(asdict(point))
    shutil.rmtree("spark-warehouse", ignore_errors=True)
