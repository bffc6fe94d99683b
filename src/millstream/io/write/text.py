"""Text: one column, a line per tuple."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa

from millstream.io.write.render import joined, render


class TextEncoder:
    """Null is an empty line. Meant for strings without line ends: those are written as they are."""

    extension = "txt"

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def start(self, out: BinaryIO) -> None: ...

    def write(self, out: BinaryIO, batch: pa.RecordBatch) -> None:
        out.write(joined([render(batch.column(0)).fill_null(""), pa.scalar("\n")], batch.num_rows))
