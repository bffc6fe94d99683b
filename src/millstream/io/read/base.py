"""What every format's reader does, and the steps they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from millstream.core.types import Int64s
from millstream.errors import SourceProblem
from millstream.io.contract import DeadLetter, Reading

LONGEST_TEXT = 2000
"""A dead letter quotes at most this many characters of a broken tuple."""


class Raw(Protocol):
    """Bytes that come in order; an empty answer is the end."""

    def read(self, size: int, /) -> bytes: ...


class Within:
    """A head, and then so many bytes of a file."""

    def __init__(self, head: bytes, file: Raw, size: int) -> None:
        self.head, self.file, self.size = head, file, size

    def read(self, size: int, /) -> bytes:
        if self.head:
            head, self.head = self.head, b""
            return head
        text = self.file.read(min(size, self.size))
        self.size -= len(text)
        return text


class LineReader(Protocol):
    """Reads a format of lines. `first_line` is the number of the first line of `raw`."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of its tuples."""

    def read(self, raw: Raw, file: str, batch_size: int, first_line: int = 1) -> Iterator[Reading]: ...


def broken(stream: str, file: str, line: int, reason: str, content: bytes | str) -> DeadLetter:
    text = content if isinstance(content, str) else content.decode("utf-8", "backslashreplace")
    text = text.rstrip("\r\n")
    if len(text) > LONGEST_TEXT:
        text = text[:LONGEST_TEXT] + "..."
    return DeadLetter(stream, "broken", reason, file, line, content=text)


def pieces(batch: pa.RecordBatch, lines: Int64s, letters: Sequence[DeadLetter], file: str, batch_size: int) -> Iterator[Reading]:
    """Cut to at most `batch_size` tuples; the letters go with the first piece."""
    if batch.num_rows == 0:
        if letters:
            yield Reading(batch, tuple(letters), file, lines)
        return
    for start in range(0, batch.num_rows, batch_size):
        yield Reading(batch.slice(start, batch_size), () if start else tuple(letters), file, lines[start : start + batch_size])


def line_blocks(raw: Raw, file: str, size: int = 4 << 20, longest: int = 256 << 20) -> Iterator[bytes]:
    """Blocks of whole lines, each ending in a newline (the last line gets one if it has none); a leading BOM is skipped."""
    rest: list[bytes] = []
    held = 0
    first = True
    while chunk := raw.read(size):
        if first:
            while len(chunk) < 3 and (more := raw.read(size)):
                chunk += more
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
            first = False
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join([*rest, chunk[:cut]])
            rest, held = [chunk[cut:]], len(chunk) - cut
        else:
            rest.append(chunk)
            held += len(chunk)
            if held > longest:
                raise SourceProblem(f"{file}: a line is longer than {longest >> 20} MB", hint="is this a text file?")
    if held:
        yield b"".join(rest) + b"\n"


def numbered(first: int, count: int) -> Int64s:
    return np.arange(first, first + count, dtype=np.int64)
