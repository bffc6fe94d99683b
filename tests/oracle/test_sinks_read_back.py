"""Answers written by several buckets and read back: no mark of a sink promises too much."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.io import FileSink, ListSource
from millstream.pipeline import Pipeline
from millstream.plan.catalog import Stream
from millstream.runtime.launch import Launch
from millstream.runtime.program import Outcome
from millstream.runtime.runs import run_local
from millstream.session.rows import to_batch
from tests.oracle.buckets import Host
from tests.runtimes.case import at

STREAMS = """
CREATE STREAM A (k INT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 4 SECONDS;
CREATE STREAM B (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
"""
QUERIES = {
    "selection": (
        "SELECT k, ts, ts + INTERVAL 1 SECOND AS later FROM A WHERE k > 0",
        "k INT, ts TIMESTAMP, later TIMESTAMP",
        ["ts", "later"],
    ),
    "window": (
        "SELECT k, count(*) AS n FROM A [RANGE 5 SECONDS SLIDE 2 SECONDS] GROUP BY k",
        "k INT, n BIGINT, window_start TIMESTAMP, window_end TIMESTAMP",
        ["window_start", "window_end"],
    ),
    "join": (
        "SELECT A.k, A.ts AS ts, B.ts AS other"
        " FROM A [RANGE 3 SECONDS] JOIN B [RANGE 2 SECONDS] ON A.k = B.k",
        "k INT, ts TIMESTAMP, other TIMESTAMP",
        ["ts", "other"],
    ),
    "unmatched": (
        "SELECT A.k, A.ts FROM A [RANGE 3 SECONDS] LEFT ANTI JOIN B [RANGE 2 SECONDS] ON A.k = B.k",
        "k INT, ts TIMESTAMP",
        ["ts"],
    ),
    "union": ("SELECT k, ts FROM A UNION ALL SELECT k, ts FROM B", "k INT, ts TIMESTAMP", ["ts"]),
    "two stages": (
        "SELECT n, count(*) AS c FROM (SELECT k, count(*) AS n FROM A [RANGE 2 SECONDS] GROUP BY k)"
        " [RANGE 4 SECONDS WA window_start] GROUP BY n",
        "n BIGINT, c BIGINT, window_start TIMESTAMP, window_end TIMESTAMP",
        ["window_start", "window_end"],
    ),
}
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 3)), max_size=40)


class Committing(Host):
    """Commits each micro-batch as an epoch, its rows in random parts. The driver may forget its notes."""

    def __init__(self, launch: Launch, buckets: int, chance: random.Random) -> None:
        super().__init__(launch, buckets, chance)
        self.epoch = 0
        self.got: list[pa.RecordBatch] = []
        self.rows: list[dict[str, Any]] = []

    def _open(self) -> None:
        """Writers are opened for an epoch."""

    def micro_batch(self, outcomes: list[Outcome], everyone: bool = False) -> None:
        if self.chance.random() < 0.1:
            self.program._notes.clear()
        super().micro_batch(outcomes, everyone)
        (sink,) = self.launch.sinks
        assert isinstance(sink, FileSink)
        parts = []
        shares: dict[int, list[dict[str, Any]]] = {}
        for row in pa.Table.from_batches(self.got).to_pylist() if self.got else ():
            shares.setdefault(self.chance.randrange(3), []).append(row)
            self.rows.append(row)
        for number, rows in shares.items():
            writer = sink.writer(self.got[0].schema, str(number), self.epoch)
            writer.write(pa.RecordBatch.from_pylist(rows, self.got[0].schema))
            parts.append(writer.close())
        sink.commit(self.epoch, [*parts, sink.marks(self.program.reached(0))])
        self.epoch += 1
        self.got = []

    def _deliver(self, outcomes: list[Outcome]) -> None:
        self.program.noted([outcome.note for outcome in outcomes if outcome.note is not None])
        self.got += [
            self.program.rows(sink, block) for outcome in outcomes for sink, block in outcome.results
        ]


def disordered(rows: list[tuple[int, int, int]]) -> list[tuple[int, Any]]:
    """In order of time, but for what the slack allows."""
    return [(k, at(second)) for k, second, early in sorted(rows, key=lambda row: row[1] + row[2])]


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=12)
@given(ROWS, ROWS, st.integers(0, 999))
def test_nothing_is_late(name: str, a: list[Any], b: list[Any], seed: int) -> None:
    query, columns, times = QUERIES[name]
    with tempfile.TemporaryDirectory() as folder:
        pipeline = Pipeline()
        pipeline.add_text(STREAMS)
        for stream, rows in {"A": disordered(a), "B": sorted(disordered(b), key=lambda row: row[1])}.items():
            entry = pipeline.catalog.relations.need(stream)
            assert isinstance(entry, Stream)
            batch = to_batch(stream, entry.read_schema, rows)
            source = ListSource(
                stream, entry.read_schema, [batch.slice(at, 4) for at in range(0, batch.num_rows, 4)]
            )
            pipeline.catalog.relations.replace(stream, replace(entry, source=source))
        pipeline.add_text(
            f"CREATE SINK Out WITH (path = '{folder}/out', format = 'jsonl'); INSERT INTO Out {query};"
        )
        launch = Launch.prepare(pipeline)
        host = Committing(launch, 3, random.Random(seed))
        host.run()
        launch.close()
        for time in times if host.rows else ():
            again = Pipeline()
            again.add_text(f"""
                SET dead_letters.path = '{folder}/letters';
                CREATE STREAM S ({columns}) TIMESTAMP BY {time} ORDERED
                  WITH (path = '{folder}/out', format = 'jsonl');
                CREATE SINK Back WITH (connector = 'memory');
                INSERT INTO Back SELECT * FROM S;
            """)
            reading = Launch.prepare(again)
            status = run_local(reading)
            assert status.letters == {}, f"by {time}"
            (sink,) = reading.sinks
            back = sink.to_arrow().to_pylist()  # type: ignore[attr-defined]
            assert Counter(map(repr, back)) == Counter(map(repr, host.rows))
