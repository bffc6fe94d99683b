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


def compiled(function: Kernel) -> Kernel:
    return cast(Kernel, njit(cache=True, nogil=True)(function))
