"""The letter of a late tuple names the row that made the mark, or the clause that closed its value."""

from __future__ import annotations

import random
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.letters import DeadLetter
from millstream.pipeline import Pipeline
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_local
from millstream.testing.run import run
from tests.oracle.buckets import run_hosted
from tests.oracle.watch import Watch
from tests.runtimes.case import at

SLACK = 3
TEXT = """
CREATE STREAM S (number INT, kind STRING, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 3 SECONDS PUNCTUATE ON (ts) WHEN kind = 'beat';
CREATE SINK Out WITH (connector = 'memory');
INSERT INTO Out SELECT count(*) AS n FROM S [RANGE 4 SECONDS];
"""
ROWS = st.lists(st.tuples(st.sampled_from(["tuple"] * 5 + ["beat"]), st.integers(0, 20)), max_size=40)


def makers(rows: list[tuple[int, str, datetime]]) -> dict[int, tuple[str, int]]:
    """For each late tuple the kind and the number of the row that made the mark before it."""
    mark, maker, late = at(-100), ("", -1), {}
    for number, kind, ts in rows:
        if kind == "tuple" and ts < mark:
            late[number] = maker
        made = ts if kind == "beat" else at((ts - at(0)).total_seconds() - SLACK)
        if made > mark:
            mark, maker = made, ("heartbeat" if kind == "beat" else "tuple", number)
    return late


@pytest.mark.parametrize("hosted", [False, True], ids=["one process", "hosted"])
@given(ROWS, st.integers(1, 5), st.integers(1, 6), st.integers(0, 99))
def test_the_row_that_made_the_mark(
    hosted: bool, drawn: list[Any], batch: int, files: int, seed: int
) -> None:
    """However the stream is cut; where a unit and earlier ones promise the same, its row counts."""
    rows = [(number, kind, at(second)) for number, (kind, second) in enumerate(drawn)]
    size = -(-len(rows) // files) or 1
    pipeline = Pipeline()
    pipeline.add_text(TEXT)
    cut: dict[str, Any] = {"batch": batch, "files": {"S": files}}
    if hosted:
        result = run_hosted(
            pipeline, {"S": rows}, buckets=2, chance=random.Random(seed), watch=Watch(), **cut
        )
    else:
        result = run(pipeline, {"S": rows}, runtime="local", **cut)
    expected = makers(rows)
    assert len(result.letters) == len(expected)
    for letter in result.letters:
        number = int((letter.content or "").split('"number": ')[1].split(",")[0])
        found = re.search(r"<ts < (.*)>, made by the (\w+) in line (\d+) of S\[(\d+)\]$", letter.reason)
        assert found is not None, letter.reason
        maker = int(found[4]) * size + int(found[3]) - 1
        _, kind, ts = rows[maker]
        assert found[2] == ("heartbeat" if kind == "beat" else "tuple") and maker < number
        assert at((ts - at(0)).total_seconds() - (0 if kind == "beat" else SLACK)) == datetime.fromisoformat(
            found[1]
        )
        if maker // size != number // size:
            assert (found[2], maker) == expected[number]


def letters_of(folder: Path, clauses: str, *files: str) -> list[DeadLetter]:
    for number, text in enumerate(files):
        (folder / f"{number}.csv").write_text("k,g,kind,ts\n" + text)
    pipeline = Pipeline()
    pipeline.add_text(f"""
        CREATE STREAM S (k INT, g INT, kind STRING, ts TIMESTAMP) TIMESTAMP BY ts SLACK 1 DAY {clauses}
          WITH (path = '{folder}', format = 'csv');
        CREATE SINK Out WITH (connector = 'memory');
        INSERT INTO Out SELECT k, g, ts FROM S;
    """)
    launch = Launch.prepare(pipeline)
    letters: list[DeadLetter] = []
    launch.letters.put = letters.extend  # type: ignore[method-assign]
    run_local(launch)
    return letters


T = "2026-01-01 12:00:00"


@pytest.mark.parametrize(
    ("clauses", "closes", "late", "clause"),
    [
        ("PUNCTUATE ON (k) WHEN kind = 'end'", "1,,end", "1,2,", "PUNCTUATE ON (k) WHEN kind = 'end'"),
        (
            "PUNCTUATE ON (k <= g) WHEN kind = 'end'",
            "0,5,end",
            "4,2,",
            "PUNCTUATE ON (k <= g) WHEN kind = 'end'",
        ),
        (
            "PUNCTUATE ON (k, ts) WHEN kind = 'end' PUNCTUATE ON (g) WHEN false",
            "1,2,end",
            "1,2,",
            "PUNCTUATE ON (k, ts) WHEN kind = 'end'",
        ),
        (
            "PUNCTUATE ON (k) WHEN kind = 'end' FOR 1 DAY",
            "1,2,end",
            "1,2,",
            "PUNCTUATE ON (k) WHEN kind = 'end'",
        ),
        ("UNIQUE (k, g)", "1,2,", "1,2,", "UNIQUE (k, g)"),
        ("CLUSTERED BY (g)", "1,1,\n1,2,", "1,1,", "CLUSTERED BY (g)"),
    ],
)
@pytest.mark.parametrize("together", [True, False], ids=["one file", "several files"])
def test_the_clause_that_closed_the_value(
    tmp_path: Path, clauses: str, closes: str, late: str, clause: str, together: bool
) -> None:
    first = "".join(f"{line},{T}\n" for line in closes.split("\n"))
    second = f"{late},2026-01-01 11:59:59\n"
    (letter,) = letters_of(tmp_path, clauses, *([first + second] if together else [first, second]))
    assert letter.reason == f"it came after {letter.punctuation}, closed by {clause}"
