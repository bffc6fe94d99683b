"""Text: every line is a tuple of one STRING."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.io.contract import DeadLetter, Reading
from millstream.io.read.base import Raw, broken, line_blocks, numbered, pieces


@dataclass(frozen=True)
class TextReader:
    """Reads lines; a line that is not UTF-8 is broken."""

    stream: str
    schema: pa.Schema

    def read(self, raw: Raw, file: str, batch_size: int, first_line: int = 1) -> Iterator[Reading]:
        for block in line_blocks(raw, file):
            count = block.count(b"\n")
            yield from self._block(block, file, batch_size, first_line, count)
            first_line += count

    def _block(self, block: bytes, file: str, batch_size: int, first_line: int, count: int) -> Iterator[Reading]:
        lines = numbered(first_line, count)
        letters: list[DeadLetter] = []
        try:
            if not block.isascii():
                block.decode("utf-8")
            if b"\r\n" in block:
                raise ValueError
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
            offsets = np.concatenate(([0], ends - np.arange(count))).astype(np.int32)
            array = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(block.replace(b"\n", b"")))
        except ValueError:
            texts: list[str] = []
            kept: list[int] = []
            for number, line in enumerate(block[:-1].split(b"\n"), first_line):
                try:
                    texts.append(line.removesuffix(b"\r").decode("utf-8"))
                    kept.append(number)
                except UnicodeDecodeError as error:
                    letters.append(broken(self.stream, file, number, f"not UTF-8 at byte {error.start + 1} of the line", line))
            array, lines = pa.array(texts, pa.string()), np.array(kept, dtype=np.int64)
        batch = pa.RecordBatch.from_arrays([array], schema=self.schema)
        yield from pieces(batch, lines, letters, file, batch_size)
