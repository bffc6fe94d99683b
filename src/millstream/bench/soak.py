"""A long run on Spark: files arrive without end, memory and state are watched, and the answers are checked against DuckDB."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.bench.tree import memory
from millstream.core.types import TIMESTAMP
from millstream.errors import DataProblem

EVERY = 0.5
"""Seconds between two files of a stream."""
ROWS, KEYS = 4_000, 80_000
SLACK, BACK, LATE = 1_000_000, 20_000_000, 0.0005
"""Tuples are out of order by up to the slack; this share of them comes 20 s too late."""
SAMPLE = 2.0
WARM = 1 / 3
"""The share of the samples that belongs to the warm-up: the JVM's heap and the logs that Spark keeps fill up in it."""
STEADY = 0.05
"""Memory is steady when the line through the samples after the warm-up rises by less than this share of their mean."""

PIPELINE = """\
CREATE STREAM A (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 1 SECOND ETS NONE
  WITH (path = 'in/a', format = 'parquet', watch = true);
CREATE STREAM B (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 1 SECOND ETS NONE
  WITH (path = 'in/b', format = 'parquet', watch = true);
CREATE SINK Pairs WITH (path = 'out/pairs', format = 'parquet');
CREATE SINK Counts WITH (path = 'out/counts', format = 'parquet');
INSERT INTO Pairs SELECT A.k, A.ts AS ats, B.ts AS bts FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k;
INSERT INTO Counts SELECT k % 1000 AS g, count(*) AS n, sum(v) AS total FROM A [RANGE 10 SECONDS] GROUP BY k % 1000;
"""

# Late is what lies before the latest time seen earlier in the stream, less the slack.
ORACLE = """
CREATE VIEW {name} AS SELECT * FROM (
  SELECT *, max(ts) OVER (ORDER BY filename, file_row_number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
  FROM read_parquet('{path}/*.parquet', filename = true, file_row_number = true)
) WHERE latest IS NULL OR ts >= latest - INTERVAL 1 SECOND;
"""
CHECKS = {
    "pairs": """SELECT count(*), coalesce(sum(hash(A.k, A.ts, B.ts)), 0) FROM A JOIN B ON A.k = B.k
                AND B.ts BETWEEN A.ts - INTERVAL 5 SECONDS AND A.ts + INTERVAL 5 SECONDS WHERE A.k >= 0""",
    "counts": """SELECT count(*), coalesce(sum(hash(g, n, total)), 0) FROM (
                   SELECT k % 1000 AS g, count(*) AS n, CAST(sum(v) AS BIGINT) AS total
                   FROM A WHERE k >= 0 GROUP BY k % 1000, epoch_us(ts) // 10000000)""",
}
GIVEN = {
    "pairs": "SELECT count(*), coalesce(sum(hash(k, ats, bts)), 0) FROM read_parquet('{path}/*.parquet') WHERE k >= 0",
    "counts": "SELECT count(*), coalesce(sum(hash(g, n, total)), 0) FROM read_parquet('{path}/*.parquet') WHERE g >= 0",
}


@dataclass(frozen=True)
class Sample:
    """How things were at a moment."""

    seconds: float
    jvm_mb: float
    driver_mb: float
    workers_mb: float
    state_rows: int
    state_mb: float
    batches: int
    batch_seconds: float
    tuples_in: int
    tuples_out: int
    late: int
    checkpoint_files: int
    checkpoint_mb: float

    @property
    def memory_mb(self) -> float:
        return self.jvm_mb + self.driver_mb + self.workers_mb


@dataclass(frozen=True)
class Verdict:
    """What came of it."""

    samples: Sequence[Sample]
    checked: dict[str, int]
    late: int

    def settled(self) -> Sequence[Sample]:
        return self.samples[int(len(self.samples) * WARM) :]

    def growth(self, value: Callable[[Sample], float]) -> float:
        """How much a value rises after the warm-up, as a share of its mean, by the line of least squares."""
        samples = self.settled()
        times, values = np.array([s.seconds for s in samples]), np.array([value(s) for s in samples])
        if len(samples) < 3 or not values.mean():
            return 0.0
        return float(np.polyfit(times, values, 1)[0] * (times[-1] - times[0]) / values.mean())

    @property
    def steady(self) -> bool:
        return self.growth(lambda s: s.memory_mb) < STEADY


def soak(minutes: float, out: str, tell: Callable[[str], None] = lambda line: None, master: str | None = None) -> Verdict:
    """Run for so long; `out` gets the samples as CSV and a picture. Answers that differ from DuckDB's are an error."""
    place = os.path.abspath(out)
    shutil.rmtree(place, ignore_errors=True)
    for name in ("in/a", "in/b"):
        os.makedirs(os.path.join(place, name))
    with open(os.path.join(place, "soak.sql"), "w") as file:
        file.write(PIPELINE)
    command = [sys.executable, "-m", "millstream", "run", "soak.sql", "--checkpoint", "checkpoint", "--metrics", "metrics.jsonl"]
    with open(os.path.join(place, "log.txt"), "w") as log:
        process = subprocess.Popen(command + (["--master", master] if master else []), cwd=place, stdout=log, stderr=log)
        try:
            samples = _run(process, place, minutes * 60, tell)
            process.send_signal(signal.SIGTERM)
            if process.wait(timeout=120):
                raise DataProblem(f"the run did not stop as it should: see {place}/log.txt")
        finally:
            process.kill()
            process.wait()
    verdict = Verdict(samples, *_check(place))
    _write(verdict, place)
    return verdict


def _run(process: subprocess.Popen[bytes], place: str, seconds: float, tell: Callable[[str], None]) -> list[Sample]:
    """Write files at their times, and look every two seconds; at the end let everything that is open close."""
    metrics = Metrics(os.path.join(place, "metrics.jsonl"))
    _wait(process, place, lambda: os.path.exists(os.path.join(place, "out")))
    random = np.random.default_rng(1)
    samples: list[Sample] = []
    began = time.time()
    number = 0
    while (now := time.time() - began) < seconds:
        for stream in ("a", "b"):
            _land(place, stream, number, tuples(random, began + number * EVERY))
        number += 1
        if now >= len(samples) * SAMPLE:
            samples.append(_sample(process.pid, now, metrics.last(), os.path.join(place, "checkpoint")))
            if len(samples) % 15 == 1:
                tell(said(samples[-1]))
        if process.poll() is not None:
            raise DataProblem(f"the run ended by itself: see {place}/log.txt")
        time.sleep(max(0.0, began + number * EVERY - time.time()))
    end = pa.array([int((began + seconds + 3600) * 1e6)]).view(TIMESTAMP)
    for stream in ("a", "b"):
        _land(place, stream, number, pa.table({"k": [-1], "v": [0], "ts": end}))
    _wait(process, place, lambda: sum(metrics.last()["tuples_in"].values()) == 2 * (number * ROWS + 1))
    return samples


def tuples(random: np.random.Generator, until: float) -> pa.Table:
    """What has happened in the half second before a moment, somewhat out of order."""
    times = until * 1e6 - np.linspace(EVERY * 1e6, 0, ROWS) - random.integers(0, SLACK * 9 // 10, ROWS)
    times -= np.where(random.random(ROWS) < LATE, BACK, 0)
    keys, values = random.integers(0, KEYS, ROWS), random.integers(0, 1000, ROWS)
    return pa.table({"k": keys, "v": values, "ts": pa.array(times.astype(np.int64)).view(TIMESTAMP)})


def _land(place: str, stream: str, number: int, table: pa.Table) -> None:
    name = os.path.join(place, "in", stream, f"{number:07d}.parquet")
    pq.write_table(table, name + ".part")
    os.replace(name + ".part", name)


def _wait(process: subprocess.Popen[bytes], place: str, ready: Callable[[], bool], seconds: float = 180) -> None:
    until = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None or time.monotonic() > until:
            raise DataProblem(f"the run {'ended by itself' if process.poll() is not None else 'does not get on'}: see {place}/log.txt")
        time.sleep(0.2)


class Metrics:
    """The newest line of a file that grows."""

    def __init__(self, path: str) -> None:
        self.path, self.at = path, 0
        self.found: dict[str, Any] = {"tuples_in": {}, "tuples_out": 0, "batch": {"seconds": 0.0}, "state_rows": 0, "state_bytes": 0}
        self.found |= {"batches": 0, "late": 0}

    def last(self) -> dict[str, Any]:
        if not os.path.exists(self.path):  # no micro-batch has ended
            return self.found
        with open(self.path, "rb") as file:
            file.seek(self.at)
            text = file.read()
        end = text.rfind(b"\n") + 1
        if end:
            self.at += end
            self.found = json.loads(text[:end].splitlines()[-1])
        return self.found


def _sample(pid: int, seconds: float, told: dict[str, Any], checkpoint: str) -> Sample:
    used = {kind: count / 1e6 for kind, count in memory(pid).items()}
    files = [os.path.join(where, name) for where, _, names in os.walk(checkpoint) for name in names]
    size = sum(os.path.getsize(file) for file in files if os.path.exists(file))
    state = told["state_rows"], told["state_bytes"] / 1e6
    done = told["batches"], told["batch"]["seconds"], sum(told["tuples_in"].values()), told["tuples_out"], told["late"]
    return Sample(seconds, used["jvm"], used["driver"], used["workers"], *state, *done, len(files), size / 1e6)


def said(s: Sample) -> str:
    parts = [f"memory {s.memory_mb:,.0f} MB (JVM {s.jvm_mb:,.0f})", f"state {s.state_rows:,} ({s.state_mb:.1f} MB)"]
    parts += [f"batch {s.batch_seconds:.2f} s", f"in {s.tuples_in:,}"]
    parts += [f"checkpoint {s.checkpoint_files:,} files, {s.checkpoint_mb:,.1f} MB"]
    return f"{s.seconds:.0f} s: " + ", ".join(parts)


def _check(place: str) -> tuple[dict[str, int], int]:
    """Compare with DuckDB over the files that were written: results by sink, and how many tuples were late."""
    import duckdb

    base = duckdb.connect()
    base.execute("SET TimeZone = 'UTC'")
    late = 0
    for name in ("a", "b"):
        path = os.path.join(place, "in", name)
        base.execute(ORACLE.format(name=name.upper(), path=path))
        every = base.execute(f"SELECT count(*) FROM read_parquet('{path}/*.parquet')").fetchone()
        kept = base.execute(f"SELECT count(*) FROM {name.upper()}").fetchone()
        assert every is not None and kept is not None
        late += every[0] - kept[0]
    found = {}
    for sink, query in CHECKS.items():
        expected, given = base.execute(query).fetchone(), base.execute(GIVEN[sink].format(path=os.path.join(place, "out", sink))).fetchone()
        if expected is None or expected != given:
            raise DataProblem(f"sink {sink} differs from DuckDB: (tuples, checksum) is {given}, expected {expected}")
        found[sink] = int(expected[0])
    with open(os.path.join(place, "metrics.jsonl")) as file:
        told = json.loads(file.readlines()[-1])["late"]
    if told != late:
        raise DataProblem(f"{told} tuples were said to be late, {late} are")
    return found, late


def _write(verdict: Verdict, place: str) -> None:
    with open(os.path.join(place, "soak.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Sample)])
        writer.writeheader()
        writer.writerows({name: round(value, 3) for name, value in asdict(s).items()} for s in verdict.samples)
    from millstream.bench.soak_picture import draw

    draw(verdict, os.path.join(place, "soak.png"))


def report(verdict: Verdict, as_json: bool) -> str:
    """What came of it, in three lines or as JSON."""
    last = verdict.samples[-1]
    growth = {
        "memory": verdict.growth(lambda s: s.memory_mb),
        "state": verdict.growth(lambda s: s.state_rows),
        "batch": verdict.growth(lambda s: s.batch_seconds),
        "checkpoint": verdict.growth(lambda s: s.checkpoint_mb),
    }
    if as_json:
        found = {"minutes": round(last.seconds / 60, 1), "tuples": last.tuples_in, "batches": last.batches}
        judged = {"memory_mb": round(last.memory_mb), "steady": verdict.steady, "growth": growth}
        answers = {"answers": verdict.checked, "late": verdict.late}
        return json.dumps({"benchmark": "soak", **found, **judged, **answers}, indent=2)
    answers_as = ", ".join(f"{n:,} {name}" for name, n in {**verdict.checked, "late tuples": verdict.late}.items())
    lines = [f"{last.tuples_in:,} tuples in {last.batches:,} micro-batches; as DuckDB has it: {answers_as}"]
    lines.append("growth after the warm-up: " + ", ".join(f"{name} {value:+.1%}" for name, value in growth.items()))
    lines.append(f"memory is {'steady' if verdict.steady else 'NOT steady'} (less than {STEADY:.0%} is steady)")
    return "\n".join(lines)
