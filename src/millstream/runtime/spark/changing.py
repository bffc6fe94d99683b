"""Changes to a program that runs on Spark: each is written down in the checkpoint, and takes effect with a micro-batch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from millstream.errors import MillstreamError, PlanProblem, SetupProblem
from millstream.graph.execution import Execution
from millstream.io import FileSink
from millstream.io.contract import Source
from millstream.runtime.control import Control, Request, digest
from millstream.runtime.hosted import HostedProgram
from millstream.runtime.launch import Launch

LOG = "changes.jsonl"


@dataclass
class Changing:
    """Brings what `control` asks for into a running program, and finishes each request when a micro-batch has run under it."""

    launch: Launch
    program: HostedProgram
    host: Callable[[Source], Source]
    """A source as Spark reads it."""
    control: Control
    log: str | None
    """A file that outlives the run; None where nothing does."""
    waiting: list[tuple[int, Request]] = field(default_factory=list)
    made: list[Request] = field(default_factory=list)
    """The changes that have led to the program as it is."""
    left: list[Request] = field(default_factory=list)
    """Those of an earlier life of the run that no micro-batch was planned with."""
    refused: list[Request] = field(default_factory=list)
    """Those in which something was wrong: nobody asks for them again."""

    def catch_up(self, edition: int) -> None:
        """Become what the last micro-batch that was planned ran under; changes that were asked for after it are asked for again."""
        for request, refused in self._written():
            request.variables = self.control.variables
            if request.file is not None:
                self.control.taken[os.path.basename(request.file)] = request.digest
            if refused:
                self.refused.append(request)
            elif len(self.made) < edition:
                self._change(request, again=True)
                if request.file is not None:
                    self.control.mark(request.file, None)  # a crash may have come between
            else:
                self.left.append(request)
                self.control.again(request)
        if self.program.edition != edition:
            said = f"the checkpoint has lost how its queries were changed: {self.log} lists {self.program.edition} of {edition} changes"
            raise SetupProblem(said, hint="bring the file back, or start with a new checkpoint")
        if self.made:
            self.launch.check()
            self.launch.hold_sinks()
            self._begin(self.launch)
            names = [os.path.basename(request.file) if request.file is not None else "from Python" for request in self.made]
            self.control.say(f"goes on as it was changed before: {', '.join(names)}")

    def between(self, publish: Callable[[HostedProgram], None]) -> None:
        def take(request: Request) -> bool:
            self.left = [other for other in self.left if other is not request]
            try:
                if self.log is not None:
                    request.fill()
                self._change(request)
            except MillstreamError:
                if request.file is not None:
                    self.refused.append(request)
                raise
            finally:
                self._write()
            publish(self.program)
            self.waiting.append((self.program.edition, request))
            return False

        self.control.serve(take)

    def ran(self, edition: int) -> None:
        """A micro-batch has run under this edition."""
        for number, request in list(self.waiting):
            if number <= edition:
                self.waiting.remove((number, request))
                self.control.done(request)
        if not self.waiting:
            self.launch.let_go()

    def _change(self, request: Request, *, again: bool = False) -> None:
        """In the launch and in the program, or in neither."""
        made: list[HostedProgram] = []

        def fits(changed: Launch) -> None:
            made.append(self._next(changed))
            if not again:
                self._begin(changed)

        self.launch.change(request.text, request.variables, request.file, fits, again=again)
        (self.program,) = made
        self.made.append(request)

    def _begin(self, launch: Launch) -> None:
        """Before any task writes there: a crash must find its own directories again."""
        if launch.checkpoint is not None:
            for number in launch.schemas:
                if isinstance(sink := launch.sinks[number], FileSink):
                    sink.begin()

    def _next(self, changed: Launch) -> HostedProgram:
        known = dict(self.program.sources)
        if all(source.bounded for source in known.values()) and not all(source.bounded for source in changed.sources.values()):
            raise PlanProblem("this run ends with its streams, and a stream without end can not join it", hint="start another run")
        sources = [(name, known[name] if name in known else self.host(changed.sources[name])) for name in changed.streams]
        return self.program.changed(changed.graph, sources, changed.sinks, Execution.of(changed.settings))

    def _written(self) -> Iterator[tuple[Request, bool]]:
        """The changes in their order, with whether they were refused."""
        if self.log is None or not os.path.exists(self.log):
            return
        try:
            with open(self.log, encoding="utf-8") as file:
                for line in file:
                    if line.endswith("\n"):
                        told = json.loads(line)
                        known = told.get("digest") or digest(told.get("given", told["text"]))
                        yield Request(told["text"], {}, told["file"], digest=known), bool(told.get("refused"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SetupProblem(f"the checkpoint is damaged in {self.log}: {error}", hint="bring the file back as it was") from error

    def _write(self) -> None:
        """Before any micro-batch is planned with it."""
        if self.log is None:
            return
        refused = set(self.refused)
        with open(self.log + ".new", "w", encoding="utf-8") as file:
            for request in (*self.made, *self.left, *self.refused):
                text = "" if request in refused else request.text
                told = {
                    "text": text,
                    "file": request.file,
                    "digest": request.digest,
                    "refused": request in refused,
                }
                file.write(json.dumps(told) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(self.log + ".new", self.log)
