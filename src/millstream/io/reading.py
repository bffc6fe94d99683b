"""One file read as its format says, or a stretch of it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millstream.errors import SourceProblem
from millstream.io.contract import Reading
from millstream.io.read.base import LineReader, Raw, Within
from millstream.io.read.csv import CsvReader
from millstream.io.read.parquet import ParquetReader

PIECE = 4096
"""Bytes that a gentle reader asks for at once."""

Stretched = tuple[int, int, int]
"""A part of a file: from the first to the second byte or row group, and the line or row where it begins."""


class Gently:
    """Bytes in small pieces, so that next to all that stands before a break comes out before it is told."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.broken: Exception | None = None

    def read(self, size: int, /) -> bytes:
        if self.broken is not None:
            raise self.broken
        found = bytearray()
        try:
            while len(found) < size and (piece := self.raw.read(min(PIECE, size - len(found)))):
                found += piece
        except (OSError, pa.ArrowException) as error:
            if not found:
                raise
            self.broken = error
        return bytes(found)


def read_file(
    owner: str,
    reader: LineReader | ParquetReader,
    path: str,
    batch_size: int,
    stretch: Stretched | None = None,
    *,
    gently: bool = False,
) -> Iterator[Reading]:
    """One file, or a stretch of it; whatever goes wrong names the file."""
    try:
        if isinstance(reader, ParquetReader):
            yield from reader.read(path, batch_size, stretch)
        elif stretch is not None:
            first, end, line = stretch
            with open(path, "rb") as file:
                head = reader.head(file) if first and isinstance(reader, CsvReader) else b""
                file.seek(first)
                yield from reader.read(
                    Within(head, file, end - first), path, batch_size, line - head.count(b"\n")
                )
        else:
            with pa.input_stream(path, compression="detect") as raw:
                yield from reader.read(Gently(raw) if gently else raw, path, batch_size)
    except SourceProblem as error:
        raise SourceProblem(f"{owner}: {error.message}", hint=error.hint) from error.__cause__
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, FileNotFoundError):
            hint = "put it back; on a cluster every machine must see this path"
            raise SourceProblem(f"{owner}: can not read {path}: the file is gone", hint=hint) from error
        why = (
            "permission denied" if isinstance(error, PermissionError) else " ".join(str(error).split())[:200]
        ).removesuffix(".")
        raise SourceProblem(f"{owner}: can not read {path}: {why}") from error
