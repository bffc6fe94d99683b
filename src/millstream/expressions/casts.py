"""CAST, TRY_CAST and the conversions behind implicit coercion: one kernel per pair of type families."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.core.types import INTERVAL, TIMESTAMP
from millstream.errors import TypeProblem
from millstream.expressions import parsing, raw
from millstream.expressions.names import name_of, type_of
from millstream.expressions.node import (
    FAILURES,
    Datum,
    Kernel,
    Node,
    RowFailure,
    call,
    null,
    rowwise,
    within_years,
)
from millstream.expressions.registry import Call, Scope, function, rule

SECOND = 1_000_000
DAY = 86_400 * SECOND

Maker = Callable[[pa.DataType, pa.DataType], Kernel]
CASTS: dict[tuple[str, str], Maker] = {}
"""Kernels by the families of the two types."""


def family(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return "decimal"
    return _FAMILIES.get(kind, "other")


_FAMILIES = {
    pa.bool_(): "bool", pa.int8(): "int", pa.int16(): "int", pa.int32(): "int", pa.int64(): "int",
    pa.float32(): "float", pa.float64(): "float", pa.string(): "string", pa.binary(): "binary",
    pa.date32(): "date", TIMESTAMP: "timestamp", INTERVAL: "interval", pa.null(): "null",
}  # fmt: skip


def kernel(source: pa.DataType, target: pa.DataType) -> Kernel:
    """The kernel that casts one type to another; it raises for a value that has no counterpart."""
    made = _unchecked(source, target)
    return within_years(made) if target in (TIMESTAMP, pa.date32()) else made


def _unchecked(source: pa.DataType, target: pa.DataType) -> Kernel:
    maker = CASTS.get((family(source), family(target)))
    if maker is None:
        raise TypeProblem(f"CAST does not take {name_of(source)} to {name_of(target)}", hint=_way_out(source, target))
    return maker(source, target)


_WRITTEN = {"bool": "BOOLEAN", "float": "DOUBLE"}
"""Families of types whose names are not those of a type."""


def _way_out(source: pa.DataType, target: pa.DataType) -> str:
    ways = sorted({_WRITTEN.get(b, b.upper()) for a, b in CASTS if a == family(source)})
    return f"{name_of(source)} casts to {', '.join(ways)}" if ways else "it casts to nothing"


def cast(node: Node, kind: pa.DataType, *, lenient: bool = False) -> Node:
    """The node in another type; lenient casts give NULL where a strict one fails."""
    if node.type == kind:
        return node
    if pa.types.is_null(node.type):
        return null(kind)
    fallible = _can_fail(node.type, kind)
    if lenient and fallible:
        return call(nulling(kernel(node.type, kind), kind), kind, [node])
    return call(_unchecked(node.type, kind), kind, [node], fallible=fallible)


def nulling(strict: Kernel, kind: pa.DataType) -> Kernel:
    """A kernel that gives NULL for the tuples a strict kernel fails on, found by bisection."""

    def attempt(*args: Datum) -> pa.Array:
        try:
            return strict(*args)
        except FAILURES:
            length = next(len(a) for a in args if isinstance(a, pa.Array))
            if length == 1:
                return pa.nulls(1, kind)
            half = length // 2
            parts = [[a[:half] if isinstance(a, pa.Array) else a for a in args], [a[half:] if isinstance(a, pa.Array) else a for a in args]]
            return pa.concat_arrays([attempt(*part) for part in parts])

    return attempt


def _can_fail(source: pa.DataType, target: pa.DataType) -> bool:
    pair = (family(source), family(target))
    if pair == ("int", "int"):
        return bool(target.bit_width < source.bit_width)
    if pair == ("int", "decimal"):
        return bool(target.precision - target.scale < 19)
    if pair == ("decimal", "decimal"):
        return bool(target.precision - target.scale < source.precision - source.scale + (source.scale > target.scale))
    return pair not in _SURE


_SURE = {
    ("int", "float"), ("float", "float"), ("decimal", "float"), ("bool", "int"), ("bool", "float"), ("int", "bool"), ("float", "bool"),
    ("decimal", "bool"), ("timestamp", "float"), ("timestamp", "date"), ("date", "timestamp"), ("interval", "float"),
    *((f, "string") for f in ("bool", "int", "float", "decimal", "date", "timestamp")), ("string", "binary"),
}  # fmt: skip


def between(source: str, *targets: str) -> Callable[[Maker], Maker]:
    def register(maker: Maker) -> Maker:
        for target in targets:
            CASTS[source, target] = maker
        return maker

    return register


@between("int", "int")
@between("bool", "int", "float", "string")
@between("date", "string")
@between("int", "string")
@between("binary", "string")
@between("string", "binary")
def _arrow(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda a: pc.cast(a, target)


@between("decimal", "float")
def _decimal_float(source: pa.DataType, target: pa.DataType) -> Kernel:
    """To the nearest, as its text is read; Arrow's own cast is off by one in the last place now and then (3.000 became 3.0000002)."""
    return lambda a: pc.cast(pc.cast(a, pa.string()), target)


@between("int", "float")
@between("float", "float")
def _rounding(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda a: pc.cast(a, target, safe=False)


@between("int", "decimal")
def _int_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda a: pc.cast(pc.cast(a, pa.decimal128(19, 0)), target)


@between("decimal", "decimal")
def rescale(source: pa.DataType, target: pa.DataType) -> Kernel:
    """Another precision and scale; digits that go are rounded half up."""
    if source.scale <= target.scale:
        return lambda a: pc.cast(a, target)
    wide = pa.decimal256(source.precision + 1, source.scale)
    return lambda a: pc.cast(pc.round(pc.cast(a, wide), target.scale, round_mode="half_towards_infinity"), target)


@between("decimal", "int")
def _decimal_int(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda a: pc.cast(pc.trunc(a), target)


@between("float", "int")
def _float_int(source: pa.DataType, target: pa.DataType) -> Kernel:
    low, high = -(2.0 ** (target.bit_width - 1)), 2.0 ** (target.bit_width - 1)

    def run(array: pa.Array) -> pa.Array:
        whole = pc.trunc(pc.cast(array, pa.float64()))
        outside = pc.invert(pc.and_(pc.greater_equal(whole, low), pc.less(whole, high)))
        if pc.any(outside).as_py():
            bad = array.filter(outside)[0].as_py()
            raise RowFailure(f"{bad!r} is outside {name_of(target)}")
        return pc.cast(whole, target, safe=False)

    return run


@between("float", "decimal")
def _float_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    return rowwise(lambda v: parsing.decimal_of(repr(v), target.precision, target.scale), target)


@between("int", "bool")
@between("float", "bool")
@between("decimal", "bool")
def _truth(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda a: pc.not_equal(a, pa.scalar(0, source))


@between("float", "string")
def _float_string(source: pa.DataType, target: pa.DataType) -> Kernel:
    show: Callable[[Any], str] = repr if pa.types.is_float64(source) else lambda v: _float32_text(v)
    return rowwise(show, target)


def _float32_text(value: float) -> str:
    return repr(float(str(np.float32(value))))


@between("decimal", "string")
def _decimal_string(source: pa.DataType, target: pa.DataType) -> Kernel:
    return rowwise(lambda v: format(v, "f"), target)


@between("timestamp", "string")
def _timestamp_string(source: pa.DataType, target: pa.DataType) -> Kernel:
    def run(array: pa.Array) -> pa.Array:
        full = pc.cast(array.view(pa.timestamp("us")), target)
        return pc.replace_substring_regex(pc.replace_substring_regex(full, r"(\.[0-9]*[1-9])0+$", r"\1"), r"\.0+$", "")

    return run


@between("timestamp", "int")
@between("interval", "int")
def _seconds(source: pa.DataType, target: pa.DataType) -> Kernel:
    seconds = raw.on_integers(lambda v: v // SECOND, pa.int64())
    return lambda a: pc.cast(seconds(a), target)


@between("timestamp", "float")
@between("interval", "float")
def _fraction_seconds(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda a: pc.cast(pc.divide(pc.cast(a.view(pa.int64()), pa.float64(), safe=False), 1e6), target, safe=False)


@between("int", "timestamp")
def _int_timestamp(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda a: pc.multiply_checked(pc.cast(a, pa.int64()), pa.scalar(SECOND)).view(TIMESTAMP)


@between("float", "timestamp")
def _float_timestamp(source: pa.DataType, target: pa.DataType) -> Kernel:
    to_micros = _float_int(pa.float64(), pa.int64())
    return lambda a: to_micros(pc.multiply(pc.cast(a, pa.float64()), 1e6)).view(TIMESTAMP)


@between("timestamp", "date")
def _timestamp_date(source: pa.DataType, target: pa.DataType) -> Kernel:
    return raw.on_integers(lambda v: (v // DAY).astype(np.int32), pa.date32())


@between("date", "timestamp")
def _date_timestamp(source: pa.DataType, target: pa.DataType) -> Kernel:
    return lambda a: pc.multiply_checked(pc.cast(a.view(pa.int32()), pa.int64()), pa.scalar(DAY)).view(TIMESTAMP)


@between("string", "int", "float", "decimal", "bool", "timestamp", "date")
def _parse(source: pa.DataType, target: pa.DataType) -> Kernel:
    return parsing.parser(target)


@rule(exp.Cast, exp.TryCast)
def _cast(expression: exp.Cast, scope: Scope) -> Node:
    """Spark's parser marks only TRY_CAST as safe, whatever the class of the node."""
    return cast(scope.compile(expression.this), type_of(expression.to), lenient=bool(expression.args.get("safe")))


def _conversion(name: str, kind: pa.DataType) -> None:
    function(name)(lambda nodes, call_: cast(nodes[0], kind))


for _name, _kind in {
    "bigint": pa.int64(), "int": pa.int32(), "smallint": pa.int16(), "tinyint": pa.int8(),
    "decimal": pa.decimal128(10, 0), "binary": pa.binary(),
    "string": pa.string(),
    "double": pa.float64(), "float": pa.float32(), "boolean": pa.bool_(), "date": pa.date32(), "timestamp": TIMESTAMP,
    "to_timestamp": TIMESTAMP,
}.items():  # fmt: skip
    _conversion(_name, _kind)


@function("try_to_timestamp")
def _try_to_timestamp(nodes: Any, call_: Call) -> Node:
    return cast(nodes[0], TIMESTAMP, lenient=True)
