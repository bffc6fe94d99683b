"""Which units of a file stream have been taken: the newest in its position, all of them in a file beside the checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from millstream.errors import SourceProblem
from millstream.io.contract import Position

Entry = str | list[Any]
"""The name of a file taken whole, or [name, first, end, size, line] of a stretch of it (see `stretches`)."""


def name_of(entry: Entry) -> str:
    return entry if isinstance(entry, str) else str(entry[0])


class History:
    """A position is {"count": units taken so far, "files": the last of them}.

    Without a log `files` holds all units, and each position costs as much as the whole past. With one it holds what the last step took;
    the log has the rest. The log follows the positions that were asked about, which are those that Spark has written down: it never knows
    of a unit that a replay would not take. When it is behind them it has been lost, and the stream is refused rather than read again.
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
        return {"count": position["count"] + len(entries), "files": entries}

    def _before(self, position: Position) -> set[str]:
        known = self._log(position)
        if len(known) <= position["count"]:
            return self.names
        return {name_of(entry) for entry in known[: position["count"]]}  # the stream was set back

    def _log(self, position: Position) -> list[Entry]:
        """What the log holds, which is at least what came before the position's own units."""
        if self.entries is None:
            self.entries = self._load()
            self.names = {name_of(entry) for entry in self.entries}
        if len(self.entries) < position["count"] - len(position["files"]):
            text = f"{self.owner}: the checkpoint has lost which files were read; {self.path} lists {len(self.entries)}"
            raise SourceProblem(f"{text} of {position['count']}", hint="bring the file back, or start with a new checkpoint")
        return self.entries

    def _load(self) -> list[Entry]:
        assert self.path is not None
        try:
            with open(self.path, encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]  # the last line may be torn
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise SourceProblem(f"{self.owner}: can not read {self.path}: {' '.join(str(error).split())[:200]}") from error

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
            with open(self.path, mode, encoding="utf-8") as file:
                file.write("".join(json.dumps(entry) + "\n" for entry in entries))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise SourceProblem(f"{self.owner}: can not write {self.path}: {error.strerror}") from error


def _drop_torn_line(path: str) -> None:
    """A process killed while it wrote may have left half a line."""
    try:
        with open(path, "rb+") as file:
            text = file.read()
            if text and not text.endswith(b"\n"):
                file.truncate(text.rfind(b"\n") + 1)
    except FileNotFoundError:
        return
