"""The Spark names of Arrow types, and the Arrow types of Spark names."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import INTERVAL, TIMESTAMP, type_name
from millstream.errors import UnsupportedProblem
from millstream.language.types import NAMES, spelled, way_out

name_of = type_name

_D = exp.DataType.Type
_TYPES = {
    _D.BOOLEAN: pa.bool_(),
    _D.TINYINT: pa.int8(),
    _D.SMALLINT: pa.int16(),
    _D.INT: pa.int32(),
    _D.BIGINT: pa.int64(),
    _D.FLOAT: pa.float32(),
    _D.DOUBLE: pa.float64(),
    _D.TEXT: pa.string(),
    _D.VARCHAR: pa.string(),
    _D.CHAR: pa.string(),
    _D.BINARY: pa.binary(),
    _D.VARBINARY: pa.binary(),
    _D.DATE: pa.date32(),
    _D.TIMESTAMP: TIMESTAMP,
    _D.TIMESTAMPTZ: TIMESTAMP,
    _D.TIMESTAMPLTZ: TIMESTAMP,
    _D.NULL: pa.null(),
}


def type_of(data_type: exp.DataType) -> pa.DataType:
    """The Arrow type of a type written in SQL."""
    kind = data_type.this
    if isinstance(kind, exp.Interval) or kind == _D.INTERVAL:
        return INTERVAL
    if kind == _D.DECIMAL:
        sizes = [int(p.name) if p.name.isdigit() else -1 for p in data_type.expressions]
        precision, scale = [*sizes, 0][:2] if sizes else (10, 0)
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise UnsupportedProblem(
                f"DECIMAL({precision},{scale}) is not supported", hint="the precision is 1 to 38, the scale at most that"
            )
        return pa.decimal128(precision, scale)
    hint = way_out(data_type)
    if hint is not None or kind not in _TYPES:
        known = f"there is {', '.join(NAMES)}"
        raise UnsupportedProblem(f"the type {spelled(data_type)} is not supported", hint=hint or known)
    return _TYPES[kind]


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def normal_type(kind: pa.DataType) -> pa.DataType:
    """The type of the language for a column of any Arrow type: other widths, units and encodings become the usual ones."""
    if pa.types.is_dictionary(kind):
        return normal_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    if pa.types.is_duration(kind):
        return INTERVAL
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_float16(kind):
        return pa.float32()
    return _UNSIGNED.get(kind, kind)


_UNSIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}
