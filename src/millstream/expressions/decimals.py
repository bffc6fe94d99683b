"""Decimals: Spark's result types, computed exactly in up to 76 digits and then rounded half up into 38."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from millstream.expressions.casts import cast, rescale
from millstream.expressions.coercion import as_decimal, decimal_type
from millstream.expressions.names import name_of
from millstream.expressions.node import Kernel, Node, RowFailure, call, rowwise

WIDE = Context(prec=90, rounding=ROUND_DOWN)


def sum_type(a: pa.DataType, b: pa.DataType) -> tuple[int, int]:
    scale = max(a.scale, b.scale)
    return max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale


def product_type(a: pa.DataType, b: pa.DataType) -> tuple[int, int]:
    return a.precision + b.precision + 1, a.scale + b.scale


def on_decimals(kernel: Kernel, left: Node, right: Node, exact: tuple[int, int]) -> Node:
    """Exact in up to 76 digits, then rounded into 38 (Spark's result types)."""
    kind = decimal_type(*exact)
    if exact[0] <= 38:
        return call(lambda a, b: pc.cast(kernel(a, b), kind), kind, [left, right], fallible=False)
    if exact[0] > 76:
        product = rowwise(lambda a, b: _fitted(WIDE.multiply(a, b), kind), kind)
        return call(product, kind, [left, right], fallible=True)
    to_wide_a = pa.decimal256(left.type.precision, left.type.scale)
    to_wide_b = pa.decimal256(right.type.precision, right.type.scale)
    shrink = rescale(pa.decimal256(min(75, exact[0]), exact[1]), kind)
    return call(lambda a, b: shrink(kernel(a.cast(to_wide_a), b.cast(to_wide_b))), kind, [left, right], fallible=True)


def _fitted(value: Decimal, kind: pa.DataType) -> Decimal:
    """The value rounded half up to the type's scale; too large a value fails."""
    rounded = value.quantize(Decimal(1).scaleb(-kind.scale), rounding=ROUND_HALF_UP, context=WIDE)
    if abs(rounded) >= Decimal(10) ** (kind.precision - kind.scale):
        raise RowFailure(f"{value} does not fit {name_of(kind)}")
    return rounded


def divide_decimals(left: Node, right: Node) -> Node:
    """Digit-exact through Python's decimals: Arrow truncates where Spark rounds half up."""
    a, b = as_decimal(left), as_decimal(right)
    scale = max(6, a.scale + b.precision + 1)
    kind = decimal_type(a.precision - a.scale + b.scale + scale, scale)

    def quotient(x: Decimal, y: Decimal) -> Decimal | None:
        if y == 0:
            return None
        return _fitted(WIDE.divide(x, y), kind)

    return call(rowwise(quotient, kind), kind, [cast(left, a), cast(right, b)], fallible=True)
