"""ORDER BY puts nulls and NaN where Spark does, on one bucket and on several."""

from __future__ import annotations

import random

import pytest

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
    "s, x DESC": "s NULLS FIRST, x DESC NULLS LAST",
    "s DESC NULLS FIRST, x NULLS LAST": "s DESC NULLS FIRST, x NULLS LAST",
}


@pytest.mark.parametrize("buckets", [0, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_nulls_and_nan_in_order(order: str, buckets: int) -> None:
    select = "SELECT ts AS t, x, s, i FROM A"
    case = Case(
        (STREAM,),
        (Query(f"{select} ORDER BY t, {order}, i", f"{select} ORDER BY t, {ORDERS[order]}, i"),),
        4,
        2,
    )
    result = case.host(buckets, random.Random(1)) if buckets else case.run()
    assert repr(duck.rows_of(result.tables["Out0"])) == repr(case.expected(0))
