"""The one decorator for kernels, with a type that mypy can follow.

Kernels take few array types (int64, uint64, float64, uint8, bool; C-contiguous), so that each is compiled once
and then read from numba's cache on disk. A kernel that calls another one keeps it in the same file: numba's
cache only looks at the file of the caller when it decides whether an entry is stale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
Float64s = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

Index = int | np.int64

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


class _Lent:
    """Memory under the flag "writable": numba would compile a kernel anew for each mix of read-only and other arrays."""

    def __init__(self, owner: Any, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def lend(address: int, size: int, dtype: Any, owner: Any) -> npt.NDArray[Any]:
    """An array over memory that `owner` keeps; kernels must not write to it."""
    interface = {"data": (address, False), "shape": (size,), "typestr": np.dtype(dtype).str, "version": 3}
    return np.asarray(_Lent(owner, interface))


def given(values: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    """A caller's array in the one form that kernels are compiled for: this type, C order, aligned, typed as writable."""
    values = np.ascontiguousarray(values, dtype=dtype)
    if not values.flags.aligned:
        return values.copy()
    if not values.flags.writeable:
        lent = lend(values.__array_interface__["data"][0], values.size, values.dtype, values)
        return lent if values.ndim == 1 else lent.reshape(values.shape)
    return values


def compiled(function: Kernel) -> Kernel:
    return cast(Kernel, njit(cache=True, nogil=True)(function))
