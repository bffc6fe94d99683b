"""What a case of the suite is: a few statements, the tuples that go in, and who says what must come out."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.pipeline import Pipeline
from millstream.plan.catalog import Stream

RUNTIMES = ("local", "spark")
TABLES = Path(__file__).parent / "tables"
NOON = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)

Tuples = Sequence[Sequence[Any]]


def at(seconds: float) -> datetime:
    """Noon and so many seconds."""
    return NOON + timedelta(seconds=seconds)


def made(seed: int, count: int, keys: int, span: int, slack: float = 0.0) -> list[tuple[int, int, datetime]]:
    """Tuples (key, value, ts) over `span` seconds, out of order by at most `slack`; whole seconds, so that many times are equal."""
    rng = random.Random(seed)
    rows = [(rng.randrange(keys), rng.randrange(-50, 100), at(rng.randrange(span))) for _ in range(count)]
    return sorted(rows, key=lambda row: row[2] + timedelta(seconds=rng.uniform(0, slack)))


AB = """
CREATE STREAM A (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 5 SECONDS;
CREATE STREAM B (k INT, w INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
CREATE STREAM C (k INT, x INT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 1 SECOND;
CREATE TABLE Names (k INT, name STRING, factor DOUBLE) WITH (format = 'csv', path = '${tables}/names.csv');
"""
AB_TUPLES = {"A": made(1, 60, 6, 60, 5.0), "B": made(2, 50, 6, 60), "C": made(3, 40, 6, 60, 1.0)}


@dataclass(frozen=True)
class Case:
    """One feature. Sinks need no declaration: each name after INSERT INTO is one in memory."""

    name: str
    feature: str
    """The line of the support table that it stands for."""
    sql: str
    oracle: str | Mapping[str, str] = ""
    """What DuckDB is asked over tables named as the streams; one query, or one for each sink."""
    rows: Sequence[Mapping[str, Any]] | None = None
    """What must come out, where SQL can not say it."""
    streams: str = AB
    inputs: Mapping[str, Tuples] = field(default_factory=lambda: AB_TUPLES)
    letters: Sequence[tuple[str, str, str]] = ()
    """(stream, kind, a part of the content) of each dead letter."""
    gaps: Mapping[str, str] = field(default_factory=dict)
    """Runtimes that refuse it, with a part of the message."""
    pending: str = ""
    """Why it does not hold yet: then the test may fail, and the support table says so."""

    @property
    def text(self) -> str:
        sinks = dict.fromkeys(re.findall(r"INSERT INTO (\w+)", self.sql))
        return self.streams + "".join(f"CREATE SINK {sink} WITH (connector = 'memory');\n" for sink in sinks) + self.sql

    def pipeline(self) -> Pipeline:
        pipeline = Pipeline()
        pipeline.add_text(self.text, variables={"tables": str(TABLES)}, file=self.name)
        return pipeline

    def tables(self) -> dict[str, pa.Table]:
        """The finished streams, for the oracle."""
        found = {}
        for stream in self.pipeline().catalog.relations:
            if isinstance(stream, Stream):
                schema = stream.read_schema
                rows = self.inputs.get(stream.name, ())
                found[stream.name] = pa.Table.from_arrays(
                    [pa.array([row[i] for row in rows], type=kind.type) for i, kind in enumerate(schema)], schema=schema
                )
        return found

    def queries(self) -> dict[str, str]:
        """The oracle's query for each sink."""
        sinks = list(dict.fromkeys(re.findall(r"INSERT INTO (\w+)", self.sql)))
        asked = {sinks[0]: self.oracle} if isinstance(self.oracle, str) else dict(self.oracle)
        return {sink: query.replace("${tables}", str(TABLES)) for sink, query in asked.items()}


def refused(name: str, feature: str, sql: str, message: str, pending: str = "") -> Case:
    """A gap that both runtimes share, because the text or the plan is refused before any runs."""
    return Case(name, feature, sql, gaps=dict.fromkeys(RUNTIMES, message), pending=pending)
