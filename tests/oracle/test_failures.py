"""A tuple that makes an expression fail costs that tuple, or that pair, and never the run."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from millstream.pipeline import Pipeline
from millstream.testing import Result, run

COLUMNS = "(k BIGINT, i INT, s STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED"
STREAMS = f"""
CREATE STREAM A {COLUMNS}; CREATE STREAM B {COLUMNS}; CREATE STREAM P {COLUMNS} PUNCTUATE ON (k) WHEN CAST(s AS INT) = 1;
CREATE SINK Out WITH (connector = 'memory');
"""
TIME = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
ROWS = [{"k": 1, "i": 2**31 - 1, "s": "x", "ts": TIME}, {"k": 1, "i": 5, "s": "7", "ts": TIME}]


def answer(query: str) -> Result:
    pipeline = Pipeline()
    pipeline.add_text(STREAMS + f"INSERT INTO Out {query};")
    return run(pipeline, {"A": ROWS, "B": ROWS, "P": ROWS})


@pytest.mark.parametrize(
    ("query", "tuples", "letters"),
    [
        ("SELECT i + 1 AS j FROM A", 1, 1),
        ("SELECT i FROM A WHERE i + 1 > 0", 1, 1),
        ("SELECT k, sum(i + 1) AS t FROM A [RANGE 5 SECONDS] GROUP BY k", 1, 1),
        ("SELECT a.i FROM A [NOW] AS a, B [NOW] AS b WHERE a.k = b.k AND a.i + b.i > 0", 1, 3),
        ("SELECT a.i FROM A [NOW] AS a LEFT JOIN B [NOW] AS b ON a.k = b.k AND CAST(a.s AS INT) > b.i", 2, 2),
        ("SELECT a.i FROM A [NOW] AS a JOIN B [NOW] AS b ON a.k = CAST(b.s AS INT) - 6", 2, 1),
        ("SELECT i FROM P", 1, 1),
    ],
)
def test_failing_tuples_become_letters(query: str, tuples: int, letters: int) -> None:
    result = answer(query)
    assert len(result.rows()) == tuples
    assert [letter.kind for letter in result.letters] == ["error"] * letters


def test_times_that_nobody_can_write_become_letters() -> None:
    """Years 1 to 9999 count; the others, and tuples without a time, do not."""
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    times = [first - 1, first, 0, last, last + 1, 2**63 - 1, -(2**63), None, last]
    kind = pa.timestamp("us", "UTC")
    table = pa.table({"k": range(9), "ts": pa.array(times).cast(kind), "u": pa.array([2**62] * 9).cast(kind)})
    pipeline = Pipeline()
    pipeline.add_text(
        "CREATE STREAM A (k BIGINT, ts TIMESTAMP, u TIMESTAMP) TIMESTAMP BY ts SLACK 1 SECOND; CREATE SINK Out WITH (connector = 'memory');"
    )
    pipeline.add_text("INSERT INTO Out SELECT count(*) AS n FROM A [RANGE 10 SECONDS SLIDE 5 SECONDS];")
    result = run(pipeline, {"A": table}, batch=2, files={"A": 3})
    assert sorted(letter.kind for letter in result.letters) == ["broken"] * 4 + ["null-timestamp"]
    assert result.tables["Out"].column("n").to_pylist() == [1, 1, 1, 1, 2, 2]
