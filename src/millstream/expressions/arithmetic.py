"""Arithmetic: + - * / DIV %, checked for overflow; division by zero gives NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.core.types import INTERVAL
from millstream.errors import TypeProblem
from millstream.expressions.casts import cast
from millstream.expressions.coercion import as_decimal, coerce, common_number, parse_literal
from millstream.expressions.decimals import WIDE, divide_decimals, on_decimals, product_type, sum_type
from millstream.expressions.intervals import CALENDAR, shift
from millstream.expressions.names import is_number, name_of
from millstream.expressions.node import FAILURES, Datum, Kernel, Node, call, null, rowwise
from millstream.expressions.registry import Call, Scope, function, rule


@rule(exp.Add, exp.SafeAdd)
def _add(expression: exp.Binary, scope: Scope) -> Node:
    return _sum(expression, scope, "+", pc.add_checked)


@rule(exp.Sub, exp.SafeSubtract)
def _sub(expression: exp.Binary, scope: Scope) -> Node:
    return _sum(expression, scope, "-", pc.subtract_checked)


def _sum(expression: exp.Binary, scope: Scope, symbol: str, kernel: Kernel) -> Node:
    left, right = scope.compile(expression.this), scope.compile(expression.expression)
    moved = shift(symbol, left, right)
    node = moved if moved is not None else _numbers(symbol, left, right, kernel, sum_type)
    return _lenient(node) if isinstance(expression, (exp.SafeAdd, exp.SafeSubtract)) else node


@rule(exp.Mul, exp.SafeMultiply)
def _mul(expression: exp.Binary, scope: Scope) -> Node:
    left, right = scope.compile(expression.this), scope.compile(expression.expression)
    if INTERVAL in (left.type, right.type):
        span, factor = (left, right) if left.type == INTERVAL else (right, left)
        node = _scaled(span, factor, "*")
    else:
        node = _numbers("*", left, right, pc.multiply_checked, product_type)
    return _lenient(node) if isinstance(expression, exp.SafeMultiply) else node


def _scaled(span: Node, factor: Node, symbol: str) -> Node:
    """An interval times or divided by a number."""
    if symbol == "*" and pa.types.is_integer(factor.type):
        return call(
            lambda a, b: pc.multiply_checked(_plain(a), b).cast(INTERVAL), INTERVAL, [span, cast(factor, pa.int64())], fallible=True
        )
    number = _without_zero(coerce(factor, pa.float64(), symbol)) if symbol == "/" else coerce(factor, pa.float64(), symbol)
    arrow = pc.divide if symbol == "/" else pc.multiply

    def kernel(a: Datum, b: Datum) -> Datum:
        return pc.cast(pc.round(arrow(_plain(a).cast(pa.float64(), safe=False), b)), pa.int64()).cast(INTERVAL)

    return call(kernel, INTERVAL, [span, number], fallible=True)


def _plain(span: Datum) -> Datum:
    return span.cast(pa.int64())


def _lenient(node: Node) -> Node:
    """try_add and its kin: NULL where the operation fails."""
    return Node(node.type, nulling_batch(node), node.columns, False, node.constant)


def nulling_batch(node: Node) -> Callable[[pa.RecordBatch], Datum]:
    def run(batch: pa.RecordBatch) -> Datum:
        try:
            return node.run(batch)
        except FAILURES:
            if batch.num_rows == 1:
                return pa.nulls(1, node.type)
            half = batch.num_rows // 2
            return pa.concat_arrays([run(batch[:half]), run(batch[half:])])

    return run


def operands(symbol: str, left: Node, right: Node) -> tuple[Node, Node]:
    """Both sides as numbers: a string literal is read as BIGINT or DOUBLE, NULL as the other side's type."""
    sides = [left, right]
    for here, there in ((0, 1), (1, 0)):
        node, other = sides[here], sides[there]
        if pa.types.is_null(node.type):
            sides[here] = null(other.type if is_number(other.type) else pa.int32())
        elif node.is_constant and pa.types.is_string(node.type) and is_number(other.type):
            sides[here] = parse_literal(node, pa.int64() if pa.types.is_integer(other.type) else pa.float64(), symbol)
    for node in sides:
        if not is_number(node.type):
            raise TypeProblem(f"{symbol} does not take {name_of(left.type)} with {name_of(right.type)}", hint=_hint(node.type))
    return sides[0], sides[1]


def _hint(kind: pa.DataType) -> str:
    if pa.types.is_string(kind):
        return "write CAST(... AS DOUBLE) or CAST(... AS BIGINT) around the STRING side, or || to join strings"
    if pa.types.is_boolean(kind):
        return "write CAST(... AS INT) around the BOOLEAN side"
    return "numbers meet numbers; a time takes an INTERVAL, such as ts + INTERVAL 1 MINUTE"


def _numbers(symbol: str, left: Node, right: Node, kernel: Kernel, decimals: Callable[[pa.DataType, pa.DataType], tuple[int, int]]) -> Node:
    """An operation in the common type of two numbers."""
    left, right = operands(symbol, left, right)
    kind = common_number(left, right)
    if pa.types.is_decimal(kind):
        a, b = as_decimal(left), as_decimal(right)
        return on_decimals(kernel, cast(left, a), cast(right, b), decimals(a, b))
    return call(kernel, kind, [coerce(left, kind, symbol), coerce(right, kind, symbol)], fallible=pa.types.is_integer(kind))


def _without_zero(node: Node) -> Node:
    """The divisor with its zeros made NULL; a constant is looked at once, here."""
    if node.constant is not None:
        return null(node.type) if node.constant.is_valid and node.value == 0 else node
    zero, nothing = pa.scalar(0, node.type), pa.scalar(None, node.type)

    def kernel(array: Datum) -> Datum:
        zeros = pc.equal(array, zero)
        return pc.if_else(zeros, nothing, array) if pc.any(zeros).as_py() else array

    return call(kernel, node.type, [node])


@rule(exp.Div, exp.SafeDivide)
def _div(expression: exp.Binary, scope: Scope) -> Node:
    """`/` gives DOUBLE, or a decimal between decimals and integers."""
    left, right = scope.compile(expression.this), scope.compile(expression.expression)
    if left.type == INTERVAL and is_number(right.type):
        return _scaled(left, right, "/")
    left, right = operands("/", left, right)
    kind = common_number(left, right)
    if pa.types.is_decimal(kind):
        return divide_decimals(left, right)
    if pa.types.is_integer(kind):
        kind = pa.float64()
    return call(pc.divide, kind, [coerce(left, kind, "/"), _without_zero(coerce(right, kind, "/"))])


@rule(exp.IntDiv)
def _int_div(expression: exp.Binary, scope: Scope) -> Node:
    left, right = operands("DIV", scope.compile(expression.this), scope.compile(expression.expression))
    kind = common_number(left, right)
    if pa.types.is_floating(kind):
        raise TypeProblem(
            f"DIV does not take {name_of(left.type)} with {name_of(right.type)}",
            hint="write floor(a / b), or CAST(... AS BIGINT) around both sides",
        )
    if pa.types.is_decimal(kind):
        whole = rowwise(lambda x, y: None if y == 0 else int(WIDE.divide_int(x, y)), pa.int64())
        return call(whole, pa.int64(), [cast(left, as_decimal(left)), cast(right, as_decimal(right))], fallible=True)
    return call(pc.divide_checked, pa.int64(), [cast(left, pa.int64()), _without_zero(cast(right, pa.int64()))], fallible=True)


@rule(exp.Mod)
def _mod(expression: exp.Binary, scope: Scope) -> Node:
    return modulo(scope.compile(expression.this), scope.compile(expression.expression), "%")


@function("mod", at_least=2)
def _mod_function(nodes: Sequence[Node], name: Call) -> Node:
    return modulo(nodes[0], nodes[1], "mod")


def modulo(left: Node, right: Node, what: str) -> Node:
    """The remainder, with the sign of the dividend."""
    left, right = operands(what, left, right)
    kind = common_number(left, right)
    if pa.types.is_decimal(kind):
        exact = rowwise(lambda x, y: None if y == 0 else WIDE.remainder(x, y), kind)
        return call(exact, kind, [coerce(left, kind, what), coerce(right, kind, what)], fallible=False)
    if pa.types.is_floating(kind):
        return call(_float_remainder(kind), kind, [coerce(left, kind, what), _without_zero(coerce(right, kind, what))])
    return call(_remainder, kind, [coerce(left, kind, what), _without_zero(coerce(right, kind, what))])


def _remainder(a: Datum, b: Datum) -> Datum:
    return pc.call_function("remainder", [a, b])


def _float_remainder(kind: pa.DataType) -> Kernel:
    def kernel(a: Datum, b: Datum) -> pa.Array:
        known = pc.and_(pc.is_valid(a), pc.is_valid(b))
        x, y = (d.to_numpy(zero_copy_only=False) if isinstance(d, pa.Array) else d.as_py() for d in (a, b))
        with np.errstate(invalid="ignore"):
            result = np.fmod(x, y)
        missing = pc.invert(known)
        mask = missing.to_numpy(zero_copy_only=False) if isinstance(missing, pa.Array) else None
        return pa.array(result, kind, mask=mask)

    return kernel


@function("pmod", at_least=2)
def _pmod(nodes: Sequence[Node], name: Call) -> Node:
    """The remainder moved above zero: ((a % n) + n) % n where a % n is negative."""
    left, right = operands(name.name, nodes[0], nodes[1])
    rest = modulo(left, right, name.name)
    right = coerce(right, rest.type, name.name)
    if pa.types.is_decimal(rest.type):
        lifted = rowwise(lambda r, n: WIDE.remainder(WIDE.add(r, n), n) if r < 0 else r, rest.type)
        return call(lifted, rest.type, [rest, right])
    again = _remainder if pa.types.is_integer(rest.type) else _float_remainder(rest.type)

    def kernel(r: Datum, n: Datum) -> Datum:
        negative = pc.less(r, pa.scalar(0, rest.type))
        if not pc.any(negative).as_py():
            return r
        below = pc.if_else(negative, r, pa.scalar(0, rest.type))
        return pc.if_else(negative, again(pc.add(below, n), n), r)

    return call(kernel, rest.type, [rest, _without_zero(right)])


@rule(exp.Neg, exp.Negative)
def _neg(expression: exp.Unary, scope: Scope) -> Node:
    if isinstance(expression.this, exp.Literal) and not expression.this.is_string:
        return scope.compile(exp.Literal(this=f"-{expression.this.name}", is_string=False))
    node = scope.compile(expression.this)
    if node.type == CALENDAR:
        return call(rowwise(lambda v: type(v)([-v[0], -v[1], -v[2]]), CALENDAR), CALENDAR, [node])
    if node.type == INTERVAL:
        return call(lambda a: pc.negate_checked(_plain(a)).cast(INTERVAL), INTERVAL, [node], fallible=True)
    if pa.types.is_null(node.type):
        return node
    if not is_number(node.type):
        raise TypeProblem(f"- does not take {name_of(node.type)}", hint=_hint(node.type))
    return call(pc.negate_checked, node.type, [node], fallible=pa.types.is_integer(node.type))


@function("positive")
def _positive(nodes: Sequence[Node], name: Call) -> Node:
    return nodes[0]
