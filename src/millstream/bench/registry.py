"""What can be measured: each benchmark's sides, in the order they run, and the module that runs one of them."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.errors import NameProblem

ROWS = 12_000_000


@dataclass(frozen=True)
class Benchmark:
    """A comparison of sides that must give the same answer."""

    module: str
    """Has `prepare(name, rows, folder)`, with options of its own if any, and `run(name, side, rows, folder)`."""
    sides: dict[str, str]
    one_core: bool = False
    rows: int = ROWS


BENCHMARKS = {
    "local-window": Benchmark(
        "millstream.bench.local",
        {
            "millstream": "a 10 s tumbling count per key, local runtime",
            "duckdb": "the same over the finished table, one thread",
        },
        one_core=True,
    ),
    "local-join": Benchmark(
        "millstream.bench.local",
        {
            "millstream": "a join on the key within 5 s either way, local runtime",
            "duckdb": "the same over the finished tables, one thread",
            "duckdb, time buckets by hand": "the same, with time cut into buckets in the query",
        },
        one_core=True,
    ),
    "spark-window": Benchmark(
        "millstream.bench.spark",
        {
            "millstream": "a 10 s tumbling count per key, Spark runtime",
            "spark": "the same with Spark's own operators, RocksDB state store",
        },
    ),
    "spark-join": Benchmark(
        "millstream.bench.spark",
        {
            "millstream": "a join on the key within 5 s either way, Spark runtime",
            "spark": "the same with Spark's own operators, RocksDB state store",
        },
    ),
    "punctuated-join": Benchmark(
        "millstream.bench.punctuated",
        {
            "millstream": "bids per auction within 12 hours, told when it is closed, Spark runtime",
            "millstream, one process": "the same, local runtime",
            "spark": "the same with Spark's own operators, RocksDB state store, told when 12 hours are over",
        },
        rows=22_000_000,
    ),
    "multiway": Benchmark(
        "millstream.bench.multiway",
        {
            "millstream": "four streams joined by user, one of which few users are in, Spark runtime",
            "millstream, without feedback": "the same, with join.feedback = false",
            "millstream, m-join": "the same, with join.tree = 'm-join'",
            "spark": "the same as three of Spark's own stream-stream joins, RocksDB state store",
        },
        rows=8_000_000,
    ),
}


def find(name: str) -> Benchmark:
    if name not in BENCHMARKS:
        raise NameProblem.unknown("benchmark", name, BENCHMARKS)
    return BENCHMARKS[name]
