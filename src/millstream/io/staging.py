"""Files become visible once per epoch: written aside, named in a manifest, then moved into place."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

from millstream.errors import SinkProblem, is_full

RECORDS = "_millstream"
STAGED = "_staged"
RUN = "run.json"
OVER = "over.json"
"""Beside the manifests of a run that writes no more."""
WHOLE = "whole-"
"""Begins the manifests of what one process wrote, which has no epochs."""


@contextmanager
def writing(owner: str, path: str) -> Iterator[None]:
    """A full disk or a missing permission becomes one clear line."""
    try:
        yield
    except OSError as error:
        why = error.strerror or " ".join(str(error).split())[:200]
        said = f"{owner}: can not write {error.filename or path}: {why}"
        hint = "make room, and run it again" if is_full(error) else "choose another path"
        raise SinkProblem(said, hint=hint, passing=is_full(error)) from error


def safe(text: str) -> str:
    """A name that can be part of a file name."""
    return "".join(c if c.isalnum() or c in "-_." else f"%{ord(c):02x}" for c in text).lstrip("._") or "x"


@dataclass(frozen=True)
class Staging:
    """One run's claim on a directory.

    The manifest `_millstream/<run>/<epoch>.json` is the moment of commit. Files it names are moved to their
    visible names afterwards, and moved again after a crash in between; an epoch with a manifest
    takes nothing new, so a replay can neither double nor replace what was committed.
    """

    owner: str
    directory: str
    run: str

    @property
    def records(self) -> str:
        return os.path.join(self.directory, RECORDS, safe(self.run))

    def stage(self, epoch: int, name: str) -> tuple[str, str]:
        """Where a writer may write: (the full path, the path as a manifest names it)."""
        short = os.path.join(STAGED, safe(self.run), str(epoch), f"{uuid.uuid4().hex[:8]}-{name}")
        full = os.path.join(self.directory, short)
        with writing(self.owner, full):
            os.makedirs(os.path.dirname(full), exist_ok=True)
        return full, short

    def commit(self, epoch: int, files: Sequence[tuple[str, str]], facts: Mapping[str, Any] | None = None) -> bool:
        """`files`: pairs (staged, visible), both relative to the directory. False when the epoch was committed before."""
        record = os.path.join(self.records, f"{epoch}.json")
        with writing(self.owner, self.directory):
            fresh = not os.path.exists(record)
            if fresh and files:
                os.makedirs(self.records, exist_ok=True)
                self._need(staged for staged, _ in files)
                pairs = [[staged, self._free(visible)] for staged, visible in files]
                save(record, {"epoch": epoch, "files": pairs, **(facts or {})})
            if files or not fresh:
                self._show(record)
            shutil.rmtree(os.path.join(self.directory, STAGED, safe(self.run), str(epoch)), ignore_errors=True)
        return fresh

    def record(self, shown: Sequence[str], facts: Mapping[str, Any]) -> None:
        """Name files that one process has shown as it wrote them, now that they are complete."""
        with writing(self.owner, self.directory):
            number = sum(name.startswith(WHOLE) for name in os.listdir(self.records))
            save(
                os.path.join(self.records, f"{WHOLE}{number}.json"),
                {"files": [[name, name] for name in shown], **facts},
            )

    def end(self) -> None:
        """Note that this run writes no more, until it claims the directory again."""
        with writing(self.owner, self.directory):
            if self.claimed():
                save(os.path.join(self.records, OVER), {})

    def _need(self, staged: Iterable[str]) -> None:
        """What a manifest names must be here: on a cluster a task may have written it to a disk of its own."""
        for short in staged:
            if not os.path.exists(os.path.join(self.directory, short)):
                hint = "on a cluster every machine must see this path, on a shared file system"
                raise SinkProblem(f"{self.owner}: {os.path.join(self.directory, short)} was written and is not there", hint=hint)

    def _free(self, visible: str) -> str:
        """Two runs that share a directory never write over each other."""
        if not os.path.exists(os.path.join(self.directory, visible)):
            return visible
        stem, extension = os.path.splitext(visible)
        return f"{stem}-{safe(self.run)}-{uuid.uuid4().hex[:8]}{extension}"

    def _show(self, record: str) -> None:
        for staged, visible in load(record)["files"]:
            source = os.path.join(self.directory, staged)
            if os.path.exists(source):
                os.replace(source, os.path.join(self.directory, visible))
        sync_directory(self.directory)

    def committed(self) -> Iterator[dict[str, Any]]:
        """The manifests of this run, in the order of their epochs."""
        for number in self._epochs():
            yield load(os.path.join(self.records, f"{number}.json"))

    def last(self) -> int:
        """The last epoch that has a manifest, or -1."""
        return max(self._epochs(), default=-1)

    def _epochs(self) -> list[int]:
        names = os.listdir(self.records) if os.path.isdir(self.records) else []
        return sorted(int(name[:-5]) for name in names if name[:-5].isdigit() and name.endswith(".json"))

    def claim(self, *, whole: bool = False) -> bool:
        """Mark the directory as this run's; True when it was already.

        `whole`: the run commits once, at its end.
        """
        with writing(self.owner, self.directory):
            if self.claimed():
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.records, OVER))
                return True
            os.makedirs(self.records, exist_ok=True)
            save(os.path.join(self.records, RUN), {"run": self.run, "commits": True, "epochs": not whole})
            return False

    def claimed(self) -> bool:
        return os.path.exists(os.path.join(self.records, RUN))

    def clean(self) -> None:
        """Finish moves that a crash cut short and remove what was abandoned."""
        with writing(self.owner, self.directory):
            staged = os.path.join(self.directory, STAGED, safe(self.run))
            for epoch in sorted(os.listdir(staged)) if os.path.isdir(staged) else ():
                record = os.path.join(self.records, f"{epoch}.json")
                if os.path.exists(record):
                    self._show(record)
            shutil.rmtree(staged, ignore_errors=True)
            with suppress(OSError):  # another run is staging here, or there is none
                os.rmdir(os.path.join(self.directory, STAGED))


def save(path: str, content: Mapping[str, Any]) -> None:
    """All or nothing, and on the disk when this returns."""
    aside = f"{path}.{uuid.uuid4().hex[:8]}.tmp"
    with open(aside, "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)
    sync_directory(os.path.dirname(path))


def load(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            return cast("dict[str, Any]", json.load(file))
    except ValueError:
        raise SinkProblem(f"the manifest {path} is damaged", hint="restore it from a copy, or write to another directory") from None


def sync_directory(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
