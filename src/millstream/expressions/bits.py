"""Bits of integers: & | ^ ~ and shifts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.errors import TypeProblem
from millstream.expressions.arithmetic import operands
from millstream.expressions.coercion import coerce, common_number
from millstream.expressions.names import name_of
from millstream.expressions.node import Kernel, Node, call
from millstream.expressions.registry import Scope, rule

_BITS: dict[Any, tuple[str, Kernel]] = {
    exp.BitwiseAnd: ("&", pc.bit_wise_and),
    exp.BitwiseOr: ("|", pc.bit_wise_or),
    exp.BitwiseXor: ("^", pc.bit_wise_xor),
}


@rule(*_BITS)
def _bits(expression: exp.Binary, scope: Scope) -> Node:
    symbol, kernel = _BITS[type(expression)]
    left, right = operands(symbol, scope.compile(expression.this), scope.compile(expression.expression))
    kind = common_number(left, right)
    if not pa.types.is_integer(kind):
        raise TypeProblem(f"{symbol} does not take {name_of(left.type)} with {name_of(right.type)}", hint="write CAST(... AS BIGINT)")
    return call(kernel, kind, [coerce(left, kind, symbol), coerce(right, kind, symbol)])


@rule(exp.BitwiseNot)
def _bit_not(expression: exp.BitwiseNot, scope: Scope) -> Node:
    node = scope.compile(expression.this)
    if not pa.types.is_integer(node.type):
        raise TypeProblem(f"~ does not take {name_of(node.type)}", hint="write CAST(... AS BIGINT)")
    return call(pc.bit_wise_not, node.type, [node])
