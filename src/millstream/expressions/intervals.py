"""INTERVAL literals, and times moved by them: ts + INTERVAL 1 MINUTE, ts - ts, date + INTERVAL 1 MONTH."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.core.types import INTERVAL, TIMESTAMP
from millstream.errors import TypeProblem
from millstream.expressions import casts
from millstream.expressions.calendar import add_months, add_months_to_date
from millstream.expressions.coercion import coerce
from millstream.expressions.names import is_number, name_of
from millstream.expressions.node import Datum, Node, call, constant, null
from millstream.expressions.registry import Scope, rule

CALENDAR = pa.month_day_nano_interval()
"""Intervals with months in them, whose length depends on where they begin; only constants, only added to times."""

MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
_SHORT = {
    "us": "microsecond", "usec": "microsecond", "ms": "millisecond", "msec": "millisecond", "s": "second", "sec": "second",
    "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week", "mon": "month", "y": "year", "yr": "year",
}  # fmt: skip
_PART = re.compile(r"\s*([+-]?\s*[0-9]*\.?[0-9]+)\s*([a-zA-Z]+)")


def unit_name(text: str, what: str = "INTERVAL") -> str:
    """`MINUTES`, `min` and `minute` are `minute`."""
    word = text.strip().lower()
    for name in (word, word.removesuffix("s")):
        name = _SHORT.get(name, name)
        if name in MICROS or name in MONTHS:
            return name
    hint = f"there is {', '.join([*MICROS, *MONTHS]).upper()}"
    if word == "epoch":
        hint = "unix_seconds(ts) counts the seconds since 1970"
    raise TypeProblem(f"{what} does not know the unit {text}", hint=hint)


@rule(exp.Interval)
def _interval(expression: exp.Interval, scope: Scope) -> Node:
    unit = expression.args.get("unit")
    amount = expression.this
    if isinstance(unit, exp.IntervalSpan):
        return _span(str(amount.name), unit.this.name.lower(), unit.expression.name.lower())
    if unit is None:
        return _words(str(amount.name))
    name = unit_name(unit.name)
    node = scope.compile(amount)
    if node.is_constant and pa.types.is_string(node.type):
        return constant_interval(_number(node.value), name)
    if node.is_constant and is_number(node.type):
        return null(INTERVAL) if node.value is None else constant_interval(Decimal(str(node.value)), name)
    return of_units(node, name)


def of_units(node: Node, unit: str) -> Node:
    """A column of numbers as a column of intervals."""
    if unit in MONTHS:
        raise TypeProblem("INTERVAL of months needs a constant", hint="use add_months(date, n) for a column of months")
    if pa.types.is_integer(node.type):
        size = pa.scalar(MICROS[unit])
        return call(lambda a: pc.multiply_checked(a, size).cast(INTERVAL), INTERVAL, [casts.cast(node, pa.int64())], fallible=True)
    if is_number(node.type):
        length = float(MICROS[unit])
        return call(
            lambda a: pc.cast(pc.round(pc.multiply(a, length)), pa.int64()).cast(INTERVAL),
            INTERVAL,
            [coerce(node, pa.float64(), "INTERVAL")],
            fallible=True,
        )
    raise TypeProblem(f"INTERVAL takes a number of {unit}s, not {name_of(node.type)}", hint="write CAST(... AS BIGINT)")


def _number(text: str) -> Decimal:
    try:
        return Decimal(text.replace(" ", ""))
    except InvalidOperation:
        raise TypeProblem(f"INTERVAL does not take '{text}'", hint="write a number and a unit, such as INTERVAL '90' SECOND") from None


def constant_interval(amount: Decimal | int, unit: str) -> Node:
    if unit in MONTHS:
        return _months(Decimal(amount) * MONTHS[unit])
    return _micros(Decimal(amount) * MICROS[unit])


def _micros(micros: Decimal) -> Node:
    return constant(_counted(micros, 2**63), INTERVAL)


def _months(months: Decimal | int, micros: Decimal | int = 0) -> Node:
    nanos = 1000 * _counted(micros, 2**63 // 1000)
    return constant(pa.scalar((_counted(months, 2**31), 0, nanos), CALENDAR))


def _counted(amount: Decimal | int, end: int) -> int:
    """The amount without its fraction, where it is nearer to 0 than this end."""
    exact = Decimal(amount)
    if not exact.is_finite() or abs(exact) >= end:
        raise TypeProblem("the INTERVAL is longer than time itself", hint="take a smaller number")
    return int(exact)


def _words(text: str) -> Node:
    """`INTERVAL '1 day 2 hours'`."""
    months, micros, end = 0, Decimal(0), 0
    for match in _PART.finditer(text):
        if text[end : match.start()].strip():
            break
        unit, amount, end = unit_name(match[2]), _number(match[1]), match.end()
        if unit in MONTHS:
            months += int(amount * MONTHS[unit])
        else:
            micros += amount * MICROS[unit]
    if end == 0 or text[end:].strip():
        raise TypeProblem(f"INTERVAL does not take '{text}'", hint="write numbers and units, such as INTERVAL '1 day 2 hours'")
    return _months(months, micros) if months else _micros(micros)


def _span(text: str, first: str, last: str) -> Node:
    """`INTERVAL '1:30' HOUR TO MINUTE` and `INTERVAL '1-2' YEAR TO MONTH`."""
    problem = TypeProblem(f"INTERVAL {first.upper()} TO {last.upper()} does not take '{text}'", hint="write it as INTERVAL '1 day 2 hours'")
    if first == "year":
        match = re.fullmatch(r"\s*([+-]?)([0-9]+)-([0-9]+)\s*", text)
        if match is None:
            raise problem
        months = int(match[2]) * 12 + int(match[3])
        return _months(-months if match[1] == "-" else months, 0)
    order = ["day", "hour", "minute", "second"]
    if first not in order or last not in order:
        raise problem
    units = order[order.index(first) : order.index(last) + 1]
    numbers = re.fullmatch(r"([+-]?)\s*([0-9:. ]+)", text.strip())
    parts = re.split(r"[ :]+", numbers[2].strip()) if numbers else []
    if numbers is None or len(parts) != len(units):
        raise problem
    micros = sum((_number(part) * MICROS[unit] for part, unit in zip(parts, units, strict=True)), Decimal(0))
    return _micros(-micros if numbers[1] == "-" else micros)


def shift(symbol: str, left: Node, right: Node) -> Node | None:
    """`+` and `-` where a time or an interval takes part; None when these are numbers."""
    if symbol == "+" and _is_span(left) and not _is_span(right):
        left, right = right, left
    if symbol == "-" and _is_time(left) and _is_time(right):
        kind = TIMESTAMP
        nodes = [coerce(left, kind, "-"), coerce(right, kind, "-")]
        return call(lambda a, b: pc.subtract_checked(_int(a), _int(b)).cast(INTERVAL), INTERVAL, nodes, fallible=True)
    kernel = pc.add_checked if symbol == "+" else pc.subtract_checked
    if left.type == INTERVAL and right.type == INTERVAL:
        return call(lambda a, b: kernel(_int(a), _int(b)).cast(INTERVAL), INTERVAL, [left, right], fallible=True)
    if CALENDAR in (left.type, right.type) and _is_span(left) and _is_span(right):
        return _join_spans(symbol, left, right)
    if _is_time(left) and _is_span(right):
        return _move(symbol, left, right, kernel)
    if pa.types.is_date32(left.type) and pa.types.is_integer(right.type):
        return add_days(left, right, symbol)
    return None


def _is_time(node: Node) -> bool:
    return bool(node.type == TIMESTAMP or pa.types.is_date32(node.type))


def _is_span(node: Node) -> bool:
    return bool(node.type == INTERVAL or node.type == CALENDAR)


def _int(datum: Datum) -> Datum:
    return datum.cast(pa.int64())


def _join_spans(symbol: str, left: Node, right: Node) -> Node:
    parts = [(n.value[0], n.value[2] // 1000) if n.type == CALENDAR else (0, n.constant.value) for n in (left, right)]  # type: ignore[union-attr]
    sign = 1 if symbol == "+" else -1
    return _months(parts[0][0] + sign * parts[1][0], parts[0][1] + sign * parts[1][1])


def _move(symbol: str, left: Node, right: Node, kernel: Any) -> Node:
    """A time moved by an interval; a date stays a date when the interval is a constant of whole days or months."""
    is_date = pa.types.is_date32(left.type)
    sign = 1 if symbol == "+" else -1
    if right.type == CALENDAR:
        months, micros = sign * right.value[0], sign * right.value[2] // 1000
        if is_date and micros == 0:
            return call(add_months_to_date(months), pa.date32(), [left], fallible=True)
        return call(add_months(months, micros), TIMESTAMP, [coerce(left, TIMESTAMP, symbol)], fallible=True)
    if is_date and right.constant is not None and right.constant.is_valid and right.constant.value % MICROS["day"] == 0:
        return add_days(left, constant(right.constant.value // MICROS["day"], pa.int64()), symbol)
    moment = coerce(left, TIMESTAMP, symbol)
    return call(lambda a, b: kernel(_int(a), _int(b)).cast(TIMESTAMP), TIMESTAMP, [moment, right], fallible=True)


def add_days(date: Node, days: Node, symbol: str = "+") -> Node:
    kernel = pc.add_checked if symbol == "+" else pc.subtract_checked

    def move(a: Datum, b: Datum) -> Datum:
        return kernel(a.cast(pa.int32()).cast(pa.int64()), b).cast(pa.int32()).cast(pa.date32())

    return call(move, pa.date32(), [date, casts.cast(days, pa.int64())], fallible=True)
