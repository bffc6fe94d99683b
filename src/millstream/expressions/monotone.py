"""Expressions that never decrease in one column, so that a low-water mark on the column is one on the expression.

If no later tuple has `ts < t`, then no later tuple has `f(ts) < f(t)`. A month added to a timestamp is *not* such a
function: January 30th 23:00 becomes February 28th 23:00, and January 31st 01:00 becomes February 28th 01:00.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from millstream.core.types import INTERVAL, LAST_TIME, MAX_TIME, MIN_TIME, TIMESTAMP, is_axis
from millstream.errors import MillstreamError
from millstream.expressions.calendar import civil, truncated
from millstream.expressions.intervals import MICROS
from millstream.expressions.names import normal_type, type_of
from millstream.expressions.node import Node
from millstream.expressions.registry import Scope
from millstream.expressions.times import truncation_unit

Step = Callable[[int], int]
_FAR = 2**62
"""Beyond every time and every number that stands for one; what steps make of it still fits where they count in 64 bits."""
DAY, SECOND = MICROS["day"], MICROS["second"]
_LAST = {TIMESTAMP: LAST_TIME, pa.date32(): LAST_TIME // DAY}


@dataclass(frozen=True)
class Monotone:
    """A non-decreasing function of one column, on int64 axis values; the ends of time stay where they are."""

    column: str
    kind: pa.DataType
    steps: tuple[Step, ...] = ()

    def apply(self, value: int) -> int:
        """f(value), kept inside int64."""
        if value in (MIN_TIME, MAX_TIME):
            return value
        for step in self.steps:
            value = step(value)
        return max(MIN_TIME, min(MAX_TIME, value))

    def reaching(self, mark: int) -> int | None:
        """The smallest value v with f(v) >= mark, by bisection; None when there is none."""
        if not self.steps:
            return mark
        low, high = -_FAR, _FAR
        if self.apply(high) < mark:
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.apply(middle) >= mark else (middle + 1, high)
        return low

    def then(self, kind: pa.DataType, *steps: Step) -> Monotone:
        return Monotone(self.column, kind, self.steps + steps)


def monotone(expression: exp.Expr, schema: pa.Schema) -> Monotone | None:
    """Return how the expression follows its one column; None when it may decrease or stops growing."""
    found = _follow(expression, Scope(schema))
    if found is None:
        return None
    last = _LAST.get(schema.field(found.column).type, _FAR)
    return found if found.apply(last) > found.apply(0) else None


def _follow(expression: exp.Expr, scope: Scope) -> Monotone | None:
    rule = _RULES.get(type(expression))
    if rule is None:
        return None
    try:
        return rule(expression, scope)
    except MillstreamError:
        return None


def _constant(expression: exp.Expr, scope: Scope) -> Node | None:
    if expression.find(exp.Column) is not None:
        return None
    node = scope.compile(expression)
    return node if node.constant is not None and node.constant.is_valid else None


def _column(expression: exp.Column, scope: Scope) -> Monotone | None:
    (name,) = scope.compile(expression).columns
    kind = scope.schema.field(name).type
    return Monotone(name, kind) if is_axis(kind) and normal_type(kind) == kind else None


def _inside(expression: exp.Expr, scope: Scope) -> Monotone | None:
    return _follow(expression.this, scope)


def _typed(inner: Monotone, expression: exp.Expr, scope: Scope, *steps: Step) -> Monotone | None:
    """The step, with the type the compiler gives the whole expression; only types on an axis count."""
    kind = scope.compile(expression).type
    return inner.then(kind, *steps) if is_axis(kind) else None


def _plus(value: int, by: int) -> int:
    return value + by


def _times(value: int, by: int) -> int:
    return value * by


def _floor(value: int, by: int) -> int:
    return value // by


def _toward_zero(value: int, by: int) -> int:
    return value // by if value >= 0 else -(-value // by)


def _floor_of_quotient(value: int, by: int) -> int:
    """As the evaluator computes it: in doubles."""
    return math.floor(float(value) / float(by))


def _add(expression: Any, scope: Scope) -> Monotone | None:
    left, right = expression.this, expression.expression
    inner, by = _follow(left, scope), right
    sign = -1 if isinstance(expression, exp.Sub) else 1
    if inner is None and sign == 1:
        inner, by = _follow(right, scope), left
    if inner is None:
        return None
    amount = _constant(by, scope)
    if amount is None:
        return None
    if amount.type == INTERVAL:
        micros = sign * amount.constant.value  # type: ignore[union-attr]
        return _moved(inner, expression, scope, micros)
    if pa.types.is_integer(amount.type) and (pa.types.is_integer(inner.kind) or pa.types.is_date32(inner.kind)):
        return _typed(inner, expression, scope, partial(_plus, by=sign * int(amount.value)))
    return None


def _date_add(expression: exp.TsOrDsAdd, scope: Scope) -> Monotone | None:
    """date_add and date_sub of a DATE."""
    inner, amount = _follow(expression.this, scope), _constant(expression.expression, scope)
    if inner is None or amount is None or not pa.types.is_date32(inner.kind) or not pa.types.is_integer(amount.type):
        return None
    return _typed(inner, expression, scope, partial(_plus, by=int(amount.value)))


def _moved(inner: Monotone, expression: exp.Expr, scope: Scope, micros: int) -> Monotone | None:
    kind = scope.compile(expression).type
    if inner.kind == TIMESTAMP:
        return inner.then(TIMESTAMP, partial(_plus, by=micros))
    if kind == pa.date32():
        return inner.then(kind, partial(_plus, by=micros // DAY))
    return inner.then(TIMESTAMP, partial(_times, by=DAY), partial(_plus, by=micros)) if kind == TIMESTAMP else None


def _mul(expression: exp.Mul, scope: Scope) -> Monotone | None:
    for here, there in ((expression.this, expression.expression), (expression.expression, expression.this)):
        inner, factor = _follow(here, scope), None if _follow(there, scope) else _constant(there, scope)
        if (
            inner
            and factor
            and pa.types.is_integer(factor.type)
            and pa.types.is_integer(inner.kind)
            and factor.value > 0
        ):
            return _typed(inner, expression, scope, partial(_times, by=int(factor.value)))
    return None


def _positive_divisor(expression: exp.Binary, scope: Scope) -> tuple[Monotone, int] | None:
    inner = _follow(expression.this, scope)
    if inner is None or not pa.types.is_integer(inner.kind):
        return None
    divisor = _constant(expression.expression, scope)
    if divisor is None or not pa.types.is_integer(divisor.type) or divisor.value <= 0:
        return None
    return inner, int(divisor.value)


def _div(expression: exp.IntDiv, scope: Scope) -> Monotone | None:
    found = _positive_divisor(expression, scope)
    return found and found[0].then(pa.int64(), partial(_toward_zero, by=found[1]))


def _floor_rule(expression: exp.Floor, scope: Scope) -> Monotone | None:
    inside = expression.this.unnest()
    if expression.args.get("decimals") is not None:
        return None
    if isinstance(inside, exp.Div):
        found = _positive_divisor(inside, scope)
        return found and found[0].then(pa.int64(), partial(_floor_of_quotient, by=found[1]))
    inner = _follow(inside, scope)
    return inner if inner and pa.types.is_integer(inner.kind) else None


def _cast(expression: exp.Cast, scope: Scope) -> Monotone | None:
    """CAST; TRY_CAST too where it can not fail: null is no step on."""
    inner, kind = _follow(expression.this, scope), type_of(expression.to)
    if inner is None or (expression.args.get("safe") and not _total(inner.kind, kind)):
        return None
    return _convert(inner, kind)


def _total(source: pa.DataType, kind: pa.DataType) -> bool:
    return kind in (source, pa.int64()) or (source, kind) in _CONVERSIONS


def _convert(inner: Monotone, kind: pa.DataType) -> Monotone | None:
    if inner.kind == kind:
        return inner
    if inner.kind == TIMESTAMP and pa.types.is_integer(kind):
        return inner.then(kind, partial(_floor, by=SECOND))
    if pa.types.is_integer(inner.kind) and pa.types.is_integer(kind):
        return inner.then(kind)
    steps = _CONVERSIONS.get((inner.kind, kind))
    if steps is None and pa.types.is_integer(inner.kind) and kind == TIMESTAMP:
        steps = (partial(_times, by=SECOND),)
    return None if steps is None else inner.then(kind, *steps)


_CONVERSIONS: dict[tuple[pa.DataType, pa.DataType], tuple[Step, ...]] = {
    (TIMESTAMP, pa.date32()): (partial(_floor, by=DAY),),
    (pa.date32(), TIMESTAMP): (partial(_times, by=DAY),),
}


def _to_date(expression: Any, scope: Scope) -> Monotone | None:
    inner = _follow(expression.this, scope)
    return inner and _convert(inner, pa.date32()) if inner and not pa.types.is_integer(inner.kind) else None


def _moment(expression: exp.Expr, scope: Scope) -> Monotone | None:
    inner = _follow(expression, scope)
    return _convert(inner, TIMESTAMP) if inner and not pa.types.is_integer(inner.kind) else None


def _trunc_fixed(value: int, size: int) -> int:
    return value - value % size


def _trunc_days(value: int, unit: str) -> int:
    return int(truncated(np.array([value]), unit)[0])


def _date_trunc(expression: exp.Expr, scope: Scope) -> Monotone | None:
    inner, unit = _moment(expression.this, scope), truncation_unit(expression)
    if inner is None:
        return None
    if unit in MICROS and unit != "week":
        return inner.then(TIMESTAMP, partial(_trunc_fixed, size=MICROS[unit]))
    return inner.then(TIMESTAMP, partial(_floor, by=DAY), partial(_trunc_days, unit=unit), partial(_times, by=DAY))


def _trunc(expression: exp.Expr, scope: Scope) -> Monotone | None:
    inner, unit = _to_date(expression, scope), truncation_unit(expression)
    if inner is None or (unit in MICROS and unit != "week"):
        return inner
    return inner.then(pa.date32(), partial(_trunc_days, unit=unit))


def _year_of(value: int) -> int:
    return int(civil(np.array([value]))[0][0])


def _year(expression: exp.Expr, scope: Scope) -> Monotone | None:
    inner = _to_date(expression, scope)
    return inner and inner.then(pa.int32(), _year_of)


def _unix(size: int) -> Callable[[Any, Scope], Monotone | None]:
    def rule(expression: exp.Expr, scope: Scope) -> Monotone | None:
        inner = _moment(expression.this, scope)
        return inner and inner.then(pa.int64(), partial(_floor, by=size))

    return rule


_FROM_NUMBERS = {"timestamp_seconds": SECOND, "timestamp_millis": 1_000, "timestamp_micros": 1}


def _named(expression: exp.Anonymous, scope: Scope) -> Monotone | None:
    size = _FROM_NUMBERS.get(str(expression.this).lower())
    inner = _follow(expression.expressions[0], scope) if size and expression.expressions else None
    if inner is None or size is None or not pa.types.is_integer(inner.kind):
        return None
    return inner.then(TIMESTAMP, partial(_times, by=size))


_RULES: dict[type[exp.Expr], Callable[[Any, Scope], Monotone | None]] = {
    exp.Column: _column,
    exp.Paren: _inside,
    exp.Alias: _inside,
    exp.Add: _add,
    exp.Sub: _add,
    exp.Mul: _mul,
    exp.IntDiv: _div,
    exp.Floor: _floor_rule,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.TsOrDsToDate: _to_date,
    exp.TsOrDsAdd: _date_add,
    exp.TimestampTrunc: _date_trunc,
    exp.DateTrunc: _trunc,
    exp.Year: _year,
    exp.StrToUnix: _unix(SECOND),
    exp.UnixSeconds: _unix(SECOND),
    exp.UnixMillis: _unix(1_000),
    exp.UnixMicros: _unix(1),
    exp.Anonymous: _named,
}
