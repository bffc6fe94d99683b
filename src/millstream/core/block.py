"""A block is an Arrow record batch of tuples plus the punctuations that follow it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from millstream.core.punctuation import Punctuation


@dataclass(frozen=True)
class Block:
    """The unit that buffers hold, operators take and Spark moves.

    A block of one tuple is the tuple-at-a-time model of the papers, a block of 64k a column store.
    The punctuations hold after the block's tuples: a punctuation completes the block in progress.
    """

    batch: pa.RecordBatch
    punctuations: tuple[Punctuation, ...] = ()

    @classmethod
    def of_punctuations(cls, schema: pa.Schema, *punctuations: Punctuation) -> Block:
        return cls(empty_batch(schema), punctuations)

    @property
    def schema(self) -> pa.Schema:
        return self.batch.schema

    def __len__(self) -> int:
        rows: int = self.batch.num_rows
        return rows


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], type=field.type) for field in schema], schema=schema)
