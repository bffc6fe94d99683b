"""Prints a query graph: its operators, what punctuations do in them, its buffers, and its cut into stages for Spark."""

from __future__ import annotations

from functools import singledispatch

from millstream.core.types import is_hidden
from millstream.graph.cut import INGEST, Cut, cut
from millstream.graph.graph import Graph, Vertex
from millstream.operators.aggregate import Aggregate
from millstream.operators.contract import Config, Keys
from millstream.operators.distinct import Distinct
from millstream.operators.edges import Deliver, Enter
from millstream.operators.join import Join
from millstream.operators.project import Project
from millstream.operators.select import Select
from millstream.operators.table_join import TableJoin
from millstream.plan.explain import band_text, call_text, columns_text, names_text, span, sql_text, time_text, window_text

_STATE = {"GroupTable": "groups", "RowWindow": "tuples", "Registers": "registers"}


def explain_graph(graph: Graph) -> str:
    """Every operator with its kind, keys and punctuation rules; then the buffers between them, and the forks."""
    lines: list[str] = []
    for v in graph.vertices:
        lines.append(f"#{v.number} {label(v.config)}")
        lines += [f"     {line}" for line in _details(v)]
    arcs = [(producer, v, port) for v in graph.vertices for port, producer in enumerate(v.inputs)]
    lines.append(f"buffers ({len(arcs)})")
    for producer, v, port in arcs:
        note = "time-stamp memory (TSM), " if len(v.inputs) > 1 else ""
        lines.append(f"     #{producer} -> #{v.number}" + (f" port {port}" if len(v.inputs) > 1 else "") + f": {note}{_arc(v, port)}")
    forks = {number: consumers for number, consumers in graph.consumers.items() if len(consumers) > 1}
    if forks:
        lines.append(f"forks ({len(forks)})")
        lines += [f"     #{n} is read by {', '.join(f'#{c}' for c, _ in consumers)}" for n, consumers in forks.items()]
    return "\n".join(lines)


def explain_spark(graph: Graph) -> str:
    """What runs in which stage on Spark, and what is shuffled between them by which key."""
    parts = cut(graph)
    lines: list[str] = []
    for stage in range(INGEST, parts.stages):
        if stage == INGEST:
            lines.append("ingest: in the tasks that read the sources")
        else:
            lines.append(f"stage {stage}: stateful, a transformWithState keyed by bucket")
            lines += _shuffles(parts, stage)
        lines += [f"  #{v.number} {label(v.config)}" for v in parts.members(stage) if not isinstance(v.config, Deliver)]
        delivered = [v for v in parts.members(stage) if isinstance(v.config, Deliver)]
        lines += [f"  #{v.number} {label(v.config)}: written here, committed once a micro-batch" for v in delivered]
    stages = parts.stages
    lines.append(f"{stages} shuffle{'' if stages == 1 else 's'} per micro-batch; buckets: SET execution.buckets, by default one a core")
    return "\n".join(lines)


def _shuffles(parts: Cut, stage: int) -> list[str]:
    return [f"  shuffle #{c.producer} -> #{c.consumer} {_by(c.keys)}" for c in parts.into(stage)]


def _by(keys: Keys) -> str:
    if keys is None:
        return "to any bucket"
    return f"by {', '.join(keys)}" if keys else "to one bucket"


def _arc(v: Vertex, port: int) -> str:
    keys = v.config.needs.keys[port] if port < len(v.config.needs.keys) else None
    return "tuples and punctuations" + ("" if keys is None else f", met {_by(keys)}")


def _details(v: Vertex) -> list[str]:
    config = v.config
    if isinstance(config, Enter):
        ets = config.stream.ets
        policy = {"on-demand": "on demand", "every": f"every {span(ets.period or 0)}", "none": "none"}[ets.policy]
        skew = f", skew {span(ets.skew)}" if ets.skew else ""
        lines = [f"time: {time_text(config.stream)}; enabling timestamps: {policy}{skew}"]
        marks = [f"on ({', '.join(p.columns)}) when {sql_text(p.when)}" for p in config.stream.punctuate]
        return [*lines, f"punctuations: {'; '.join(marks)}"] if marks else lines
    reads = ", ".join(f"#{i}" for i in v.inputs)
    lines = [f"reads {reads}"]
    if isinstance(config, Deliver):
        return lines
    needs = config.needs
    kind = "stateless" if config.stateless else "stateful"
    waits = ", idle-waiting prone" if needs.idle_waiting_prone else ""
    lines.append(f"{kind}{waits}; punctuations: linear {needs.linear}, value {needs.value}")
    if not config.stateless:
        ports = [f"port {port}: {_by(keys)}" if needs.ports > 1 else _by(keys) for port, keys in enumerate(needs.keys)]
        lines.append(f"keys: {'; '.join(ports)}")
        state = [_STATE.get(type(c).__name__, type(c).__name__) for c in config.build().state]
        lines.append(f"state: {', '.join(state)}")
    return lines


@singledispatch
def label(config: Config) -> str:
    """One operator in one line, as EXPLAIN and pictures show it."""
    return config.label


@label.register
def _(config: Select) -> str:
    return f"select {sql_text(config.predicate)}"


@label.register
def _(config: Project) -> str:
    return f"project {columns_text(config.columns)}"


@label.register
def _(config: Aggregate) -> str:
    calls = ", ".join(call_text(c.function, _shown(c.column), c.distinct) for c in config.calls)
    by = f" by {names_text(config.groups)}" if config.groups else ""
    return f"aggregate {calls or 'groups'}{by}" + (f", {window_text(config.window)}" if config.window else "")


@label.register
def _(config: Distinct) -> str:
    return f"distinct {names_text(config.columns)}" + (f", {window_text(config.window)}" if config.window else "")


@label.register
def _(config: Join) -> str:
    parts = [f"{a} = {b}" for a, b in zip(config.left_keys, config.right_keys, strict=True)]
    parts += [band_text(band, config.pair_schema) for band in config.bands]
    parts += [sql_text(config.condition)] if config.condition is not None else []
    return f"{config.kind} join" + (f" on {' and '.join(parts)}" if parts else "")


@label.register
def _(config: TableJoin) -> str:
    return f"{label(config.join)} with table {config.name}"


def _shown(column: str | None) -> str | None:
    """A computed argument has a hidden name; it is told by the projection before."""
    return "..." if column is not None and is_hidden(column) else column
