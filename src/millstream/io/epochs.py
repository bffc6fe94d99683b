"""The directory of a sink as a stream: in the order of its manifests, with the mark behind each epoch."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from millstream.errors import SourceProblem
from millstream.io.staging import OVER, RECORDS, RUN, WHOLE

Marks = Mapping[str, int | None]
"""Times by the columns that progress: no later row is before them; None while there is no such time."""


@dataclass(frozen=True)
class Epoch:
    """The files that one commit of a run showed, in order: pairs (staged, visible)."""

    run: str
    files: tuple[tuple[str, str], ...]
    marks: Marks | None
    """None when the run was of a version that recorded none."""
    since: int
    """The time at which the manifest was written; never less than that of the epoch before."""


@dataclass(frozen=True)
class Named:
    """A file of the stream, and the marks that it leads to; None where the clauses of the stream decide."""

    name: str
    marks: Marks | None = None


def is_sink(directory: str) -> bool:
    return os.path.isdir(os.path.join(directory, RECORDS))


def in_order(owner: str, directory: str, names: Iterable[str], *, watch: bool) -> list[Named]:
    """The files of a sink's directory: those that no manifest names first, then epoch by epoch.

    In a watched directory part files that no manifest names are passed over, because a run may write
    them. They are read where all runs are of a version that kept no manifest of what one process wrote.
    """
    there, runs = list(names), _runs(os.path.join(directory, RECORDS))
    epochs = sorted((epoch for run in runs for epoch in _epochs(run)), key=lambda epoch: epoch.since)
    told = {visible for epoch in epochs for _, visible in epoch.files}
    commits = bool(epochs) or any(_record(os.path.join(run, RUN)).get("commits") for run in runs)
    first = [
        name for name in there if name not in told and not (watch and commits and name.startswith("part-"))
    ]
    found = [Named(name) for name in first]
    have, waits = set(there), set[str]()
    writing = [run for run in runs if watch and not os.path.exists(os.path.join(run, OVER))]
    begun = {os.path.basename(run) for run in writing if _record(os.path.join(run, RUN)).get("epochs")}
    for epoch, marks in _with_marks(epochs, {os.path.basename(run) for run in writing}, begun):
        if epoch.run in waits or any(
            os.path.exists(os.path.join(directory, s)) for s, v in epoch.files if v not in have and s != v
        ):
            if not watch:
                hint = "go on with that run, or start it again with its checkpoint"
                raise SourceProblem(
                    f"{owner}: a run was stopped while it showed its results in {directory}", hint=hint
                )
            waits.add(epoch.run)
            continue
        files = [visible for _, visible in epoch.files if visible in have]
        nothing = None if epoch.marks is None else dict.fromkeys(epoch.marks)
        found += [
            Named(name, marks if number == len(files) else nothing) for number, name in enumerate(files, 1)
        ]
    return found


def _with_marks(
    epochs: list[Epoch], writing: set[str], begun: set[str]
) -> Iterator[tuple[Epoch, Marks | None]]:
    """Each epoch with the marks behind it: the least of its run and of all others with more to show.

    Runs that are writing may go on. Those that have begun count before their first epoch.
    """
    left = Counter(dict.fromkeys(begun, 0))
    left.update(epoch.run for epoch in epochs)
    reached: dict[str, Marks | None] = {}
    for epoch in epochs:
        left[epoch.run] -= 1
        reached[epoch.run] = epoch.marks
        if epoch.marks is None:
            yield epoch, None
            continue
        others = [run for run in left if run != epoch.run and (left[run] or run in writing)]
        counted = [epoch.marks, *(marks for run in others if (marks := reached.get(run, {})) is not None)]
        yield epoch, {column: _least([marks.get(column) for marks in counted]) for column in epoch.marks}


def _least(marks: list[int | None]) -> int | None:
    known = [mark for mark in marks if mark is not None]
    return min(known) if len(known) == len(marks) else None


def _runs(records: str) -> list[str]:
    return sorted(entry.path for entry in _scan(records) if entry.is_dir())


def _epochs(run: str) -> Iterator[Epoch]:
    """The epochs of one run; those of one process are its ends."""
    found: list[tuple[int, str, os.stat_result]] = []
    for entry in _scan(run):
        number = entry.name.removesuffix(".json").removeprefix(WHOLE)
        if entry.name.endswith(".json") and number.isdigit():
            with suppress(FileNotFoundError):  # the sink is being removed
                found.append((int(number), entry.path, entry.stat()))
    since = 0
    for _, path, stat in sorted(found, key=lambda each: each[0]):
        since = max(since, stat.st_mtime_ns)
        manifest = _manifest(path, stat.st_mtime_ns, stat.st_ino)
        files = tuple((staged, visible) for staged, visible in manifest.get("files", ()))
        yield Epoch(os.path.basename(run), files, manifest.get("marks"), since)


@lru_cache(maxsize=65_536)
def _manifest(path: str, changed: int, inode: int) -> dict[str, Any]:
    """A manifest never changes; one of another time is another."""
    return _record(path)


def _record(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
            return found
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise SourceProblem(
            f"can not read the manifest {path}: {why}", hint="restore it from a copy"
        ) from error


def _scan(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
