"""Comparison: =, <>, <, <=, >, >=, <=>, BETWEEN, IN, greatest and least, with NaN equal to itself and above every number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.errors import TypeProblem, UnsupportedProblem
from millstream.expressions.casts import cast
from millstream.expressions.coercion import as_decimal, mismatch, unify
from millstream.expressions.names import name_of
from millstream.expressions.node import Datum, Kernel, Node, call, null
from millstream.expressions.registry import MANY, Call, Scope, function, rule

_OPERATORS: dict[Any, tuple[str, str]] = {
    exp.EQ: ("=", "equal"),
    exp.NEQ: ("<>", "not_equal"),
    exp.LT: ("<", "less"),
    exp.LTE: ("<=", "less_equal"),
    exp.GT: (">", "greater"),
    exp.GTE: (">=", "greater_equal"),
}
_FLIPPED = {
    "equal": "equal", "not_equal": "not_equal", "less": "greater", "less_equal": "greater_equal",
    "greater": "less", "greater_equal": "less_equal",
}  # fmt: skip
_OPPOSITE = {"greater": pc.less_equal, "greater_equal": pc.less}


@rule(*_OPERATORS)
def _compare(expression: exp.Binary, scope: Scope) -> Node:
    symbol, name = _OPERATORS[type(expression)]
    return compare(name, scope.compile(expression.this), scope.compile(expression.expression), symbol)


def equal(left: Node, right: Node, what: str) -> Node:
    return compare("equal", left, right, what)


def compare(name: str, left: Node, right: Node, what: str) -> Node:
    """One comparison, NULL when a side is."""
    if left.is_constant and not right.is_constant:
        return compare(_FLIPPED[name], right, left, what)
    if _exact(left) and _exact(right) and (pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type)):
        return _compare_decimals(name, left, right)
    kind, (left, right) = unify([left, right], what)
    if pa.types.is_null(kind):
        return null(pa.bool_())
    _check_comparable(kind, what)
    kernel = _float_kernel(name, left, right) if pa.types.is_floating(kind) else getattr(pc, name)
    return call(kernel, pa.bool_(), [left, right])


def _exact(node: Node) -> bool:
    return bool(pa.types.is_decimal(node.type) or pa.types.is_integer(node.type))


def _compare_decimals(name: str, left: Node, right: Node) -> Node:
    """Decimals and integers compare exactly, so more than 38 digits are widened, never rounded."""
    a, b = as_decimal(left), as_decimal(right)
    left, right = cast(left, a), cast(right, b)
    scale = max(a.scale, b.scale)
    digits = max(a.precision - a.scale, b.precision - b.scale) + scale
    kernel = getattr(pc, name)
    if digits <= 38:
        return call(kernel, pa.bool_(), [left, right])
    wide = pa.decimal256(digits, scale)
    return call(lambda x, y: kernel(_widen(x, wide), _widen(y, wide)), pa.bool_(), [left, right])


def _widen(datum: Datum, kind: pa.DataType) -> Datum:
    return datum.cast(pa.decimal256(datum.type.precision, datum.type.scale)).cast(kind)


def _check_comparable(kind: pa.DataType, what: str) -> None:
    if kind == pa.month_day_nano_interval():
        raise TypeProblem(f"{what} does not take intervals of months", hint="months differ in length: write days")


def _is_nan(node: Node) -> bool:
    return node.constant is not None and node.constant.is_valid and node.value != node.value


def _float_kernel(name: str, left: Node, right: Node) -> Kernel:
    """Arrow compares as IEEE says, so NaN has to be put right.

    Beside a constant no test for NaN is needed: `x > c` is `not (x <= c)`, and the others are right as they are.
    """
    plain = getattr(pc, name)
    if right.is_constant and not _is_nan(right):
        if name not in _OPPOSITE:
            return plain  # type: ignore[no-any-return]
        opposite = _OPPOSITE[name]
        return lambda a, b: pc.invert(opposite(a, b))
    ordered = _WITH_NAN[name]

    def kernel(a: Datum, b: Datum) -> Datum:
        nan_a, nan_b = pc.is_nan(a), pc.is_nan(b)
        if not (_any(nan_a) or _any(nan_b)):
            return plain(a, b)
        return ordered(plain(a, b), nan_a, nan_b)

    return kernel


def _any(mask: Datum) -> bool:
    return bool(mask.as_py()) if isinstance(mask, pa.Scalar) else bool(pc.any(mask).as_py())


# For each comparison: the IEEE answer, and where a and b are NaN. NULLs stay NULL because every part is NULL there.
_WITH_NAN: dict[str, Callable[[Datum, Datum, Datum], Datum]] = {
    "equal": lambda plain, a, b: pc.or_(plain, pc.and_(a, b)),
    "not_equal": lambda plain, a, b: pc.and_(plain, pc.invert(pc.and_(a, b))),
    "less": lambda plain, a, b: pc.or_(plain, pc.and_(pc.invert(a), b)),
    "less_equal": lambda plain, a, b: pc.or_(plain, b),
    "greater": lambda plain, a, b: pc.or_(plain, pc.and_(a, pc.invert(b))),
    "greater_equal": lambda plain, a, b: pc.or_(plain, a),
}


@rule(exp.NullSafeEQ, exp.NullSafeNEQ)
def _null_safe(expression: exp.Binary, scope: Scope) -> Node:
    return _same(scope.compile(expression.this), scope.compile(expression.expression), isinstance(expression, exp.NullSafeNEQ))


@function("equal_null", at_least=2, node=exp.EqualNull, args=("this", "expression"))
def _equal_null(nodes: Sequence[Node], name: Call) -> Node:
    return _same(nodes[0], nodes[1], False)


def _same(left: Node, right: Node, negate: bool) -> Node:
    """Equality in which NULL equals NULL."""
    kind, (left, right) = unify([left, right], "<=>")

    def kernel(same: Datum, a: Datum, b: Datum) -> Datum:
        both = pc.fill_null(same, False)
        both = pc.or_(both, pc.and_(pc.is_null(a), pc.is_null(b)))
        return pc.invert(both) if negate else both

    same = null(pa.bool_()) if pa.types.is_null(kind) else compare("equal", left, right, "<=>")
    return call(kernel, pa.bool_(), [same, left, right], strict=False)


@rule(exp.Between)
def _between(expression: exp.Between, scope: Scope) -> Node:
    node = scope.compile(expression.this)
    low = compare("greater_equal", node, scope.compile(expression.args["low"]), "BETWEEN")
    high = compare("less_equal", node, scope.compile(expression.args["high"]), "BETWEEN")
    return call(pc.and_kleene, pa.bool_(), [low, high], strict=False)


@rule(exp.In)
def _in(expression: exp.In, scope: Scope) -> Node:
    if expression.args.get("query") or expression.args.get("unnest"):
        raise UnsupportedProblem("IN (SELECT ...) is not supported in an expression", hint="write a LEFT SEMI JOIN")
    if not expression.expressions:
        raise TypeProblem("IN takes at least one value, not an empty list", hint="write IN (1, 2)")
    node = scope.compile(expression.this)
    kind, (node, *items) = unify([node, *(scope.compile(e) for e in expression.expressions)], "IN")
    if pa.types.is_null(kind):
        return null(pa.bool_())
    _check_comparable(kind, "IN")
    if not items or not all(i.is_constant for i in items) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _any_equal(node, items)
    known = [i.constant for i in items if i.constant is not None and i.constant.is_valid]
    values = pa.array([scalar.as_py() for scalar in known], kind)
    with_null = len(known) < len(items)

    def kernel(a: Datum) -> Datum:
        found = pc.is_in(a, value_set=values)
        if with_null:
            return pc.if_else(found, True, pa.scalar(None, pa.bool_()))
        return pc.if_else(a.is_valid(), found, pa.scalar(None, pa.bool_())) if a.null_count else found

    return call(kernel, pa.bool_(), [node])


def _any_equal(node: Node, items: Sequence[Node]) -> Node:
    tests = [compare("equal", node, item, "IN") for item in items]
    answer = tests[0]
    for test in tests[1:]:
        answer = call(pc.or_kleene, pa.bool_(), [answer, test], strict=False)
    return answer


@function("greatest", at_least=2, at_most=MANY, node=exp.Greatest, args=("this", "expressions"))
def _greatest(nodes: Sequence[Node], name: Call) -> Node:
    return _extreme(nodes, name, "greater")


@function("least", at_least=2, at_most=MANY, node=exp.Least, args=("this", "expressions"))
def _least(nodes: Sequence[Node], name: Call) -> Node:
    return _extreme(nodes, name, "less")


def _extreme(nodes: Sequence[Node], name: Call, better: str) -> Node:
    """The largest or smallest value; NULLs are passed over (Spark's and DuckDB's rule)."""
    kind, nodes = unify(nodes, name.name)
    if pa.types.is_null(kind):
        return null(kind)
    if pa.types.is_boolean(kind):
        raise mismatch(name.name, kind, kind)
    _check_comparable(kind, name.name)
    best = nodes[0]
    for node in nodes[1:]:
        wins = compare(better, node, best, name.name)
        best = call(_keep_better, kind, [wins, node, best], strict=False)
    return best


def _keep_better(wins: Datum, challenger: Datum, best: Datum) -> Datum:
    return pc.coalesce(pc.if_else(pc.fill_null(wins, False), challenger, best), challenger)


@function("isnan", node=exp.IsNan)
def _isnan(nodes: Sequence[Node], name: Call) -> Node:
    """Spark: NULL is not NaN, so the answer is never NULL."""
    if not pa.types.is_floating(nodes[0].type):
        raise name.wrong(name_of(nodes[0].type), "only FLOAT and DOUBLE know NaN")
    return call(lambda a: pc.fill_null(pc.is_nan(a), False), pa.bool_(), [nodes[0]], strict=False)


@function("nanvl", at_least=2, node=exp.Nanvl, args=("this", "expression"))
def _nanvl(nodes: Sequence[Node], name: Call) -> Node:
    kind, nodes = unify(nodes, name.name)
    if not pa.types.is_floating(kind):
        raise name.wrong(name_of(kind), "only FLOAT and DOUBLE know NaN")
    kernel: Callable[..., Any] = lambda a, b: pc.if_else(pc.is_nan(a), b, a)  # noqa: E731
    return call(kernel, kind, nodes, strict=False)
