"""Compares tuples as multisets: everything exact but floating-point numbers, which agree to a relative 1e-9."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

Row = Mapping[str, Any]
CLOSE = 1e-9


def plain(value: Any) -> Any:
    """A value as a JSON file would hold it: times as text in UTC, decimals as text without idle zeros."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, bytes):
        return value.hex()
    return value


def _key(row: Sequence[Any]) -> list[Any]:
    """Rows that are equal but for rounding stand at the same place: floats are looked at last."""
    exact = [(0, "") if v is None else (1, str(v)) for v in row if not isinstance(v, float)]
    floats = [(1, 0.0) if math.isnan(v) else (0, v) for v in row if isinstance(v, float)]
    return [exact, floats]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
    return type(one) is type(other) and one == other


def assert_same(got: Sequence[Row], expected: Sequence[Row], label: str = "") -> None:
    """The same columns and the same tuples, each as often; the order is nobody's promise."""
    if got and expected:
        assert list(got[0]) == list(expected[0]), f"{label}: the columns differ"
    a = sorted(([plain(v) for v in row.values()] for row in got), key=_key)
    b = sorted(([plain(v) for v in row.values()] for row in expected), key=_key)
    wrong = [(x, y) for x, y in zip(a, b, strict=False) if not all(map(_same, x, y))]
    if len(a) != len(b) or wrong:
        texts = [{json.dumps(row, default=str) for row in side} for side in (a, b)]
        extra, missing = sorted(texts[0] - texts[1])[:5], sorted(texts[1] - texts[0])[:5]
        raise AssertionError(
            f"{label}: {len(a)} tuples, expected {len(b)}\n  too many: {extra}\n  missing:  {missing}\n  first pair: {wrong[:1]}"
        )
