"""Key columns to hashes: equal keys have equal hashes, in every process and on every machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.core.types import type_name
from millstream.errors import TypeProblem
from millstream.kernels.compiled import Bools, Int64s, UInt64s
from millstream.kernels.hashing import NULL_HASH, canonical_floats, combine, hash_pairs, hash_texts, hash_words
from millstream.state.bridge import fixed_dtype, flat_values, is_text, text_parts, validity, words_of

_NARROW_DECIMAL = 18  # digits that fit one word


def key_words(array: pa.Array) -> Int64s | None:
    """One int64 per value such that equal words mean equal keys, or None for types that need more room."""
    kind = array.type
    dtype = fixed_dtype(kind)
    if dtype is None:
        return None
    if dtype.kind == "f":
        return canonical_floats(flat_values(array).astype(np.float64, copy=False)).view(np.int64)
    if pa.types.is_decimal128(kind):
        return np.ascontiguousarray(flat_values(array)[:, 0]) if kind.precision <= _NARROW_DECIMAL else None
    return words_of(array)


def plain(array: pa.Array) -> pa.Array:
    """Dictionaries and string views in their plain form, whose hash is the same."""
    if fixed_dtype(array.type) is not None or is_text(array.type):
        return array
    if pa.types.is_dictionary(array.type):
        return plain(array.dictionary_decode())
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def hash_column(array: pa.Array) -> tuple[UInt64s, bool]:
    """Hashes with NULL_HASH for nulls, and whether equal hashes prove equal keys (nulls taken as one more value)."""
    array = plain(array)
    valid = validity(array)
    words = key_words(array) if len(array) else np.zeros(0, dtype=np.int64)
    if words is not None:
        hashes = hash_words(words.view(np.uint64))
    elif pa.types.is_decimal128(array.type):
        halves = flat_values(array).view(np.uint64)
        hashes = hash_pairs(np.ascontiguousarray(halves[:, 0]), np.ascontiguousarray(halves[:, 1]))
    elif is_text(array.type):
        hashes = hash_texts(*text_parts(array))
    elif pa.types.is_null(array.type):
        hashes = np.full(len(array), NULL_HASH)
    else:
        said = f"values of type {type_name(array.type)} can not be keys"
        raise TypeProblem(said, hint="CAST them to a string")
    # No value but null may have the hash of null; one in 2^64 has, and then it is the caller who looks at the keys.
    injective = False
    if words is not None:
        collides = hashes == NULL_HASH
        injective = not bool((collides if valid is None else collides & valid).any())
    if valid is not None:
        hashes[~valid] = NULL_HASH
    return hashes, injective


def hash_rows(batch: pa.RecordBatch, columns: Sequence[str]) -> tuple[UInt64s, Bools, bool]:
    """`hash_columns` of some columns of a batch; without any, all rows have one hash."""
    if not columns:
        return np.zeros(batch.num_rows, dtype=np.uint64), np.ones(batch.num_rows, dtype=np.bool_), True
    return hash_columns([batch.column(name) for name in columns])


def hash_columns(columns: Sequence[pa.Array], *, null_is_value: bool = False) -> tuple[UInt64s, Bools, bool]:
    """Hashes, which rows are valid, and whether the hash is injective (equal hashes prove equal keys).

    For joins a row with a null in any key column is not valid: it meets nobody. For grouping
    (`null_is_value`) all rows are valid and nulls are equal to each other. Floats: one NaN, and -0.0 is 0.0.
    Injective speaks of this batch and those that were injective too; once a batch was not, look at the keys from then on.
    """
    if not columns:
        raise ValueError("no key columns: how many rows?")
    hashes, injective = hash_column(columns[0])
    for column in columns[1:]:
        others, _ = hash_column(column)
        combine(hashes, others)
        injective = False
    valid = np.ones(len(hashes), dtype=np.bool_)
    if not null_is_value:
        for column in columns:
            found = validity(column if column.null_count == 0 else plain(column))
            if found is not None:
                valid &= found
    return hashes, valid, injective
