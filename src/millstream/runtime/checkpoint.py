"""A checkpoint explains itself: one small file of ours beside Spark's says whose it is, and whoever may not go on with it is refused."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, cast

from millstream.errors import MillstreamError, PlanProblem, SetupProblem, counted, is_full
from millstream.io.hold import is_at, make_directories, remove_directories
from millstream.io.places import need_local, scheme_of
from millstream.io.staging import Staging, save
from millstream.runtime.facts import Facts

FORMAT = 6
"""Raised whenever a checkpoint of before can no longer be read."""

OURS, LOCK, SPOOL = "millstream.json", "millstream.lock", "millstream-spool"
SPARKS = ("metadata", "offsets", "commits", "state")
ANEW = "give a new checkpoint directory"


class Checkpoint:
    """Where a run keeps how far it came. Held by one process at a time, from `open` to `close`.

    Only a checkpoint on a file system can be looked into and locked; one behind a URL such as hdfs:// is taken as it is, and
    the fingerprint in Spark's offsets still tells another query from the one it was made with.
    """

    def __init__(
        self, path: str, known: dict[str, Any] | None, lock: IO[str] | None = None, made: Sequence[str] = ()
    ) -> None:
        self.path = path
        self.made = list(made)
        """The directories that were not there."""
        self.known = known
        self.lock = lock
        self.run: str = known["run"] if known is not None else _name(path)
        self.last = -1 if self.remote else _last(path, "offsets")
        """The number of the last micro-batch that was begun."""
        self.next: dict[str, Any] = {}

    @property
    def edition(self) -> int:
        """How many changes had been made to the queries of the micro-batch that was begun last."""
        return int(self.offset.get("edition", 0))

    @property
    def offset(self) -> dict[str, Any]:
        """Offset of the micro-batch that was begun last; empty before the first one."""
        if self.last < 0:
            return {}
        with open(os.path.join(self.path, "offsets", str(self.last)), encoding="utf-8") as text:
            return cast("dict[str, Any]", json.loads(text.read().splitlines()[-1]))

    @property
    def whole(self) -> bool:
        """True when the micro-batch that was begun last has ended, too."""
        return _last(self.path, "commits") == self.last

    @property
    def at(self) -> float:
        """When the micro-batch that was begun last ended, or began where it has not ended."""
        return os.stat(
            os.path.join(self.path, "commits" if self.whole else "offsets", str(self.last))
        ).st_mtime

    @property
    def remote(self) -> bool:
        return scheme_of(self.path) is not None

    @property
    def spool(self) -> str | None:
        """Where sources keep what they received and can not read again."""
        return None if self.remote else os.path.join(self.path, SPOOL)

    @classmethod
    def open(cls, path: str) -> Checkpoint:
        if scheme_of(path) is not None:
            return cls(path, None)
        path = need_local(path, lambda said, hint: SetupProblem(f"the checkpoint {said}", hint=hint))
        with _readable(path):
            if os.path.exists(path):
                _known(path)  # nothing is written into what is not ours
            made = make_directories(path)
            lock = _locked(path)
        try:
            with _readable(path):
                _check_sparks(path)
                return cls(path, _known(path), lock, made)
        except MillstreamError:
            lock.close()
            raise

    def agree(self, facts: Facts, results: Sequence[Staging], letters: Staging) -> None:
        """Refuse a query other than the one the checkpoint was made with, and results that are not where they were."""
        self.next = {
            "format": FORMAT,
            "run": self.run,
            "fingerprint": facts.fingerprint,
            "facts": dict(facts.lines),
            "results": {staging.owner: staging.directory for staging in results},
            "letters": letters.directory,
        }
        if self.known is None or self.last < 0:
            return
        if self.known["fingerprint"] != facts.fingerprint:
            changed = facts.difference(self.known["facts"])
            hint = f"{ANEW}, or run the query it was made with, under the same settings (`join.tree` and others change the operators)"
            raise PlanProblem(f"the checkpoint {self.path} belongs to another query: {changed}", hint=hint)
        begun = _last(self.path, "commits") >= 0
        for staging in results:
            if begun and staging.owner in self.known["results"] and not staging.claimed():
                said = f"{staging.owner}: {staging.directory} does not hold what the run of the checkpoint {self.path} wrote before"
                raise SetupProblem(said, hint=f"put its results there, or {ANEW}")
        before = self.known["letters"]
        if before != letters.directory and os.path.isdir(Staging("", before, self.run).records):
            said = f"the run of the checkpoint {self.path} wrote its dead letters to {before}, and now {letters.directory} is asked for"
            raise SetupProblem(said, hint="move the directory, or leave the path as it was")
        for staging in (*results, letters):
            if (epoch := staging.last()) > self.last:
                said = f"{staging.owner}: {staging.directory} holds micro-batch {epoch}, the checkpoint {self.path} ends with {self.last}"
                raise SetupProblem(said, hint=f"it is an old copy, or files are missing: {ANEW} and other sinks")

    def buckets(self, asked: int, default: int) -> int:
        """How many the run has: for good, as its state is cut by them."""
        if self.known is None or self.last < 0:
            return asked or default
        have: int = self.known["buckets"]
        if asked and asked != have:
            said = f"the checkpoint {self.path} has {have} buckets, and execution.buckets asks for {asked}"
            raise PlanProblem(said, hint=f"leave execution.buckets out to go on with {have}, or {ANEW}")
        return have

    def partitions(self, asked: int, default: int) -> int:
        """Partitions of the run: for good, as Spark keeps its own state by them."""
        if self.known is None or self.last < 0:
            return asked or default
        have: int = self.known.get("partitions", self.known["buckets"])
        if asked and asked != have:
            said = f"the checkpoint {self.path} has {counted(have, 'partition')}, and execution.partitions asks for {asked}"
            raise PlanProblem(said, hint=f"leave execution.partitions out to go on with {have}, or {ANEW}")
        return have

    def stages(self, asked: int, needed: int) -> int:
        """How many the run has: for good, as Spark keeps the state of each."""
        if self.known is None or self.last < 0:
            return max(asked, needed)
        have: int = self.known["stages"]
        if asked > have:
            said = f"the checkpoint {self.path} has {counted(have, 'stage')}, and execution.stages asks for {asked}"
            raise PlanProblem(said, hint=f"leave execution.stages out to go on with {have}, or {ANEW}")
        return have

    def keep(self, **parts: int) -> None:
        """From here on it belongs to the query that it agreed with."""
        if not self.remote:
            with _readable(self.path):
                save(os.path.join(self.path, OURS), {**self.next, **parts})

    def close(self) -> None:
        """Let go; a run that was refused before it began leaves nothing behind."""
        if self.lock is None or self.lock.closed:
            return
        if not os.path.exists(os.path.join(self.path, OURS)):
            with suppress(OSError):
                os.unlink(os.path.join(self.path, LOCK))
            remove_directories(self.made)
        self.lock.close()


def _name(path: str) -> str:
    """Of a new run; behind a URL, where it can not be kept, it is always the same."""
    return (
        hashlib.sha256(path.encode()).hexdigest()[:12]
        if scheme_of(path) is not None
        else uuid.uuid4().hex[:12]
    )


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        where = "" if error.filename in (None, path) else f" ({os.path.basename(str(error.filename))})"
        said = f"the checkpoint {path} can not be used: {why}{where}"
        raise SetupProblem(said, hint="choose another directory", passing=is_full(error)) from None


def _known(path: str) -> dict[str, Any] | None:
    """Our file; None for a directory that is still nobody's."""
    file = os.path.join(path, OURS)
    if not os.path.exists(file):
        others = sorted(name for name in os.listdir(path) if not name.startswith((OURS, LOCK)))
        if others:
            what = "a checkpoint of something else" if set(others) & set(SPARKS) else f"no checkpoint: it holds `{others[0]}`"
            raise SetupProblem(f"{path} is {what}", hint=f"{ANEW}, or an empty one")
        return None
    try:
        with open(file, encoding="utf-8") as text:
            known = json.load(text)
        version = int(known["format"])
        if version == FORMAT:
            for name, kind in _SHAPE.items():
                if not isinstance(known[name], kind):
                    raise TypeError(name)
    except (ValueError, KeyError, TypeError):
        raise _damaged(path, OURS) from None
    if version != FORMAT:
        age = "a newer" if version > FORMAT else "an older"
        said = f"the checkpoint {path} was made by {age} version of Millstream (format {version}, this one reads {FORMAT})"
        raise SetupProblem(said, hint=f"run it with that version, or {ANEW}")
    return cast("dict[str, Any]", known)


_SHAPE = {
    "run": str,
    "buckets": int,
    "stages": int,
    "fingerprint": str,
    "facts": dict,
    "results": dict,
    "letters": str,
}


def _locked(path: str) -> IO[str]:
    """The kernel lets the lock go when its process dies, however it dies."""
    file = os.path.join(path, LOCK)
    lock = open(file, "a+", encoding="utf-8")  # noqa: SIM115
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        lock.close()
        hint = "wait for its end, or give each run a checkpoint of its own"
        said = f"the checkpoint {path} is in use by {holder}"
        raise SetupProblem(said, hint=hint, passing=True) from None
    except OSError:
        return lock  # a file system without locks
    if not is_at(lock.fileno(), file):
        lock.close()
        return _locked(path)
    lock.truncate(0)
    lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    lock.flush()
    return lock


def _check_sparks(path: str) -> None:
    """Spark's own logs must be whole and fit each other: it would stumble over some gaps and start anew over others."""
    offsets, commits = _last(path, "offsets"), _last(path, "commits")
    if offsets < 0:
        if commits >= 0 or os.path.isdir(os.path.join(path, "state")):
            raise _damaged(path, "offsets")
        return
    if commits not in (offsets, offsets - 1):
        raise _damaged(path, "commits" if commits < offsets else "offsets")
    files = ["metadata"] + [f"offsets/{n}" for n in (offsets - 1, offsets) if n >= 0] + [f"commits/{n}" for n in (commits,) if n >= 0]
    for name in files:
        try:
            with open(os.path.join(path, name), encoding="utf-8") as text:
                lines = text.read().splitlines()
            if name != "metadata" and not lines[0].startswith("v"):
                raise ValueError(lines[0])
            told = [json.loads(line) for line in (lines if name == "metadata" else lines[1:])]
            if not told or (name.startswith("offsets") and "streams" not in told[-1]):
                raise ValueError(name)
        except (ValueError, IndexError, TypeError, FileNotFoundError):
            raise _damaged(path, name) from None


def _last(path: str, log: str) -> int:
    try:
        return max((int(name) for name in os.listdir(os.path.join(path, log)) if name.isdigit()), default=-1)
    except FileNotFoundError:
        return -1


def _damaged(path: str, name: str) -> SetupProblem:
    return SetupProblem(f"the checkpoint {path} is damaged: `{name}` is missing or broken", hint=f"restore it from a copy, or {ANEW}")
