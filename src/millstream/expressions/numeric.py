"""Functions of numbers: abs, sign, round, floor, ceil, roots, logarithms, powers and angles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.core.types import INTERVAL
from millstream.errors import TypeProblem
from millstream.expressions.casts import cast
from millstream.expressions.coercion import double, whole
from millstream.expressions.names import is_number
from millstream.expressions.node import Datum, Node, call, constant, rowwise
from millstream.expressions.registry import Call, function


def number(node: Node, what: str) -> Node:
    """A numeric argument in its own type; string literals and NULL become DOUBLE."""
    return node if is_number(node.type) else double(node, what)


@function("abs", node=exp.Abs)
def _abs(nodes: Sequence[Node], name: Call) -> Node:
    (node,) = nodes
    if node.type == INTERVAL:
        return call(lambda a: pc.abs_checked(a.cast(pa.int64())).cast(INTERVAL), INTERVAL, [node], fallible=True)
    node = number(node, name.name)
    return call(pc.abs_checked, node.type, [node], fallible=pa.types.is_integer(node.type))


@function("sign", "signum", node=exp.Sign)
def _sign(nodes: Sequence[Node], name: Call) -> Node:
    return call(pc.sign, pa.float64(), [double(nodes[0], name.name)])


def _digits(nodes: Sequence[Node], name: Call) -> int:
    if len(nodes) < 2:
        return 0
    digits = whole(nodes[1], name.name)
    if not digits.is_constant or digits.value is None:
        raise TypeProblem(f"{name.name} takes a constant number of digits")
    return int(digits.value)


@function("round", at_least=1, at_most=2, node=exp.Round, args=("this", "decimals"))
def _round(nodes: Sequence[Node], name: Call) -> Node:
    """Half away from zero."""
    return _rounded(nodes, name, "half_towards_infinity")


@function("bround", at_least=1, at_most=2)
def _bround(nodes: Sequence[Node], name: Call) -> Node:
    """Half to even."""
    return _rounded(nodes, name, "half_to_even")


def _rounded(nodes: Sequence[Node], name: Call, mode: str) -> Node:
    node, digits = number(nodes[0], name.name), _digits(nodes, name)
    if pa.types.is_integer(node.type):
        return node if digits >= 0 else _rounded_integer(node, digits, mode)
    if pa.types.is_floating(node.type):
        return call(lambda a: pc.round(a, digits, round_mode=mode), node.type, [node])
    scale = min(node.type.scale, max(0, digits))
    # What lies beyond all places of the type, and one more for a carry, rounds to 0.
    digits = max(digits, node.type.scale - node.type.precision - 1)
    return _decimal_step(node, scale, lambda a: pc.round(a, digits, round_mode=mode))


def _rounded_integer(node: Node, digits: int, mode: Any) -> Node:
    """Round to tens, hundreds and so on; by way of a decimal, because Arrow takes no power of ten beyond the type."""
    places = {1: 3, 2: 5, 4: 10, 8: 19}[node.type.byte_width]
    wide, digits = pa.decimal128(places + 2, 0), max(digits, -places - 1)
    return call(
        lambda a: pc.cast(pc.round(pc.cast(a, wide), digits, round_mode=mode), node.type),
        node.type,
        [node],
        fallible=True,
    )


def _decimal_step(node: Node, scale: int, step: Callable[[Datum], Datum]) -> Node:
    """Round a decimal: a digit more in front, the scale that is left behind."""
    kind = pa.decimal128(min(38, node.type.precision - node.type.scale + 1 + scale), scale)
    wide = pa.decimal256(node.type.precision + 2, node.type.scale)
    return call(lambda a: pc.cast(step(pc.cast(a, wide)), kind), kind, [node], fallible=node.type.precision >= 38)


@function("floor", at_least=1, at_most=2, node=exp.Floor, args=("this", "decimals"))
def _floor(nodes: Sequence[Node], name: Call) -> Node:
    return _down_or_up(nodes, name, pc.floor, "down")


@function("ceil", "ceiling", at_least=1, at_most=2, node=exp.Ceil, args=("this", "decimals"))
def _ceil(nodes: Sequence[Node], name: Call) -> Node:
    return _down_or_up(nodes, name, pc.ceil, "up")


def _down_or_up(nodes: Sequence[Node], name: Call, kernel: Any, mode: str) -> Node:
    """BIGINT from a DOUBLE, a decimal from a decimal; an integer stays as it is."""
    node, digits = number(nodes[0], name.name), _digits(nodes, name)
    if digits:
        raise TypeProblem(f"{name.name} with a number of digits is not supported", hint=f"write {name.name}(x * 100) / 100, or round(x, n)")
    if pa.types.is_integer(node.type):
        return node
    if pa.types.is_decimal(node.type):
        return _decimal_step(node, 0, lambda a: pc.round(a, 0, round_mode=mode))
    return cast(call(kernel, pa.float64(), [double(node, name.name)]), pa.int64())


@function("sqrt", node=exp.Sqrt)
def _sqrt(nodes: Sequence[Node], name: Call) -> Node:
    return call(pc.sqrt, pa.float64(), [double(nodes[0], name.name)])


@function("exp", node=exp.Exp)
def _exp(nodes: Sequence[Node], name: Call) -> Node:
    return call(_numpy(np.exp), pa.float64(), [double(nodes[0], name.name)])


def _numpy(function_: Callable[..., Any]) -> Callable[..., pa.Array]:
    """A kernel from a numpy function of floats, NULL where an argument is."""

    def kernel(*args: Datum) -> pa.Array:
        values = [a.to_numpy(zero_copy_only=False) if isinstance(a, pa.Array) else a.as_py() for a in args]
        with np.errstate(all="ignore"):
            result = function_(*values)
        missing = [a.is_null().to_numpy(zero_copy_only=False) for a in args if isinstance(a, pa.Array) and a.null_count]
        return pa.array(result, pa.float64(), mask=np.logical_or.reduce(missing) if missing else None)

    return kernel


def _logarithm(nodes: Sequence[Node], what: str, kernel: Any, above: float = 0.0) -> Node:
    """Spark: NULL for what has no logarithm."""
    node = double(nodes[0], what)
    nothing = pa.scalar(None, pa.float64())
    guarded: Callable[[Datum], Datum] = lambda a: kernel(pc.if_else(pc.less_equal(a, above), nothing, a))  # noqa: E731
    return call(guarded, pa.float64(), [node])


@function("ln", node=exp.Ln)
def _ln(nodes: Sequence[Node], name: Call) -> Node:
    return _logarithm(nodes, name.name, pc.ln)


@function("log1p")
def _log1p(nodes: Sequence[Node], name: Call) -> Node:
    return _logarithm(nodes, name.name, pc.log1p, -1.0)


@function("log", at_least=1, at_most=2, node=exp.Log, args=("this", "expression"))
def _log(nodes: Sequence[Node], name: Call) -> Node:
    """log(base, x); log10 and log2 arrive here with a constant base."""
    if len(nodes) == 1:
        return _ln(nodes, name)
    base, rest = nodes[0], nodes[1:]
    if base.is_constant and base.value in (2, 10):
        return _logarithm(rest, name.name, pc.log2 if base.value == 2 else pc.log10)
    return call(lambda a, b: pc.divide(a, b), pa.float64(), [_ln(rest, name), _ln([base], name)])


@function("pow", "power", at_least=2, node=exp.Pow, args=("this", "expression"))
def _pow(nodes: Sequence[Node], name: Call) -> Node:
    return call(_numpy(np.power), pa.float64(), [double(n, name.name) for n in nodes])


@function("atan2", at_least=2, node=exp.Atan2, args=("this", "expression"))
def _atan2(nodes: Sequence[Node], name: Call) -> Node:
    return call(pc.atan2, pa.float64(), [double(n, name.name) for n in nodes])


@function("hypot", at_least=2)
def _hypot(nodes: Sequence[Node], name: Call) -> Node:
    return call(_numpy(np.hypot), pa.float64(), [double(n, name.name) for n in nodes])


@function("factorial", node=exp.Factorial)
def _factorial(nodes: Sequence[Node], name: Call) -> Node:
    return call(rowwise(lambda n: math.factorial(n) if 0 <= n <= 20 else None, pa.int64()), pa.int64(), [whole(nodes[0], name.name)])


def _simple(name: str, node: type[exp.Expr] | None, kernel: Callable[..., Any]) -> None:
    function(name, node=node)(lambda nodes, call_: call(_numpy(kernel), pa.float64(), [double(nodes[0], call_.name)]))


for _name, _node, _kernel in (
    ("cbrt", exp.Cbrt, np.cbrt), ("sin", exp.Sin, np.sin), ("cos", exp.Cos, np.cos), ("tan", exp.Tan, np.tan),
    ("asin", exp.Asin, np.arcsin), ("acos", exp.Acos, np.arccos), ("atan", exp.Atan, np.arctan),
    ("sinh", exp.Sinh, np.sinh), ("cosh", exp.Cosh, np.cosh), ("tanh", exp.Tanh, np.tanh),
    ("degrees", exp.Degrees, np.degrees), ("radians", exp.Radians, np.radians), ("rint", exp.Rint, np.rint), ("expm1", None, np.expm1),
):  # fmt: skip
    _simple(_name, _node, _kernel)


@function("pi", at_least=0, at_most=0, node=exp.Pi, args=())
def _pi(nodes: Sequence[Node], name: Call) -> Node:
    return constant(math.pi)


@function("e", at_least=0, at_most=0)
def _e(nodes: Sequence[Node], name: Call) -> Node:
    return constant(math.e)
