"""ORDER BY puts nulls and NaN where Spark does, on one bucket and on several."""

from __future__ import annotations

import random

import pytest

from millstream.testing import Result, run
from tests.oracle import duck
from tests.oracle.cases import Case
from tests.oracle.queries import Query
from tests.oracle.streams import StreamSpec
from tests.oracle.test_found import NAN, row

NUMBERS, TEXTS = (1.5, None, NAN, -2.0, None, NAN, 0.0), (None, "b", "a")
STREAM = StreamSpec("A", rows=tuple(row(n // 7, i=n, x=NUMBERS[n % 7], s=TEXTS[n % 3]) for n in range(21)))
# What is written, and the same for DuckDB with each default spelled out. DuckDB has NaN above every number.
ORDERS = {
    "x": "x NULLS FIRST",
    "x DESC": "x DESC NULLS LAST",
    "x NULLS FIRST": "x NULLS FIRST",
    "x NULLS LAST": "x NULLS LAST",
    "x DESC NULLS FIRST": "x DESC NULLS FIRST",
    "2 DESC": "x DESC NULLS LAST",
    "s, x DESC": "s NULLS FIRST, x DESC NULLS LAST",
    "s DESC NULLS FIRST, x NULLS LAST": "s DESC NULLS FIRST, x NULLS LAST",
}


SELECT = "SELECT ts AS t, x, s, i FROM A"
QUERIES = tuple(
    Query(f"{SELECT} ORDER BY t, {ours}, i", f"{SELECT} ORDER BY t, {duckdb}, i")
    for ours, duckdb in ORDERS.items()
)
CASE = Case((STREAM,), QUERIES, 4, 2)


def check(result: Result) -> None:
    for number, query in enumerate(QUERIES):
        found = duck.rows_of(result.tables[f"Out{number}"])
        assert repr(found) == repr(CASE.expected(number)), query.ours


@pytest.mark.parametrize("buckets", [0, 3])
def test_nulls_and_nan_in_order(buckets: int) -> None:
    check(CASE.host(buckets, random.Random(1)) if buckets else CASE.run())


@pytest.mark.slow
def test_nulls_and_nan_in_order_on_spark(spark: object) -> None:
    check(run(CASE.pipeline(), CASE.inputs(), runtime="spark", batch=CASE.batch, files={"A": CASE.files}))
