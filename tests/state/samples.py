"""Random Arrow arrays of every type that state may hold, with the edges that break things."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

KEY_TYPES: tuple[pa.DataType, ...] = (
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint32(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us", tz="UTC"),
    pa.timestamp("ms"),
    pa.duration("us"),
    pa.time64("us"),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.decimal128(10, 2),
    pa.decimal128(38, 6),
)

ALL_TYPES: tuple[pa.DataType, ...] = (
    *KEY_TYPES,
    pa.float16(),
    pa.list_(pa.int64()),
    pa.struct([("a", pa.int32()), ("b", pa.string())]),
    pa.dictionary(pa.int32(), pa.string()),
    pa.null(),
    pa.decimal256(50, 3),
)

_WIDTHS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}


def value_of(kind: pa.DataType, rng: random.Random, spread: int = 6) -> Any:
    """A value in the form `pa.array` takes; a small spread makes values meet again."""
    small = rng.randrange(spread)
    if pa.types.is_null(kind):
        return None
    if pa.types.is_boolean(kind):
        return small % 2 == 0
    if kind in (pa.int8(), pa.uint8()):
        small %= 100
    if kind in _WIDTHS:
        edge = 2 ** _WIDTHS[kind]
        return rng.choice([-edge, edge - 1, small - 3, small])
    if pa.types.is_unsigned_integer(kind):
        return rng.choice([2**kind.bit_width - 1, 2 ** (kind.bit_width - 1), small, small])
    if pa.types.is_floating(kind):
        return rng.choice([float("nan"), 0.0, -0.0, float("inf"), float("-inf"), small / 4, -small / 8])
    if pa.types.is_decimal(kind):
        widest = "9" * (kind.precision - kind.scale)
        parts = ["-0.01", "0.01", f"-{small}.5"] if kind.scale else [str(-small)]
        return Decimal(rng.choice(["0", str(small), widest, "-" + widest, *parts]))
    if pa.types.is_large_string(kind) or pa.types.is_string(kind):
        return rng.choice(["", "a", "\0", "ä€𝄞", "same prefix, other end " + str(small), "x" * (small * 5)])
    if pa.types.is_binary(kind):
        return rng.choice([b"", b"\x00", b"\x00\x00", b"\xff" * small, b"12345678", b"123456789"])
    if pa.types.is_list(kind):
        return [small] * (small % 3)
    if pa.types.is_struct(kind):
        return {"a": small, "b": rng.choice([None, "b"])}
    if pa.types.is_dictionary(kind):
        return rng.choice(["red", "green", ""])
    if pa.types.is_time64(kind):
        return small
    return rng.choice([-(10**9), small, -small])


def array_of(kind: pa.DataType, size: int, rng: random.Random, nulls: float = 0.2, spread: int = 6) -> pa.Array:
    """An array that is, half of the time, a slice of a longer one."""
    before, after = (rng.randrange(4), rng.randrange(4)) if rng.random() < 0.5 else (0, 0)
    values = [None if rng.random() < nulls else value_of(kind, rng, spread) for _ in range(before + size + after)]
    if pa.types.is_temporal(kind):
        base = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, type=base).view(kind).slice(before, size)
    return pa.array(values, type=kind).slice(before, size)


def values_of(array: pa.Array) -> list[Any]:
    """As Python values; times as their integers, because Python's have no negative years."""
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return list(array.to_pylist())
