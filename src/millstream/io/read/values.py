"""Text becomes values: one Arrow kernel judges every value, in bulk when all are plain and one by one to name the broken ones."""

from __future__ import annotations

import base64
import binascii
import re
from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.types import TIMESTAMP, one_of, outside
from millstream.core.types import type_name as type_name

Bad = list[tuple[int, str]]

_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)? ?([Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def readable(kind: pa.DataType) -> bool:
    """True for the types that text can hold."""
    t = pa.types
    plain = t.is_boolean(kind) or t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_date32(kind)
    return bool(plain or t.is_timestamp(kind) or t.is_duration(kind) or is_text(kind) or is_bytes(kind))


def convert(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Bad]:
    """The values of these texts; a broken one becomes null and is named, with the reason."""
    if is_text(kind):
        return (texts if texts.type == kind else texts.cast(kind)), []
    if is_bytes(kind):
        return _bytes(texts, kind)
    try:
        return _bulk(texts, kind), []
    except pa.ArrowInvalid:
        return convert_carefully(texts, kind)


def convert_carefully(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Bad]:
    """The same as `convert`, for texts that need a second look: spaces, a plus sign, mixed zones, zeros too many."""
    bad: Bad = []
    plain = pa.array([None if text is None else normal(text, kind) for text in texts.to_pylist()], pa.string())
    parts = list(_halve(plain, kind, 0, bad))
    values = pa.concat_arrays(parts) if parts else pa.array([], kind)
    return values, [(index, reason_for(texts[index].as_py(), kind)) for index, _ in bad]


def _halve(texts: pa.Array, kind: pa.DataType, offset: int, bad: Bad) -> list[pa.Array]:
    """Find the broken ones by halving, so that a few of them cost little."""
    try:
        return [_kernel(texts, kind)]
    except pa.ArrowInvalid:
        pass
    if len(texts) == 1:
        bad.append((offset, ""))
        return [pa.nulls(1, kind)]
    middle = len(texts) // 2
    return _halve(texts[:middle], kind, offset, bad) + _halve(texts[middle:], kind, offset + middle, bad)


def _kernel(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """The judge: what this accepts is a value."""
    if pa.types.is_duration(kind):
        return _kernel(texts, pa.int64()).cast(kind)
    if pa.types.is_timestamp(kind):
        return _dated(pc.cast(texts, TIMESTAMP).cast(kind))
    if pa.types.is_date(kind):
        return _dated(pc.cast(texts, kind))
    values = pc.cast(texts, kind)
    if pa.types.is_integer(kind):
        hexadecimal = pc.or_(pc.match_substring(texts, "x"), pc.match_substring(texts, "X"))
        if pc.any(hexadecimal).as_py():
            raise pa.ArrowInvalid("Arrow reads hexadecimal digits as an integer")
    if pa.types.is_floating(kind) and pc.any(pc.is_inf(values)).as_py():
        digits = pc.match_substring_regex(texts.filter(pc.is_inf(values)), "[0-9]")
        if pc.any(digits).as_py():
            raise pa.ArrowInvalid("Arrow reads a number that is too large as infinity")
    return values


def _dated(values: pa.Array) -> pa.Array:
    if outside(values) is not None:
        raise pa.ArrowInvalid("Arrow reads the year 0")
    return values


def _bulk(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_timestamp(kind):
        return _kernel(texts, kind)
    try:
        return _kernel(texts, kind)  # all with a zone
    except pa.ArrowInvalid:
        return _dated(pc.cast(texts, pa.timestamp("us")).cast(TIMESTAMP).cast(kind))  # all without: UTC


def normal(text: str, kind: pa.DataType) -> str:
    """Take away what does not change the value; the kernel judges the rest."""
    text = text.strip(" \t\r")
    if pa.types.is_integer(kind) or pa.types.is_duration(kind):
        return text[1:] if re.fullmatch(r"\+[0-9]+", text) else text
    if pa.types.is_timestamp(kind):
        found = _MOMENT.fullmatch(text)
        if found is None or (found[5] or "")[6:].strip("0"):
            return "?"
        day, hour, minute, second, fraction, zone = found.groups()
        return f"{day}T{hour or '00'}:{minute or '00'}:{second or '00'}.{(fraction or '0')[:6]}{(zone or 'Z').upper()}"
    if pa.types.is_decimal(kind):
        try:
            exact = Decimal(text) if re.fullmatch(r"[-+0-9.eE]+", text) else None
        except InvalidOperation:
            exact = None
        if exact is None or not exact.is_finite():
            return "?"
        return "0" if exact == 0 else text
    return text


def reason_for(text: str, kind: pa.DataType) -> str:
    """Why this text is no value of the type, in a few words."""
    shown = repr(text if len(text) <= 60 else text[:60] + "...")
    name = type_name(kind)
    text = text.strip()
    if (pa.types.is_integer(kind) or pa.types.is_duration(kind)) and re.fullmatch(r"[-+]?[0-9]+", text):
        return f"{shown} is out of range for {name}"
    if pa.types.is_decimal(kind) and re.fullmatch(r"[-+]?[0-9]*\.?[0-9]*", text) and any(c.isdigit() for c in text):
        return f"{shown} does not fit {name} exactly"
    if pa.types.is_timestamp(kind):
        found = _MOMENT.fullmatch(text)
        if found is not None and (found[5] or "")[6:].strip("0"):
            return f"{shown} is finer than a microsecond"
    if is_bytes(kind):
        return f"{shown} is not base64"
    if pa.types.is_floating(kind) and re.fullmatch(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?", text):
        return f"{shown} is out of range for {name}"
    if (pa.types.is_timestamp(kind) or pa.types.is_date(kind)) and text.startswith("0000-"):
        return f"{shown} lies outside the years 1 to 9999"
    return f"{shown} is not {one_of(kind)}"


def _bytes(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Bad]:
    bad: Bad = []
    values: list[bytes | None] = []
    for index, text in enumerate(texts.to_pylist()):
        value = None
        if text is not None:
            try:
                value = base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                bad.append((index, reason_for(text, kind)))
        values.append(value)
    return pa.array(values, kind), bad
