"""DuckDB as the batch engine that decides every answer, with the few names that windows need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

# Windows [w*s, w*s + r) that hold a time (r, s in seconds) or an arrival number from 0, by their starts; for times after 1970.
NAMES = """
SET TimeZone = 'UTC';
CREATE MACRO starts(ts, r, s) AS list_transform(
    generate_series(
        CAST(floor((epoch_us(ts) - r * 1000000) / (s * 1000000)) AS BIGINT) + 1,
        CAST(floor(epoch_us(ts) / (s * 1000000)) AS BIGINT)),
    lambda w: make_timestamptz(CAST(w * s * 1000000 AS BIGINT)));
CREATE MACRO row_starts(number, n, m) AS list_transform(
    generate_series(CAST(floor((number - n) / m) AS BIGINT) + 1, CAST(floor(number / m) AS BIGINT)), lambda w: CAST(w * m AS BIGINT));
CREATE MACRO seconds(n) AS to_microseconds(CAST(n * 1000000 AS BIGINT));
"""


def ask(query: str, tables: Mapping[str, pa.Table] | None = None) -> list[dict[str, Any]]:
    """The answer as dictionaries."""
    with duckdb.connect() as engine:
        engine.execute(NAMES)
        for name, table in (tables or {}).items():
            engine.register(name, table)
        answer = engine.execute(query)
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
