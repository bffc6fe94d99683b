"""Integer columns as numpy arrays without a copy, and back with the same nulls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.expressions.node import Kernel

_WIDTHS = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def values(array: pa.Array) -> npt.NDArray[Any]:
    """The stored integers of an integer, date, timestamp or duration array; what stands under a null is arbitrary."""
    width = np.dtype(_WIDTHS[array.type.bit_width])
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.empty(0, width)
    return np.frombuffer(data, width, count=len(array), offset=array.offset * width.itemsize)


def nulls(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """A mask that is True at nulls, or None when there are none."""
    if not array.null_count:
        return None
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def like(result: npt.NDArray[Any], source: pa.Array, kind: pa.DataType) -> pa.Array:
    """Integers as an array of a type, null where the source is."""
    array = pa.array(result, mask=nulls(source))
    return array if array.type == kind else array.view(kind)


def on_integers(function: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], kind: pa.DataType) -> Kernel:
    """A kernel of one argument that works on the stored integers; it sees 0 where there is a null."""

    def kernel(array: pa.Array) -> pa.Array:
        missing = nulls(array)
        stored = values(array)
        return like(function(stored if missing is None else np.where(missing, stored.dtype.type(0), stored)), array, kind)

    return kernel
