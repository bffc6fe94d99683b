"""A compiled expression is a tree of nodes: a type, the columns it reads, and a function over a record batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.core.types import TIMESTAMP, outside
from millstream.errors import Place

Datum = Any
"""A `pa.Array` or a `pa.Scalar`. A constant node gives a scalar, every other node an array of the batch's length."""

Kernel = Callable[..., Datum]


FAILURES = (ValueError, ArithmeticError)
"""What a tuple's value can make a kernel raise. Anything else is a mistake of ours and must be seen."""


class RowFailure(ValueError):
    """A tuple's value breaks a rule of an expression; the tuple belongs in the dead letters."""


@dataclass(frozen=True)
class Node:
    """One step of an expression.

    `fallible` says that some value makes `run` raise, so that CASE, IF, COALESCE, AND and OR must keep it away
    from the tuples it is not meant for.
    """

    type: pa.DataType
    run: Callable[[pa.RecordBatch], Datum] = field(repr=False)
    columns: frozenset[str] = frozenset()
    fallible: bool = False
    constant: pa.Scalar | None = None

    @property
    def is_constant(self) -> bool:
        return self.constant is not None

    @property
    def value(self) -> Any:
        """The Python value of a constant node."""
        assert self.constant is not None
        return self.constant.as_py()


def constant(value: Any, kind: pa.DataType | None = None) -> Node:
    """A node that stands for one value."""
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value, kind)
    return Node(scalar.type, lambda batch: scalar, constant=scalar)


def null(kind: pa.DataType) -> Node:
    return constant(pa.scalar(None, kind))


def call(kernel: Kernel, kind: pa.DataType, args: Sequence[Node], *, fallible: bool = False, strict: bool = True) -> Node:
    """Apply a kernel to nodes; constants are folded here, once.

    A strict kernel gives NULL when an argument is NULL, and never sees a NULL scalar. A kernel gets at least one array.
    """
    if strict and any(a.constant is not None and not a.constant.is_valid for a in args):
        return null(kind)
    if fallible and kind in (TIMESTAMP, pa.date32()):
        kernel = within_years(kernel)
    columns: frozenset[str] = frozenset().union(*(a.columns for a in args))
    fallible = fallible or any(a.fallible for a in args)
    if args and all(a.is_constant for a in args):
        return _fold(kernel, kind, args)
    runs = [a.run for a in args]
    if len(runs) == 1:
        (one,) = runs
        return Node(kind, lambda batch: kernel(one(batch)), columns, fallible)
    if len(runs) == 2:
        left, right = runs
        return Node(kind, lambda batch: kernel(left(batch), right(batch)), columns, fallible)
    return Node(kind, lambda batch: kernel(*[run(batch) for run in runs]), columns, fallible)


def within_years(kernel: Kernel) -> Kernel:
    """The kernel, which fails where it makes a time or a date outside the years 1 to 9999."""

    def checked(*args: Datum) -> Datum:
        made = kernel(*args)
        if outside(made) is not None:
            raise RowFailure("the time lies outside the years 1 to 9999")
        return made

    return checked


def _fold(kernel: Kernel, kind: pa.DataType, args: Sequence[Node]) -> Node:
    try:
        result = kernel(*[pa.array([a.value], a.type) if pa.types.is_null(a.type) else pa.repeat(a.constant, 1) for a in args])
    except FAILURES as error:
        return failing(kind, str(error))
    return constant(result[0] if isinstance(result, pa.Array) else result)


def failing(kind: pa.DataType, reason: str) -> Node:
    """A constant that can not be computed: it fails for every tuple that needs it, and for no other."""

    def run(batch: pa.RecordBatch) -> Datum:
        if batch.num_rows:
            raise RowFailure(reason)
        return pa.array([], kind)

    return Node(kind, run, fallible=True)


def broadcast(datum: Datum, length: int, kind: pa.DataType) -> pa.Array:
    """An array of the given length and type; arrays that have both pass untouched."""
    if isinstance(datum, pa.Scalar):
        if not datum.is_valid:
            return pa.nulls(length, kind)
        return pa.repeat(datum if datum.type == kind else datum.cast(kind), length)
    if isinstance(datum, pa.ChunkedArray):
        datum = datum.combine_chunks()
    if datum.type != kind:
        datum = pc.cast(datum, kind)
    return datum


def rowwise(function: Callable[..., Any], kind: pa.DataType) -> Kernel:
    """A strict kernel that calls a Python function per tuple: for rare functions and non-constant arguments."""

    def kernel(*args: Datum) -> pa.Array:
        length = next(len(a) for a in args if isinstance(a, pa.Array))
        lists = [a.to_pylist() if isinstance(a, pa.Array) else [a.as_py()] * length for a in args]
        if len(lists) == 1:
            return pa.array([None if v is None else function(v) for v in lists[0]], kind)
        return pa.array([None if None in row else function(*row) for row in zip(*lists, strict=True)], kind)

    return kernel


def place_of(expression: exp.Expr) -> Place | None:
    """Where the expression stands in the user's text, as far as the parser told."""
    try:
        from millstream.language import place_of as placed
    except ImportError:
        for part in expression.walk():
            if "line" in part.meta:
                meta = part.meta
                width = meta["end"] - meta["start"]
                return Place(meta["line"], max(1, meta["col"] - width))
        return None
    found: Place | None = placed(expression)
    return found
