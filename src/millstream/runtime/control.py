"""Control brings changes to a run: whoever asks waits until the run has taken them in, between two steps."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from millstream.errors import MillstreamError, SetupProblem
from millstream.io import secrets_of
from millstream.language import settled

LOOK = 0.5
"""Seconds between two looks into a directory of changes."""


def digest(text: str) -> str:
    """A fingerprint of a text: the text itself may hold secrets."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(eq=False)
class Request:
    """Statements that somebody wants to take effect."""

    text: str
    variables: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None
    done: threading.Event = field(default_factory=threading.Event)
    problem: BaseException | None = None
    digest: str = ""
    """Digest of the text before variables were filled in."""

    def __post_init__(self) -> None:
        self.digest = self.digest or digest(self.text)

    def fill(self) -> None:
        """Fill in variables but secrets, so that the change can be made again whatever they are then."""
        self.text, names = settled(self.text, self.variables, self.file, secrets_of)
        self.variables = {name: value for name, value in self.variables.items() if name in names}

    def finish(self, problem: BaseException | None = None) -> None:
        self.problem = problem
        self.done.set()


class Control:
    """Changes from other threads, and from the files of a directory in the order of their names, each once."""

    def __init__(
        self,
        directory: str | None = None,
        variables: Mapping[str, str] | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        if directory is not None and not os.path.isdir(directory):
            raise SetupProblem(f"there is no directory {directory} to take changes from", hint="make it, or leave --control out")
        self.directory, self.variables, self.say = directory, dict(variables or {}), say
        self.taken: dict[str, str] = {}
        """The files that were looked at, whatever came of them, with the digest of what was in them."""
        self._waiting: deque[Request] = deque()
        self._asked: set[Request] = set()
        """Those whose asker waits for an answer, be they taken in or not."""
        self._lock = threading.Lock()
        self._closed = False
        self._looked = 0.0
        self._said: set[str] = set()

    def ask(self, text: str, variables: Mapping[str, str] | None = None) -> None:
        """Wait until a change has taken effect; raises what is wrong with it, and then nothing has changed."""
        request = Request(text, dict(variables or {}))
        with self._lock:
            if self._closed:
                raise _over()
            self._asked.add(request)
            self._waiting.append(request)
        request.done.wait()
        self._asked.discard(request)
        if request.problem is not None:
            raise request.problem

    def again(self, request: Request) -> None:
        """A change that was asked for in an earlier life of the run."""
        self._waiting.append(request)

    def done(self, request: Request) -> None:
        """A change has taken effect."""
        if request.file is not None:
            self.say(f"changed by {request.file}")
            self.mark(request.file, None)
        request.finish()

    def mark(self, file: str, wrong: str | None) -> None:
        """Leave the outcome beside a file of changes: `<file>.ok`, or `<file>.err` with what is wrong."""
        if self.directory is None:
            return
        file = os.path.join(self.directory, os.path.basename(file))
        outcome, other = (".ok", ".err") if wrong is None else (".err", ".ok")
        try:
            with open(f"{file}{outcome}.tmp", "w", encoding="utf-8") as text:
                text.write("" if wrong is None else f"{wrong}\n")
            os.replace(f"{file}{outcome}.tmp", file + outcome)
            with suppress(FileNotFoundError):
                os.unlink(file + other)
        except OSError as error:
            self._say_once(file + outcome, f"{file}{outcome} can not be written: {error.strerror}")

    def serve(self, change: Callable[[Request], bool]) -> None:
        """In the run, between two steps: take in what waits. `change` tells whether that is done, or will be (see `done`)."""
        self._look()
        while self._waiting:
            request = self._waiting.popleft()
            try:
                effected = change(request)
            except MillstreamError as problem:
                if request.file is not None:
                    self.say(f"nothing was changed by {request.file}: {_without(str(problem), request.file)}")
                    self.mark(request.file, str(problem))
                request.finish(problem)
            else:
                if effected:
                    self.done(request)

    def _look(self) -> None:
        if self.directory is None or time.monotonic() < self._looked + LOOK:
            return
        self._looked = time.monotonic()
        try:
            names = sorted(name for name in os.listdir(self.directory) if name.endswith(".sql") and not name.startswith("."))
        except OSError as error:
            names = []
            self._say_once(self.directory, f"no changes can be taken from {self.directory}: {error.strerror}")
        for name in names:
            path = os.path.join(self.directory, name)
            try:
                with open(path, encoding="utf-8") as file:
                    text = file.read()
            except (OSError, UnicodeDecodeError) as error:
                if self._say_once(path, f"nothing was changed by {path}: it can not be read: {error}"):
                    self.mark(path, f"{path}: it can not be read: {error}")
                continue
            if name not in self.taken:
                self.taken[name] = digest(text)
                self._waiting.append(Request(text, self.variables, path))
            elif self.taken[name] != digest(text):
                wrong = f"{path} is another one than was taken before under this name; give it a new name"
                if self._say_once(path + text, wrong):
                    self.mark(path, wrong)

    def _say_once(self, what: str, line: str) -> bool:
        fresh = what not in self._said
        if fresh:
            self._said.add(what)
            self.say(line)
        return fresh

    def close(self) -> None:
        """The run is over: whoever still waits is told so."""
        with self._lock:
            self._closed = True
        for request in list(self._asked):
            if not request.done.is_set():
                request.finish(_over())
        self._waiting.clear()


def _without(text: str, file: str) -> str:
    """What is wrong, without the name of the file before its place."""
    return text.removeprefix(file).removeprefix(":").lstrip()


def _over() -> MillstreamError:
    return SetupProblem("the run is over, nothing can be changed any more")
