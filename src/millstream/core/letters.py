"""A dead letter is a tuple that could not be used, kept with the reason."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class DeadLetter:
    """A tuple that could not be used, with its place and the reason; nothing is lost in silence."""

    stream: str
    kind: str  # "broken", "late", "ahead", "null-timestamp", "check", "error"
    reason: str
    file: str | None = None
    line: int | None = None
    punctuation: str | None = None
    content: str | None = None  # the text of the row, or the tuple as JSON


def as_json(batch: pa.RecordBatch, row: int) -> str:
    """One tuple as a JSON object that a stream of format 'jsonl' reads back; hidden columns are left out."""
    values = {n: _plain(batch.column(n)[row]) for n in batch.schema.names if not n.startswith("__")}
    return json.dumps(values, default=str, ensure_ascii=False)


def _plain(value: pa.Scalar) -> Any:
    """A value in the form that the JSON reader takes; a time beyond the years of Python is its number."""
    try:
        found = value.as_py()
    except UnicodeDecodeError:
        return bytes(value.as_buffer()).decode("utf-8", "backslashreplace")
    except (OverflowError, ValueError):
        return value.value
    if isinstance(found, bytes):
        return base64.b64encode(found).decode()
    if isinstance(found, timedelta):
        return found // timedelta(microseconds=1)
    if isinstance(found, float) and not math.isfinite(found):
        return "NaN" if math.isnan(found) else "Infinity" if found > 0 else "-Infinity"
    return found
