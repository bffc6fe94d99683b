"""Bids per auction, told when the auction is closed: Millstream on Spark and in one process beside Spark's own join and aggregation."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millstream.bench.answer import digest
from millstream.bench.auctions import CLOSING, ROWS, Auctions, Longs
from millstream.bench.spark import native_session, run_ours, run_theirs
from millstream.bench.tree import sizes
from millstream.errors import DataProblem

NATIVE_ROWS = 11_000_000
"""What Spark's own operators are given by default, the auctions of the first day: windows pass, and it ends within minutes."""
FILES = 4
"""Files of either stream per micro-batch, on both sides: a million tuples."""
SECOND = 1_000_000
ON_SPARK, ONE_PROCESS, NATIVE = "millstream", "millstream, one process", "spark"

QUERY = """
SET source.max_files_per_batch = {files};
CREATE STREAM Auction (item_id BIGINT, seller_id BIGINT, start_price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED UNIQUE (item_id) WITH (path = '{folder}/Auction', format = 'parquet');
CREATE STREAM Bid (item_id BIGINT, bidder_id BIGINT, bid_price DOUBLE, ts TIMESTAMP, closed BOOLEAN)
  TIMESTAMP BY ts ORDERED PUNCTUATE ON (item_id) WHEN closed WITH (path = '{folder}/Bid', format = 'parquet');
CREATE SINK Out WITH ({sink});
INSERT INTO Out
SELECT A.item_id, count(*) AS bids
FROM Auction [RANGE 12 HOURS] AS A, Bid [NOW] AS B
WHERE A.item_id = B.item_id
GROUP BY A.item_id;
"""


def prepare(name: str, rows: int, folder: str, native_rows: int | None = None) -> None:
    """Write the streams; where Spark's own operators get less, the auctions that open first once more for them."""
    made, place = Auctions.make(rows), Path(folder)
    compared = min(len(made), max(1, (native_rows or NATIVE_ROWS) // ROWS))
    made.write(place / "all")
    if compared < len(made):
        made.first(compared).write(place / "first")
    np.save(place / "ended.npy", made.ended)
    (place / "compared.json").write_text(json.dumps(compared))


def run(name: str, side: str, rows: int, folder: str) -> dict[str, Any]:
    place, work = Path(folder), {ON_SPARK: millstream, ONE_PROCESS: one_process, NATIVE: native}[side]
    compared: int = json.loads((place / "compared.json").read_text())
    given = place / "first" if side == NATIVE and (place / "first").exists() else place / "all"
    found = work(given, place / f"out-{side}", place / f"checkpoint-{side}", np.load(place / "ended.npy"))
    answer = found.pop("answer").select(["item_id", "bids"])
    answer = answer.filter(pc.not_equal(answer["item_id"], CLOSING))
    whole = {} if side == NATIVE else {"complete": digest(answer)["digest"]}
    return {**found, "rows": _rows(given), **whole, **digest(answer.filter(pc.less(answer["item_id"], compared)))}


def millstream(given: Path, out: Path, checkpoint: Path, ended: Longs) -> dict[str, Any]:
    found = run_ours(QUERY.format(files=FILES, folder=given, sink=f"path = '{out}', format = 'parquet'"), str(checkpoint))
    manifests = [json.loads(path.read_text()) for path in out.glob("_millstream/*/*.json") if path.stem.isdigit()]
    epochs = {each["epoch"]: [out / visible for _, visible in each["files"]] for each in manifests}
    answer = pq.read_table(out, columns=["item_id", "bids"])
    return {**found, **_on_spark(given, checkpoint, found["batches"], epochs, ended), "answer": answer}


def native(given: Path, out: Path, checkpoint: Path, ended: Longs) -> dict[str, Any]:
    """As a user of Spark would write it; the auction's time is among the groups, since Spark lets go by time alone."""
    from pyspark.sql import functions as f

    spark = native_session()

    def read(stream: str, schema: str) -> Any:
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES)
        return reader.parquet(str(given / stream)).withWatermark("ts", "0 seconds")

    a = read("Auction", "item_id long, seller_id long, start_price double, ts timestamp").alias("a")
    b = read("Bid", "item_id long, bidder_id long, bid_price double, ts timestamp, closed boolean").where("NOT closed").alias("b")
    within = f.expr("a.item_id = b.item_id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 12 HOURS")
    counted = a.join(b, within).groupBy("a.item_id", "a.ts").count()
    answer = counted.select("item_id", f.col("count").alias("bids"))
    found = run_theirs(answer, str(out), str(checkpoint))
    told = pq.read_table(out, columns=["item_id", "bids"])
    return {**found, **_on_spark(given, checkpoint, found["batches"], spark_epochs(out), ended), "answer": told}


def one_process(given: Path, out: Path, checkpoint: Path, ended: Longs) -> dict[str, Any]:
    """Looked at between two steps: what has been written so far, how far Bid has been read, and what is held."""
    from millstream.graph.execution import Execution
    from millstream.io import MemorySink
    from millstream.pipeline import Pipeline
    from millstream.runtime.launch import Launch
    from millstream.runtime.local.run import LocalRun

    pipeline = Pipeline()
    pipeline.add_text(QUERY.format(files=FILES, folder=given, sink="connector = 'memory'"))
    sink = MemorySink("Out")
    object.__setattr__(pipeline.catalog.sinks.need("Out"), "sink", sink)
    launch = Launch.prepare(pipeline)
    began = time.perf_counter()
    run = LocalRun(launch.graph, launch.sources, launch.sinks, execution=Execution.of(launch.settings))
    seen: list[tuple[int, int]] = []
    clock: list[tuple[int, float]] = []
    tuples = size = 0

    def look() -> None:
        nonlocal tuples, size
        seen.append((run.progress.written.get(0, 0), run.by_name["Bid"].mark))
        clock.append((sum(feed.rows for feed in run.feeds), time.perf_counter()))
        tuples, size = max(tuples, run.stage.executor.held), max(size, run.stage.executor.nbytes)

    run.run(between=look)
    look()
    seconds = time.perf_counter() - began
    launch.close()
    answer = sink.to_arrow()
    written, marks = np.array(seen).T
    read_until = marks[np.searchsorted(written, np.arange(answer.num_rows), side="right")]
    items = answer["item_id"].to_numpy()
    punctual = (items != CLOSING) & (read_until <= ended.max())
    delay = (read_until[punctual] - ended[items[punctual]]) / SECOND
    rows, at = next((rows, at) for rows, at in clock if rows >= clock[-1][0] / 10)
    return {
        "seconds": seconds,
        "steady": (clock[-1][0] - rows) / (clock[-1][1] - at),
        **_delays(delay),
        "state_tuples": tuples,
        "state_bytes": size,
        "answer": answer,
    }


def _on_spark(given: Path, checkpoint: Path, batches: list[float], epochs: Mapping[int, Iterable[Path]], ended: Longs) -> dict[str, Any]:
    """For both sides on Spark: the first micro-batches start workers and compile, the last ones are not full."""
    until = read_until(given)
    full = batches[2 : len(until)] or batches
    delay, later = delays(epochs, until, ended)
    return {
        "steady": FILES * _rows(given) / (len(list((given / "Bid").iterdir())) - 1) / median(full),
        "batches": [round(each, 3) for each in batches],
        "batch_span": float(np.diff(until).mean() / SECOND) if len(until) > 1 else 0.0,
        **_delays(delay),
        "later": [float(np.median(later)), float(np.quantile(later, 0.99))] if len(later) else None,
        "state_written": sum(sizes(str(checkpoint / "state"))),
    }


def read_until(given: Path) -> Longs:
    """The time up to which each full micro-batch has read Bid; those that read the last auction are left out."""
    files = sorted((given / "Bid").iterdir())[:-1]
    last = [pq.read_table(path, columns=["ts"])["ts"][-1].value for path in files]
    return np.array(last[FILES - 1 :: FILES], dtype=np.int64)


def delays(epochs: Mapping[int, Iterable[Path]], until: Longs, ended: Longs) -> tuple[Any, Any]:
    """Of each result that full micro-batches brought out, how long after its auction's end that is, in seconds and in micro-batches."""
    delay, later = [np.empty(0)], [np.empty(0)]
    for epoch, paths in epochs.items():
        if epoch < len(until):
            items = pa.concat_tables([pq.read_table(path, columns=["item_id"]) for path in paths])["item_id"].to_numpy()
            delay.append((until[epoch] - ended[items]) / SECOND)
            later.append(epoch - np.searchsorted(until, ended[items]))
    return np.concatenate(delay), np.concatenate(later)


def spark_epochs(out: Path) -> dict[int, list[Path]]:
    """The files of each micro-batch, as Spark's file sink notes them; now and then it writes all notes so far into one."""
    epochs: dict[int, list[Path]] = {}
    known: set[Path] = set()
    notes = [path for path in (out / "_spark_metadata").iterdir() if path.name.split(".")[0].isdigit()]
    for note in sorted(notes, key=lambda path: int(path.name.split(".")[0])):
        files = [Path(json.loads(line)["path"].removeprefix("file://")) for line in note.read_text().splitlines()[1:]]
        fresh = [file for file in files if file not in known]
        known.update(fresh)
        epochs[int(note.name.split(".")[0])] = fresh
    return {epoch: files for epoch, files in epochs.items() if files}


def _delays(delay: Any) -> dict[str, Any]:
    if len(delay) and delay.min() < 0:
        raise DataProblem("punctuated-join: a result came out before its auction was closed")
    return {"delay": [float(np.median(delay)), float(np.quantile(delay, 0.99))] if len(delay) else None}


def _rows(given: Path) -> int:
    """The last auction does not count."""
    return sum(pq.read_metadata(path).num_rows for stream in ("Auction", "Bid") for path in sorted((given / stream).iterdir())[:-1])
