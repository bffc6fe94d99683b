"""The benchmark of four streams: what they are like, and that all sides give one answer."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from millstream.bench.answer import digest
from millstream.bench.compare import compare
from millstream.bench.multiway import BATCH, FLAGGED, STREAMS, prepare, run

NAME = "multiway"


def asked(folder: Path, part: str) -> dict[str, Any]:
    streams = ", ".join(f"'{folder}/{part}/{stream}/*.parquet' AS {stream}" for stream in STREAMS)
    pairs = [(a, b) for at, a in enumerate(STREAMS) for b in STREAMS[at + 1 :]]
    near = [f"{b}.ts BETWEEN {a}.ts - INTERVAL 10 SECONDS AND {a}.ts + INTERVAL 10 SECONDS" for a, b in pairs]
    same = [f"{a}.user_id = {b}.user_id" for a, b in pairwise(STREAMS)]
    times = ", ".join(f"{stream}.ts AS {stream}_ts" for stream in STREAMS)
    return digest(duckdb.sql(f"SELECT Login.user_id, {times} FROM {streams} WHERE {' AND '.join(same + near)}").to_arrow_table())


def test_one_stream_is_selective(tmp_path: Path) -> None:
    prepare(NAME, 2 * BATCH, str(tmp_path), native_rows=BATCH)
    found = {stream: [pq.read_table(path) for path in sorted((tmp_path / "all" / stream).iterdir())] for stream in STREAMS}
    counts = {stream: sum(table.num_rows for table in tables) for stream, tables in found.items()}
    assert abs(sum(counts.values()) - 2 * BATCH) < 10 and counts["Alert"] == 0.01 * 2 * BATCH
    assert len({user for table in found["Alert"] for user in table["user_id"].to_pylist()}) == FLAGGED
    for tables in found.values():
        assert len(tables) == 2 and tables[0]["ts"][-1].as_py() <= tables[1]["ts"][0].as_py()
    assert len(list((tmp_path / "first" / "Login").iterdir())) == 1


@pytest.mark.slow
def test_on_spark_the_answer_is_that_of_duckdb(tmp_path: Path, spark: object) -> None:
    prepare(NAME, BATCH, str(tmp_path))
    for side in ("millstream", "millstream, m-join"):
        found = run(NAME, side, BATCH, str(tmp_path))
        assert {name: found[name] for name in ("answer_rows", "digest")} == asked(tmp_path, "all")


@pytest.mark.slow
def test_the_sides_agree() -> None:
    sides = compare(NAME, rows=2 * BATCH, repeats=1, native_rows=BATCH)
    ours, plain, _, native = sides
    assert ours.given == plain.given > 1.9 * native.given > 1.8 * BATCH
    assert native.runs[0]["state_tuples"] > 10 * ours.runs[0]["state_tuples"]
