"""The marks of a sink are the least of all that may still send to it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from millstream.pipeline import Pipeline
from millstream.runtime.delivered import sink_marks

TEXT = """
CREATE STREAM A (k INT, o TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'rate', "column.k" = 'value');
CREATE SINK Out WITH (connector = 'memory');
CREATE SINK Other WITH (connector = 'memory');
INSERT INTO Out SELECT k, ts AS t, o FROM A WHERE k > 1;
INSERT INTO Out SELECT k, ts AS t, o FROM A WHERE k < 1;
INSERT INTO Other SELECT k, count(*) AS n FROM A [RANGE 1 MINUTE] GROUP BY k;
"""


@pytest.mark.parametrize(
    ("first", "second", "mark"),
    [
        ([5, 7], [6, 9], 5),
        ([5, None], [6, 9], None),  # a bucket that has told nothing
        ([5, {}], [6, 9], None),  # a bucket that was promised nothing
        ([{"end": 5}, {"end": 7}], [6, 9], 6),
        ([{"end": 5}, 8], [6, 9], 6),
        ([{"end": 5}, {"end": 7}], [{"end": 6}, {"end": 9}], 5),
    ],
)
def test_the_least_counts(first: list[object], second: list[object], mark: int | None) -> None:
    pipeline = Pipeline()
    pipeline.add_text(TEXT)
    graph = pipeline.graph()
    ends = [v for v in graph.sinks if v.config.number == 0]  # type: ignore[attr-defined]
    assert len(ends) == 2 and all(v.config.progressing == ("t",) for v in ends)  # type: ignore[attr-defined]
    told = dict(zip((v.number for v in ends), (first, second), strict=True))

    def buckets(end: int) -> list[Mapping[str, int] | None]:
        producer = graph[end].inputs[0]
        found: list[Mapping[str, int] | None] = []
        for part in told[end]:
            if isinstance(part, int):
                found.append({f"{producer}@t": part})
            elif isinstance(part, dict):
                found.append({f"{producer}@t": part["end"], f"{producer} ended": 1} if part else {})
            else:
                found.append(None)
        return found

    assert sink_marks(graph, 0, buckets) == {"t": mark}


def test_a_window_progresses_by_both_of_its_ends() -> None:
    pipeline = Pipeline()
    pipeline.add_text(TEXT)
    (end,) = [v for v in pipeline.graph().sinks if v.config.number == 1]  # type: ignore[attr-defined]
    assert set(end.config.progressing) == {"window_start", "window_end"}  # type: ignore[attr-defined]
