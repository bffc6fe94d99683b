"""The oracle: the relational form of a query in DuckDB over the finished streams, and the comparison of multisets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

Row = tuple[Any, ...]


def answer(tables: Mapping[str, pa.Table], query: str, views: Sequence[str] = ()) -> list[Row]:
    """What DuckDB computes; times come as microseconds."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(f"in_{name}", _zoneless(table))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM in_{name}")
        for view in views:
            connection.execute(view)
        return rows_of(connection.sql(query).to_arrow_table())


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of a table as tuples of plain values."""
    columns = [_plain(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def difference(ours: list[Row], theirs: list[Row]) -> str | None:
    """None when both multisets are equal: floats to a relative 1e-9, everything else exactly."""
    many, few = unequal(ours, theirs)
    if not many and not few:
        return None
    return f"{len(ours)} tuples, expected {len(theirs)}; too many: {many[:5]}; too few: {few[:5]}"


def unequal(ours: list[Row], theirs: list[Row]) -> tuple[list[Row], list[Row]]:
    """The rows of each multiset that the other does not have."""
    left, right = sorted(ours, key=_order), sorted(theirs, key=_order)
    if len(left) == len(right) and all(map(_same_row, left, right)):
        return [], []
    spare = list(right)
    missing = []
    for row in left:
        found = next((i for i, other in enumerate(spare) if _same_row(row, other)), None)
        if found is None:
            missing.append(row)
        else:
            del spare[found]
    return missing, spare


def _zoneless(table: pa.Table) -> pa.Table:
    fields = [f.with_type(pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column.to_pylist()


def _order(row: Row) -> tuple[Any, ...]:
    return tuple((value is None, isinstance(value, str), _rounded(value)) for value in row)


def _rounded(value: Any) -> Any:
    if value is None:
        return 0
    if isinstance(value, float) and not math.isnan(value):
        return float(f"{value + 0.0:.6g}")
    if isinstance(value, float):
        return math.inf
    if isinstance(value, (str, int, Decimal)):
        return value
    return value.toordinal()


def _same_row(a: Row, b: Row) -> bool:
    return len(a) == len(b) and all(map(_same, a, b))


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return (type(a) is type(b) and a == b) or (isinstance(a, (int, Decimal)) and isinstance(b, (int, Decimal)) and a == b)
