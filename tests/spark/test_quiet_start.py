"""Sources that have nothing to say when Spark first asks, and streams that turn out to end."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from millstream.pipeline import Pipeline
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_spark
from millstream.runtime.status import Status


@pytest.mark.slow
def test_a_watched_directory_that_is_empty_at_first(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pipeline = Pipeline()
    pipeline.add_text(
        f"""CREATE STREAM W (a INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = '{tmp_path}/in', format = 'jsonl', watch = true);
        CREATE SINK Out WITH (path = '{tmp_path}/out', format = 'jsonl'); INSERT INTO Out SELECT a FROM W;"""
    )
    stop = threading.Event()

    def write() -> None:
        time.sleep(3)  # Spark has asked by now, and run its first micro-batch over nothing
        for number in range(2):
            hidden = tmp_path / ".next"
            hidden.write_text(json.dumps({"a": number, "ts": f"2026-01-01T00:00:0{number}Z"}) + "\n")
            hidden.rename(tmp_path / "in" / f"{number}.jsonl")
            time.sleep(1)

    def watch(status: Status) -> None:
        if status.tuples_out == 2:
            stop.set()

    threading.Thread(target=write, daemon=True).start()
    status = run_spark(Launch.prepare(pipeline), stop=stop, on_status=watch)
    assert status.tuples_out == 2
    found = [json.loads(line)["a"] for name in sorted(os.listdir(tmp_path / "out")) if name.endswith("l") for line in lines(tmp_path, name)]
    assert sorted(found) == [0, 1]


def lines(place: Path, name: str) -> list[str]:
    return (place / "out" / name).read_text().splitlines()


def test_a_socket_ends_when_its_peer_closes(spark: SparkSession, tmp_path: Path) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]

    def serve() -> None:
        peer, _ = server.accept()
        with peer:
            for number in range(3):
                peer.sendall((json.dumps({"a": number, "ts": f"2026-01-01T00:00:0{number}Z"}) + "\n").encode())
                time.sleep(0.5)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    pipeline = Pipeline()
    pipeline.add_text(
        f"""CREATE STREAM S (a INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'socket', port = {port});
        CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out SELECT count(*) AS n FROM S [RANGE 1 MINUTE];"""
    )
    launch = Launch.prepare(pipeline)
    status = run_spark(launch)
    assert status.tuples_in == {"S": 3}
    assert launch.sinks[0].to_arrow().column("n").to_pylist() == [3]  # type: ignore[attr-defined]
    server.close()
