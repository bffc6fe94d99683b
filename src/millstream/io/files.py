"""A file, a directory or a glob as one stream: files in name order, each one unit."""

from __future__ import annotations

import glob
import itertools
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from millstream.errors import SourceProblem
from millstream.io.bad_files import advised, judge, read_broken
from millstream.io.contract import DAY, NO_LIMITS, Limits, Position, Reading, Unit
from millstream.io.epochs import Named, in_order, is_sink
from millstream.io.history import Entry, History, facts_of, name_of, stretch_of
from millstream.io.read.base import LineReader
from millstream.io.read.parquet import ParquetReader
from millstream.io.reading import Stretched, read_file
from millstream.io.staging import RECORDS
from millstream.io.stretches import Stretch, stretches

EXTENSIONS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".txt": "text", ".log": "text"}


def found_files(owner: str, path: str, *, some: bool = False) -> list[str]:
    """The files this path stands for, in name order; with `some` a pattern must match one.

    Names that begin with `_` or `.`, or end in .tmp or .part, are not data."""
    try:
        if os.path.isdir(path):
            found = sorted(_walk(path))
        elif os.path.exists(path):
            found = [path]
        elif glob.has_magic(path):
            found = sorted(name for name in glob.glob(path, recursive=True) if _visible(os.path.basename(name)) and os.path.isfile(name))
            if some and not found:
                raise SourceProblem(f"{owner}: no file matches {path}", hint="check the option `path`")
        else:
            raise SourceProblem(f"{owner}: there is no file or directory {path}", hint="check the option `path`")
    except OSError as error:
        raise SourceProblem(f"{owner}: can not read {path}: {error.strerror}") from error
    for name in found:
        if not name.isascii() and name.encode(errors="replace").decode() != name:
            raise SourceProblem(f"{owner}: the name of the file {os.fsencode(name)!r} is not UTF-8", hint="rename it")
    return found


def _walk(path: str) -> Iterator[str]:
    """The files of a directory and of those below it, such as `dt=2026-01-01`."""
    return (file for _, files in _tree(path) for file in files)


def _tree(path: str, above: frozenset[tuple[int, int]] = frozenset()) -> Iterator[tuple[str, list[str]]]:
    """A directory and those below it, each with its files. Links are followed, but not to where they hang; what vanishes was empty."""
    try:
        stat = os.stat(path)
        with os.scandir(path) as found:
            entries = [entry for entry in found if _visible(entry.name)]
    except FileNotFoundError:
        if above:
            return
        raise
    if (stat.st_dev, stat.st_ino) in above:
        return
    yield path, [entry.path for entry in entries if entry.is_file()]
    for entry in entries:
        if entry.is_dir():
            yield from _tree(entry.path, above | {(stat.st_dev, stat.st_ino)})


TICK = 0.1
"""Seconds: more than the grain of a file system's clock, within which two changes may look like one."""
TRUST = 2.0
"""Seconds after which a directory is read again, whatever its time says."""


class Quiet:
    """A look at a directory that found nothing new: how far it had been taken, and when names in it and below had last changed."""

    def __init__(self, position: Position, directories: dict[str, int]) -> None:
        self.position, self.directories = position, directories
        self.until = time.monotonic() + TRUST
        self.settled = bool(directories) and time.time_ns() / 1e9 - max(directories.values()) / 1e9 > TICK

    def holds(self, position: Position) -> bool:
        """True when another look would find nothing either."""
        return (
            time.monotonic() < self.until
            and position == self.position
            and all(_changed(directory) == at for directory, at in self.directories.items())
        )


_quiet: dict[str, Quiet] = {}
"""By path, in this process."""


def _changed(directory: str) -> int:
    try:
        return os.stat(directory).st_mtime_ns
    except OSError:
        return -1


def _directories(path: str) -> dict[str, int]:
    """A directory, those below it and those of its manifests, each with the time of its last change."""
    trees = (_tree(path), _tree(os.path.join(path, RECORDS), frozenset({(0, 0)})))
    return {found: _changed(found) for tree in trees for found, _ in tree} if os.path.isdir(path) else {}


def _visible(name: str) -> bool:
    """Names of what somebody is still writing are passed over, too."""
    return not name.startswith(("_", ".")) and not name.endswith((".tmp", ".part", "._COPYING_", ".crc"))


def guess_format(path: str, files: list[str]) -> str | None:
    """The format by the extension of the path, or of the first file in it; `.gz` is looked through."""
    for name in [path, *files[:1]]:
        stem, extension = os.path.splitext(name.lower())
        if extension in (".gz", ".bz2", ".zst"):
            extension = os.path.splitext(stem)[1]
        if extension in EXTENSIONS:
            return EXTENSIONS[extension]
    return None


@dataclass(frozen=True)
class FileSource:
    """The position knows every file taken (see `History`), so a file that comes late with an early name is still read."""

    name: str
    path: str
    reader: LineReader | ParquetReader
    watch: bool = False
    letters: bool = False
    """True when a file that can not be read becomes a letter; else it ends the run."""
    limits: Limits = NO_LIMITS
    log: str | None = None
    history: History = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", History(self.owner, self.log))

    def hosted(self, directory: str | None, limits: Limits) -> FileSource:
        return replace(self, limits=limits, log=None if directory is None else os.path.join(directory, "taken.jsonl"))

    @property
    def owner(self) -> str:
        return f"stream {self.name}"

    @property
    def bounded(self) -> bool:
        return not self.watch

    def check(self) -> None:
        for file in found_files(self.owner, self.path)[:1]:
            if not os.access(file, os.R_OK):
                raise SourceProblem(f"{self.owner}: can not read {file}: permission denied")

    def need_files(self) -> None:
        """Refuse a pattern that matches no file, unless the stream waits for new ones."""
        found_files(self.owner, self.path, some=self.bounded)

    def initial(self) -> Position:
        return {"count": 0, "files": []}

    def _fresh(self, position: Position) -> list[Named]:
        """The files that were not taken yet, in order."""
        files = {named.name: named for named in self._files()}
        return [files[name] for name in self.history.untaken(files, position)]

    def _files(self) -> list[Named]:
        skipped = len(self._base)
        names = [file[skipped:] for file in found_files(self.owner, self.path)]
        if is_sink(self.path):
            return in_order(self.owner, self.path, names, watch=self.watch)
        return [Named(name) for name in names]

    def unread(self, position: Position) -> tuple[int, int]:
        """Files beyond a position, and their bytes."""
        parts = {file.name: 1.0 for file in self._fresh(position)}
        if (rest := _rest(position)) is not None and (stretch := stretch_of(rest)) is not None:
            parts[name_of(rest)] = 1 - stretch[1] / stretch[2]
        size = 0.0
        for name, part in parts.items():
            with suppress(OSError):  # it was removed meanwhile
                size += part * os.stat(self._base + name).st_size
        return len(parts), round(size)

    @property
    def _base(self) -> str:
        """What names in a position leave out."""
        return os.path.join(self.path, "") if os.path.isdir(self.path) else ""

    def latest(self, start: Position, limit: int | None) -> Position:
        """A directory in which nothing has changed since a look that found nothing is not read again for a while."""
        if (last := _quiet.get(self.path)) is not None and last.holds(start):
            return start
        look = Quiet(start, _directories(self.path))
        offers = itertools.islice(self._offers(start), limit)
        entries: list[Entry] = []

        def sizes() -> Iterator[tuple[int, int | None]]:
            for entry, size, tuples in offers:
                entries.append(entry)
                yield size, tuples

        taken = self.limits.fitting(sizes())
        if not entries and look.settled:
            _quiet[self.path] = look
        entries = entries[:taken]
        if self.letters:
            entries = self._judged(entries)
        return self.history.after(start, entries) if taken else start

    def _judged(self, entries: list[Entry]) -> list[Entry]:
        """The units with the verdict on each; nothing is read behind the break of a file."""
        found: list[Entry] = []
        broken: str | None = None
        for entry in entries:
            name, stretch, facts = name_of(entry), stretch_of(entry), facts_of(entry)
            if name == broken:
                continue
            if "broken" not in facts:
                reader: Any = self.reader  # every reader is a frozen dataclass, and so a key
                path, part = self._base + name, stretched(stretch)
                facts = {**facts, **_verdict(self.owner, reader, path, part, facts.get("arrived"))}
            if "broken" in facts:
                broken = name
                stretch = stretch and [stretch[0], stretch[2], *stretch[2:]]
            found.append([name, *(stretch or ()), facts])
        return found

    def _offers(self, start: Position) -> Iterator[tuple[Entry, int, int | None]]:
        """The units beyond a position, with their bytes and tuples: the rest of a file that was begun, then those not taken yet."""
        rest, base = _rest(start), self._base
        begins = [(self._named(name_of(rest)), rest)] if rest else []
        for file, begun in itertools.chain(begins, ((file, None) for file in self._fresh(start))):
            arrived = _arrived(base + file.name)
            facts: dict[str, Any] = {} if arrived is None else {"arrived": arrived}
            for stretch in self._stretches(base + file.name, begun, facts):
                entry = [file.name] if stretch.whole else stretch.entry(file.name)
                more = {}
                if file.marks is not None:
                    more["marks"] = file.marks if stretch.end >= stretch.size else dict.fromkeys(file.marks)
                yield [*entry, facts | more], stretch.bytes, stretch.tuples

    def _stretches(self, path: str, begun: list[Any] | None, facts: dict[str, Any]) -> Iterator[Stretch]:
        """The file or what is left of it; a rest that is gone is a broken one where that makes a letter."""
        try:
            yield from stretches(path, self.reader, self.limits, begun)
        except SourceProblem as problem:
            if begun is None or not self.letters:
                raise
            _, _, first, size, _, line, trace, *_ = begun
            facts["broken"] = [problem.message, 0]
            yield Stretch(first, size, size, line, line, 0, None, trace)

    def _named(self, name: str) -> Named:
        return next((file for file in self._files() if file.name == name), Named(name))

    def units(self, start: Position, end: Position) -> list[Unit]:
        base = self._base
        found = []
        for number, entry in enumerate(self.history.between(start, end), start["count"]):
            detail = {"file": base + name_of(entry), **facts_of(entry)}
            if (stretch := stretched(stretch_of(entry))) is not None:
                detail["stretch"] = stretch
            found.append(Unit(number, detail))
        return found

    def read(self, unit: Unit, batch_size: int) -> Iterator[Reading]:
        """The rows of a unit.

        A file that cannot be read gives a letter where the recorded verdict says so. Where none was recorded
        it is judged here, if letters are wanted.
        """
        path, stretch, verdict = unit.detail["file"], unit.detail.get("stretch"), unit.detail.get("broken")
        if verdict is None and self.letters and "sound" not in unit.detail:
            verdict = judge(self.owner, self.reader, path, stretch).get("broken")
        if verdict is not None:
            yield from read_broken(self.owner, self.reader, path, batch_size, stretch, verdict)
            return
        try:
            yield from read_file(self.owner, self.reader, path, batch_size, stretch)
        except SourceProblem as problem:
            raise advised(problem, self.reader) from problem.__cause__

    def arrived(self, unit: Unit) -> int | None:
        """The recorded time at which its file came; a checkpoint of an older version has none."""
        known: int | None = unit.detail.get("arrived")
        return _arrived(unit.detail["file"]) if known is None else known

    @property
    def ahead(self) -> int | None:
        """Files that are waited for hold the present, in whatever zone their clocks are."""
        return DAY if self.watch else None

    def finished(self, position: Position) -> bool:
        return self.bounded and _rest(position) is None and not self._fresh(position)

    def release(self, position: Position) -> None:
        """Files are not ours to remove."""

    def close(self) -> None: ...


def _arrived(path: str) -> int | None:
    """The change time, not that of the last write: a file that is written aside comes when it is renamed."""
    try:
        return os.stat(path).st_ctime_ns // 1000
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _verdict(
    owner: str, reader: LineReader | ParquetReader, path: str, stretch: Stretched | None, arrived: int | None
) -> Mapping[str, Any]:
    """The verdict on a file that came at this time. A source may offer a file several times."""
    return judge(owner, reader, path, stretch)


def stretched(stretch: list[Any] | None) -> Stretched | None:
    """The stretch of an entry in the form that readers take."""
    return None if stretch is None else (stretch[0], stretch[1], stretch[3])


def _rest(position: Position) -> list[Any] | None:
    """The last unit taken, when it ends before its file does."""
    last = position["files"][-1] if position["files"] else None
    stretch = None if last is None else stretch_of(last)
    return last if stretch is not None and stretch[1] < stretch[2] else None
