"""What the tests of plans share: some streams, and queries over them bound or planned, as text."""

from __future__ import annotations

from collections.abc import Callable

from millstream.pipeline import Pipeline
from millstream.plan.explain import explain_logical
from millstream.plan.nodes import Node

STREAMS = """
CREATE STREAM Bid (auction BIGINT, bidder BIGINT, price DOUBLE, closed BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 2 SECONDS PUNCTUATE ON (auction) WHEN closed WITH (connector = 'list');
CREATE STREAM A (k BIGINT, g STRING, v DOUBLE, i INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'list');
CREATE STREAM B (k INT, g STRING, v DOUBLE, d DATE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'list');
CREATE STREAM C (k BIGINT, w DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'list');
CREATE STREAM G (k BIGINT, done BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts PUNCTUATE ON (k, ts) WHEN done WITH (connector = 'list');
CREATE TABLE T (id BIGINT, label STRING) WITH (format = 'csv', path = 'labels.csv');
CREATE SINK Out WITH (connector = 'memory');
"""


def pipeline() -> Pipeline:
    made = Pipeline()
    made.add_text(STREAMS)
    return made


def bound(query: str) -> Node:
    """The plan of a query as it was written."""
    made = pipeline()
    made.add_text(f"INSERT INTO Out {query};")
    return made.queries[0]


def planned(query: str) -> str:
    """The plan after all rules, as text."""
    made = pipeline()
    made.add_text(f"INSERT INTO Out {query};")
    return made.explain("logical")


def shown(plan: Node) -> str:
    return explain_logical(plan)


def after(query: str, *rules: Callable[[Node], Node]) -> str:
    """The bound plan after these rules, as text."""
    plan = bound(query)
    for rule in rules:
        plan = rule(plan)
    return shown(plan)


def lines(text: str) -> list[str]:
    """Without indentation, scans shortened to their names."""
    return [line.strip().split(" (")[0] if "scan" in line else line.strip() for line in text.splitlines()]
