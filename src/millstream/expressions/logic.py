"""Three-valued logic and choice: AND, OR, NOT, IS, CASE, IF, COALESCE; what is not chosen is not computed where it could fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.errors import TypeProblem
from millstream.expressions.coercion import boolean, coerce, common_type, unify
from millstream.expressions.comparison import equal
from millstream.expressions.node import Datum, Node, broadcast, call, constant, null
from millstream.expressions.registry import MANY, Call, Scope, function, rule


@rule(exp.And)
def _and(expression: exp.And, scope: Scope) -> Node:
    return _connect(expression, scope, "AND", False)


@rule(exp.Or)
def _or(expression: exp.Or, scope: Scope) -> Node:
    return _connect(expression, scope, "OR", True)


def _connect(expression: exp.Connector, scope: Scope, what: str, decisive: bool) -> Node:
    """AND and OR; a right side that can fail only sees the tuples the left side leaves undecided."""
    kernel = pc.or_kleene if decisive else pc.and_kleene
    parts = [boolean(scope.compile(e), what) for e in _operands(expression)]
    node = parts[0]
    for part in parts[1:]:
        node = _guarded(kernel, node, part, decisive) if part.fallible else call(kernel, pa.bool_(), [node, part], strict=False)
    return node


def _operands(expression: Any) -> Any:
    return expression.flatten(unnest=False)


def _guarded(kernel: Any, left: Node, right: Node, decisive: bool) -> Node:
    if left.constant is not None and left.constant.is_valid and left.value == decisive:
        return left

    def run(batch: pa.RecordBatch) -> Datum:
        first = broadcast(left.run(batch), batch.num_rows, pa.bool_())
        undecided = pc.fill_null(pc.not_equal(first, decisive), True)
        return kernel(first, evaluate_where(right, undecided, batch))

    return Node(pa.bool_(), run, left.columns | right.columns, True)


def evaluate_where(node: Node, mask: pa.Array, batch: pa.RecordBatch) -> pa.Array:
    """The node's values at the tuples of the mask, NULL elsewhere; the other tuples are never computed."""
    chosen = pc.indices_nonzero(mask)
    if len(chosen) == batch.num_rows:
        return broadcast(node.run(batch), batch.num_rows, node.type)
    if len(chosen) == 0:
        return pa.nulls(batch.num_rows, node.type)
    part = batch.take(chosen)
    found = broadcast(node.run(part), part.num_rows, node.type)
    return pc.replace_with_mask(pa.nulls(batch.num_rows, node.type), mask, found)


@rule(exp.Not)
def _not(expression: exp.Not, scope: Scope) -> Node:
    return call(pc.invert, pa.bool_(), [boolean(scope.compile(expression.this), "NOT")])


@rule(exp.Is)
def _is(expression: exp.Is, scope: Scope) -> Node:
    node = scope.compile(expression.this)
    if isinstance(expression.expression, exp.Null):
        return is_null(node)
    if isinstance(expression.expression, exp.Boolean):
        wanted = bool(expression.expression.this)
        node = boolean(node, "IS TRUE" if wanted else "IS FALSE")
        return call(lambda a: pc.fill_null(pc.equal(a, wanted), False), pa.bool_(), [node], strict=False)
    raise TypeProblem("IS takes NULL, TRUE or FALSE on its right side", hint="write <=> to compare with NULLs")


def is_null(node: Node) -> Node:
    return call(lambda a: a.is_null(), pa.bool_(), [node], strict=False)


@function("isnull")
def _isnull(nodes: Sequence[Node], name: Call) -> Node:
    return is_null(nodes[0])


@function("isnotnull")
def _isnotnull(nodes: Sequence[Node], name: Call) -> Node:
    return call(lambda a: a.is_valid(), pa.bool_(), [nodes[0]], strict=False)


@rule(exp.Case)
def _case(expression: exp.Case, scope: Scope) -> Node:
    subject = scope.optional(expression.this)
    conditions: list[Node] = []
    for branch in expression.args["ifs"]:
        node = scope.compile(branch.this)
        conditions.append(boolean(node, "CASE WHEN") if subject is None else equal(subject, node, "CASE"))
    results = [scope.compile(branch.args["true"]) for branch in expression.args["ifs"]]
    default = expression.args.get("default")
    return choose(conditions, [*results, scope.compile(default) if default is not None else null(pa.null())], "CASE")


@rule(exp.If)
def _if(expression: exp.If, scope: Scope) -> Node:
    condition = boolean(scope.compile(expression.this), "if")
    other = expression.args.get("false")
    return choose(
        [condition], [scope.compile(expression.args["true"]), scope.compile(other) if other is not None else null(pa.null())], "if"
    )


@function("nvl2", at_least=3, node=exp.Nvl2, args=("this", "true", "false"))
def _nvl2(nodes: Sequence[Node], name: Call) -> Node:
    return choose([is_null(nodes[0])], [nodes[2], nodes[1]], "nvl2")


def choose(conditions: Sequence[Node], results: Sequence[Node], what: str) -> Node:
    """The result of the first true condition, or the last result."""
    kind, results = unify(results, what)
    if pa.types.is_null(kind):
        return null(kind)
    nodes = [*conditions, *results]
    columns: frozenset[str] = frozenset().union(*(n.columns for n in nodes))
    fallible = any(n.fallible for n in nodes)
    if len(conditions) == 1 and not fallible:
        return call(lambda c, a, b: pc.if_else(pc.fill_null(c, False), a, b), kind, nodes, strict=False)
    if all(n.is_constant for n in nodes):
        chosen = next((r for c, r in zip(conditions, results[:-1], strict=True) if c.value), results[-1])
        return chosen

    def run(batch: pa.RecordBatch) -> Datum:
        length = batch.num_rows
        open_ = pa.repeat(pa.scalar(True), length)
        answer = pa.nulls(length, kind)
        for condition, result in zip(conditions, results[:-1], strict=True):
            met = evaluate_where(condition, open_, batch) if condition.fallible else broadcast(condition.run(batch), length, pa.bool_())
            met = pc.and_(pc.fill_null(met, False), open_)
            answer = pc.if_else(met, _branch(result, met, batch), answer)
            open_ = pc.and_not(open_, met)
        return pc.if_else(open_, _branch(results[-1], open_, batch), answer)

    return Node(kind, run, columns, fallible)


def _branch(node: Node, mask: pa.Array, batch: pa.RecordBatch) -> Datum:
    return evaluate_where(node, mask, batch) if node.fallible else node.run(batch)


@function("coalesce", "nvl", "ifnull", at_least=1, at_most=MANY, node=exp.Coalesce, args=("this", "expressions"))
def coalesce(nodes: Sequence[Node], name: Call) -> Node:
    """The first value that is not NULL."""
    kind, nodes = unify(nodes, name.name)
    if pa.types.is_null(kind):
        return null(kind)
    if not any(n.fallible for n in nodes[1:]):
        return call(pc.coalesce, kind, nodes, strict=False, fallible=nodes[0].fallible)
    return choose([call(lambda a: a.is_valid(), pa.bool_(), [n], strict=False) for n in nodes[:-1]], nodes, name.name)


@function("nullif", at_least=2, node=exp.Nullif, args=("this", "expression"))
def _nullif(nodes: Sequence[Node], name: Call) -> Node:
    same = equal(nodes[0], nodes[1], "nullif")
    if pa.types.is_null(nodes[0].type):
        return nodes[0]
    return call(
        lambda s, a: pc.if_else(pc.fill_null(s, False), pa.scalar(None, nodes[0].type), a), nodes[0].type, [same, nodes[0]], strict=False
    )


@function("zeroifnull")
def _zeroifnull(nodes: Sequence[Node], name: Call) -> Node:
    kind = common_type([nodes[0], constant(0, pa.int32())], name.name)
    return coalesce([coerce(nodes[0], kind, name.name), coerce(constant(0, pa.int32()), kind, name.name)], name)


@rule(exp.Boolean)
def _boolean(expression: exp.Boolean, scope: Scope) -> Node:
    return constant(bool(expression.this), pa.bool_())


@rule(exp.Null)
def _null(expression: exp.Null, scope: Scope) -> Node:
    return null(pa.null())
