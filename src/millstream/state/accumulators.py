"""Aggregate functions: which there are for which types, what they give, and how a running one is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from millstream.core.types import type_name
from millstream.errors import TypeProblem
from millstream.kernels.compiled import Bools, Int64s
from millstream.state import moments, numeric_totals
from millstream.state.bridge import fixed_dtype, is_text
from millstream.state.extremes import DecimalExtreme, FloatExtreme, TextExtreme, WordExtreme

VARIANCES = ("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")
_SAME = {"every": "bool_and", "any": "bool_or", "some": "bool_or", "stddev": "stddev_samp", "variance": "var_samp", "mean": "avg"}


class Accumulator(Protocol):
    """One aggregate for all groups of a table. Its state is plain columns, so partial aggregates travel and merge."""

    def reserve(self, capacity: int, used: int) -> None: ...

    def begin(self, first: int, stop: int) -> None:
        """Groups first..stop-1 are new and empty."""

    def update(self, groups: Int64s, values: pa.Array | None, mask: Bools | None) -> None:
        """Fold values into their groups; nulls, and rows where the mask is False, are left out."""

    def merge(self, groups: Int64s, state: list[pa.Array]) -> None:
        """Fold other accumulators' states into the groups."""

    def load(self, groups: Int64s, state: list[pa.Array]) -> None:
        """Replace the groups' states; each group occurs once."""

    def state(self, groups: Int64s) -> list[pa.Array]: ...

    def result(self, groups: Int64s) -> pa.Array: ...

    def keep(self, groups: Int64s, capacity: int) -> None: ...

    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True)
class AccumulatorSpec:
    """An aggregate function over a type; `count` without a type counts tuples.

    Result types are Spark's. A pair that does not exist is a TypeProblem when the spec is made.
    """

    function: str
    type: pa.DataType | None = None

    def __post_init__(self) -> None:
        self._plan()

    @property
    def result_type(self) -> pa.DataType:
        return self._plan()[0]

    @property
    def state_schema(self) -> pa.Schema:
        """The columns that `state` gives and `merge` takes; names begin with the function's."""
        fields = self._plan()[1]
        return pa.schema([pa.field(f"{self.function}_{name}", kind) for name, kind in fields])

    def build(self) -> Accumulator:
        return self._plan()[2]()

    def _plan(self) -> tuple[pa.DataType, list[tuple[str, pa.DataType]], Callable[[], Accumulator]]:
        function = _SAME.get(self.function.lower(), self.function.lower())
        kind = self.type
        if function == "count":
            return pa.int64(), [("count", pa.int64())], numeric_totals.Count
        if kind is not None and pa.types.is_null(kind):
            raise TypeProblem(f"{function} of NULL has no type", hint="CAST it")
        if kind is not None:
            found = self._numeric(function, kind) or self._extreme(function, kind)
            if found is not None:
                return found
        argument = "*" if kind is None else type_name(kind)
        wanted = "BOOLEAN" if function.startswith(("bool", "count")) else "a number"
        hint = "name a column" if kind is None else f"CAST its argument to {wanted}"
        raise TypeProblem(f"there is no aggregate {self.function}({argument})", hint=hint)

    def _numeric(
        self, function: str, kind: pa.DataType
    ) -> tuple[pa.DataType, list[tuple[str, pa.DataType]], Callable[[], Accumulator]] | None:
        integer, real, decimal = pa.types.is_integer(kind), pa.types.is_floating(kind), pa.types.is_decimal128(kind)
        if not (integer or real or decimal):
            return None
        if function in ("var_samp", "var_pop", "stddev_samp", "stddev_pop"):
            fields = [(name, pa.float64()) for name in ("count", "mean", "squares")]
            return pa.float64(), fields, lambda: moments.Moments(function)
        if function not in ("sum", "avg"):
            return None
        average = function == "avg"
        if real:
            fields = [(name, pa.float64()) for name in ("count", "total", "compensation")]
            return pa.float64(), fields, lambda: numeric_totals.FloatTotal(average)
        fields = [(name, pa.int64()) for name in ("count", "low", "middle", "high")]
        if integer:
            unsigned = pa.types.is_uint64(kind)
            result = pa.float64() if average else pa.int64()
            return result, fields, lambda: numeric_totals.IntegerTotal(average, unsigned)
        more = 4 if average else 10
        result = pa.decimal128(min(kind.precision + more, 38), min(kind.scale + 4, 38) if average else kind.scale)
        return result, fields, lambda: numeric_totals.DecimalTotal(kind, result, average)

    def _extreme(
        self, function: str, kind: pa.DataType
    ) -> tuple[pa.DataType, list[tuple[str, pa.DataType]], Callable[[], Accumulator]] | None:
        greatest = function in ("max", "bool_or")
        if function in ("bool_and", "bool_or"):
            if not pa.types.is_boolean(kind):
                return None
        elif function not in ("min", "max"):
            return None
        if is_text(kind):
            return kind, [("value", kind)], lambda: TextExtreme(kind, greatest)
        if pa.types.is_floating(kind):
            return kind, [("seen", pa.float64()), ("value", pa.float64())], lambda: FloatExtreme(kind, greatest)
        if pa.types.is_decimal128(kind):
            fields = [(name, pa.int64()) for name in ("seen", "low", "high")]
            return kind, fields, lambda: DecimalExtreme(kind, greatest)
        if fixed_dtype(kind) is not None:
            return kind, [("seen", pa.int64()), ("value", pa.int64())], lambda: WordExtreme(kind, greatest)
        return None
