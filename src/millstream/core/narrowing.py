"""Promises about columns that were cast to a wider type, told of the columns they were cast from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.punctuation import Constant, OneOf, Part, Pattern, Punctuation, Range, plain_values

Mask = npt.NDArray[np.bool_]


def narrowed(punctuation: Punctuation, names: Mapping[str, str], schema: pa.Schema) -> Punctuation | None:
    """The promise about the columns that these were cast from without loss; None where it says nothing of them."""
    if not any(name in names for name, _ in punctuation.patterns):
        return None
    found: dict[str, Pattern] = {}
    combinations: dict[str, pa.Array] = {}
    fits: Mask | None = None
    for name, pattern in punctuation.patterns:
        column = names.get(name, name)
        kind = schema.field(column).type if name in names else None
        if isinstance(pattern, Part):
            values, good = _narrow(pattern.rows.column(pattern.index), kind)
            combinations[column], fits = values, good if fits is None else fits & good
        elif kind is None:
            found[column] = pattern
        elif (narrow := _narrow_pattern(pattern, kind)) is not None:
            found[column] = narrow
        else:
            return None
    if fits is not None:
        if not fits.any():
            return None
        rows = pa.RecordBatch.from_arrays(list(combinations.values()), names=list(combinations))
        found |= Part.all(rows.filter(pa.array(fits)))
    return Punctuation.of(found)


def _narrow(values: pa.Array, kind: pa.DataType | None) -> tuple[pa.Array, Mask]:
    """Values in a narrower type, and which of them it holds."""
    if kind is None or values.type == kind:
        return values, np.ones(len(values), dtype=np.bool_)
    made = values.cast(kind, safe=False)
    same = pc.or_(pc.fill_null(pc.equal(made, values), False), values.is_null())
    if pa.types.is_floating(kind):
        same = pc.or_(same, pc.fill_null(values.is_nan(), False))
    return made, np.asarray(same)


def _narrow_pattern(pattern: Pattern, kind: pa.DataType) -> Pattern | None:
    match pattern:
        case Constant(value):
            made, fits = _narrow(pa.array([value]), kind)
            return Constant(plain_values(made)[0]) if fits[0] else None
        case OneOf():
            made, fits = _narrow(pattern.array(None), kind)
            return OneOf(made.filter(pa.array(fits))) if fits.any() else None
        case Range() if pa.types.is_integer(kind):
            least, greatest = -(1 << (kind.bit_width - 1)), (1 << (kind.bit_width - 1)) - 1
            first, last = pattern.ends
            if first > min(last, greatest) or last < least:
                return None
            return Range(None if first <= least else first, None if last >= greatest else last, high_inclusive=last < greatest)
    return None
