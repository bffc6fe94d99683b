"""Python values become Arrow batches of declared columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from millstream.core.types import TIMESTAMP
from millstream.errors import NameProblem, TypeProblem

Rows: TypeAlias = "Sequence[Mapping[str, Any]] | Sequence[Sequence[Any]] | pa.Table | pa.RecordBatch"


def to_batch(owner: str, schema: pa.Schema, rows: Rows) -> pa.RecordBatch:
    """One batch with these columns, from a table, dictionaries (a missing key is null) or sequences in column order.

    A time may be a datetime, a text such as `2026-01-01 12:00:05` (UTC when it names no zone), or microseconds since 1970.
    """
    if isinstance(rows, (pa.Table, pa.RecordBatch)):
        return _from_arrow(owner, schema, rows)
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for number, row in enumerate(rows, 1):
        values = _by_name(owner, schema, row, number)
        for name in schema.names:
            columns[name].append(values.get(name))
    arrays = []
    for column in schema:
        try:
            arrays.append(pa.array([_value(v, column.type) for v in columns[column.name]], type=column.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ArithmeticError, ValueError, TypeError) as error:
            raise TypeProblem(f"{owner}: a value does not fit column `{column.name}`: {error}") from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _by_name(owner: str, schema: pa.Schema, row: Any, number: int) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        for name in row:
            if name not in schema.names:
                raise NameProblem.unknown("column", str(name), schema.names, within=owner)
        return row
    if len(row) != len(schema):
        hint = f"they are {', '.join(schema.names)}"
        raise TypeProblem(f"{owner}: tuple {number} has {len(row)} values for {len(schema)} columns", hint=hint)
    return dict(zip(schema.names, row, strict=True))


def _value(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, str):
        if pa.types.is_timestamp(kind):
            value = datetime.fromisoformat(value)
        elif pa.types.is_date(kind):
            return date.fromisoformat(value)
    if isinstance(value, datetime) and pa.types.is_timestamp(kind):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if isinstance(value, (int, float, str)) and not isinstance(value, bool) and pa.types.is_decimal(kind):
        return Decimal(str(value))
    return value


def _from_arrow(owner: str, schema: pa.Schema, rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    for name in schema.names:
        if name not in table.schema.names:
            raise NameProblem.unknown("column", name, table.schema.names, within=f"the table given for {owner}")
    try:
        columns = [table.column(f.name).cast(f.type).combine_chunks() for f in schema]
    except pa.ArrowInvalid as error:
        raise TypeProblem(f"{owner}: {error}") from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def declared(schema: pa.Schema) -> pa.Schema:
    """The types of the language nearest to those of some Arrow data: times in microseconds of UTC, plain strings and integers."""
    return pa.schema([(f.name, _declared(f.type)) for f in schema])


def _declared(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_unsigned_integer(kind):
        return pa.int64()
    return pa.date32() if pa.types.is_date(kind) else kind
