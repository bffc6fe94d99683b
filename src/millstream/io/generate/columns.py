"""What a made stream shows in each of its columns: key, marker and times, and something sensible by type in the others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.types import Int64s, from_axis
from millstream.errors import SourceProblem
from millstream.io.generate.recipe import COLUMNS, Begin, Made, Recipe
from millstream.io.read.values import type_name

DAY = 86_400_000_000
LARGEST_DECIMAL = 18
"""Digits that an int64 holds."""


def fill(recipe: Recipe, begin: Begin, made: Made, schema: pa.Schema, key: str, marker: str | None) -> pa.RecordBatch:
    """The rows of a chunk; a punctuation has the columns of the tuple before it, but for the key and the marker."""
    columns = []
    for number, field in enumerate(schema):
        if field.name == key:
            columns.append(_fitting(field, made.keys))
        elif field.name == marker:
            columns.append(pa.array(made.closing))
        elif pa.types.is_timestamp(field.type):
            columns.append(from_axis(made.times, field.type))
        elif pa.types.is_date(field.type):
            columns.append(from_axis(made.times // DAY, field.type))
        elif pa.types.is_integer(field.type):
            columns.append(pa.array((begin.tuples + made.of) & ((1 << (field.type.bit_width - 1)) - 1)).cast(field.type))
        elif pa.types.is_string(field.type) or pa.types.is_binary(field.type):
            text = pc.binary_join_element_wise(field.name, pa.array(made.keys[_shown(made)]).cast(pa.string()), "-")
            columns.append(text.cast(field.type))
        else:
            columns.append(_random(recipe.random(begin.chunk, COLUMNS, number), made.of, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _shown(made: Made) -> Int64s:
    """For each row the one whose key it shows in other columns: a punctuation that of the tuple before it."""
    return np.arange(len(made.keys)) - made.closing


def _fitting(field: pa.Field, keys: Int64s) -> pa.Array:
    try:
        return pa.array(keys).cast(field.type)
    except pa.ArrowInvalid as error:
        said = f"the values of the key column `{field.name}` have grown beyond {type_name(field.type)}"
        raise SourceProblem(said, hint="declare it BIGINT") from error


def _random(random: np.random.Generator, of: Int64s, kind: pa.DataType) -> pa.Array:
    """Pseudo-random by tuple: booleans, numbers in [0, 1), decimals of any digits."""
    tuples = int(of[-1]) + 1 if len(of) else 0
    if pa.types.is_boolean(kind):
        return pa.array(random.random(tuples)[of] < 0.5)
    if pa.types.is_decimal(kind):
        digits = random.integers(0, 10 ** min(kind.precision, LARGEST_DECIMAL), tuples)[of]
        whole = pa.array(digits).cast(pa.decimal128(19, 0))
        return pa.Array.from_buffers(kind, len(whole), whole.buffers())  # the same digits, with the point elsewhere
    return pa.array(random.random(tuples)[of]).cast(kind, safe=False)
