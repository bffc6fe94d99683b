"""The words in which EXPLAIN speaks of windows, bands and lengths of time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from millstream.core.types import TIMESTAMP
from millstream.language import parse_expression
from millstream.plan.explain import band_text, span, sql_text, window_text
from millstream.plan.nodes import Band
from millstream.plan.window import Window

S = 1_000_000
TIMES = pa.schema([("a", TIMESTAMP), ("b", TIMESTAMP)])
NUMBERS = pa.schema([("a", pa.int64()), ("b", pa.int64())])


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "0 s"),
        (1, "1 us"),
        (1500, "1500 us"),
        (500_000, "500 ms"),
        (90 * S, "90 s"),
        (60 * S, "1 min"),
        (3600 * S, "1 h"),
        (86400 * S, "1 d"),
    ],
)
def test_lengths(length: int, text: str) -> None:
    assert span(length) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-5 * S, 5 * S, "b within 5 s of a"),
        (-3 * S, 5 * S, "b within 3 s before and 5 s after a"),
        (0, 5 * S, "b within 5 s after a"),
        (-3 * S, 0, "b within 3 s before a"),
        (0, 0, "b equal to a"),
        (1 * S, 2 * S, "b between a + 1 s and a + 2 s"),
        (-2 * S, None, "b from a - 2 s on"),
        (None, 0, "b up to a"),
        (None, None, "any b and a"),
    ],
)
def test_bands(low: int | None, high: int | None, text: str) -> None:
    assert band_text(Band("a", "b", low, high), TIMES) == text


def test_bands_of_numbers_have_no_unit() -> None:
    assert band_text(Band("a", "b", -10, 20), NUMBERS) == "b within 10 before and 20 after a"


def test_windows() -> None:
    assert window_text(Window("ts", 60 * S, 60 * S)) == "1 min tumbling on ts"
    assert window_text(Window("ts", 60 * S, 10 * S, slides=True)) == "1 min every 10 s on ts"
    assert window_text(Window("__seq", 100, 100, rows=True)) == "100 tuples tumbling"


def test_names_are_quoted_only_where_they_must_be() -> None:
    assert sql_text(parse_expression("`plain` > 1 AND `odd name` > 2")) == "plain > 1 AND `odd name` > 2"
    assert sql_text(parse_expression("`__a0` > 1"), {"__a0": "count(*)"}) == "count(*) > 1"
