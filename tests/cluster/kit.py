"""Runs `millstream` as a process of its own, on clusters that are started on loopback from the PySpark package."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.cli.kit import plain

SOURCE = Path(__file__).parents[2] / "src"
SPARK = Path(pyspark.__file__).parent
FILES = 8
TEXT = """
CREATE STREAM Bid (auction BIGINT, price DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts SLACK 30 SECONDS
  WITH (connector = 'file', format = 'csv', path = 'bids');
CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = 'out');
SET source.max_files_per_batch = 1;
INSERT INTO Out SELECT auction, count(*) AS n, max(price) AS best FROM Bid [RANGE 1 MINUTE] GROUP BY auction;
"""
EXPECTED = sorted((auction, f"2026-01-01T12:{n:02d}:00.000000Z", 1, n + 2.0) for n in range(FILES) for auction in range(9))


def prepare(place: Path) -> None:
    (place / "bids").mkdir()
    for number in range(FILES):
        rows = [f"{auction},{number + 2}.0,2026-01-01 12:{number:02d}:{10 + auction}" for auction in range(9)]
        (place / "bids" / f"{number}.csv").write_text("\n".join(["auction,price,ts", *rows, ""]))
    (place / "pipeline.sql").write_text(TEXT)


def answer(place: Path) -> list[tuple[int, str, int, float]]:
    rows = [json.loads(line) for file in (place / "out").glob("part-*") for line in file.read_text().splitlines()]
    return sorted((row["auction"], row["window_start"], row["n"], row["best"]) for row in rows)


@dataclass
class Done:
    code: int
    err: str


def ask_to_stop(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


def run(
    place: Path,
    *arguments: str,
    stop_after: int | None = None,
    stop: Callable[[int], None] = ask_to_stop,
    environment: dict[str, str] | None = None,
) -> Done:
    """Run the pipeline of a directory; it is stopped after so many micro-batches."""
    command = [sys.executable, "-m", "millstream.cli", "run", "pipeline.sql", *arguments]
    settings = {**os.environ, "PYTHONPATH": str(SOURCE), **(environment or {})}
    with subprocess.Popen(command, cwd=place, env=settings, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        commits = place / "checkpoint" / "commits"
        while stop_after is not None and process.poll() is None:
            if commits.is_dir() and len(list(commits.iterdir())) >= stop_after:
                stop(process.pid)
                break
            time.sleep(0.02)
        _, err = process.communicate(timeout=240)
        return Done(process.returncode, plain(err))


@contextmanager
def standalone(place: Path, workers: int) -> Iterator[str]:
    """A master and workers of one core and 1 GB, without anything of ours in their environment; yields the master's address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    environment = {k: v for k, v in os.environ.items() if k in ("PATH", "JAVA_HOME", "HOME", "LANG")}
    environment |= {"SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    package = "org.apache.spark.deploy"
    commands = [[f"{package}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    for number in range(workers):
        directory = ["-d", str(place / f"worker-{number}")]
        commands.append([f"{package}.worker.Worker", master, "-c", "1", "-m", "1g", "--host", "127.0.0.1", "--webui-port", "0", *directory])
    started = []
    try:
        for command in commands:
            with (place / "cluster.log").open("ab") as log:
                started.append(subprocess.Popen([str(SPARK / "bin" / "spark-class"), *command], env=environment, stdout=log, stderr=log))
            until = time.monotonic() + 60
            while not answers(port):
                assert time.monotonic() < until, (place / "cluster.log").read_text()[-2000:]
                time.sleep(0.1)
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(60)


def answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    except OSError:
        return False
