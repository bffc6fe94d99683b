"""Strings read as numbers, booleans, dates and timestamps: Arrow's parsers first, Spark's wider rules where they give up."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.types import TIMESTAMP
from millstream.expressions.names import name_of
from millstream.expressions.node import Kernel, RowFailure, rowwise

_CONTEXT = Context(prec=80, rounding=ROUND_HALF_UP)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SPECIAL = {"nan": float("nan"), "inf": float("inf"), "infinity": float("inf")}
_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_MOMENT = re.compile(
    r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?\s*(Z|UTC|GMT|[+-][0-9]{1,2}(?::?[0-9]{2})?)?)?)?)?"
)


def parser(kind: pa.DataType) -> Kernel:
    """The kernel that reads strings as a type; surrounding white space does not count."""
    slow = rowwise(_SLOW[_key(kind)](kind), kind)
    fast = _fast(kind)

    def run(array: pa.Array) -> pa.Array:
        try:
            return fast(array)
        except ValueError:
            return slow(array)

    return run


def _key(kind: pa.DataType) -> str:
    for key, test in _TESTS.items():
        if test(kind):
            return key
    raise AssertionError(kind)


_TESTS: dict[str, Callable[[pa.DataType], bool]] = {
    "int": pa.types.is_integer,
    "float": pa.types.is_floating,
    "decimal": pa.types.is_decimal,
    "bool": pa.types.is_boolean,
    "date": pa.types.is_date32,
    "timestamp": pa.types.is_timestamp,
}


def _fast(kind: pa.DataType) -> Kernel:
    def plain(array: pa.Array) -> pa.Array:
        return pc.cast(array, kind)

    def whole(array: pa.Array) -> pa.Array:
        if pc.any(pc.match_substring(array, "x", ignore_case=True)).as_py():
            raise RowFailure("Arrow reads hexadecimal, Spark does not")
        return pc.cast(array, kind)

    def moment(array: pa.Array) -> pa.Array:
        try:
            return pc.cast(array, pa.timestamp("us")).view(TIMESTAMP)
        except pa.ArrowInvalid:
            return pc.cast(array, TIMESTAMP)

    def never(array: pa.Array) -> pa.Array:
        raise RowFailure("no fast way")

    return {"int": whole, "timestamp": moment, "bool": never, "date": plain, "float": plain, "decimal": plain}[_key(kind)]


def _bad(text: str, kind: pa.DataType) -> RowFailure:
    return RowFailure(f"'{text}' is no {name_of(kind)}")


def _whole(kind: pa.DataType) -> Callable[[str], int]:
    limit = 1 << (kind.bit_width - 1)

    def read(text: str) -> int:
        if not _WHOLE.fullmatch(text.strip()):
            raise _bad(text, kind)
        value = int(text)
        if not -limit <= value < limit:
            raise RowFailure(f"{value} is outside {name_of(kind)}")
        return value

    return read


def _float(kind: pa.DataType) -> Callable[[str], float]:
    def read(text: str) -> float:
        word = text.strip()
        if _NUMBER.fullmatch(word):
            return float(word)
        value = _SPECIAL.get(word.lower().lstrip("+-"))
        if value is None:
            raise _bad(text, kind)
        return -value if word.startswith("-") else value

    return read


def decimal_of(text: str, precision: int, scale: int) -> Decimal:
    """A decimal of the given size, rounded half up; too large a number fails."""
    try:
        value = _CONTEXT.create_decimal(text.strip()).quantize(Decimal(1).scaleb(-scale), context=_CONTEXT)
    except InvalidOperation:
        raise RowFailure(f"'{text}' is no DECIMAL({precision},{scale})") from None
    if not value.is_finite() or abs(value) >= Decimal(10) ** (precision - scale):
        raise RowFailure(f"{text} does not fit DECIMAL({precision},{scale})")
    return value


def _decimal(kind: pa.DataType) -> Callable[[str], Decimal]:
    def read(text: str) -> Decimal:
        if not _NUMBER.fullmatch(text.strip()):
            raise _bad(text, kind)
        return decimal_of(text, kind.precision, kind.scale)

    return read


def _bool(kind: pa.DataType) -> Callable[[str], bool]:
    def read(text: str) -> bool:
        word = text.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise _bad(text, kind)

    return read


def days_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970-01-01 in the Gregorian calendar, or None when there is no such day."""
    if not 1 <= month <= 12 or not 1 <= day <= month_length(year, month):
        return None
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def month_length(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def _date(kind: pa.DataType) -> Callable[[str], Any]:
    def read(text: str) -> int:
        match = _DATE.fullmatch(text.strip())
        days = match and days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1))
        if days is None:
            raise _bad(text, kind)
        return int(days)

    return read


def _timestamp(kind: pa.DataType) -> Callable[[str], Any]:
    def read(text: str) -> int:
        match = _MOMENT.fullmatch(text.strip())
        if match is None:
            raise _bad(text, kind)
        days = days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1))
        hour, minute, second = int(match[4] or 0), int(match[5] or 0), int(match[6] or 0)
        if days is None or hour > 23 or minute > 59 or second > 59:
            raise _bad(text, kind)
        micros = int(((match[7] or "") + "000000")[:6])
        return ((days * 24 + hour) * 60 + minute - _offset(match[8])) * 60_000_000 + second * 1_000_000 + micros

    return read


def _offset(zone: str | None) -> int:
    """Minutes east of UTC."""
    if zone is None or zone in ("Z", "UTC", "GMT"):
        return 0
    digits = zone[1:].replace(":", "")
    hours, minutes = (digits[:-2], digits[-2:]) if len(digits) > 2 else (digits, "0")
    return (int(hours) * 60 + int(minutes)) * (-1 if zone[0] == "-" else 1)


_SLOW: dict[str, Callable[[pa.DataType], Callable[[str], Any]]] = {
    "int": _whole,
    "float": _float,
    "decimal": _decimal,
    "bool": _bool,
    "date": _date,
    "timestamp": _timestamp,
}
