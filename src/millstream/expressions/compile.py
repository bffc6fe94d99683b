"""Compile a scalar SQL expression against a schema: the entry point of the package."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from millstream.core.block import empty_batch
from millstream.core.types import INTERVAL
from millstream.errors import DataProblem, NameProblem, PlanProblem, UnsupportedProblem
from millstream.expressions import arithmetic, bits, casts, comparison, intervals, logic, numeric, patterns, strings, times
from millstream.expressions.coercion import decimal_type
from millstream.expressions.names import normal_type
from millstream.expressions.node import FAILURES, Datum, Node, broadcast, constant, place_of
from millstream.expressions.registry import Scope, rule
from millstream.language.places import text_of

FAMILIES = (arithmetic, bits, casts, comparison, intervals, logic, numeric, patterns, strings, times)
"""The modules whose rules fill the registry when they are imported."""


class Compiled:
    """A typed function over record batches; it pickles as its text form and compiles again where it lands."""

    __slots__ = ("_node", "columns", "expression", "schema", "type")

    def __init__(self, expression: exp.Expr, schema: pa.Schema, node: Node) -> None:
        self.expression = expression
        self.schema = schema
        self.type: pa.DataType = node.type
        self.columns: frozenset[str] = node.columns
        self._node = node

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        """The values for all tuples of a batch; a tuple that can not be computed raises DataProblem."""
        try:
            return self.attempt(batch)
        except FAILURES as error:
            raise DataProblem(self.reason(error), place=place_of(self.expression)) from error

    def attempt(self, batch: pa.RecordBatch) -> pa.Array:
        """`evaluate` that raises what the kernels raise (see FAILURES)."""
        return broadcast(self._node.run(batch), batch.num_rows, self.type)

    def reason(self, error: BaseException) -> str:
        return f"{text_of(self.expression)}: {error}"

    @property
    def constant(self) -> pa.Scalar | None:
        """The value, when it does not depend on the tuple."""
        return self._node.constant

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_expression, (self.expression, self.schema)

    def __repr__(self) -> str:
        return f"Compiled({self.expression.sql('spark')} -> {self.type})"


def compile_expression(expression: exp.Expr, schema: pa.Schema) -> Compiled:
    """Type an expression and build its function; every mistake in it is reported here, with its place."""
    compiled = Compiled(expression, schema, Scope(schema).compile(expression))
    try:
        compiled.attempt(empty_batch(schema))
    except (NotImplementedError, TypeError) as error:
        raise UnsupportedProblem(
            f"`{text_of(expression)}` is not supported for these types: {error}", place=place_of(expression)
        ) from error
    return compiled


def fold_constant(expression: exp.Expr) -> Any:
    """The Python value of an expression without columns; intervals come as int microseconds."""
    node = Scope(pa.schema([])).compile(expression)
    if node.constant is None:
        try:
            node.run(pa.record_batch([pa.array([0])], names=["_"]))
        except FAILURES as error:
            raise PlanProblem(f"`{expression.sql('spark')}` has no value: {error}", place=place_of(expression)) from error
        raise PlanProblem(f"`{expression.sql('spark')}` is not a constant", place=place_of(expression))
    if node.type == INTERVAL:
        return node.constant.value
    return node.value


@rule(exp.Column)
def _column(expression: exp.Column, scope: Scope) -> Node:
    """A column by its exact name, or else by the only name that differs in case."""
    wanted = expression.name
    names = scope.schema.names
    found = [wanted] if wanted in names else [n for n in names if n.lower() == wanted.lower()]
    if not found:
        raise NameProblem.unknown("column", wanted, [n for n in names if not n.startswith("__")])
    if len(found) > 1:
        raise NameProblem(
            f"the column `{wanted}` could be {' or '.join(f'`{n}`' for n in found)}", hint="write it in the case it was declared in"
        )
    name = found[0]
    stored = scope.schema.field(name).type
    kind = normal_type(stored)
    if kind == stored:
        return Node(kind, lambda batch: batch.column(name), frozenset([name]))

    def run(batch: pa.RecordBatch) -> Datum:
        column = batch.column(name)
        return column.dictionary_decode().cast(kind) if pa.types.is_dictionary(column.type) else column.cast(kind, safe=False)

    return Node(kind, run, frozenset([name]))


@rule(exp.Paren, exp.Alias)
def _inside(expression: exp.Expr, scope: Scope) -> Node:
    return scope.compile(expression.this)


@rule(exp.Literal)
def _literal(expression: exp.Literal, scope: Scope) -> Node:
    """INT, then BIGINT, then DECIMAL for whole numbers; DECIMAL with a point, DOUBLE with an exponent."""
    text = str(expression.this)
    if expression.is_string:
        return constant(text, pa.string())
    if "e" in text.lower():
        return constant(float(text), pa.float64())
    if "." in text:
        return _decimal_literal(text)
    value = int(text)
    for kind in (pa.int32(), pa.int64()):
        limit = 1 << (kind.bit_width - 1)
        if -limit <= value < limit:
            return constant(value, kind)
    return _decimal_literal(text)


def _decimal_literal(text: str) -> Node:
    value = Decimal(text)
    digits = value.as_tuple()
    scale = max(0, -int(digits.exponent))
    precision = max(len(digits.digits), scale, 1)
    if precision > 38:
        return constant(float(text), pa.float64())
    return constant(value, decimal_type(precision, scale))


@rule(exp.RawString)
def _raw_string(expression: exp.RawString, scope: Scope) -> Node:
    return constant(str(expression.this), pa.string())


@rule(exp.HexString)
def _hex(expression: exp.HexString, scope: Scope) -> Node:
    return constant(bytes.fromhex(str(expression.this)), pa.binary())
