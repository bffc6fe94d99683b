"""What a tuple costs while a join holds ever more of them: time, CPU, and bytes written to the state store, on Spark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.bench import tree
from millstream.bench.local import START
from millstream.core.types import TIMESTAMP
from millstream.pipeline import Pipeline
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_spark
from millstream.runtime.spark.session import get_session
from millstream.runtime.spent import STATE, WORK
from millstream.runtime.status import Status

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
    """A join that holds `state` tuples while tuples come and go at the same rate. Times are nanoseconds per tuple."""

    state: int
    held_bytes: int
    wall: float
    """Of the whole micro-batch, Spark's part included."""
    work: float
    """Of the busiest worker: the join itself."""
    keep: float
    """The same, for taking the state up and writing its changes."""
    cpu: float
    """Of all processes."""
    written: float
    """Bytes in the state store's files."""
    memory: int
    """Bytes, all processes, at most."""


def grow(sizes: tuple[int, ...] = SIZES, repeats: int = 1, tell: Callable[[str], None] = lambda text: None) -> list[list[Point]]:
    """One query per size, all in one session, several times; the first is run once before, for the workers to be warm."""
    get_session()
    _point(sizes[0])
    runs = []
    for number in range(repeats):
        points = []
        for size in sizes:
            tell(f"run {number + 1} of {repeats}: {size:,} tuples of state")
            points.append(_point(size))
        runs.append(points)
    return runs


def _point(size: int) -> Point:
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        fills = _write(size, folder)
        pipeline = Pipeline()
        pipeline.add_text(QUERY.format(folder=folder, range=size // 2))
        checkpoint = os.path.join(folder, "checkpoint")
        looks: dict[int, Look] = {}

        def look(status: Status) -> None:
            if status.batches not in looks:
                written = sum(tree.sizes(os.path.join(checkpoint, "state")))
                looks[status.batches] = Look(status, tree.cpu(os.getpid()), written)

        with tree.Watch(os.getpid()) as watch:
            run_spark(Launch.prepare(pipeline, checkpoint), on_status=look)
        measured = [looks[number] for number in range(fills + WARM, fills + WARM + MEASURED + 1)]
        first, last = measured[0], measured[-1]
        tuples = BATCH * MEASURED
        batches = [each.status.batch for each in measured[1:]]
        return Point(
            size,
            last.status.state_bytes,
            mean(batch.seconds for batch in batches) / BATCH * 1e9,
            mean(batch.parts[WORK] for batch in batches) / BATCH * 1e9,
            mean(batch.parts[STATE] for batch in batches) / BATCH * 1e9,
            (last.cpu - first.cpu) / tuples * 1e9,
            (last.written - first.written) / tuples,
            watch.peak,
        )


class Look(NamedTuple):
    """What was seen when a micro-batch had ended."""

    status: Status
    cpu: float
    written: int


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
