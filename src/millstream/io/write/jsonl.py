"""JSON lines written column by column: Arrow makes the text of whole columns and joins them."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from millstream.io.read.values import is_bytes, is_text
from millstream.io.write.render import joined, render

_SPECIAL = r'[\x00-\x1f"\\\\]'


class JsonlEncoder:
    """Numbers keep all their digits; NaN and the infinities become strings; keys follow the schema's order."""

    extension = "jsonl"

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        opening = ["{" if index == 0 else "," for index in range(len(schema))]
        self.keys = [pa.scalar(o + json.dumps(name, ensure_ascii=False) + ":") for o, name in zip(opening, schema.names, strict=True)]

    def start(self, out: BinaryIO) -> None: ...

    def write(self, out: BinaryIO, batch: pa.RecordBatch) -> None:
        parts: list[pa.Array | pa.Scalar] = []
        for key, column in zip(self.keys, batch.columns, strict=True):
            parts += [key, json_column(column)]
        out.write(joined([*parts, pa.scalar("}\n")], batch.num_rows))


def json_column(values: pa.Array) -> pa.Array:
    """The column as JSON values, `null` for null."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return json_column(values.cast(kind.value_type))
    if is_text(kind):
        text = _strings(values.cast(pa.string()))
    elif pa.types.is_nested(kind) or pa.types.is_null(kind):
        text = pa.array([json.dumps(_plain(v), ensure_ascii=False, separators=(",", ":")) for v in values.to_pylist()], pa.string())
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind) or is_bytes(kind) or pa.types.is_time(kind):
        text = _quoted(render(values))
    else:
        text = render(values)
        if pa.types.is_floating(kind) and not pc.all(pc.is_finite(values), min_count=0).as_py():
            text = pc.if_else(pc.is_finite(values), text, _quoted(text))
    return text.fill_null("null") if text.null_count else text


def _quoted(text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', text, '"', "")


def _strings(text: pa.Array) -> pa.Array:
    """Quote, and escape the few that need it one by one."""
    special = pc.match_substring_regex(text, _SPECIAL)
    quoted = _quoted(text)
    if not pc.any(special).as_py():
        return quoted
    escaped = [json.dumps(value, ensure_ascii=False) for value in text.filter(special).to_pylist()]
    return pc.replace_with_mask(quoted, special.fill_null(False), pa.array(escaped, pa.string()))


def _plain(value: Any) -> Any:
    """A nested value as what `json.dumps` takes."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return value
