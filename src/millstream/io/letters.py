"""The dead letters of a run: a directory with JSON lines per stream, and counts by stream and kind."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from millstream.io.contract import DeadLetter, Part
from millstream.io.staging import Staging, safe, writing

Counts = Counter[tuple[str, str]]


def encode(letter: DeadLetter, run: str) -> bytes:
    return (json.dumps({**asdict(letter), "run": run}, ensure_ascii=False) + "\n").encode(
        "utf-8", "backslashreplace"
    )


class LetterBox:
    """`put` appends to `<stream>.jsonl`. With epochs, writers stage `<stream>-<part>-<epoch>.jsonl` and `commit` shows them once.

    `counts` covers what was put or committed by this run, also before a crash when `run` is the same.
    """

    def __init__(self, path: str, run: str = "letters") -> None:
        self.path, self.run = os.path.abspath(path), run
        self._lock = threading.Lock()
        self.counts: Counts = Counter()
        for manifest in self.staging.committed():
            self._count(manifest)

    @property
    def staging(self) -> Staging:
        return Staging("dead letters", self.path, self.run)

    def put(self, letters: Iterable[DeadLetter]) -> None:
        texts: dict[str, list[bytes]] = {}
        with self._lock:
            for letter in letters:
                texts.setdefault(letter.stream, []).append(encode(letter, self.run))
                self.counts[letter.stream, letter.kind] += 1
            with writing("dead letters", self.path):
                for stream, lines in texts.items():
                    os.makedirs(self.path, exist_ok=True)
                    with open(os.path.join(self.path, f"{safe(stream)}.jsonl"), "ab") as file:
                        file.write(b"".join(lines))

    def writer(self, part: str, epoch: int) -> LetterWriter:
        return LetterWriter(self.staging, part, epoch)

    def deliver(self, epoch: int, letters: Iterable[DeadLetter]) -> None:
        """All letters of an epoch at once, from one process; an epoch that is replayed changes nothing."""
        writer = self.writer("driver", epoch)
        writer.put(letters)
        self.commit(epoch, [writer.close()])

    def commit(self, epoch: int, parts: Iterable[Part]) -> None:
        """Make an epoch's letters visible and count them, once."""
        parts = [part for part in parts if part.detail["files"]]
        if not parts and not os.path.isdir(self.path):
            return
        counts: Counts = Counter()
        for part in parts:
            counts.update({(stream, kind): n for stream, kind, n in part.detail["counts"]})
        files = [pair for part in parts for pair in part.detail["files"]]
        facts = {"counts": [[stream, kind, n] for (stream, kind), n in counts.items()]}
        if self.staging.commit(epoch, files, facts):
            self._count(facts)

    def _count(self, facts: dict[str, Any]) -> None:
        with self._lock:
            self.counts.update({(stream, kind): n for stream, kind, n in facts.get("counts", ())})

    def total(self, stream: str | None = None, kind: str | None = None) -> int:
        with self._lock:
            return sum(n for (s, k), n in self.counts.items() if stream in (None, s) and kind in (None, k))

    def finish(self) -> None:
        self.staging.clean()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "run": self.run}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path, self.run = state["path"], state["run"]
        self._lock, self.counts = threading.Lock(), Counter()


class LetterWriter:
    """The letters of one task for one epoch; a file per stream, made when the first letter comes."""

    def __init__(self, staging: Staging, part: str, epoch: int) -> None:
        self.staging, self.part, self.epoch = staging, part, epoch
        self.lines: dict[str, list[bytes]] = {}
        self.counts: Counts = Counter()

    def put(self, letters: Iterable[DeadLetter]) -> None:
        for letter in letters:
            self.lines.setdefault(letter.stream, []).append(encode(letter, self.staging.run))
            self.counts[letter.stream, letter.kind] += 1

    def close(self) -> Part:
        files = []
        for stream, lines in self.lines.items():
            visible = f"{safe(stream)}-{safe(self.part)}-{self.epoch:08d}.jsonl"
            full, short = self.staging.stage(self.epoch, visible)
            with writing("dead letters", full), open(full, "wb") as file:
                file.write(b"".join(lines))
                file.flush()
                os.fsync(file.fileno())
            files.append((short, visible))
        return Part("dead letters", {"files": files, "counts": [(s, k, n) for (s, k), n in self.counts.items()]})

    def abort(self) -> None:
        self.lines, self.counts = {}, Counter()
