"""`--metrics FILE`: how a run goes, for machines."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TextIO, cast

from millstream.errors import SetupProblem, is_full
from millstream.runtime.status import Status

EVERY = 1.0
"""Seconds between two lines where there are no micro-batches."""


class Metrics:
    """JSON objects, one a line: one per micro-batch on Spark, one a second in one process, and a last one.

    The file is made with the first line.
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self.file, self.last = path, cast("TextIO | None", None), Status()
        if path is not None and not os.access(path if path.exists() else path.parent, os.W_OK):
            raise self._refused(
                "No such file or directory" if not path.parent.exists() else "Permission denied"
            )
        if path is not None and path.is_dir():
            raise self._refused("Is a directory")

    def update(self, status: Status) -> None:
        passed = status.seconds - self.last.seconds >= EVERY
        if status.batches > self.last.batches or (not status.batches and passed and status.spent):
            self._write(status, over=False)

    def close(self, final: Status) -> None:
        self._write(final, over=True)
        if self.file is not None:
            self.file.close()

    def _write(self, status: Status, *, over: bool) -> None:
        self.last = status
        if self.path is None:
            return
        try:
            self.file = self.file or self.path.open("w", encoding="utf-8")
            print(json.dumps({**status.as_dict(), "over": over}), file=self.file, flush=True)
        except OSError as error:
            raise self._refused(error.strerror or str(error), is_full(error)) from None

    def _refused(self, why: str, full: bool = False) -> SetupProblem:
        said = f"can not write the metrics to {self.path}: {why}"
        return SetupProblem(said, hint="choose another file", passing=full)
