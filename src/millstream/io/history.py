"""Which units of a file stream have been taken: the newest in its position, all of them in a file beside the checkpoint."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from millstream.errors import SourceProblem
from millstream.io.contract import Position

Entry = str | list[Any]
"""A file taken whole as [its name, facts], or a part of one as [its name, ..., facts] (see `Stretch`).

The facts are what a replay needs and cannot read again. Entries of older checkpoints have none, and a whole
file is its name alone there.
"""


WAY_OUT = "bring the file back as it was, or start with a new checkpoint and new sinks"


def name_of(entry: Entry) -> str:
    return entry if isinstance(entry, str) else str(entry[0])


def facts_of(entry: Entry) -> dict[str, Any]:
    """The facts that were recorded about a unit when it was taken."""
    return entry[-1] if isinstance(entry[-1], dict) else {}


def stretch_of(entry: Entry) -> list[Any] | None:
    """The part of its file that an entry stands for; None for all of it."""
    numbers = [] if isinstance(entry, str) else [each for each in entry[1:] if not isinstance(each, dict)]
    return numbers or None


class History:
    """A position is {"count": units taken so far, "files": the last of them, "before": the checksum of those before}.

    Without a log `files` holds all units, and each position costs as much as the whole past. With one it holds what the last step took;
    the log has the rest. The log follows the positions that were asked about, which are those that Spark has written down: it never knows
    of a unit that a replay would not take. When it does not hold what came before a position it has been lost or damaged, and the stream
    is refused rather than read again.
    """

    def __init__(self, owner: str, path: str | None = None) -> None:
        self.owner, self.path = owner, path
        self.entries: list[Entry] | None = None
        self.names: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        return {"owner": self.owner, "path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def untaken(self, names: Iterable[str], position: Position) -> list[str]:
        """Those of the names that are not before the position."""
        recent = {name_of(entry) for entry in position["files"]}
        past = self._before(position) if self.path else recent
        return [name for name in names if name not in past and name not in recent]

    def between(self, start: Position, end: Position) -> list[Entry]:
        """The units from one position to another."""
        count, tail = end["count"] - start["count"], end["files"]
        if count <= len(tail):
            return list(tail[len(tail) - count :])
        return [*self._log(end)[start["count"] : end["count"] - len(tail)], *tail]

    def after(self, position: Position, entries: list[Entry]) -> Position:
        """The position with more units taken; what `position` took is in the log from here on."""
        if self.path is None:
            return {"count": position["count"] + len(entries), "files": [*position["files"], *entries]}
        self._follow(position)
        return {"count": position["count"] + len(entries), "files": entries, "before": _sum(position["files"], position.get("before", 0))}

    def _before(self, position: Position) -> set[str]:
        known = self._log(position)
        if len(known) <= position["count"]:
            return self.names
        return {name_of(entry) for entry in known[: position["count"]]}  # the stream was set back

    def _log(self, position: Position) -> list[Entry]:
        """What the log holds, which is at least what came before the position's own units."""
        before = position["count"] - len(position["files"])
        if self.entries is None:
            self.entries = self._load()
            if len(self.entries) >= before and _sum(self.entries[:before]) != position.get("before", 0):
                raise self._damaged("it is not what the checkpoint wrote")
            self.names = {name_of(entry) for entry in self.entries}
        if len(self.entries) < before:
            text = f"{self.owner}: the checkpoint has lost which files were read; {self.path} lists {len(self.entries)}"
            raise SourceProblem(f"{text} of {position['count']}", hint=WAY_OUT)
        return self.entries

    def _load(self) -> list[Entry]:
        assert self.path is not None
        try:
            with open(self.path, "rb") as file:
                entries = [json.loads(line) for line in file if line.endswith(b"\n")]  # the last line may be torn
        except FileNotFoundError:
            return []
        except OSError as error:
            raise SourceProblem(f"{self.owner}: can not read {self.path}: {error.strerror}") from error
        except ValueError as error:
            raise self._damaged(" ".join(str(error).split())[:200]) from error
        if not all(isinstance(entry, str | list) and entry for entry in entries):
            raise self._damaged("not every line of it names a file")
        return entries

    def _damaged(self, why: str) -> SourceProblem:
        return SourceProblem(f"{self.owner}: the checkpoint is damaged in {self.path} (the files that were read): {why}", hint=WAY_OUT)

    def _follow(self, position: Position) -> None:
        """Bring the log to exactly this position."""
        known, tail = self._log(position), position["files"]
        missing = position["count"] - len(known)
        if missing < 0:
            del known[position["count"] :]
            self.names = {name_of(entry) for entry in known}
            self._write(known, "w")
        elif missing:
            known += tail[len(tail) - missing :]
            self.names.update(name_of(entry) for entry in tail[len(tail) - missing :])
            self._write(tail[len(tail) - missing :], "a")

    def _write(self, entries: Iterable[Entry], mode: str) -> None:
        assert self.path is not None
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            if mode == "a":
                _drop_torn_line(self.path)
            with open(self.path, mode + "b") as file:
                file.write(b"".join(map(_line, entries)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise SourceProblem(f"{self.owner}: can not write {self.path}: {error.strerror}") from error


def _line(entry: Entry) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _sum(entries: Sequence[Entry], before: int = 0) -> int:
    """The checksum of these units behind others, as lines of the log."""
    for entry in entries:
        before = zlib.crc32(_line(entry), before)
    return before


def _drop_torn_line(path: str) -> None:
    """A process killed while it wrote may have left half a line."""
    try:
        with open(path, "rb+") as file:
            text = file.read()
            if text and not text.endswith(b"\n"):
                file.truncate(text.rfind(b"\n") + 1)
    except FileNotFoundError:
        return
