"""Control brings changes to a run: whoever asks waits until the run has taken them in, between two steps."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from millstream.errors import MillstreamError, SetupProblem

LOOK = 0.5
"""Seconds between two looks into a directory of changes."""


@dataclass(eq=False)
class Request:
    """Statements that somebody wants to take effect."""

    text: str
    variables: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None
    done: threading.Event = field(default_factory=threading.Event)
    problem: BaseException | None = None

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
        self.taken: set[str] = set()
        self._waiting: deque[Request] = deque()
        self._asked: set[Request] = set()
        """Those whose asker waits for an answer, be they taken in or not."""
        self._lock = threading.Lock()
        self._closed = False
        self._looked = 0.0

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
        request.finish()

    def serve(self, change: Callable[[Request], bool]) -> None:
        """In the run, between two steps: take in what waits. `change` tells whether that is done, or will be (see `done`)."""
        self._look()
        while self._waiting:
            request = self._waiting.popleft()
            try:
                effected = change(request)
            except MillstreamError as problem:
                if request.file is not None:
                    self.say(f"{problem}; nothing was changed by it")
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
            raise SetupProblem(f"can not read the changes in {self.directory}: {error.strerror}") from error
        for name in names:
            if name in self.taken:
                continue
            self.taken.add(name)
            path = os.path.join(self.directory, name)
            try:
                with open(path, encoding="utf-8") as file:
                    self._waiting.append(Request(file.read(), self.variables, path))
            except (OSError, UnicodeDecodeError) as error:
                self.say(f"can not read {path}: {error}; nothing was changed by it")

    def close(self) -> None:
        """The run is over: whoever still waits is told so."""
        with self._lock:
            self._closed = True
        for request in list(self._asked):
            if not request.done.is_set():
                request.finish(_over())
        self._waiting.clear()


def _over() -> MillstreamError:
    return SetupProblem("the run is over, nothing can be changed any more")
