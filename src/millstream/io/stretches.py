"""Stretches of large files: whole lines of text or whole row groups of Parquet, so that a micro-batch need not take a file at once."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.core.types import Int64s
from millstream.errors import SourceProblem
from millstream.io.contract import Limits
from millstream.io.read.base import LineReader
from millstream.io.read.csv import CsvReader
from millstream.io.read.csv_records import layout
from millstream.io.read.parquet import ParquetReader

SHARE = 4
"""A file beyond the limits is cut into stretches of a fourth of them, so that several tasks read it at once."""
PACKED = (".gz", ".bz2", ".zst")
MARK = b"\xef\xbb\xbf"
"""A byte order mark is skipped where a text begins, so no stretch but the first may begin with one."""
TRACE = 4096
"""Bytes at the beginning of a text, and before a cut, by which it is known again."""
LONGEST = 64 << 20
"""Bytes in which a record must end; else the rest of the file is one stretch."""


@dataclass(frozen=True)
class Stretch:
    """From `first` to `end` of `size`: bytes of a text, row groups of Parquet. Its lines (or rows) begin at `line`, the next at `next`."""

    first: int
    end: int
    size: int
    line: int
    next: int
    bytes: int
    tuples: int | None
    """At most so many; None where that can not be told without reading."""
    trace: int = 0
    """A checksum by which the file is known again when its rest is read (see `Cutter.trace`)."""

    @property
    def whole(self) -> bool:
        return self.first == 0 and self.end >= self.size

    def entry(self, name: str) -> list[Any]:
        """Facts about a part of the file: all that is needed to read it, and to go on behind it."""
        return [name, self.first, self.end, self.size, self.line, self.next, self.trace]


class Cutter(Protocol):
    """Where a file may be cut."""

    size: int

    def cut(self, first: int, line: int, limits: Limits) -> Stretch:
        """The stretch that begins here and keeps to the limits where it can; at least one line or row group."""

    def trace(self, end: int) -> int:
        """A checksum over some of what stands before `end`."""


def stretches(path: str, reader: LineReader | ParquetReader, limits: Limits, begun: list[Any] | None = None) -> Iterator[Stretch]:
    """The file, or what is left of it behind a stretch that was taken: in one when it keeps to the limits, else in several where its
    format allows it. A file that was begun must be there to be ended, and be the one it was: nothing is offered in its place.
    """
    first, line = (int(begun[2]), int(begun[5])) if begun else (0, 1)
    try:
        size = os.path.getsize(path)
        if not first and limits.tuples is None and (limits.bytes is None or size <= limits.bytes):
            yield Stretch(0, size, size, 1, 1, size, None)
            return
        cutter = _cutter(path, reader)
        whole = cutter.cut(0, 1, limits) if not first else None
        changed = begun is not None and (cutter.size < begun[3] or cutter.trace(first) != begun[6])
    except (OSError, pa.ArrowException) as error:
        if first:
            why = " ".join(str(error).split())[:200]
            raise SourceProblem(f"can not read the rest of {path}: {why}", hint="put it back as it was, and go on") from error
        yield Stretch(0, 0, 0, 1, 1, 0, None)  # whoever reads it will tell what is wrong
        return
    if changed:
        raise SourceProblem(f"{path} is not the file it was when a part of it was read", hint="put it back as it was, and go on")
    if whole is not None and whole.whole:
        yield whole
        return
    while first < cutter.size:
        stretch = cutter.cut(first, line, limits.share(SHARE))
        yield replace(stretch, trace=cutter.trace(stretch.end))
        first, line = stretch.end, stretch.next


def _cutter(path: str, reader: LineReader | ParquetReader) -> Cutter:
    if isinstance(reader, ParquetReader):
        return RowGroups(path)
    return Packed(path) if path.lower().endswith(PACKED) else Lines(path, reader)


class Packed:
    """A compressed text can not be cut."""

    def __init__(self, path: str) -> None:
        self.size = os.path.getsize(path)

    def cut(self, first: int, line: int, limits: Limits) -> Stretch:
        return Stretch(0, self.size, self.size, 1, 1, self.size, None)

    def trace(self, end: int) -> int:
        return 0


class RowGroups:
    """Bytes are those on disk."""

    def __init__(self, path: str) -> None:
        with pq.ParquetFile(path) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        self.groups = groups
        self.rows = [group.num_rows for group in groups]
        self.bytes = [sum(group.column(i).total_compressed_size for i in range(group.num_columns)) for group in groups]
        self.size = len(groups)

    def cut(self, first: int, line: int, limits: Limits) -> Stretch:
        end = min(first + 1, self.size)
        while end < self.size and limits.hold(sum(self.bytes[first : end + 1]), sum(self.rows[first : end + 1])):
            end += 1
        rows = sum(self.rows[first:end])
        return Stretch(first, end, self.size, line, line + rows, sum(self.bytes[first:end]), rows)

    def trace(self, end: int) -> int:
        """By the facts that the file tells about the group before, among them its least and greatest values."""
        return zlib.crc32(json.dumps(self.groups[end - 1].to_dict(), sort_keys=True, default=str).encode())


class Lines:
    """Cut behind a newline; in CSV behind one that no quote encloses, as far as the quotes are regular."""

    def __init__(self, path: str, reader: LineReader) -> None:
        self.path, self.reader = path, reader
        self.size = os.path.getsize(path)

    def cut(self, first: int, line: int, limits: Limits) -> Stretch:
        head = self._head() if first == 0 else 0
        wanted = LONGEST if limits.bytes is None else max(limits.bytes, head)
        while True:
            text = self._text(first, wanted)
            last = first + len(text) >= self.size
            ends = self._ends(text, last)
            ends = ends[ends >= head]
            if ends.size or last or wanted >= LONGEST:
                break
            wanted *= 2
        if limits.tuples is not None:
            ends = ends[: limits.tuples + (head > 0)]
        while ends.size and self._text(first + int(ends[-1]), len(MARK)) == MARK:
            ends = ends[:-1]
        if not ends.size:
            return Stretch(first, self.size, self.size, line, line, self.size - first, None)
        used = int(ends[-1])
        end = min(first + used, self.size)
        return Stretch(first, end, self.size, line, line + text.count(b"\n", 0, used), end - first, ends.size)

    def trace(self, end: int) -> int:
        before = max(0, end - TRACE)
        return zlib.crc32(self._text(before, end - before), zlib.crc32(self._text(0, min(end, TRACE))))

    def _head(self) -> int:
        """Where the tuples begin: a header is never parted from the blank lines before it."""
        if not isinstance(self.reader, CsvReader):
            return 0
        with open(self.path, "rb") as file:
            return len(self.reader.head(file))

    def _text(self, first: int, size: int) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(first)
            return file.read(size)

    def _ends(self, text: bytes, last: bool) -> Int64s:
        """Behind each line (or record) of the text."""
        if last and text and not text.endswith(b"\n"):
            text += b"\n"
        if not isinstance(self.reader, CsvReader):
            return np.flatnonzero(np.frombuffer(text, np.uint8) == 10) + 1
        found = layout(text, ord(self.reader.delimiter), ord(self.reader.quote) if self.reader.quote else None)
        return np.append(found.starts[1:], found.cut) if found.cut else np.zeros(0, np.int64)
