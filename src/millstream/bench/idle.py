"""A fast stream and a nearly silent one in real time: how long after a window's end its result comes, and what is lost."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.bench import tree
from millstream.bench.idle_side import SIDES
from millstream.core.types import TIMESTAMP
from millstream.errors import DataProblem

RATE = 2000
"""Tuples a second of the fast stream."""
SILENCE = 20
"""Seconds between two tuples of the slow stream."""
WARM = 5
"""Seconds from the first result to the first window that counts: the first micro-batches start workers and compile."""
PATIENCE = 120
"""Seconds to wait for the first result."""
GRACE = 5
"""Seconds after the last tuple, before one more in each stream frees what still waits."""
REST = 20
"""Seconds without any input, in which the processes should do nothing."""


@dataclass(frozen=True)
class Outcome:
    """What one side showed."""

    side: str
    delays: tuple[tuple[float, float, int], ...]
    """For each window: its end in seconds after the first, seconds until its result, and micro-batches begun until then."""
    lost: int
    """Tuples that no result counts."""
    tuples: int
    idle_cpu: float
    """Share of one core that all its processes take while nothing arrives."""
    idle_batches: int

    @property
    def seconds(self) -> tuple[float, float]:
        """Median and worst."""
        found = [delay for _, delay, _ in self.delays] or [float("nan")]
        return median(found), max(found)

    @property
    def batches(self) -> tuple[float, int]:
        found = [count for _, _, count in self.delays] or [0]
        return median(found), max(found)


class Feed(Protocol):
    """How tuples reach a side."""

    step: float
    """Seconds between two deliveries of the fast stream."""
    age: float
    """Seconds that tuples of the slow stream are under way."""

    def put(self, stream: str, times: Any) -> None: ...

    def close(self) -> None: ...


@dataclass
class Files:
    """Parquet files that appear whole: what Spark's own source needs."""

    place: Path
    step: float = 0.2
    age: float = 0.1
    count: int = 0

    def __post_init__(self) -> None:
        for name in ("fast", "slow"):
            (self.place / name).mkdir()

    def put(self, stream: str, times: Any) -> None:
        table = pa.table({"k": np.arange(len(times)), "ts": pa.array(times).view(TIMESTAMP)})
        written = self.place / f"{stream}.writing"
        pq.write_table(table, written)
        os.replace(written, self.place / stream / f"{self.count:08d}.parquet")
        self.count += 1

    def close(self) -> None: ...


@dataclass
class Sockets:
    """Lines, a few every 5 ms."""

    place: Path
    step: float = 0.005
    age: float = 0.002
    servers: dict[str, socket.socket] = field(default_factory=dict)
    peers: dict[str, socket.socket] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.servers = {name: socket.create_server(("127.0.0.1", 0)) for name in ("fast", "slow")}
        (self.place / "ports").write_text(json.dumps({name: server.getsockname()[1] for name, server in self.servers.items()}))

    def put(self, stream: str, times: Any) -> None:
        if stream not in self.peers:
            self.peers[stream], _ = self.servers[stream].accept()
        shown = np.datetime_as_string(np.asarray(times).astype("datetime64[us]"))
        self.peers[stream].sendall("".join(f"{k},{ts}Z\n" for k, ts in enumerate(shown)).encode())

    def close(self) -> None:
        for each in (*self.peers.values(), *self.servers.values()):
            each.close()


def measure(seconds: int = 60, sides: tuple[str, ...] = tuple(SIDES), tell: Callable[[str], None] = lambda text: None) -> list[Outcome]:
    """Every side in turn, in a process of its own, over a feed of its own that follows the clock."""
    outcomes = []
    for side in sides:
        tell(f"{side}: {seconds} s of tuples, {REST} s of silence")
        outcomes.append(_measure(side, seconds))
    return outcomes


def _measure(side: str, seconds: int) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="millstream-idle-") as directory:
        place = Path(directory)
        feed: Feed = Sockets(place) if side == "millstream, local" else Files(place)
        with open(place / "said", "w") as said:
            process = subprocess.Popen([sys.executable, "-m", "millstream.bench.idle_side", side, directory], stdout=said, stderr=said)
        try:
            _wait(process, place, "ready")
            begin, fast, slow = _play(feed, place / "flows", seconds)
            time.sleep(GRACE)
            for stream in ("fast", "slow"):
                feed.put(stream, np.array([int(time.time() * 1e6)]))
            time.sleep(GRACE)
            began = time.time()
            cpu = tree.cpu_during(process.pid, REST) / REST
            ended = time.time()
            (place / "stop").touch()
            _wait(process, place, "result.json")
            process.wait(60)
            result = json.loads((place / "result.json").read_text())
        finally:
            feed.close()
            process.kill()
        idle = sum(began < at < ended for at in result["batches"])
        return _judge(side, result, fast, slow, begin, seconds, cpu, idle)


def _wait(process: subprocess.Popen[bytes], place: Path, name: str) -> None:
    while not (place / name).exists():
        if process.poll() is not None and not (place / name).exists():
            last = ((place / "said").read_text().strip().splitlines() or ["no message"])[-1]
            raise DataProblem(f"spark-idle: a side failed: {last}", hint="the benchmark needs Java and DuckDB: install millstream[dev]")
        time.sleep(0.05)


def _play(feed: Feed, flows: Path, seconds: int) -> tuple[int, Any, Any]:
    """Feed both streams by the clock. When the windows that count begin (in seconds), and all times there were (in microseconds).

    Each tuple of the slow stream has a time shortly before a window's end, and arrives after it.
    """
    first = int(time.time()) + 2
    every, step = 1_000_000 // RATE, round(feed.step * 1e6)
    fast: list[Any] = []
    slow: list[int] = []
    begin, late = first + PATIENCE, first * 1_000_000 + 1_000_000 - 2_000
    at = first * 1_000_000
    while at < (begin + seconds + 1) * 1_000_000:  # a second more, so that the last window that counts has a partner too
        if begin == first + PATIENCE and flows.exists():
            begin = int(time.time()) + WARM
        if late + feed.age * 1e6 < at + step:
            _sleep_until(late / 1e6 + feed.age)
            feed.put("slow", np.array([late]))
            slow.append(late)
            late += SILENCE * 1_000_000
        times = np.arange(at, at + step, every)
        at += step
        _sleep_until(at / 1e6)
        feed.put("fast", times)
        fast.append(times)
    return begin, np.concatenate(fast), np.array(slow)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))


def _judge(side: str, result: Any, fast: Any, slow: Any, begin: int, seconds: int, cpu: float, idle: int) -> Outcome:
    """The windows that count, and the tuples of all windows that DuckDB finds in the finished input and the answer has not."""
    import duckdb

    connection = duckdb.connect()
    connection.register("given", pa.table({"ts": np.concatenate([fast, slow])}))
    answer = connection.sql("SELECT ts // 1000000 + 1 AS w, count(*) AS n FROM given GROUP BY w").fetchall()
    counted: dict[int, int] = {}
    delays = []
    for end, n, at in result["windows"]:
        counted[round(end)] = counted.get(round(end), 0) + n
        if begin < end <= begin + seconds:
            delays.append((end - begin, at - end, sum(end <= batch < at for batch in result["batches"])))
    lost = sum(max(0, n - counted.get(w, 0)) for w, n in answer)
    return Outcome(side, tuple(sorted(delays)), lost, len(fast) + len(slow), cpu, idle)


def plot(outcomes: list[Outcome], path: str) -> None:
    """Delay by window, one line a side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    for outcome in outcomes:
        ends = [end for end, _, _ in outcome.delays]
        axes.plot(ends, [max(delay, 0.001) for _, delay, _ in outcome.delays], marker=".", markersize=4, linewidth=1, label=_label(outcome))
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("end of the window (s)")
    axes.set_ylabel("seconds until its result")
    axes.set_title(f"Union of {RATE:,} tuples/s with one tuple every {SILENCE} s, count per second", fontsize=11)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _label(outcome: Outcome) -> str:
    return f"{outcome.side} ({'nothing' if not outcome.lost else outcome.lost} lost)"
