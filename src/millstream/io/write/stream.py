"""One part file of a text format, visible as it grows or staged for an epoch."""

from __future__ import annotations

import os
from typing import BinaryIO, Protocol

import pyarrow as pa

from millstream.io.contract import Part
from millstream.io.staging import Staging, writing

PIECE = 65_536
"""Tuples encoded at a time: the text of one piece must stay below the 2 GB of an Arrow string array."""


class Encoder(Protocol):
    """Turns tuples into the bytes of a format."""

    extension: str
    schema: pa.Schema

    def start(self, out: BinaryIO) -> None: ...

    def write(self, out: BinaryIO, batch: pa.RecordBatch) -> None: ...


def free_name(directory: str, stem: str, extension: str) -> str:
    """The first name not in use, so that a run that goes on never writes over what it wrote before."""
    number = 0
    while os.path.exists(os.path.join(directory, f"{stem}-{number:08d}.{extension}")):
        number += 1
    return f"{stem}-{number:08d}.{extension}"


class TextFileWriter:
    """Nothing is staged for an epoch without tuples; without epochs there is always a file, if an empty one."""

    def __init__(self, sink: str, staging: Staging, encoder: Encoder, stem: str, epoch: int | None) -> None:
        self.sink, self.staging, self.encoder, self.epoch = sink, staging, encoder, epoch
        self.file: BinaryIO | None = None
        self.rows = 0
        if epoch is None:
            with writing(staging.owner, staging.directory):
                self.visible = free_name(staging.directory, stem, encoder.extension)
                self.full, self.short = os.path.join(staging.directory, self.visible), ""
                self._open()
        else:
            self.visible = f"{stem}-{epoch:08d}.{encoder.extension}"

    def _open(self) -> BinaryIO:
        if self.file is None:
            if self.epoch is not None:
                self.full, self.short = self.staging.stage(self.epoch, self.visible)
            self.file = open(self.full, "wb", buffering=1 << 20)  # noqa: SIM115
            self.encoder.start(self.file)
        return self.file

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        with writing(self.staging.owner, self.staging.directory):
            out = self._open()
            rows = max(1, min(PIECE, PIECE * (512 << 20) // max(batch.nbytes, 1)))
            for start in range(0, batch.num_rows, rows):
                self.encoder.write(out, batch.slice(start, rows))
            self.rows += batch.num_rows

    def flush(self) -> None:
        with writing(self.staging.owner, self.staging.directory):
            if self.file is not None:
                self.file.flush()

    def close(self) -> Part:
        with writing(self.staging.owner, self.staging.directory):
            if self.file is None:
                return Part(self.sink, {"files": [], "rows": 0})
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
        if self.epoch is None:
            return Part(self.sink, {"files": [], "shown": [self.visible], "rows": self.rows})
        return Part(self.sink, {"files": [(self.short, self.visible)], "rows": self.rows})

    def abort(self) -> None:
        """Close; what was staged is dropped, what was shown stays."""
        if self.file is not None:
            with writing(self.staging.owner, self.staging.directory):
                self.file.close()
                if self.epoch is not None and os.path.exists(self.full):
                    os.unlink(self.full)
