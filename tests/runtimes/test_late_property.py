"""Which tuples are late depends on the order of arrival alone: random streams against a few obvious lines, however they are cut."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from millstream.pipeline import Pipeline
from millstream.testing.run import run
from tests.runtimes.case import at
from tests.runtimes.compare import assert_same

SLACK = 3
TEXT = """
CREATE STREAM S (number INT, k INT, kind STRING, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 3 SECONDS
  PUNCTUATE ON (k) WHEN kind = 'closed'
  PUNCTUATE ON (ts) WHEN kind = 'beat';
CREATE SINK Kept WITH (connector = 'memory');
CREATE SINK Counts WITH (connector = 'memory');
CREATE SINK Groups WITH (connector = 'memory');
INSERT INTO Kept SELECT number, k, ts FROM S;
INSERT INTO Counts SELECT k, count(*) AS n FROM S [RANGE 4 SECONDS] GROUP BY k;
INSERT INTO Groups SELECT k, min(number) AS low, max(number) AS high FROM S GROUP BY k;
"""
ROWS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, 3, None]),
        st.sampled_from(["tuple"] * 12 + ["closed", "beat"]),
        st.one_of(st.integers(0, 15), st.integers(0, 15), st.none()),
    ),
    max_size=40,
)


def reference(rows: list[tuple[int, Any, str, datetime | None]]) -> tuple[list[Any], list[tuple[str, int]]]:
    """The tuples that are in time, and the numbers of the others with the reason."""
    mark = datetime.min.replace(tzinfo=UTC)
    closed: set[Any] = set()
    kept, letters = [], []
    for number, k, kind, ts in rows:
        if ts is None:
            letters.append(("null-timestamp", number))
        elif kind == "closed":
            closed.add(k)
        elif kind == "beat":
            mark = max(mark, ts)
        else:
            if k in closed or ts < mark:
                letters.append(("late", number))
            else:
                kept.append((number, k, ts))
            mark = max(mark, ts - timedelta(seconds=SLACK))  # a tuple that is refused has still shown how far time is
    return kept, letters


@given(ROWS, st.integers(1, 5), st.integers(1, 6))
def test_late_tuples(drawn: list[tuple[Any, str, int | None]], batch: int, files: int) -> None:
    rows = [(number, k, kind, None if second is None else at(second)) for number, (k, kind, second) in enumerate(drawn)]
    kept, letters = reference(rows)
    pipeline = Pipeline()
    pipeline.add_text(TEXT)
    result = run(pipeline, {"S": rows}, runtime="local", batch=batch, files={"S": files})
    assert_same(result.rows("Kept"), [{"number": n, "k": k, "ts": ts} for n, k, ts in kept])
    found = sorted((letter.kind, int((letter.content or "").split('"number": ')[1].split(",")[0])) for letter in result.letters)
    assert found == sorted(letters)
    counts: dict[tuple[Any, datetime], int] = {}
    groups: dict[Any, list[int]] = {}
    for number, k, ts in kept:
        start = ts - timedelta(seconds=ts.second % 4)
        counts[k, start] = counts.get((k, start), 0) + 1
        groups.setdefault(k, []).append(number)
    windows = [{"k": k, "n": n, "window_start": start, "window_end": start + timedelta(seconds=4)} for (k, start), n in counts.items()]
    assert_same(result.rows("Counts"), windows)
    assert_same(result.rows("Groups"), [{"k": k, "low": min(v), "high": max(v)} for k, v in groups.items()])
