"""Python values, frames and tables become Arrow batches of declared columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from numbers import Real
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.types import TIMESTAMP
from millstream.errors import NameProblem, TypeProblem
from millstream.io.read.parquet import as_declared
from millstream.io.read.values import is_text
from millstream.language.types import sql_type


class ArrowStream(Protocol):
    """A frame or table of any library that exports Arrow: pandas, Polars, DuckDB, Arrow itself."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Rows: TypeAlias = "Iterable[Mapping[str, Any]] | Iterable[Sequence[Any]] | ArrowStream | pa.RecordBatch"

FORMS = "give dictionaries, sequences in column order, or a frame or table of pandas, Polars, DuckDB or Arrow"
INDEX = "__index_level_"
"""The beginning of the names that pandas gives to an index without a name. Such an index is no data."""
FLOAT = float(np.finfo(np.float32).max)
"""The largest number that is no infinity as a FLOAT."""
NO_ROWS = (str, bytes, bytearray, memoryview)
"""Sequences that are values."""


def taken(owner: str, rows: Any) -> pa.Table | list[Any]:
    """A table of everything that exports Arrow, otherwise a list of dictionaries and sequences."""
    if exports_arrow(rows):
        return _table(owner, rows)
    if isinstance(rows, Mapping):
        raise TypeProblem(
            f"{owner}: a dictionary is no list of tuples", hint="pyarrow.table(...) makes a table of columns"
        )
    if isinstance(rows, NO_ROWS) or not isinstance(rows, Iterable):
        raise TypeProblem(f"{owner}: {kind_of(rows)} is no list of tuples", hint=FORMS)
    listed = list(rows)
    for number, row in enumerate(listed, 1):
        if not isinstance(row, Mapping) and (
            isinstance(row, NO_ROWS) or not hasattr(row, "__len__") or not hasattr(row, "__getitem__")
        ):
            raise TypeProblem(f"{owner}: tuple {number} is {kind_of(row)}", hint=FORMS)
    return listed


def exports_arrow(given: object) -> bool:
    return not isinstance(given, type) and (
        hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")
    )


def need_text(what: str, value: object, hint: str = "") -> str:
    """The value itself, if it is a text."""
    if not isinstance(value, str):
        raise TypeProblem(f"{what} is a text, not {kind_of(value)}", hint=hint)
    return value


def kind_of(value: object) -> str:
    return (
        f"the class {value.__name__}"
        if isinstance(value, type)
        else f"a value of type {type(value).__name__}"
    )


def _table(owner: str, rows: Any) -> pa.Table:
    try:
        table = pa.table(rows)
    except Exception as error:  # the export is code of another library, which may raise anything
        said = " ".join(str(part) for part in error.args).strip() or type(error).__name__
        spark = type(rows).__module__.startswith("pyspark.")
        raise TypeProblem(
            f"{owner}: {kind_of(rows)} can not be read as a table: {said.splitlines()[0]}",
            hint="make a table of the DataFrame with its toArrow()" if spark else FORMS,
        ) from None
    return table.drop_columns([name for name in table.schema.names if name.startswith(INDEX)])


def to_batch(owner: str, schema: pa.Schema, rows: Rows) -> pa.RecordBatch:
    """One batch with these columns, from a table, dictionaries (a missing key is null) or sequences in column order.

    A time may be a datetime, a text such as `2026-01-01 12:00:05` (UTC when it names no zone), or microseconds since 1970.
    """
    given = taken(owner, rows)
    if isinstance(given, pa.Table):
        return _from_arrow(owner, schema, given)
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for number, row in enumerate(given, 1):
        values = _by_name(owner, schema, row, number)
        for name in schema.names:
            columns[name].append(values.get(name))
    arrays = []
    for column in schema:
        try:
            arrays.append(pa.array([_value(v, column.type) for v in columns[column.name]], type=column.type))
        except (pa.ArrowException, ArithmeticError, ValueError, TypeError) as error:
            said = f"{owner}: a value does not fit column `{column.name}`: {error}"
            raise TypeProblem(said, hint=_unfit(columns[column.name], column.type)) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _unfit(values: Sequence[Any], kind: pa.DataType) -> str | None:
    """The first value that fits no column of this type; None where only all of them together fit none."""
    for number, value in enumerate(values, 1):
        try:
            pa.array([_value(value, kind)], type=kind)
        except (pa.ArrowException, ArithmeticError, ValueError, TypeError):
            return f"it is {value!r} in tuple {number}"
    return None


def _by_name(owner: str, schema: pa.Schema, row: Any, number: int) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        for name in row:
            if name not in schema.names:
                raise NameProblem.unknown("column", str(name), schema.names, within=owner)
        return row
    if len(row) != len(schema):
        hint = f"they are {', '.join(schema.names)}"
        raise TypeProblem(
            f"{owner}: tuple {number} has {len(row)} values for {len(schema)} columns", hint=hint
        )
    return dict(zip(schema.names, row, strict=True))


def _value(value: Any, kind: pa.DataType) -> Any:
    if _missing(value, kind):
        return None
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, str):
        if pa.types.is_timestamp(kind):
            value = datetime.fromisoformat(value)
        elif pa.types.is_date(kind):
            return date.fromisoformat(value)
    if isinstance(value, datetime) and pa.types.is_date(kind) and value.time() != time.min:
        raise ValueError(f"{value} has a time of day")
    if pa.types.is_float32(kind) and isinstance(value, (int, float)) and FLOAT < abs(value) < float("inf"):
        raise ValueError(f"{value} does not fit FLOAT")
    if isinstance(value, date) and pa.types.is_timestamp(kind):
        moment = value if isinstance(value, datetime) else datetime.combine(value, time.min)
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        try:  # with PYARROW_IGNORE_TIMEZONE, Arrow passes over the offset
            return moment.astimezone(UTC)
        except OverflowError:
            raise ValueError(f"{moment} lies outside the years 1 to 9999") from None
    if isinstance(value, (int, float, str)) and not isinstance(value, bool) and pa.types.is_decimal(kind):
        try:
            return Decimal(str(value))
        except InvalidOperation:
            raise ValueError(f"`{value}` is no number") from None
    whole = pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    if whole and not isinstance(value, bool) and isinstance(value, (Real, Decimal)):
        number: Any = value
        if number % 1:
            raise ValueError(f"{number} is no whole number")
        return int(number)
    return value


def _missing(value: Any, kind: pa.DataType) -> bool:
    """True for null and for the missing values of pandas and NumPy. NaN is a value of FLOAT and DOUBLE."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return isinstance(value, (float, np.floating)) and value != value and not pa.types.is_floating(kind)


def _from_arrow(owner: str, schema: pa.Schema, table: pa.Table) -> pa.RecordBatch:
    columns = []
    for field in schema:
        if field.name not in table.schema.names:
            raise NameProblem.unknown(
                "column", field.name, table.schema.names, within=f"the table given for {owner}"
            )
        try:
            columns.append(_cast(_whole(table.column(field.name)), field.type))
        except (pa.ArrowException, ValueError, KeyError) as error:
            raise TypeProblem(f"{owner}: column `{field.name}`: {error.args[0]}") from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in the declared type; an error where a value would become another one."""
    given = column.type
    if pa.types.is_timestamp(kind) and is_text(given):
        return pa.array([_value(text, kind) for text in column.to_pylist()], type=kind)
    made = as_declared(column, kind)
    number = pa.types.is_floating(given) or pa.types.is_integer(given)
    if pa.types.is_float32(kind) and number:
        bent = pc.and_(pc.is_inf(made), pc.is_finite(column))
    elif (pa.types.is_date(kind) and pa.types.is_timestamp(given)) or (
        number and (pa.types.is_decimal(kind) or pa.types.is_boolean(kind))
    ):
        bent = pc.not_equal(made.cast(given), column)
    else:
        return made
    if pc.any(bent).as_py():
        raise ValueError(f"{column.filter(bent)[0]} does not fit {sql_type(kind).sql('spark')} exactly")
    return made


def columns_of(owner: str, schema: str | pa.Schema | None, given: pa.Table | pa.Schema | list[Any]) -> str:
    """The columns as CREATE STREAM spells them: those of `schema`, or else those of the data itself."""
    if isinstance(schema, str):
        return schema
    if schema is None:
        return columns_of(owner, given if isinstance(given, pa.Schema) else _inferred(owner, given), [])
    if not isinstance(schema, pa.Schema):
        raise TypeProblem(
            f"{owner}: {kind_of(schema)} is no schema",
            hint="write schema='k BIGINT, ts TIMESTAMP' or pyarrow.schema(...)",
        )
    if not schema.names:
        raise TypeProblem(f"{owner}: there are no columns", hint="name them with schema='k BIGINT, ts TIMESTAMP'")
    return ", ".join(f"{quoted(f.name)} {_spelled(owner, f)}" for f in schema)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _inferred(owner: str, rows: pa.Table | list[Any]) -> pa.Schema:
    if isinstance(rows, pa.Table):
        return rows.schema
    if not rows:
        raise TypeProblem(
            f"{owner}: no tuple tells what its columns are",
            hint="name them with schema='k BIGINT, ts TIMESTAMP'",
        )
    if not all(isinstance(row, Mapping) for row in rows):
        said = f"{owner}: the tuples do not name their columns"
        raise TypeProblem(said, hint="name them with schema='k BIGINT, ts TIMESTAMP', or give dictionaries")
    fields = []
    for name in dict.fromkeys(name for row in rows for name in row):
        try:
            fields.append((str(name), pa.array([row.get(name) for row in rows], from_pandas=True).type))
        except (pa.ArrowException, OverflowError) as error:
            said = f"{owner}: the values of column `{name}` have no type in common: {error}"
            raise TypeProblem(said, hint="name the types with schema='...'") from None
    return pa.schema(fields)


def _spelled(owner: str, field: pa.Field) -> str:
    if pa.types.is_null(field.type):
        said = f"{owner}: column `{field.name}` has nothing but nulls"
        raise TypeProblem(said, hint="name its type with schema='...'")
    try:
        return sql_type(_declared(field.type)).sql("spark")
    except TypeProblem:
        said = f"{owner}: column `{field.name}` is {field.type}, which is no type of the language"
        raise TypeProblem(said, hint="convert it, or leave it out with schema='...'") from None


def _declared(kind: pa.DataType) -> pa.DataType:
    """The nearest type of the language: times in microseconds of UTC, plain strings and integers."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_unsigned_integer(kind):
        return pa.int64()
    if pa.types.is_float16(kind):
        return pa.float32()
    return pa.date32() if pa.types.is_date(kind) else kind
