"""`millstream run`: runs a pipeline file and tells on standard error how it goes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from millstream.cli import log
from millstream.cli.arguments import File, Values, choose, read, variables, warn_of_unused

Result = TypeVar("Result")


class Runtime(StrEnum):
    """Where a pipeline runs."""

    spark = "spark"
    local = "local"


def run(
    file: File,
    runtime: Annotated[Runtime, typer.Option(help="On Spark, or in this process.")] = Runtime.spark,
    master: Annotated[str | None, typer.Option(metavar="URL", help="Spark's master; by default local[*].", show_default=False)] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where Spark keeps how far it came; a later run goes on there.", show_default=False)
    ] = None,
    metrics: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write metrics as JSON lines, one a micro-batch.", show_default=False)
    ] = None,
    control: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Take in changes from the .sql files that come there.", show_default=False)
    ] = None,
    operators: Annotated[bool, typer.Option("--operators", help="Show at the end how each operator did.")] = False,
    values: Values = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark's own. Repeatable.", show_default=False)
    ] = None,
) -> None:
    """Run the queries of a pipeline file until its streams end.

    Answers go to the sinks, EXPLAINs to standard output, progress to standard error. Ctrl-C stops after the micro-batch in hand.
    """
    given = variables(values)
    config = variables(conf, "--conf")
    if runtime is Runtime.local and (master or checkpoint or config):
        hint = "--master, --checkpoint, --conf"
        raise typer.BadParameter("the local runtime has no master, no checkpoint and no settings of Spark", param_hint=hint)
    with _stopping() as stop:
        _run(read(file), file, runtime, master, checkpoint, metrics, control, operators, given, config, stop)


def _run(
    text: str,
    file: Path,
    runtime: Runtime,
    master: str | None,
    checkpoint: str | None,
    metrics: Path | None,
    changes: Path | None,
    operators: bool,
    given: dict[str, str],
    config: dict[str, str],
    stop: threading.Event,
) -> None:
    from millstream.cli.metrics import Metrics
    from millstream.cli.progress import Reporter
    from millstream.errors import PlanProblem
    from millstream.runtime.control import Control
    from millstream.runtime.runs import resumed
    from millstream.runtime.status import Status
    from millstream.session import Session

    session = Session(runtime.value, master, config)
    pipeline = session.pipeline
    warn_of_unused(given, text, file, more=changes is not None)
    pipeline.add_text(text, variables=given, file=str(file))
    choose(pipeline.settings, given, text)
    for statement in pipeline.explains:
        print(pipeline.explain(statement.form, [pipeline.explained(statement)]), flush=True)
    if not pipeline.queries:
        if pipeline.explains:
            return
        raise PlanProblem(f"{file}: there is no query to run", hint="write INSERT INTO sink SELECT ... FROM stream")
    if stop.is_set():
        log.say("stopped before anything was read")
        return
    reporter, record = Reporter(), Metrics(metrics)
    control = Control(None if changes is None else str(changes), given, reporter.say)
    launch = reporter.launch = session.prepare(checkpoint)
    log.begin()

    def on_status(status: Status) -> None:
        reporter.update(status)
        record.update(status)

    if runtime is Runtime.spark:
        reporter.say("starting Spark ...")
        reporter.goes_on(resumed(launch))
    with reporter:
        final = _aside(lambda: session.run(launch=launch, stop=stop, on_status=on_status, control=control))
    reporter.remark(final)
    record.close(final)
    if operators:
        from millstream.cli.operators import show
        from millstream.graph.execution import Execution

        show(final.operators, Execution.of(launch.settings).text)
    reporter.say(reporter.summary(final))


def _aside(work: Callable[[], Result]) -> Result:
    """Work in a thread of its own: signals are the main thread's, and Spark takes SIGINT for itself where it starts in that."""
    done: list[Result] = []
    failed: list[BaseException] = []

    def body() -> None:
        try:
            done.append(work())
        except BaseException as problem:
            failed.append(problem)

    thread = threading.Thread(target=body, name="millstream-run", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    if failed:
        raise failed[0]
    return done[0]


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; a second signal ends at once."""
    stop = threading.Event()

    def asked(number: int, frame: object) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()
        log.say("stopping ...")

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
