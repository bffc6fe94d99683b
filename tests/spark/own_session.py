"""A program of a user who has a Spark session of his own, started with the `python3` on the PATH; prints what it saw as JSON."""

import json
import time

import pyspark.sql
from pyspark.sql.streaming import StreamingQueryListener

import millstream as ms
from millstream.session.query import Query


class Listener(StreamingQueryListener):
    """Which events have come."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def onQueryStarted(self, event) -> None:
        self.heard.append("started")

    def onQueryProgress(self, event) -> None:
        self.heard.append("progress")

    def onQueryIdle(self, event) -> None:
        pass

    def onQueryTerminated(self, event) -> None:
        self.heard.append("terminated")


STREAM = "CREATE STREAM R (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED"


def counts(rows: list[tuple[int, str]]) -> list[list[object]]:
    made = ms.Session("spark")
    made.sql(f"{STREAM} WITH (connector = 'list'); CREATE SINK Out WITH (connector = 'memory')")
    made.sql("INSERT INTO Out SELECT k, count(*) AS n FROM R [RANGE 1 MINUTE] GROUP BY k;")
    return [[row["k"], row["n"]] for row in ms.testing.run(made, {"R": rows}, runtime="spark")]


def start(master: str, config: dict[str, str]) -> Query:
    made = ms.Session("spark", master=master, config=config)
    made.sql(f"{STREAM} WITH (connector = 'rate', rows_per_second = 100)")
    return made.sql("SELECT k FROM R").start()


def until(condition) -> None:
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)


def main() -> None:
    spark = (
        pyspark.sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    listener = Listener()
    spark.streams.addListener(listener)
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    found: dict[str, object] = {"workers": spark.sparkContext.pythonExec}
    found["counts"] = counts([(1, "2026-01-01 12:00:00"), (1, "2026-01-01 12:00:01")])
    until(lambda: "terminated" in listener.heard)
    found["heard"] = sorted(set(listener.heard))
    found["left alone"] = [
        spark.conf.get("spark.sql.shuffle.partitions") == partitions,
        spark.sparkContext.pythonExec == found["workers"],
        "PYTHONPATH" not in spark.sparkContext.environment,
    ]
    try:
        start("local[3]", {"spark.task.cpus": "2", "spark.ui.enabled": "false"}).wait()
    except ms.MillstreamError as problem:
        found["refused"] = str(problem)
    query = start("local[2]", {"spark.ui.enabled": "false"})
    until(lambda: query.to_arrow().num_rows)
    spark.stop()
    try:
        query.wait(60)
    except ms.MillstreamError as problem:
        found["stopped"] = str(problem)
    found["answers"] = query.to_arrow().num_rows
    print(json.dumps(found))


if __name__ == "__main__":
    main()
