"""A notice tells the source, through a small file, what the stages wait for and how far their streams are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from millstream.graph.cut import INGEST
from millstream.operators.contract import Due
from millstream.progress.demand import Waiting
from millstream.runtime.program import Note


@dataclass(frozen=True)
class Notice:
    """What an enabling timestamp depends on beside the offset, as of the last micro-batch."""

    buckets: Mapping[str, tuple[Waiting, ...]] = field(default_factory=dict)
    """What each bucket of each stage waits for, as far as they have told."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """The low-water mark that each stream's own tuples have led to."""
    lags: Mapping[str, int] = field(default_factory=dict)
    """How old tuples have been when they arrived, at most, by stream."""

    @property
    def waiting(self) -> list[Waiting]:
        return [waiting for bucket in self.buckets.values() for waiting in bucket]

    def after(self, notes: Iterable[Note]) -> Notice:
        """The notice with the news of a micro-batch; a bucket that had no part in it waits for what it waited for."""
        notes = list(notes)
        told = {f"{note.stage}/{note.bucket}": note.due for note in notes if note.stage != INGEST}
        marks = _greatest(self.marks, [pair for note in notes for pair in note.marks])
        return Notice({**self.buckets, **told}, marks, _greatest(self.lags, [pair for note in notes for pair in note.lags]))


def _greatest(known: Mapping[str, int], news: Iterable[tuple[str, int]]) -> dict[str, int]:
    found = dict(known)
    for name, value in news:
        found[name] = max(found.get(name, value), value)
    return found


class Notices:
    """The file: written in the user's process after each micro-batch, read in the source's; both are on the driver's host.

    Beside a checkpoint it outlives the run, so that a restart over silent streams still knows what waits for them.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None
        self._last: Notice | None = None

    def write(self, notice: Notice) -> None:
        buckets = {place: [[number, due.port, due.attribute, due.mark] for number, due in told] for place, told in notice.buckets.items()}
        with open(self.path + ".new", "w") as file:
            json.dump({"buckets": buckets, "marks": dict(notice.marks), "lags": dict(notice.lags)}, file)
        os.replace(self.path + ".new", self.path)

    def read(self) -> Notice | None:
        """The last notice, or None when there is none that can be read."""
        try:
            with open(self.path) as file:
                stat = os.fstat(file.fileno())
                if (stat.st_ino, stat.st_mtime_ns) != self._seen:
                    told = json.load(file)
                    self._last = Notice({p: _waiting(due) for p, due in told["buckets"].items()}, told["marks"], told["lags"])
                    self._seen = stat.st_ino, stat.st_mtime_ns
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return self._last


def _waiting(told: Iterable[tuple[int, int, str, int]]) -> tuple[Waiting, ...]:
    return tuple((number, Due(port, attribute, mark)) for number, port, attribute, mark in told)
