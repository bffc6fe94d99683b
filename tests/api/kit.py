"""A session with a few streams to build queries over."""

from __future__ import annotations

import millstream as ms

STREAMS = """\
CREATE STREAM A (k BIGINT, v DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'file', path = 'a.csv');
CREATE STREAM B (k BIGINT, v DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts SLACK 2 SECONDS WITH (connector = 'file', path = 'b.csv');
CREATE STREAM C (k BIGINT, done BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts ORDERED PUNCTUATE ON (k) WHEN done
  WITH (connector = 'file', path = 'c.csv');
CREATE TABLE T (k BIGINT, name STRING) WITH (path = 't.csv');
CREATE VIEW Big AS SELECT * FROM A WHERE v > 100;
CREATE SINK Out WITH (connector = 'memory');
"""


def new_session(runtime: str = "local") -> ms.Session:
    session = ms.Session(runtime)
    session.sql(STREAMS)
    return session


def tuples(*rows: tuple[int, float, int]) -> list[dict[str, object]]:
    """(k, v, seconds after noon)"""
    return [{"k": k, "v": v, "ts": f"2026-01-01 12:{s // 60:02d}:{s % 60:02d}"} for k, v, s in rows]
