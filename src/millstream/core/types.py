"""The types of the language as Arrow types, and how a value of time becomes an int64 of microseconds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

TIMESTAMP = pa.timestamp("us", tz="UTC")
INTERVAL = pa.duration("us")
DAY = 86_400_000_000

# The ends of time stand for "no mark yet" and "the stream is over".
MIN_TIME = -(2**63)
MAX_TIME = 2**63 - 1

HIDDEN = "__"
"""Columns that begin so carry what the engine needs and never reach a sink."""

SEQUENCE = "__seq"
"""The arrival number of a tuple as its source presented it."""


class Order(NamedTuple):
    """A column to sort by; nulls come first in ascending order and last in descending by default."""

    name: str
    descending: bool = False
    nulls_first: bool = True

    def text(self, down: str) -> str:
        """The column, `down` where it descends, and where nulls stand if that is not the default."""
        words = [self.name, down if self.descending else ""]
        if self.nulls_first == self.descending:
            words.append("nulls first" if self.nulls_first else "nulls last")
        return " ".join(filter(None, words))


_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BINARY",
    pa.large_binary(): "BINARY",
    pa.date32(): "DATE",
    INTERVAL: "INTERVAL",
    pa.month_day_nano_interval(): "INTERVAL YEAR TO MONTH",
    pa.null(): "NULL",
}


def type_name(kind: pa.DataType) -> str:
    """The name that a user writes for a type: `BIGINT` for int64, `DECIMAL(10,2)` for decimal128(10, 2)."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return "TIMESTAMP" if pa.types.is_timestamp(kind) else _NAMES.get(kind, str(kind).upper())


def one_of(kind: pa.DataType) -> str:
    """The name with its article: `an INT`, `a BIGINT`."""
    name = type_name(kind)
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"


def columns_text(schema: pa.Schema) -> str:
    """`auction BIGINT, ts TIMESTAMP`: the columns that users see."""
    shown = [column for column in schema if not is_hidden(column.name)]
    return ", ".join(f"{column.name} {type_name(column.type)}" for column in shown)


def is_hidden(name: str) -> bool:
    return name.startswith(HIDDEN)


def is_axis(kind: pa.DataType) -> bool:
    """True for types whose values lie on an int64 line, so that low-water marks can be kept on them."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_date(kind))


_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_MANTISSA = {32: 24, 64: 53}


def widens(before: pa.DataType, after: pa.DataType) -> bool:
    """True when a cast keeps different values different, and in their order, such as INT to BIGINT or to DOUBLE."""
    if pa.types.is_integer(before):
        if pa.types.is_integer(after):
            return bool(after.bit_width >= before.bit_width)
        if pa.types.is_decimal(after):
            return bool(after.precision - after.scale >= _DIGITS[before.bit_width])
        return bool(pa.types.is_floating(after) and before.bit_width <= _MANTISSA[after.bit_width])
    if pa.types.is_decimal(before) and pa.types.is_decimal(after):
        return bool(after.scale >= before.scale and after.precision - after.scale >= before.precision - before.scale)
    return bool(before == pa.float32() and after == pa.float64())


FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Years 1 to 9999: what every format can write. Beyond it lies the room that window ends and bands need."""


def to_axis(values: pa.Array, null: int = MIN_TIME) -> Int64s:
    """The values as int64 (microseconds for timestamps, days for dates); nulls become `null`."""
    kind = values.type
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    if values.null_count:
        values = values.cast(pa.int64()).fill_null(null)
    if pa.types.is_timestamp(kind):
        values = values.view(pa.int64()) if values.type != pa.int64() else values
    elif values.type != pa.int64():
        values = values.cast(pa.int64())
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.int64)


def outside(values: pa.Array) -> Bools | None:
    """Mask of the timestamps or dates outside the years 1 to 9999; None when none is."""
    unit = DAY if pa.types.is_date(values.type) else 1
    axis = to_axis(values, 0)
    first, last = FIRST_TIME // unit, LAST_TIME // unit
    if not len(axis) or (first <= axis.min() and axis.max() <= last):
        return None
    wrong: Bools = (axis < first) | (axis > last)
    return wrong


def from_axis(values: Int64s, kind: pa.DataType) -> pa.Array:
    """The inverse of `to_axis` for arrays without nulls."""
    if pa.types.is_date32(kind):
        return pa.array(values.astype(np.int32)).cast(kind)
    array = pa.array(values)
    return array.view(kind) if pa.types.is_timestamp(kind) else array.cast(kind)
