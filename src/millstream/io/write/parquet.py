"""Parquet part files: one per epoch, or a row of them that each become visible when complete."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.io.contract import Part
from millstream.io.staging import Staging, writing
from millstream.io.write.stream import free_name

ROW_GROUP = 131_072


class ParquetFileWriter:
    """A Parquet file has no meaning before its end, so without epochs it is hidden until it is full or closed."""

    def __init__(self, sink: str, staging: Staging, schema: pa.Schema, stem: str, epoch: int | None, rows_per_file: int) -> None:
        self.sink, self.staging, self.schema, self.stem, self.epoch = sink, staging, schema, stem, epoch
        self.rows_per_file = rows_per_file
        self.writer: pq.ParquetWriter | None = None
        self.held: list[pa.RecordBatch] = []
        self.held_rows = self.file_rows = self.rows = 0
        self.files: list[tuple[str, str]] = []
        self.shown: list[str] = []
        self.full = self.visible = ""
        self.any = False

    def _open(self) -> pq.ParquetWriter:
        if self.writer is None:
            if self.epoch is None:
                self.visible = free_name(self.staging.directory, self.stem, "parquet")
                self.full = os.path.join(self.staging.directory, "." + self.visible)
            else:
                self.visible = f"{self.stem}-{self.epoch:08d}.parquet"
                self.full, short = self.staging.stage(self.epoch, self.visible)
                self.files.append((short, self.visible))
            self.writer = pq.ParquetWriter(self.full, self.schema)
            self.any = True
        return self.writer

    def write(self, batch: pa.RecordBatch) -> None:
        """Batches are gathered to row groups, so that many small ones do not make a slow file."""
        if batch.num_rows == 0:
            return
        self.held.append(batch)
        self.held_rows += batch.num_rows
        self.rows += batch.num_rows
        if self.held_rows >= ROW_GROUP:
            self._drain()
        if self.epoch is None and self.file_rows >= self.rows_per_file:
            self._end()

    def _drain(self) -> None:
        if self.held:
            with writing(self.staging.owner, self.staging.directory):
                self._open().write_table(pa.Table.from_batches(self.held, self.schema), row_group_size=ROW_GROUP)
            self.file_rows += self.held_rows
            self.held, self.held_rows = [], 0

    def _end(self) -> None:
        if self.writer is None:
            return
        with writing(self.staging.owner, self.staging.directory):
            self.writer.close()
            with open(self.full, "rb") as file:
                os.fsync(file.fileno())
            if self.epoch is None:
                os.rename(self.full, os.path.join(self.staging.directory, self.visible))
                self.shown.append(self.visible)
        self.writer, self.file_rows = None, 0

    def flush(self) -> None:
        """Nothing: a Parquet file can not be shown before it is complete."""

    def close(self) -> Part:
        self._drain()
        if self.epoch is None and not self.any:
            with writing(self.staging.owner, self.staging.directory):
                self._open()
        self._end()
        return Part(self.sink, {"files": self.files, "shown": self.shown, "rows": self.rows})

    def abort(self) -> None:
        if self.writer is not None:
            with writing(self.staging.owner, self.staging.directory):
                self.writer.close()
                os.unlink(self.full)
            self.writer = None
