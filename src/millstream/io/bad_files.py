"""Files that cannot be read: the verdict on one, which a replay repeats, and the ways out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.core.block import empty_batch
from millstream.errors import SourceProblem
from millstream.io.contract import DeadLetter, Reading
from millstream.io.read.base import LineReader, numbered
from millstream.io.read.parquet import ParquetReader
from millstream.io.reading import Stretched, read_file

SIZE = 16_384
"""Tuples that are read at once to judge a file."""


def judge(
    owner: str, reader: LineReader | ParquetReader, path: str, stretch: Stretched | None
) -> dict[str, Any]:
    """Return facts about a file or a stretch of it: that it is sound, or why and from where on it is broken.

    The file is read to its end for that. A text is good up to a line, a Parquet file up to a row group, so
    the verdict does not depend on the number of tuples read at once.
    """
    until = 0
    try:
        if isinstance(reader, ParquetReader):
            until, end = _groups(path, stretch)
            for first, last in [(until, until), *((group, group + 1) for group in range(until, end))]:
                for _ in read_file(owner, reader, path, SIZE, (first, last, 1)):
                    pass
                until = last
        else:
            for reading in read_file(owner, reader, path, SIZE, stretch, gently=True):
                until = max(
                    [
                        until,
                        *(int(line) for line in reading.lines[-1:]),
                        *(letter.line or 0 for letter in reading.letters),
                    ]
                )
    except SourceProblem as problem:
        return {"broken": [problem.message.removeprefix(f"{owner}: "), until]}
    return {"sound": True}


def _groups(path: str, stretch: Stretched | None) -> tuple[int, int]:
    if stretch is not None:
        return stretch[0], stretch[1]
    with suppress(OSError, pa.ArrowException), pq.ParquetFile(path) as file:
        return 0, file.metadata.num_row_groups
    return 0, 0  # the first attempt to read it will tell why


def read_broken(
    owner: str,
    reader: LineReader | ParquetReader,
    path: str,
    batch_size: int,
    stretch: Stretched | None,
    verdict: list[Any],
) -> Iterator[Reading]:
    """Yield the good part of a broken file, and one letter about the rest."""
    reason, until = str(verdict[0]), int(verdict[1])
    if isinstance(reader, ParquetReader):
        first, _, row = stretch or (0, 0, 1)
        if until > first:
            yield from read_file(owner, reader, path, batch_size, (first, until, row))
    elif until:
        yield from _up_to(until, read_file(owner, reader, path, batch_size, stretch, gently=True))
    letter = DeadLetter(owner.removeprefix("stream "), "broken", reason, path)
    yield Reading(empty_batch(reader.schema), (letter,), path, numbered(1, 0))


def _up_to(until: int, readings: Iterator[Reading]) -> Iterator[Reading]:
    """The readings up to a line; whatever breaks behind it is known."""
    seen = 0
    try:
        for reading in readings:
            count = int(np.searchsorted(reading.lines, until, side="right"))
            letters = tuple(letter for letter in reading.letters if (letter.line or 0) <= until)
            seen = max(
                [
                    seen,
                    *(int(line) for line in reading.lines[-1:]),
                    *(letter.line or 0 for letter in reading.letters),
                ]
            )
            yield Reading(reading.batch.slice(0, count), letters, reading.file, reading.lines[:count])
            if seen > until:
                return
    except SourceProblem:
        if seen < until:
            raise


def advised(problem: SourceProblem, reader: LineReader | ParquetReader) -> SourceProblem:
    """The problem with a file of a stream, with ways out that its format allows."""
    without = (
        "a Parquet file of these columns without rows"
        if isinstance(reader, ParquetReader)
        else "an empty file"
    )
    ways = f"correct it, put {without} in its place, or set on_bad_file = 'letter'"
    return SourceProblem(problem.message, hint=ways if problem.hint is None else f"{problem.hint}; {ways}")
