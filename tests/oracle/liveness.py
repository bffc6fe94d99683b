"""The liveness oracle: marks move far forward and all values are closed, then each row is out though no stream ends."""

from __future__ import annotations

import random
import re
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

from millstream.core.clock import ManualClock
from millstream.graph.execution import Execution
from millstream.io import ListSource
from millstream.plan.catalog import Stream
from millstream.progress.ets import LIVE
from millstream.runtime.launch import Launch
from millstream.runtime.local.run import LocalRun
from millstream.runtime.runs import run_spark
from millstream.runtime.status import Status
from millstream.session.letters import LetterList
from millstream.testing.run import Result, _units, collected, stand_ins
from tests.oracle import duck
from tests.oracle.buckets import Host
from tests.oracle.cases import Case, make_case
from tests.oracle.queries import Query
from tests.oracle.streams import CONDITIONS, SECOND, StreamSpec, key_of
from tests.oracle.watch import watched

FAR = 20 * 365 * 86_400 * SECOND
"""Further than any window, band or calendar step of the families reaches."""
BEATS = 24
"""Heartbeats at the end of a stream: they have arrival numbers, so they fill each `[ROWS n]` window with a tuple."""
FRESH = 500
"""A key that no other tuple has."""
BY_VALUE = ("closed", "punctuated")
"""Families in which nothing but a closed value lets a group or a tuple go."""
CLOSERS = {
    "upto": lambda k: 10**6, "below": lambda k: 10**6, "from": lambda k: -(10**6),
    "between": lambda k: k, "members": lambda k: k, "is": lambda k: k,
}  # fmt: skip
"""The value of `i` in a row that closes the key k, by the clause of the stream."""


def make_live(r: random.Random, family: str, clocks: bool = True) -> Case:
    """A case whose streams close all values and move their marks far, by heartbeats or, where `clocks` move, by those."""
    case = make_case(r, family)
    keys = {_plain(row["k"]): row["k"] for s in case.streams for row in s.rows}.values()
    streams = case.streams if family in BY_VALUE else tuple(map(_closes_clusters, case.streams))
    now = max((row["ts"] for s in case.streams for row in s.rows if row["ts"] is not None), default=0) + SECOND
    beats = BEATS if "rows" in case.families else 1
    streams = tuple(
        _closing(r, s, [_typed(key, s.key) for key in keys], now, beats, clocks) for s in streams
    )
    return replace(case, streams=streams, now=now)


def _plain(key: Any) -> Any:
    return "NaN" if key != key else key


def _closes_clusters(spec: StreamSpec) -> StreamSpec:
    """The stream with a clause that closes its last cluster: joins of it may keep tuples until their key is closed."""
    more = ("close",) if "clustered" in spec.declared else ()
    return replace(spec, punctuations=tuple(dict.fromkeys((*spec.punctuations, *more))))


def _typed(key: Any, sql: str) -> Any:
    """The key as a value of this type, which is that of its own column or a number as that is."""
    return key if key is None or sql in ("STRING", "DOUBLE") else key_of(int(key), sql)


def _closing(
    r: random.Random, spec: StreamSpec, keys: list[Any], now: int, beats: int, clocks: bool
) -> StreamSpec:
    """The stream with what closes these keys behind its tuples, and then what moves its mark."""
    rows = list(spec.rows)
    times = [row["ts"] for row in rows if row["ts"] is not None]
    last = max(times, default=now)
    empty = {"i": 0, "x": 1.5, "m": None, "s": "a", "b": True, "d": 1, "ts": last}
    ranges = [clause for clause in spec.punctuations if clause in CONDITIONS]
    if "close" in spec.punctuations:
        rows += [{**empty, "k": key, "kind": "close"} for key in keys]
    elif ranges:
        rows += [
            {**empty, "k": key, "kind": ranges[0], "i": CLOSERS[ranges[0]](key)}
            for key in keys
            if key is not None
        ]
    elif "unique" in spec.declared or "clustered" in spec.declared:
        here = {_plain(row["k"]) for row in spec.tuples()}
        missing = [key for key in keys if _plain(key) not in here]
        fresh = [key_of(FRESH, spec.key)] if "clustered" in spec.declared else []
        rows += [{**empty, "k": key, "kind": "row"} for key in [*missing, *fresh]]
    lively = clocks and spec.order != "punctuated" and spec.tuples() and min(times) > now - LIVE
    if lively and r.random() < 0.5:
        return replace(spec, rows=tuple(rows))
    rows += [{**empty, "k": key_of(0, spec.key), "kind": "beat", "ts": now + FAR}] * beats
    return replace(spec, rows=tuple(rows), punctuations=tuple(dict.fromkeys((*spec.punctuations, "beat"))))


class Excepted(NamedTuple):
    """Rows that need not come out, with the state that may wait for them."""

    reason: str
    families: tuple[str, ...]
    row: Callable[[Case, Query, dict[str, Any]], bool]
    """True when this row of the answer, by column name, need not be out."""
    state: Callable[[Case, Query], int]
    """How many tuples and groups the query may hold for such rows."""


def _reads(query: Query, case: Case) -> list[StreamSpec]:
    """The streams of a query, each as often as it stands there."""
    return [s for s in case.streams for _ in re.findall(rf"\bV?{s.name}\b", query.ours)]


def _rows_window(query: Query) -> tuple[int, int] | None:
    found = re.search(r"\[ROWS (\d+)(?: SLIDE (\d+))?\]", query.ours)
    return None if found is None else (int(found[1]), int(found[2] or found[1]))


def _not_full(case: Case, query: Query, row: dict[str, Any]) -> bool:
    return _rows_window(query) is not None and row["window_end"] > min(
        len(s.rows) for s in _reads(query, case)
    )


def _in_open_windows(case: Case, query: Query) -> int:
    """Tuples in windows that are not full, once for each such window: none has more groups, or values, than tuples."""
    if (window := _rows_window(query)) is None:
        return 0
    (size, slide), (spec,) = window, _reads(query, case)
    count = len(spec.rows)
    windows = range((count - size) // slide + 1, count // slide + 1)
    tuples = sum(w * slide <= number < w * slide + size for number in range(count) for w in windows)
    return tuples * _kinds(query)


def _kinds(query: Query) -> int:
    """For each tuple a group, and a value of each DISTINCT in it."""
    return 1 + query.ours.count("DISTINCT")


def _key_columns(query: Query) -> list[str]:
    """The columns of the answer that hold a key."""
    return re.findall(r"\bk AS (\w+)", query.ours.split(" FROM ")[0])


def _open_cluster(spec: StreamSpec) -> list[Any]:
    """The key of the last open cluster, where no other clause closes it."""
    if "clustered" not in spec.declared or "close" in spec.punctuations:
        return []
    return [row["k"] for row in spec.tuples()][-1:]


def _in_open_cluster(case: Case, query: Query, row: dict[str, Any]) -> bool:
    keys = [_plain(key) for spec in _reads(query, case) for key in _open_cluster(spec)]
    return any(_plain(row[column]) in keys for column in _key_columns(query))


def _of_open_clusters(case: Case, query: Query) -> int:
    """No operator holds more than the combinations of such tuples of all inputs."""
    reads = _reads(query, case)
    keys = [_plain(key) for spec in reads for key in _open_cluster(spec)]
    many = (
        prod(1 + sum(_plain(row["k"]) in keys for row in spec.tuples()) for spec in reads) - 1 if keys else 0
    )
    return many * _kinds(query)


def _leaves_null(spec: StreamSpec) -> bool:
    """True when the clauses of a stream close values and cannot close null."""
    return not {"close", "clustered"} & {*spec.punctuations, *spec.declared}


def _group_of_null(case: Case, query: Query, row: dict[str, Any]) -> bool:
    grouped = " GROUP BY " in query.ours and any(_leaves_null(spec) for spec in _reads(query, case))
    return grouped and any(row[column] is None for column in _key_columns(query))


def _of_null(case: Case, query: Query) -> int:
    if " GROUP BY " not in query.ours or not _key_columns(query):
        return 0
    reads = _reads(query, case)
    tuples = (
        sum(row["k"] is None for spec in reads for row in spec.tuples())
        if any(map(_leaves_null, reads))
        else 0
    )
    return tuples * _kinds(query)


EXCEPTED = (
    Excepted("a [ROWS n] window that is not full", ("rows",), _not_full, _in_open_windows),
    Excepted("the last open cluster of CLUSTERED BY", BY_VALUE, _in_open_cluster, _of_open_clusters),
    Excepted(
        "a group of null that UNIQUE, ranges and lists cannot close", BY_VALUE, _group_of_null, _of_null
    ),
)


def check(case: Case, result: Result) -> None:
    """Each row of the answer is out, and nothing is held, but for what is excepted."""
    case.check_letters(result)
    case.check_order(result)
    allowed = 0
    for number, query in enumerate(case.queries):
        excepted = [e for e in EXCEPTED if case.families[number] in e.families]
        table, expected = result.tables[f"Out{number}"], case.expected(number)
        unexpected, missing = duck.unequal(duck.rows_of(table), expected)
        assert not unexpected, f"{case}\nquery {number}: not in the answer: {unexpected[:5]}"
        late = [
            row
            for row in missing
            if not any(e.row(case, query, dict(zip(table.schema.names, row, strict=True))) for e in excepted)
        ]
        assert not late, (
            f"{case}\nquery {number}: {len(late)} of {len(expected)} rows are not out: {late[:5]}"
        )
        allowed += sum(e.state(case, query) for e in excepted)
    held = result.status.state_rows
    assert held <= allowed, f"{case}\n{held} tuples and groups are held, {allowed} may be"


def live(case: Case, *, buckets: int = 0, chance: random.Random | None = None) -> Result:
    """The case in this process, or hosted over several buckets; no stream ends."""
    clock = ManualClock(case.now)

    def run(launch: Launch) -> Status:
        if buckets:
            return _hosted(launch, clock, case.batch, buckets, chance or random.Random(0))
        return _in_one_process(launch, clock, case.batch)

    with watched(forgets=case.forgets):
        return _fed(case, run)


def on_spark(case: Case, seconds: float = 60) -> Result:
    """The case on Spark, stopped when the answer is out and nothing is held, or when the time is up."""
    stop, until = threading.Event(), time.monotonic() + seconds
    rows = sum(len(case.expected(number)) for number in range(len(case.queries)))
    given = {s.name: len(s.rows) for s in case.streams}

    def run(launch: Launch) -> Status:
        def watch(status: Status) -> None:
            read = all(status.tuples_in.get(name, 0) == given[name] for name in launch.streams)
            if (read and status.tuples_out == rows and not status.state_rows) or time.monotonic() > until:
                stop.set()

        launch.settings.set("execution.batch", case.batch)
        return run_spark(launch, stop=stop, on_status=watch)

    return _fed(case, run)


def _fed(case: Case, run: Callable[[Launch], Status]) -> Result:
    """The case over lists that hold all of their units and do not end."""
    tables = case.inputs()

    def source(stream: Stream) -> ListSource:
        return ListSource(
            stream.name, stream.read_schema, _units(stream, tables[stream.name], case.files), ended=False
        )

    copy, sinks, _ = stand_ins(case.pipeline(), source)
    launch = Launch.prepare(copy)
    letters = LetterList()
    launch.letters = letters  # type: ignore[assignment]
    status = run(launch)
    return Result(collected(copy, sinks), letters.letters, status)


def _in_one_process(launch: Launch, clock: ManualClock, batch: int) -> Status:
    execution = Execution.of(launch.settings)
    run = LocalRun(
        launch.graph,
        launch.sources,
        launch.sinks,
        clock=clock,
        batch_size=batch,
        execution=execution,
        on_letters=launch.letters.put,
    )
    run.open()
    for passes in (0, FAR):
        clock.advance(passes)
        while run.step() or run.enabled:
            pass
    for writer in run.writers.values():
        writer.flush()
    return Status(state_rows=run.report().state_rows)


def _hosted(launch: Launch, clock: ManualClock, batch: int, buckets: int, chance: random.Random) -> Status:
    launch.settings.set("execution.batch", batch)
    with tempfile.TemporaryDirectory() as directory:
        host = Host(launch, buckets, chance, notes=f"{directory}/notes")
        for passes in (0, FAR):
            clock.advance(passes)
            host.run(now=clock.now())
    return Status(state_rows=host.program.held[0])
