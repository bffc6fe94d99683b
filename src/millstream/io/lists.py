"""A stream from batches in memory, for tests and the Python API; it can be fed while it runs."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from millstream.core.types import Int64s
from millstream.errors import SourceProblem
from millstream.io.contract import NO_LIMITS, Limits, Position, Reading, Unit
from millstream.io.read.base import numbered
from millstream.io.read.values import type_name


class ListSource:
    """A unit per batch. `push` adds one and `end` says that no more will come; both may be called from any thread.

    A unit carries its batch, so that it can be read in another process.
    """

    def __init__(self, name: str, schema: pa.Schema, batches: Sequence[pa.RecordBatch] = (), *, ended: bool = True) -> None:
        self.name, self.schema = name, schema
        self._lock = threading.Lock()
        self._batches: list[pa.RecordBatch] = []
        self._ended = False
        for batch in batches:
            self.push(batch)
        self._ended = ended
        self._limits = NO_LIMITS

    def hosted(self, directory: str | None, limits: Limits) -> ListSource:
        """The same tuples; the limits go with the copy that Spark reads."""
        other = copy.copy(self)
        other._limits = limits
        return other

    def push(self, batch: pa.RecordBatch | pa.Table) -> None:
        if not isinstance(batch, (pa.RecordBatch, pa.Table)):
            kind = type(batch).__name__
            said = f"stream {self.name}: push takes a record batch or a table of Arrow, not a {kind}"
            raise SourceProblem(said, hint="write pyarrow.RecordBatch.from_pylist(rows, source.schema)")
        if not batch.schema.equals(self.schema):
            shown = [" ".join(f"{f.name} {type_name(f.type)}," for f in s).rstrip(",") for s in (batch.schema, self.schema)]
            raise SourceProblem(f"stream {self.name}: the batch has ({shown[0]}), declared is ({shown[1]})")
        pieces = batch.to_batches() if isinstance(batch, pa.Table) else [batch]
        with self._lock:
            if self._ended:
                raise SourceProblem(f"stream {self.name} has ended", hint="open it with ended=False to push into it")
            self._batches.extend(pieces)

    def end(self) -> None:
        with self._lock:
            self._ended = True

    @property
    def bounded(self) -> bool:
        return self._ended

    def check(self) -> None: ...

    def initial(self) -> Position:
        return {"units": 0}

    def latest(self, start: Position, limit: int | None) -> Position:
        with self._lock:
            end = len(self._batches)
            first = int(start["units"])
            end = max(first, end if limit is None else min(end, first + limit))
            if self._limits == NO_LIMITS:
                return {"units": end}
            return {"units": first + self._limits.fitting((b.nbytes, b.num_rows) for b in self._batches[first:end])}

    def units(self, start: Position, end: Position) -> list[Unit]:
        with self._lock:
            return [Unit(i, {"batch": self._batches[i]}) for i in range(int(start["units"]), int(end["units"]))]

    def read(self, unit: Unit, batch_size: int) -> Iterator[Reading]:
        batch = unit.detail["batch"]
        for start in range(0, batch.num_rows, batch_size):
            piece = batch.slice(start, batch_size)
            lines: Int64s = numbered(start + 1, piece.num_rows)
            yield Reading(piece, file=f"{self.name}[{unit.number}]", lines=lines)

    def arrived(self, unit: Unit) -> int | None:
        return None

    def finished(self, position: Position) -> bool:
        with self._lock:
            return self._ended and int(position["units"]) >= len(self._batches)

    def release(self, position: Position) -> None:
        """The batches stay: the caller may run the same source again."""

    def close(self) -> None: ...

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {**{k: v for k, v in self.__dict__.items() if k != "_lock"}, "_batches": list(self._batches)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
