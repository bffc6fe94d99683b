"""How operands of different types meet: Spark's rules, with DuckDB's where the two disagree about 32-bit floats."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from millstream.core.types import INTERVAL, TIMESTAMP, one_of
from millstream.errors import TypeProblem
from millstream.expressions import casts
from millstream.expressions.names import is_number, name_of
from millstream.expressions.node import Node, RowFailure, constant, null

_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """A decimal type of at most 38 digits; when digits must go, the fraction keeps at least six (Spark's rule)."""
    if precision > 38:
        scale = max(38 - (precision - scale), min(scale, 6))
        precision = 38
    return pa.decimal128(precision, scale)


def as_decimal(node: Node) -> pa.DataType:
    """The decimal type an integer or decimal operand has among decimals; a literal only needs its own digits."""
    if pa.types.is_decimal(node.type):
        return node.type
    if node.constant is not None and node.constant.is_valid:
        return pa.decimal128(max(1, len(str(abs(node.value)))), 0)
    return pa.decimal128(_DIGITS[node.type], 0)


def common_number(left: Node, right: Node) -> pa.DataType:
    """The type two numbers are computed in."""
    a, b = left.type, right.type
    if pa.types.is_float64(a) or pa.types.is_float64(b):
        return pa.float64()
    if pa.types.is_float32(a) or pa.types.is_float32(b):
        return pa.float32()
    if pa.types.is_decimal(a) or pa.types.is_decimal(b):
        da, db = as_decimal(left), as_decimal(right)
        scale = max(da.scale, db.scale)
        return decimal_type(max(da.precision - da.scale, db.precision - db.scale) + scale, scale)
    return _INTEGERS[max(_INTEGERS.index(a), _INTEGERS.index(b))]


def common_type(nodes: Sequence[Node], what: str) -> pa.DataType:
    """The one type that values compared or chosen between are brought to."""
    known = [n for n in nodes if not pa.types.is_null(n.type)]
    if not known:
        return pa.null()
    typed = [n for n in known if not _is_text_literal(n)] or known
    met = typed[0]
    for other in typed[1:]:
        met = _meet(met, other, what)
    return met.type


def _meet(left: Node, right: Node, what: str) -> Node:
    """The pairwise step of `common_type`: a node of the type both sides go to."""
    a, b = left.type, right.type
    if a == b:
        return left if left.constant is None else right
    if is_number(a) and is_number(b):
        return null_of(common_number(left, right))
    if {a, b} == {pa.date32(), TIMESTAMP}:
        return null_of(TIMESTAMP)
    raise mismatch(what, a, b)


def null_of(kind: pa.DataType) -> Node:
    """A stand-in of a type, not constant, so that only its type counts."""
    return Node(kind, lambda batch: pa.nulls(batch.num_rows, kind))


def mismatch(what: str, left: pa.DataType, right: pa.DataType) -> TypeProblem:
    a, b = name_of(left), name_of(right)
    if pa.types.is_string(left) or pa.types.is_string(right):
        other = b if pa.types.is_string(left) else a
        hint = f"write CAST(... AS {other}) around the STRING side"
    elif "INTERVAL" in (a, b):
        hint = "write a length of time as INTERVAL 5 SECONDS"
    else:
        hint = f"write CAST(... AS {b}) or CAST(... AS {a}) around one side"
    return TypeProblem(f"{what} does not take {a} with {b}", hint=hint)


def _is_text_literal(node: Node) -> bool:
    return node.is_constant and pa.types.is_string(node.type)


def coerce(node: Node, kind: pa.DataType, what: str) -> Node:
    """Bring an operand to a type that `common_type` or a function's signature asked for."""
    if node.type == kind:
        return node
    if pa.types.is_null(node.type):
        return null(kind)
    if _is_text_literal(node):
        return parse_literal(node, kind, what)
    if is_number(node.type) and is_number(kind):
        return casts.cast(node, kind)
    if pa.types.is_date32(node.type) and kind == TIMESTAMP:
        return casts.cast(node, kind)
    if kind == pa.date32() and node.type == TIMESTAMP:
        return casts.cast(node, kind)
    raise mismatch(what, node.type, kind)


def parse_literal(node: Node, kind: pa.DataType, what: str) -> Node:
    """A string literal beside a value of another type is read as that type, now."""
    try:
        if kind == INTERVAL:
            raise RowFailure("an interval")
        kernel = casts.kernel(node.type, kind)
        return constant(kernel(pa.array([node.value], pa.string()))[0])
    except (ValueError, TypeProblem) as error:
        raise TypeProblem(
            f"{what} reads the literal '{node.value}' as {name_of(kind)}, and it is none",
            hint="write the literal as INTERVAL '...' <unit>"
            if kind == INTERVAL
            else f"write {one_of(kind)} or CAST the other side AS STRING",
        ) from error


def unify(nodes: Sequence[Node], what: str) -> tuple[pa.DataType, list[Node]]:
    """All operands in their common type."""
    kind = common_type(nodes, what)
    return kind, [coerce(n, kind, what) for n in nodes]


def text(node: Node, what: str) -> Node:
    """A string argument; other scalar values are refused with the way out."""
    if pa.types.is_string(node.type):
        return node
    if pa.types.is_null(node.type):
        return null(pa.string())
    raise TypeProblem(f"{what} takes a STRING, not {name_of(node.type)}", hint="write CAST(... AS STRING)")


def whole(node: Node, what: str) -> Node:
    """An integer argument, as BIGINT."""
    if pa.types.is_null(node.type):
        return null(pa.int64())
    if pa.types.is_integer(node.type):
        return casts.cast(node, pa.int64())
    raise TypeProblem(f"{what} takes an integer, not {name_of(node.type)}", hint="write CAST(... AS BIGINT)")


def double(node: Node, what: str) -> Node:
    """A number as DOUBLE."""
    if pa.types.is_null(node.type) or is_number(node.type) or _is_text_literal(node):
        return coerce(node, pa.float64(), what)
    raise TypeProblem(f"{what} takes a number, not {name_of(node.type)}", hint="write CAST(... AS DOUBLE)")


def boolean(node: Node, what: str) -> Node:
    if pa.types.is_boolean(node.type):
        return node
    if pa.types.is_null(node.type):
        return null(pa.bool_())
    raise TypeProblem(f"{what} takes a BOOLEAN, not {name_of(node.type)}", hint="write a comparison, such as `x <> 0` or `s = 'yes'`")


def moment(node: Node, what: str) -> Node:
    """A timestamp argument; dates and string literals are read as one."""
    if node.type == TIMESTAMP:
        return node
    if pa.types.is_date32(node.type) or pa.types.is_null(node.type) or _is_text_literal(node):
        return coerce(node, TIMESTAMP, what)
    raise TypeProblem(f"{what} takes a TIMESTAMP, not {name_of(node.type)}", hint="write CAST(... AS TIMESTAMP) or to_timestamp(...)")


def day(node: Node, what: str) -> Node:
    """A date argument; timestamps lose their time of day."""
    if pa.types.is_date32(node.type) or node.type == TIMESTAMP or pa.types.is_null(node.type) or _is_text_literal(node):
        return coerce(node, pa.date32(), what)
    raise TypeProblem(f"{what} takes a DATE, not {name_of(node.type)}", hint="write CAST(... AS DATE) or to_date(...)")
