"""Naive oracles for the containers: dictionaries and lists, a few obvious lines each."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from math import fsum, inf, isnan, sqrt
from typing import Any


def canonical(value: Any) -> Any:
    """A key value as something that a dictionary compares as grouping does."""
    if isinstance(value, float):
        return "NaN" if isnan(value) else value + 0.0
    return value


@dataclass
class NaiveRow:
    name: Any
    hash: int
    low: int
    high: int
    expiry: int
    matched: bool = False


class NaiveWindow:
    def __init__(self) -> None:
        self.rows: list[NaiveRow] = []

    def pairs(self, probes: list[tuple[int, bool, int, int]]) -> list[tuple[int, Any]]:
        return [
            (i, row.name)
            for i, (hash, valid, low, high) in enumerate(probes)
            for row in reversed(self.rows)
            if valid and row.hash == hash and row.low <= high and row.high >= low
        ]

    def expired(self, mark: int) -> list[Any]:
        return [row.name for row in self.rows if row.expiry < mark]

    def discard(self, names: set[Any]) -> None:
        self.rows = [row for row in self.rows if row.name not in names]


def order_key(value: Any) -> Any:
    """NaN is greater than every number."""
    if isinstance(value, float):
        return (1, 0.0) if isnan(value) else (0, value)
    return value


def aggregate(function: str, values: list[Any], scale: int = 0) -> Any:
    """What SQL's aggregate gives for a list without nulls; `scale` is that of a decimal result."""
    if function == "count":
        return len(values)
    if not values:
        return None
    if function == "min":
        return min(values, key=order_key)
    if function == "max":
        return max(values, key=order_key)
    if function in ("bool_and", "every"):
        return all(values)
    if function in ("bool_or", "any", "some"):
        return any(values)
    if function == "sum":
        return total(values)
    if function == "avg":
        if isinstance(values[0], Decimal):
            wide = Context(prec=200)
            exact = wide.divide(total(values), Decimal(len(values)))
            return exact.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=wide)
        return total(values) / len(values)
    numbers = [Fraction(value) for value in values]
    mean = sum(numbers) / len(numbers)
    squares = sum((number - mean) ** 2 for number in numbers)
    count = len(numbers) - (0 if function.endswith("pop") else 1)
    if count == 0:
        return None
    variance = float(squares / count)
    return sqrt(variance) if function.startswith("stddev") else variance


def total(values: list[Any]) -> Any:
    if isinstance(values[0], float):
        if any(isnan(value) for value in values) or (inf in values and -inf in values):
            return float("nan")
        return inf if inf in values else -inf if -inf in values else fsum(values)
    if isinstance(values[0], Decimal):
        result = Decimal(0)
        for value in values:
            result = Context(prec=200).add(result, value)
        return result
    return sum(values)
