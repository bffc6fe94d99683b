"""A message names the way out in the user's own names and numbers, and the place of what is wrong."""

from __future__ import annotations

import pytest

from millstream.errors import MillstreamError
from millstream.pipeline import Pipeline
from tests.runtimes.cases.messages import MESSAGES, Message

STREAMS = """
CREATE STREAM A (k INT, u INT, n STRING, d DATE, done BOOLEAN, o TIMESTAMP, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (path = 'a.csv');
CREATE STREAM B (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = 'b.csv');
CREATE STREAM P (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UNIQUE (k) WITH (path = 'p.csv');
CREATE STREAM Q (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UNIQUE (k) WITH (path = 'q.csv');
CREATE TABLE Names (k INT, name STRING) WITH (path = 'names.csv');
CREATE VIEW V AS SELECT k, u FROM A;
CREATE SINK Out WITH (connector = 'console');
"""


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: case.text.replace("\n", " ")[:80])
def test_message(case: Message) -> None:
    pipeline = Pipeline()
    pipeline.add_text(STREAMS)
    with pytest.raises(MillstreamError) as caught:
        pipeline.add_text(case.text)
    said, place = str(caught.value), caught.value.place
    assert all(word in said for word in case.words), said
    assert "\n" not in said
    assert place is not None
    found = case.text.splitlines()[place.line - 1][place.column - 1 :]
    assert found.startswith(case.at), (place, found)
