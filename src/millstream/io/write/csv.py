"""CSV with a header: null is an empty field, the empty string is \"\", and a field is quoted when it must be."""

from __future__ import annotations

import re
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from millstream.io.read.values import is_bytes, is_text
from millstream.io.write.render import joined, render


class CsvEncoder:
    """What this writes, the CSV source with the same options reads back to the same tuples."""

    extension = "csv"

    def __init__(self, schema: pa.Schema, header: bool = True, delimiter: str = ",", quote: str = '"', null_value: str = "") -> None:
        self.schema, self.header, self.delimiter, self.quote, self.null_value = schema, header, delimiter, quote, null_value
        self.special = "[" + "".join(re.escape(c) for c in {delimiter, quote}) + "\r\n]"

    def start(self, out: BinaryIO) -> None:
        if self.header:
            names = self._strings(pa.array(self.schema.names, pa.string())).to_pylist()
            out.write((self.delimiter.join(names) + "\n").encode())

    def write(self, out: BinaryIO, batch: pa.RecordBatch) -> None:
        parts: list[pa.Array | pa.Scalar] = []
        for index, column in enumerate(batch.columns):
            kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
            text = render(column)
            if is_text(kind) or is_bytes(kind) or self.delimiter in "-.+:eE0123456789TZ" or self.null_value:
                text = self._strings(text)
            parts += [pa.scalar(self.delimiter if index else ""), text.fill_null(self.null_value)]
        out.write(joined([*parts, pa.scalar("\n")], batch.num_rows))

    def _strings(self, text: pa.Array) -> pa.Array:
        special = pc.or_(pc.equal(text, ""), pc.match_substring_regex(text, self.special))
        if self.null_value:
            special = pc.or_(special, pc.equal(text, self.null_value))
        if not pc.any(special).as_py():
            return text
        doubled = pc.replace_substring(text, self.quote, self.quote * 2)
        return pc.if_else(special, pc.binary_join_element_wise(self.quote, doubled, self.quote, ""), text)
