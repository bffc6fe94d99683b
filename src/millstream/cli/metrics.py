"""`--metrics FILE`: how a run goes, for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TextIO

from millstream.errors import SetupProblem
from millstream.runtime.status import Status

EVERY = 1.0
"""Seconds between two lines where there are no micro-batches."""


class Metrics:
    """A JSON object a line: one per micro-batch on Spark, one a second in one process, and the last when the run is over."""

    def __init__(self, path: Path | None) -> None:
        self.file: TextIO | None = None
        self.last = Status()
        if path is not None:
            try:
                self.file = path.open("w", encoding="utf-8")
            except OSError as error:
                raise SetupProblem(f"can not write the metrics to {path}: {error.strerror}", hint="choose another file") from None

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
        if self.file is not None:
            print(json.dumps({**status.as_dict(), "over": over}), file=self.file, flush=True)
