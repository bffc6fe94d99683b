"""What CHECK and the conditions of PUNCTUATE ON say in terms of a column's type."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from millstream.core.punctuation import NoneOf, Pattern, Range, plain_values
from millstream.core.types import MAX_TIME, MIN_TIME, is_axis, to_axis
from millstream.errors import Place, TypeProblem
from millstream.expressions import compile_expression, fold_constant, name_of
from millstream.language import place_of
from millstream.language.statements import Check, Members, Punctuate, Span

NEEDS_AXIS = "a range needs an integer, a date or a timestamp; write IN (...) for others"


def limits(kind: pa.DataType) -> tuple[int, int]:
    """The least and the greatest number on the axis of a type."""
    if pa.types.is_timestamp(kind):
        return MIN_TIME, MAX_TIME
    width = 32 if pa.types.is_date32(kind) else kind.bit_width
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def impossible(check: Check, kind: pa.DataType) -> tuple[Pattern, ...]:
    """The values that can not occur in a column of this type; null always can."""
    values = check.values
    if not is_axis(kind):
        if isinstance(values, Span):
            raise _no_axis(check.column, kind, check.place)
        return (NoneOf(tuple(_constant(e, kind, check.place)[1] for e in values.values)),)
    least, greatest = limits(kind)
    if isinstance(values, Span):
        first = least if values.low is None else _number(values.low, kind, check.place) + (not values.low_inclusive)
        last = greatest if values.high is None else _number(values.high, kind, check.place) - (not values.high_inclusive)
        allowed = [(first, last)] if first <= last else []
    else:
        numbers = sorted({_number(e, kind, check.place) for e in values.values})
        allowed = [(n, n) for n in numbers if least <= n <= greatest]
    if not allowed:
        raise TypeProblem(f"no value of `{check.column}` passes this CHECK", place=check.place, hint="look at its bounds")
    edges = [least - 1, *(edge for pair in allowed for edge in pair), greatest + 1]
    gaps = [(max(a + 1, least), min(b - 1, greatest)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return tuple(Range(None if a == least else a, None if b == greatest else b, high_inclusive=True) for a, b in gaps if a <= b)


def comparable(clause: Punctuate, columns: pa.Schema) -> None:
    """Refuse a condition of PUNCTUATE ON whose values are not of the column's kind."""
    if clause.values is None:
        return
    kind = columns.field(clause.columns[0]).type
    if isinstance(clause.values, Span) and not is_axis(kind):
        raise _no_axis(clause.columns[0], kind, clause.place)
    for expression in bounds(clause.values):
        found = compile_expression(expression, columns).type
        if found != kind and not (pa.types.is_integer(found) and pa.types.is_integer(kind)):
            raise TypeProblem(
                f"`{clause.columns[0]}` is {name_of(kind)}, and `{expression.sql('spark')}` is {name_of(found)}",
                place=place_of(expression) or clause.place,
                hint="CAST it to the type of the column",
            )


def bounds(values: Span | Members) -> tuple[exp.Expr, ...]:
    """The expressions of a condition, in order."""
    return values.values if isinstance(values, Members) else tuple(e for e in (values.low, values.high) if e is not None)


def _no_axis(column: str, kind: pa.DataType, place: Place) -> TypeProblem:
    return TypeProblem(f"`{column}` is {name_of(kind)}, which has no ranges here", place=place, hint=NEEDS_AXIS)


def _number(expression: exp.Expr, kind: pa.DataType, place: Place) -> int:
    held = pa.int64() if pa.types.is_integer(kind) else kind  # a bound may be beyond the column's own type
    return int(to_axis(_constant(expression, kind, place, held)[0])[0])


def _constant(
    expression: exp.Expr, column: pa.DataType, place: Place, held: pa.DataType | None = None
) -> tuple[pa.Array, object]:
    """The value of an expression without columns, as the column's type has it, or a type that holds more."""
    kind = column if held is None else held
    found = compile_expression(expression, pa.schema([])).type
    text, place = expression.sql("spark"), place_of(expression) or place
    value = fold_constant(expression)
    if value is None:
        raise TypeProblem("CHECK can not compare with NULL", place=place, hint="null passes a CHECK anyway")
    try:
        if _numeric(found) and _numeric(kind):
            array = pa.array([_as_number(value, kind)], type=kind)
        elif found == kind or (pa.types.is_string(found) and pa.types.is_temporal(kind)):
            array = pa.array([value], type=found).cast(kind)
        else:
            raise ValueError
    except (ValueError, ArithmeticError, pa.ArrowException):
        said = f"`{text}` is no value of a column of type {name_of(column)}"
        raise TypeProblem(said, place=place, hint="CAST it") from None
    return array, plain_values(array)[0]


def _as_number(value: Any, kind: pa.DataType) -> Any:
    """The same number, as the type holds it."""
    if pa.types.is_floating(kind):
        return float(value)
    exact = Decimal(value)
    if pa.types.is_decimal(kind):
        return exact
    if exact != int(exact):
        raise ValueError
    return int(exact)


def _numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind))


def clipped(firsts: np.ndarray, lasts: np.ndarray, kind: pa.DataType) -> tuple[np.ndarray, np.ndarray]:
    """Ranges without what a type can not hold."""
    least, greatest = limits(kind)
    return np.maximum(firsts, least), np.minimum(lasts, greatest)
