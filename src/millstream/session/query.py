"""A running query: its metrics, its plan, its answer so far, and how to stop it."""

from __future__ import annotations

import base64
import html
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from millstream.core.letters import DeadLetter
from millstream.errors import MillstreamError, NameProblem, SessionStopped
from millstream.io import MemorySink
from millstream.pipeline import explained, form_of
from millstream.runtime.control import Control
from millstream.runtime.launch import Launch
from millstream.runtime.status import Status
from millstream.runtime.visible import visible
from millstream.session.letters import LetterList
from millstream.session.rows import need_text

if TYPE_CHECKING:
    import pandas as pd

    from millstream.graph.graph import Graph


Run = Callable[[threading.Event, Callable[[Status], None], Control], Status]


class Plan(str):
    """The text of a plan, which shows itself without quotes."""

    def __repr__(self) -> str:
        return str(self)


class Pictured:
    """Shows its query graph as a picture in a notebook."""

    def _graph(self) -> Graph:
        raise NotImplementedError

    def _repr_png_(self) -> bytes | None:
        """None for a step on the way that can not run yet, such as a join whose windows are to come."""
        from millstream.graph.picture import png

        try:
            return png(self._graph())
        except MillstreamError:
            return None

    def _repr_html_(self) -> str:
        picture, text = self._repr_png_(), f"<div>{html.escape(repr(self))}</div>"
        if picture is None:
            return text
        return f'{text}<img style="max-width:100%" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'


class Query(Pictured):
    """One query in a thread of its own, with its answer in memory. Use it in a `with` block to stop it at the end."""

    def __init__(self, launch: Launch, letters: LetterList, run: Run) -> None:
        self._launch, self._letters = launch, letters
        self._stop = threading.Event()
        self._control = Control()
        self._status = Status()
        self._problem: BaseException | None = None
        self._told = False
        """True when the problem was raised to the user: the end of a `with` block does not raise it again."""
        self._over = threading.Event()
        """Set when the thread is done. `Thread.join` that Ctrl-C breaks off would take the thread for dead."""
        self._thread = threading.Thread(target=self._work, args=(run,), name="millstream-query", daemon=True)
        self._thread.start()

    def _work(self, run: Run) -> None:
        try:
            self._note(run(self._stop, self._note, self._control))
        except BaseException as problem:
            self._problem = problem
        finally:
            self._control.close()
            self._over.set()

    def _note(self, status: Status) -> None:
        self._status = status

    @property
    def running(self) -> bool:
        return not self._over.is_set()

    @property
    def ended(self) -> bool:
        """True when all streams have ended and the whole answer is there."""
        return not self.running and self._problem is None and not self._status.stopped

    @property
    def error(self) -> BaseException | None:
        """The problem that `wait` raises, or None."""
        return self._problem

    def metrics(self) -> Status:
        """How far it is: tuples in and out, low-water marks, state, dead letters, seconds."""
        return self._status

    def change(self, text: str, /, **variables: object) -> None:
        """Take in statements while it runs: SET execution.*, INSERT and what it needs, DROP QUERY. Nothing is lost or repeated.

        Returns when they have taken effect. A wrong text raises what is wrong and changes nothing.
        """
        self._control.ask(
            need_text("a change", text), {name: str(value) for name, value in variables.items()}
        )

    @property
    def letters(self) -> list[DeadLetter]:
        """Dead letters, unless `dead_letters.path` sends them to files. Without an end the last 100,000."""
        return self._letters.letters

    def explain(self, form: str = "logical") -> Plan:
        """The plan of what runs now as `logical`, `graph` or `spark`."""
        if form_of(form) == "logical":
            return Plan(self._launch.pipeline.explain(form))
        return Plan(explained(form, self._launch.graph, self._launch.settings))

    def stop(self) -> None:
        """Finish what is in hand, and raise what went wrong, if something did."""
        self._stop.set()
        self.wait()

    def wait(self, timeout: float | None = None) -> Self:
        """Until every stream has ended, or at most `timeout` seconds; raises what went wrong."""
        self._over.wait(timeout)
        self._raise()
        return self

    def to_arrow(self, sink: str | None = None) -> pa.Table:
        """The answer so far, the whole one after `wait`; or what a memory sink got that a change has brought."""
        if not isinstance(self._problem, SessionStopped):
            self._raise()
        sinks = {each.name.lower(): (number, each) for number, each in enumerate(self._launch.sinks)}
        if sink is not None and sink.lower() not in sinks:
            raise NameProblem.unknown("sink", sink, [each.name for _, each in sinks.values()])
        number, found = sinks[sink.lower()] if sink is not None else (0, self._launch.sinks[0])
        if not isinstance(found, MemorySink):
            raise NameProblem(f"sink {found.name} holds nothing in memory", hint="only sinks with connector = 'memory' are kept")
        table = found.to_arrow()
        return table if table.schema.names else visible(self._launch.schemas[number]).empty_table()

    def to_pandas(self, sink: str | None = None) -> pd.DataFrame:
        """`to_arrow` as a frame of pandas."""
        return self.to_arrow(sink).to_pandas()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._stop.set()
        self._over.wait()
        if error is None and not self._told:
            self._raise()

    def _raise(self) -> None:
        if self._problem is not None:
            self._told = True
            raise self._problem

    def __repr__(self) -> str:
        status = self._status
        over = "ended" if self.ended else "stopped"
        state = "failed" if self._problem is not None else "running" if self.running else over
        letters = ", ".join(f"{count:,} {kind}" for kind, count in sorted(status.letters.items()))
        lost = f", dead letters: {letters}" if letters else ""
        told = f"{sum(status.tuples_in.values()):,} tuples in, {status.tuples_out:,} out{lost}"
        return f"<Query {state}: {told}, {status.seconds:.1f} s>"

    def _graph(self) -> Graph:
        return self._launch.graph
