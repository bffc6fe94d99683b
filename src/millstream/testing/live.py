"""Drive a session step by step: push tuples, move the clock, and look at what has come out so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.core.clock import ManualClock
from millstream.core.letters import DeadLetter
from millstream.errors import DataProblem, NameProblem, SinkProblem
from millstream.graph.execution import Execution
from millstream.io import ListSource, MemorySink
from millstream.language.durations import length
from millstream.plan.catalog import Stream
from millstream.runtime.launch import Launch
from millstream.runtime.local.run import LocalRun
from millstream.runtime.visible import visible
from millstream.session.rows import Rows, to_batch
from millstream.testing.run import pipeline_of, stand_ins

if TYPE_CHECKING:
    import pandas as pd


class Live:
    """The queries of a session in this process, over streams that the test feeds, by a clock that the test moves.

    Nothing happens between two calls, so a test can say exactly when an answer must come out:

    >>> live = ms.testing.Live(session)
    >>> live.push("Door", [{"door": 1}])
    >>> live.rows()                 # the window is open
    []
    >>> live.advance("1 minute")    # an enabling timestamp closes it
    >>> live.rows()
    [{"n": 1, ...}]
    """

    def __init__(self, session: Any, clock: ManualClock | None = None) -> None:
        pipeline = pipeline_of(session)
        self.clock = clock or ManualClock()
        self.letters: list[DeadLetter] = []

        def source(stream: Stream) -> ListSource:
            return ListSource(stream.name, stream.read_schema, ended=False)

        self._pipeline, _, self._streams = stand_ins(pipeline, source)
        self._launch = launch = Launch.prepare(self._pipeline)
        execution = Execution.of(launch.settings)
        self._run = LocalRun(
            launch.graph, launch.sources, launch.sinks, clock=self.clock, execution=execution, on_letters=self.letters.extend
        )
        self._run.open()

    def push(self, stream: str, rows: Rows) -> None:
        """Tuples arrive, and everything that can run does."""
        found = self._stream(stream)
        found.source.push(to_batch(f"stream {found.name}", found.read_schema, rows))
        self._settle()

    def end(self, stream: str | None = None) -> None:
        """One stream ends, or all of them do."""
        for found in [self._stream(stream)] if stream is not None else self._streams.values():
            found.source.end()
        self._settle()

    def advance(self, by: str | int) -> None:
        """Time passes ("5 seconds", or microseconds), and silent streams make enabling timestamps where somebody waits."""
        if isinstance(by, str):
            by = length(by)
        if by < 0:
            raise DataProblem("time does not go back", hint='write a length such as "5 seconds"')
        self.clock.advance(by)
        self._settle()

    def change(self, text: str) -> None:
        """Statements take effect, as `query.change` has it; a sink that they create must be in memory."""
        self._launch.change(text, fits=self._fits)
        for sink in self._launch.sinks:
            if isinstance(sink, MemorySink):
                sink.limit = 0  # no limit, as for those that were there
        self._settle()

    def _fits(self, changed: Launch) -> None:
        for sink in changed.sinks:
            if not isinstance(sink, MemorySink):
                hint = f"write CREATE SINK {sink.name} WITH (connector = 'memory')"
                raise SinkProblem(f"sink {sink.name} is not in memory", hint=hint)
        self._run.change(changed)

    def rows(self, sink: str | None = None) -> list[dict[str, Any]]:
        """What a sink (the only one, when there is one) has got so far."""
        return self.to_arrow(sink).to_pylist()  # type: ignore[no-any-return]

    def to_arrow(self, sink: str | None = None) -> pa.Table:
        found = [sink for sink in self._launch.sinks if isinstance(sink, MemorySink)]
        tables = {sink.name: _columns(sink.to_arrow(), self._run.schemas[number]) for number, sink in enumerate(found)}
        if sink is None and len(tables) == 1:
            return next(iter(tables.values()))
        if sink not in tables:
            raise NameProblem.unknown("sink", sink or "", tables)
        return tables[sink]

    def to_pandas(self, sink: str | None = None) -> pd.DataFrame:
        """`to_arrow` as a frame of pandas."""
        return self.to_arrow(sink).to_pandas()

    @property
    def state_rows(self) -> int:
        """Tuples and groups that wait for progress."""
        return self._run.report().state_rows

    def _stream(self, name: str) -> Stream:
        found = next((s for s in self._streams.values() if s.name.lower() == name.lower()), None)
        if found is None:
            raise NameProblem.unknown("stream", name, self._streams)
        return found

    def _settle(self) -> None:
        while self._run.step() or self._run.enabled:
            pass
        for writer in self._run.writers.values():
            writer.flush()


def _columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """One that got nothing still has its columns."""
    return table if table.schema.names else visible(schema).empty_table()
