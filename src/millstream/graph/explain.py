"""Prints a query graph: its operators, what punctuations do in them, its buffers, and its cut into stages for Spark."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from functools import singledispatch

import pyarrow as pa

from millstream.core.types import is_hidden
from millstream.graph.cubes import Route, way
from millstream.graph.cut import INGEST, Cut, cut
from millstream.graph.enhanced import TsmArc, enhanced
from millstream.graph.execution import Execution
from millstream.graph.graph import Graph, Vertex
from millstream.graph.keeps import RatesOf, keeps
from millstream.graph.rules import rule_name, strategy_of
from millstream.graph.table import StateTable, table_text
from millstream.language.statements import Key, Punctuate
from millstream.operators.aggregate import Aggregate
from millstream.operators.contract import Config, Keys
from millstream.operators.distinct import Distinct
from millstream.operators.edges import Deliver, Enter
from millstream.operators.in_order import InOrder
from millstream.operators.join import Join
from millstream.operators.many_join import ManyJoin
from millstream.operators.project import Project
from millstream.operators.select import Select
from millstream.operators.table_join import TableJoin
from millstream.plan.explain import band_text, call_text, columns_text, names_text, span, sql_text, time_text, window_text
from millstream.plan.window import Window

Meanings = dict[str, str]
UNBROKEN = "\N{NO-BREAK SPACE}"

_STATE = {"GroupTable": "groups", "RowWindow": "tuples", "Registers": "registers"}


def explain_graph(graph: Graph, execution: Execution, rates_of: RatesOf = lambda stream: None) -> str:
    """Every operator with its kind, keys and punctuation rules; then the buffers between them, the forks, and the state table."""
    execution.check(graph)
    labels, vertices = label_all(graph), {v.number: v for v in graph.vertices}
    lines: list[str] = []
    for v in graph.vertices:
        lines.append(f"#{v.number} {labels[v.number]}")
        lines += [f"     {line}" for line in _details(v)]
        config = v.config.inner if isinstance(v.config, InOrder) else v.config
        if isinstance(config, (Join, ManyJoin)):
            lines += [f"     {line}" for line in [*keeps(config, v, graph, rates_of), *_feedback(config, v, graph)]]
    lines += _list("buffers", [f"#{producer} -> #{v.number}" for v in graph.vertices for producer in v.inputs])
    lines += _list("arcs with time-stamp memory (TSM)", [_tsm_text(start, arc, vertices) for start, arc in enhanced(graph)])
    forks = {number: consumers for number, consumers in graph.consumers.items() if len(consumers) > 1}
    lines += _list("forks", [f"#{n} to {' and '.join(f'#{c}' for c, _ in consumers)}" for n, consumers in forks.items()])
    own = execution.by_operator(graph)
    chosen = {v.number: strategy_of(own.get(v.number, execution.strategy), execution.limit) for v in graph.vertices}
    table = StateTable(graph.vertices, chosen, execution.breaks)
    if table.lines:
        lines.append(f"execution: {execution.text}")
        lines += ["state table:", *(f"     {line}" for line in table_text(table))]
        lines += _legend(table)
    return "\n".join(lines)


def _feedback(config: Join | ManyJoin, v: Vertex, graph: Graph) -> list[str]:
    """Who is told what nobody needs (paper 003)."""
    if not config.feedback:
        return []
    if isinstance(config, ManyJoin):
        return ["feedback: tuples without a partner at another input wait beside until one comes"]
    before = [found[-1] for number in v.inputs if (found := way(graph, number)) is not None]
    return [f"feedback: tells {' and '.join(f'#{n}' for n in before)} what it has no partner for"] if before else []


def _legend(table: StateTable) -> list[str]:
    """What the transitions mean, of those that are there."""
    used = {strategy.short: strategy for number, strategy in table.strategies.items() if number in table.lines}
    lines = [f"{name}: {', '.join(rule_name(rule) for rule in strategy.rules)}" for name, strategy in sorted(used.items())]
    lines.append("-NOS: all of its rules; -Source: nobody to backtrack to; -Sink: nobody to go forward to; -Fork: one of several branches")
    lines.append("-: a source, a sink, or a break point")
    return [f"     {line}" for line in lines]


def _tsm_text(start: int, arc: TsmArc, vertices: Mapping[int, Vertex]) -> str:
    port = f" port {arc.port}" if len(vertices[arc.consumer].inputs) > 1 else ""
    past = f" past {' '.join(f'#{v.number}' for v in arc.passed)}" if arc.passed else ""
    return f"#{start} -> #{arc.consumer}{port}{past}"


def _list(title: str, entries: list[str]) -> list[str]:
    if not entries:
        return []
    text = f"{title} ({len(entries)}): {', '.join(entry.replace(' ', UNBROKEN) for entry in entries)}"
    return [line.replace(UNBROKEN, " ") for line in textwrap.wrap(text, 110, subsequent_indent="     ", break_on_hyphens=False)]


def explain_spark(graph: Graph) -> str:
    """What runs in which stage on Spark, and what is shuffled between them by which key."""
    labels = label_all(graph)
    parts = cut(graph)
    lines: list[str] = []
    for stage in range(INGEST, parts.stages):
        if stage == INGEST:
            lines.append("ingest: in the tasks that read the sources")
        else:
            lines.append(f"stage {stage}: stateful, a transformWithState keyed by bucket")
            lines += _shuffles(parts, stage)
        for v in parts.members(stage):
            note = ": written by the tasks, committed once a micro-batch" if isinstance(v.config, Deliver) else ""
            lines.append(f"  #{v.number} {labels[v.number]}{note}")
    stages = parts.stages
    lines.append(f"{stages} shuffle{'' if stages == 1 else 's'} a micro-batch; buckets: SET execution.buckets, by default one a core")
    return "\n".join(lines)


def _shuffles(parts: Cut, stage: int) -> list[str]:
    return [
        f"  shuffle #{c.producer} -> #{c.consumer} {_by(c.keys) if c.route is None else _routed(c.route)}"
        for c in parts.into(stage)
        if c.consumer is not None
    ]


def _routed(route: Route) -> str:
    known = [column for column in route.columns if column is not None]
    many = "" if len(known) == len(route.columns) else ", and to every bucket with these"
    return f"by {' and '.join(known)}, a dimension each{many}" if known else "to every bucket"


def _by(keys: Keys) -> str:
    if keys is None:
        return "to any bucket"
    return f"by {', '.join(keys)}" if keys else "to one bucket"


def _horizon(clause: Punctuate | Key) -> str:
    return "" if clause.horizon is None else f" for {span(clause.horizon)}"


def _details(v: Vertex) -> list[str]:
    config = v.config
    if isinstance(config, Enter):
        ets = config.stream.ets
        policy = {"on-demand": "on demand", "every": f"every {span(ets.period or 0)}", "none": "none"}[ets.policy]
        skew = f", skew {span(ets.skew)}" if ets.skew else ""
        lines = [f"time: {time_text(config.stream)}; enabling timestamps: {policy}{skew}"]
        stream = config.stream
        on = [", ".join(p.columns) if p.on is None else sql_text(p.on) for p in stream.punctuate]
        marks = [f"on ({o}) when {sql_text(p.when)}{_horizon(p)}" for o, p in zip(on, stream.punctuate, strict=True)]
        marks += [f"unique ({', '.join(key.columns)}){_horizon(key)}" for key in stream.unique]
        marks += [f"clustered by ({', '.join(key.columns)})" for key in stream.clustered]
        marks += [f"check ({sql_text(c.condition)})" for c in stream.checks]
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
        cubed = needs.same and () in needs.keys
        lines.append(f"keys: {'a dimension of buckets for each equality' if cubed else '; '.join(ports)}")
        state = [_STATE[type(c).__name__] for c in config.build().state if type(c).__name__ in _STATE]
        lines.append(f"state: {', '.join(state)}")
    return lines


def label_all(graph: Graph) -> dict[int, str]:
    """Each operator in one line, as EXPLAIN and pictures show it; hidden columns are told by what they mean."""
    labels: dict[int, str] = {}
    known: dict[int, Meanings] = {}
    for v in graph.vertices:
        before = {name: text for producer in v.inputs for name, text in known[producer].items()}
        labels[v.number] = _label(v.config, before)
        known[v.number] = _meanings(v.config, before)
    return labels


@singledispatch
def _meanings(config: Config, before: Meanings) -> Meanings:
    """What the hidden columns of the output stand for."""
    return before


@_meanings.register
def _(config: Project, before: Meanings) -> Meanings:
    return {name: sql_text(e, before) for name, e in config.columns if is_hidden(name)}


@_meanings.register
def _(config: Aggregate, before: Meanings) -> Meanings:
    calls = {c.name: call_text(c.function, before.get(str(c.column), c.column), c.distinct) for c in config.calls}
    return before | {name: text for name, text in calls.items() if is_hidden(name)}


@singledispatch
def _label(config: Config, names: Meanings) -> str:
    return config.label


@_label.register
def _(config: Select, names: Meanings) -> str:
    return f"select {sql_text(config.predicate, names)}"


@_label.register
def _(config: Project, names: Meanings) -> str:
    return f"project {columns_text(config.columns, names)}"


@_label.register
def _(config: Aggregate, names: Meanings) -> str:
    calls = ", ".join(call_text(c.function, names.get(str(c.column), c.column), c.distinct) for c in config.calls)
    by = f" by {names_text(config.groups)}" if config.groups else ""
    return f"aggregate {calls or 'groups'}{by}" + (f", {_window(config.window, names)}" if config.window else "")


@_label.register
def _(config: Distinct, names: Meanings) -> str:
    return f"distinct {names_text(config.columns)}" + (f", {_window(config.window, names)}" if config.window else "")


@_label.register
def _(config: InOrder, names: Meanings) -> str:
    return f"in-order {_label(config.inner, names)}" if len(config.schemas) > 1 else config.label


@_label.register
def _(config: Join, names: Meanings) -> str:
    keys = zip(config.left_keys, config.right_keys, strict=True)
    parts = [f"{names.get(a, a)} = {names.get(b, b)}" for a, b in keys]
    parts += [band_text(band, config.pair_schema, names) for band in config.bands]
    parts += [sql_text(config.condition, names)] if config.condition is not None else []
    return config.name + (f" on {' and '.join(parts)}" if parts else "")


@_label.register
def _(config: ManyJoin, names: Meanings) -> str:
    schema = pa.schema([field for schema in config.inputs for field in schema])
    parts = [" = ".join(names.get(name, name) for _, name in columns) for columns in config.same]
    parts += [band_text(band, schema, names) for band in config.bands]
    parts += [sql_text(part, names) for part in config.conditions]
    return f"{config.routing} on {' and '.join(parts)}"


@_label.register
def _(config: TableJoin, names: Meanings) -> str:
    return f"{_label(config.join, names)} with table {config.name}"


def _window(window: Window, names: Meanings) -> str:
    """On the column that the user knows, where a projection has given it a hidden name."""
    return window_text(replace(window, attribute=names.get(window.attribute, window.attribute)))
