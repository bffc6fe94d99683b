"""What the crash harness runs: pipelines, their streams cut into many small files, and who says what must come out."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.runtimes.oracle import ask

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SLACK = 2.0
STEP = 0.5
"""Seconds between two tuples of a stream, before they are put out of order."""
KEYS = 7

STREAM = """
CREATE STREAM {name} (id BIGINT, k INT, v INT, pad STRING, ts TIMESTAMP) TIMESTAMP BY ts SLACK 2 SECONDS{more} ETS NONE
  WITH (connector = 'file', format = 'jsonl', path = '${{in}}/{name}', watch = '${{watch}}');"""
SETTINGS = """
SET source.max_files_per_batch = 1;
SET dead_letters.path = '${out}/letters';
"""
SINK = "CREATE SINK {name} WITH (connector = 'file', format = 'jsonl', path = '${{out}}/{name}');\n"
NEAR = "B.ts BETWEEN A.ts - INTERVAL 2 SECONDS AND A.ts + INTERVAL 5 SECONDS"


def counted(size: int, slide: int) -> str:
    return f"""SELECT k, count(*) AS n, sum(v) AS s, window_start, window_start + INTERVAL {size} SECONDS AS window_end
               FROM (SELECT *, unnest(starts(ts, {size}, {slide})) AS window_start FROM A) GROUP BY ALL"""


@dataclass(frozen=True)
class Scenario:
    """Queries by the sink they write, and the oracle's query for each."""

    name: str
    queries: Mapping[str, tuple[str, str]]
    streams: tuple[str, ...] = ("A", "B")
    spoilt: bool = False
    """With late and broken tuples among the others."""
    watched: bool = False
    """Files come while it runs, and the stream ends only when the harness says so."""
    pad: int = 0
    """Bytes that each tuple carries along, so that snapshots of the state are due."""
    closing: bool = False
    """Values of k come and go, and rows with a negative number say that one will not come again."""
    settings: str = ""

    @property
    def sql(self) -> str:
        more = " PUNCTUATE ON (k) WHEN id < 0" if self.closing else ""
        names = sorted({*"AB", *self.streams})
        streams = "".join(STREAM.format(name=name, more=more) for name in names) + SETTINGS + self.settings
        sinks = "".join(SINK.format(name=name) for name in self.queries)
        return streams + sinks + "".join(f"INSERT INTO {name} {query};\n" for name, (query, _) in self.queries.items())


THREE = (
    """SELECT A.id AS a, B.id AS b, C.k AS c FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS], C [RANGE 3 SECONDS]
       WHERE A.k = B.k AND A.id = C.id""",
    f"""SELECT A.id AS a, B.id AS b, C.k AS c FROM A, B, C WHERE A.k = B.k AND A.id = C.id AND {NEAR}
        AND C.ts BETWEEN A.ts - INTERVAL 3 SECONDS AND A.ts + INTERVAL 5 SECONDS
        AND C.ts BETWEEN B.ts - INTERVAL 3 SECONDS AND B.ts + INTERVAL 2 SECONDS""",
)

SCENARIOS = {
    s.name: s
    for s in (
        Scenario(
            "join",
            {
                "Pairs": (
                    "SELECT A.id AS a, B.id AS b, A.pad FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS] WHERE A.k = B.k",
                    f"SELECT A.id AS a, B.id AS b, A.pad FROM A, B WHERE A.k = B.k AND {NEAR}",
                )
            },
            pad=20_000,
        ),
        Scenario(
            "windows",
            {
                "Tumbling": ("SELECT k, count(*) AS n, sum(v) AS s FROM A [RANGE 10 SECONDS] GROUP BY k", counted(10, 10)),
                "Sliding": ("SELECT k, count(*) AS n, sum(v) AS s FROM A [RANGE 10 SECONDS SLIDE 3 SECONDS] GROUP BY k", counted(10, 3)),
            },
            streams=("A",),
        ),
        Scenario(
            "stages",
            {
                "ByValue": (
                    """SELECT B.v, count(*) AS n, max(A.id) AS last [RANGE 10 SECONDS, WA A.ts]
                       FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS] WHERE A.k = B.k GROUP BY B.v""",
                    f"""SELECT B.v, count(*) AS n, max(A.id) AS last, time_bucket(INTERVAL 10 SECONDS, A.ts) AS window_start,
                           time_bucket(INTERVAL 10 SECONDS, A.ts) + INTERVAL 10 SECONDS AS window_end
                        FROM A, B WHERE A.k = B.k AND {NEAR} GROUP BY ALL""",
                )
            },
            spoilt=True,
        ),
        Scenario(
            "letters",
            {"Tumbling": ("SELECT k, count(*) AS n, sum(v) AS s FROM A [RANGE 5 SECONDS] GROUP BY k", counted(5, 5))},
            streams=("A",),
            spoilt=True,
        ),
        Scenario(
            "left",
            {
                "Left": (
                    "SELECT A.id AS a, B.id AS b FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 2 SECONDS] ON A.k = B.k AND B.v < 3",
                    f"SELECT A.id AS a, B.id AS b FROM A LEFT JOIN B ON A.k = B.k AND B.v < 3 AND {NEAR}",
                )
            },
        ),
        Scenario(
            "closing",
            {
                "Closed": (
                    "SELECT A.k, count(*) AS n, max(B.id) AS last FROM A, B WHERE A.k = B.k GROUP BY A.k",
                    "SELECT A.k, count(*) AS n, max(B.id) AS last FROM A, B WHERE A.k = B.k GROUP BY A.k",
                ),
                "Near": (
                    "SELECT A.k, count(*) AS n FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS] WHERE A.k = B.k GROUP BY A.k",
                    f"SELECT A.k, count(*) AS n FROM A, B WHERE A.k = B.k AND {NEAR} GROUP BY A.k",
                ),
            },
            closing=True,
        ),
        Scenario("many", {"Three": THREE}, streams=("A", "B", "C"), settings="SET feedback.trial = 0;"),
        Scenario("at once", {"Three": THREE}, streams=("A", "B", "C"), settings="SET feedback.trial = 0; SET join.tree = 'eddy';"),
        Scenario(
            "watched",
            {
                "Pairs": (
                    "SELECT A.id AS a, B.id AS b FROM A [RANGE 5 SECONDS], B [RANGE 2 SECONDS] WHERE A.k = B.k",
                    f"SELECT A.id AS a, B.id AS b FROM A, B WHERE A.k = B.k AND {NEAR}",
                ),
                "Tumbling": ("SELECT k, count(*) AS n, sum(v) AS s FROM A [RANGE 5 SECONDS] GROUP BY k", counted(5, 5)),
            },
            spoilt=True,
            watched=True,
        ),
    )
}


@dataclass
class Data:
    """The files of each stream as text, the tuples that count, and the letters that must come."""

    files: dict[str, list[str]] = field(default_factory=dict)
    tuples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    letters: list[tuple[str, str, str]] = field(default_factory=list)
    """(stream, kind, the tuple's number or the broken text)"""

    def answer(self, scenario: Scenario) -> dict[str, list[dict[str, Any]]]:
        schema = pa.schema(
            [("id", pa.int64()), ("k", pa.int32()), ("v", pa.int32()), ("pad", pa.string()), ("ts", pa.timestamp("us", tz="UTC"))]
        )
        tables = {name: pa.Table.from_pylist(rows, schema=schema) for name, rows in self.tuples.items()}
        return {sink: ask(oracle, tables) for sink, (_, oracle) in scenario.queries.items()}

    def write(self, place: Path, stream: str, number: int) -> None:
        """One file, visible at once."""
        directory = place / stream
        directory.mkdir(parents=True, exist_ok=True)
        hidden = directory / f".{number:04d}.jsonl.part"
        hidden.write_text(self.files[stream][number])
        hidden.rename(directory / f"{number:04d}.jsonl")


def make(scenario: Scenario, rng: random.Random, files: int, each: int = 12) -> Data:
    """Streams out of order within their slack; a spoilt one has broken lines, and tuples an hour late within a file and across files."""
    data = Data()
    for stream in scenario.streams:
        rows = [
            {
                "id": number,
                "k": rng.randrange(KEYS) + (number // KEYS if scenario.closing else 0),
                "v": rng.randrange(5),
                "pad": "x" * scenario.pad,
                "ts": NOON + timedelta(seconds=number * STEP + rng.random()),
            }
            for number in range(files * each)
        ]
        rows.sort(key=lambda row: row["ts"] + timedelta(seconds=rng.uniform(0, SLACK * 0.9)))
        data.tuples[stream] = list(rows)
        if scenario.closing:
            rows = _closed(rows)
        data.files[stream] = []
        for number in range(files):
            lines = [_line(row) for row in rows[number * len(rows) // files : (number + 1) * len(rows) // files]]
            if scenario.spoilt and rng.random() < 0.7:
                _spoil(data, stream, number, lines, rng)
            data.files[stream].append("".join(line + "\n" for line in lines))
    return data


def _closed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with a row behind the last one of each k that closes it."""
    last = {row["k"]: row["id"] for row in rows}
    found = []
    for row in rows:
        found.append(row)
        if last[row["k"]] == row["id"]:
            found.append({**row, "id": -1 - row["k"]})
    return found


def _spoil(data: Data, stream: str, number: int, lines: list[str], rng: random.Random) -> None:
    late = {"id": 1_000_000 + number, "k": 1, "v": 1, "pad": "", "ts": NOON - timedelta(hours=1) + timedelta(seconds=number)}
    lines.insert(rng.randrange(1 if number == 0 else 0, len(lines) + 1), _line(late))
    data.letters.append((stream, "late", str(late["id"])))
    if rng.random() < 0.5:
        broken = f"no tuple {stream} {number}"
        lines.insert(rng.randrange(len(lines) + 1), broken)
        data.letters.append((stream, "broken", broken))


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps({**row, "ts": row["ts"].strftime("%Y-%m-%d %H:%M:%S.%f")})


def found(place: Path) -> list[dict[str, Any]]:
    """What a file sink shows."""
    return [json.loads(line) for file in sorted(place.glob("part-*")) for line in file.read_text().splitlines()]


def found_letters(place: Path) -> list[tuple[str, str, str]]:
    letters = []
    for file in sorted(place.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            letter = json.loads(line)
            content = letter["content"]
            letters.append((letter["stream"], letter["kind"], str(json.loads(content)["id"]) if letter["kind"] == "late" else content))
    return letters
