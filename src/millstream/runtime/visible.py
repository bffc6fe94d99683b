"""What a sink gets to see: the columns of the query, not the engine's own."""

from __future__ import annotations

import pyarrow as pa

from millstream.core.types import is_hidden


def visible(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f for f in schema if not is_hidden(f.name)])


def to_visible(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = [name for name in batch.schema.names if not is_hidden(name)]
    return batch if len(names) == len(batch.schema.names) else batch.select(names)
