"""Spark SQL's column types as Arrow types."""

from __future__ import annotations

from difflib import get_close_matches

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import TIMESTAMP, type_name
from millstream.errors import Place, TypeProblem

_SIMPLE: dict[exp.DType, pa.DataType] = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.VARCHAR: pa.string(),
    exp.DType.CHAR: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
}

NAMES = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
)


_INSTEAD: dict[exp.DType, str] = {
    exp.DType.TIMESTAMPNTZ: "write TIMESTAMP: a time without a zone is read as UTC",
    exp.DType.DATETIME: "write TIMESTAMP",
    exp.DType.TIME: "write STRING for a time of day, or TIMESTAMP for a moment",
    exp.DType.UUID: "write STRING",
    exp.DType.JSON: "write STRING",
    exp.DType.VARIANT: "write STRING",
    exp.DType.INT128: "write DECIMAL(38, 0)",
}
"""The nearest type that works, for types that the language lacks."""

_SPELLED = {
    "TIMESTAMPTZ": "TIMESTAMP",
    "TIMESTAMPNTZ": "TIMESTAMP_NTZ",
    "TIMESTAMPLTZ": "TIMESTAMP_LTZ",
    "TEXT": "STRING",
}
"""Types whose names in the parser are not those of Spark."""


def arrow_type(kind: exp.DataType, place: Place | None = None) -> pa.DataType:
    """The Arrow type of a column: `BIGINT` is `int64`, `TIMESTAMP` is microseconds in UTC."""
    simple, hint = _SIMPLE.get(kind.this), way_out(kind)
    if simple is not None and hint is None:
        return simple
    if kind.this == exp.DType.DECIMAL:
        return _decimal([parameter.name for parameter in kind.expressions], place)
    raise unknown_type(spelled(kind), place, hint)


def way_out(kind: exp.DataType) -> str | None:
    """The type to write in place of one that is refused, by its name or for its length."""
    simple, sizes = _SIMPLE.get(kind.this), [parameter.name for parameter in kind.expressions]
    if sizes and simple in (pa.string(), pa.binary()):
        return f"write {'STRING' if simple == pa.string() else 'BINARY'}: lengths are not checked"
    if simple == TIMESTAMP and sizes not in ([], ["6"]):
        return "write TIMESTAMP, which counts microseconds"
    return _INSTEAD.get(kind.this)


def spelled(kind: exp.DataType) -> str:
    """A type as users write it: `TIMESTAMP(3)`, `UUID`."""
    text = kind.sql()
    name, opening, rest = text.partition("(")
    return _SPELLED.get(name, name) + opening + rest


def unknown_type(spelling: str, place: Place | None = None, hint: str | None = None) -> TypeProblem:
    """The error for a type the language lacks, with the nearest one it has."""
    close = get_close_matches(spelling.upper(), NAMES, n=1)
    nearest = f"did you mean {close[0]}?" if close else "the types are " + ", ".join(NAMES)
    return TypeProblem(f"a column can not have type `{spelling}`", place=place, hint=hint or nearest)


def _decimal(parameters: list[str], place: Place | None) -> pa.DataType:
    try:
        precision = int(parameters[0]) if parameters else 10
        scale = int(parameters[1]) if len(parameters) > 1 else 0
        if not 0 <= scale <= precision or not 1 <= precision <= 38:
            raise ValueError
    except ValueError:
        raise TypeProblem(
            f"DECIMAL({', '.join(parameters)}) does not exist",
            place=place,
            hint="write DECIMAL(p, s) with 1 <= p <= 38 and 0 <= s <= p",
        ) from None
    return pa.decimal128(precision, scale)


def sql_type(kind: pa.DataType) -> exp.DataType:
    """The inverse of `arrow_type`: for casts that the planner writes."""
    if pa.types.is_decimal(kind):
        return exp.DataType.build(f"DECIMAL({kind.precision}, {kind.scale})", dialect="spark")
    for name, simple in _SIMPLE.items():
        if simple == kind:
            return exp.DataType(this=name)
    raise TypeProblem(f"type {type_name(kind)} has no name in the language")


def cast_to(expression: exp.Expr, kind: pa.DataType) -> exp.Cast:
    """A cast that the planner writes. `exp.cast` would leave it out above a cast to another DECIMAL."""
    return exp.Cast(this=expression.copy(), to=sql_type(kind))
