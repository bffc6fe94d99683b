"""Prints a logical plan as an indented tree that a person can read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import singledispatch

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import is_hidden
from millstream.language.durations import NO_LIMIT
from millstream.language.types import sql_type
from millstream.plan import nodes
from millstream.plan.catalog import Stream
from millstream.plan.nodes import Band, Node
from millstream.plan.window import DAY, Window

_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))
_PLAIN = re.compile(r"[A-Za-z_]\w*")


def explain_logical(plan: Node) -> str:
    """One line a node, its inputs below it and further to the right."""
    lines: list[str] = []
    _print(plan, 0, lines)
    return "\n".join(lines)


def _print(node: Node, depth: int, lines: list[str]) -> None:
    lines.append("  " * depth + describe(node))
    for child in node.inputs:
        _print(child, depth + 1, lines)


@singledispatch
def describe(node: Node) -> str:
    """One node in one line."""
    return type(node).__name__.lower()


@describe.register
def _(node: nodes.Scan) -> str:
    return f"scan {node.stream.name} ({_typed(node.schema)}), {time_text(node.stream)}"


@describe.register
def _(node: nodes.TableScan) -> str:
    return f"table {node.table.name} ({_typed(node.schema)}), read once"


@describe.register
def _(node: nodes.Filter) -> str:
    return f"filter {sql_text(node.predicate, meanings(node.input))}"


@describe.register
def _(node: nodes.Project) -> str:
    return f"project {columns_text(node.columns, meanings(node.input))}"


def meanings(node: Node) -> dict[str, str]:
    """What the hidden columns of a node stand for: calls of an aggregate, keys and axes that a projection computes."""
    below = {name: text for child in node.inputs for name, text in meanings(child).items()}
    if isinstance(node, nodes.Project):
        return {name: sql_text(e, below) for name, e in node.columns if is_hidden(name)}
    if isinstance(node, nodes.Aggregate):
        calls = {c.name: call_text(c.function, None if c.argument is None else sql_text(c.argument, below), c.distinct) for c in node.calls}
        return {name: text for name, text in calls.items() if is_hidden(name)}
    return below


@describe.register
def _(node: nodes.Union) -> str:
    return f"union of {len(node.members)} -> {names_text(node.schema.names)}"


@describe.register
def _(node: nodes.Windowed) -> str:
    return f"window {_window(node.window, node.input)}"


@describe.register
def _(node: nodes.Join) -> str:
    names = meanings(node.left) | meanings(node.right)
    parts = [f"{sql_text(a, names)} = {sql_text(b, names)}" for a, b in node.keys]
    parts += [band_text(band, node.pair_schema, names) for band in node.bands]
    parts += [sql_text(c, names) for c in node.condition]
    on = f" on {' and '.join(parts)}" if parts else ""
    return f"{node.kind} join{' with a table' if node.static else ''}{on} -> {names_text(node.schema.names)}"


@describe.register
def _(node: nodes.Aggregate) -> str:
    calls = ", ".join(call_text(c.function, None if c.argument is None else sql_text(c.argument), c.distinct) for c in node.calls)
    by = f" by {columns_text(node.groups)}" if node.groups else ""
    closed = f", window {_window(node.window, node.input)}" if node.window else f", closed by {_closing(node)}"
    return f"aggregate {calls or 'groups'}{by}{closed}"


@describe.register
def _(node: nodes.Distinct) -> str:
    return f"distinct {names_text(node.keys)}" + (f", window {_window(node.window, node.input)}" if node.window else "")


@describe.register
def _(node: nodes.Sort) -> str:
    return "sort " + ", ".join(key.text("descending") for key in node.keys)


@describe.register
def _(node: nodes.Insert) -> str:
    return f"insert into {node.sink.name} ({names_text(node.schema.names)})"


def _window(window: Window, source: Node) -> str:
    """On the column that the user knows, where a projection has given it a hidden name."""
    return window_text(replace(window, attribute=meanings(source).get(window.attribute, window.attribute)))


def _closing(node: nodes.Aggregate) -> str:
    ways = [f"the progress of {node.axis}"] if node.axis is not None else []
    ways += ["punctuations on " + ", ".join(sorted(columns)) for columns in sorted(node.punctuated, key=sorted)]
    return " or ".join(ways) or "the end of the stream"


def _typed(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {sql_type(f.type).sql('spark')}" for f in schema if not is_hidden(f.name))


def time_text(stream: Stream) -> str:
    """What a stream declares of its time: `ts out of order by at most 2 s`."""
    stamp = stream.timestamp
    if stamp.kind == "internal":
        return f"{stamp.column} stamped on entry"
    if stamp.kind == "latent":
        return "no time of its own"
    order = {"ordered": "in order", "slack": f"out of order by at most {span(stamp.slack)}", "punctuated": "in any order, punctuated"}
    limited = stamp.ahead is not None and stamp.ahead != NO_LIMIT
    ahead = f", at most {span(stamp.ahead or 0)} after it arrives" if limited else ""
    return f"{stamp.column} {order[stamp.order]}{ahead}"


def span(length: int) -> str:
    """A length of time in the largest unit that says it exactly: `span(90_000_000) == "90 s"`."""
    for size, unit in _UNITS:
        if length % size == 0 and abs(length) >= size:
            return f"{length // size} {unit}"
    return "0 s"


def window_text(window: Window) -> str:
    """`1 min tumbling on ts`, `1 min every 10 s on ts`, `100 tuples tumbling`."""

    def length(value: int) -> str:
        return f"{value} tuples" if window.rows else span(value * DAY if window.days else value)

    on = "" if window.rows else f" on {window.attribute}"
    if window.range == window.slide:
        return f"{length(window.range)} tumbling{on}"
    return f"{length(window.range)} every {length(window.slide)}{on}"


def band_text(band: Band, schema: pa.Schema, meanings: Mapping[str, str] | None = None) -> str:
    """`low <= right - left <= high` in words: `b.ts within 5 s of a.ts`."""
    left, right = ((meanings or {}).get(name, name) for name in (band.left, band.right))
    low, high = band.low, band.high
    kind = schema.field(band.left).type

    def length(value: int) -> str:
        if pa.types.is_integer(kind):
            return str(value)
        return span(value * DAY if pa.types.is_date(kind) else value)

    if low is not None and high is not None:
        if low == high == 0:
            return f"{right} equal to {left}"
        if low == -high:
            return f"{right} within {length(high)} of {left}"
        if low <= 0 <= high:
            ends = [f"{length(-low)} before" if low else "", f"{length(high)} after" if high else ""]
            return f"{right} within {' and '.join(e for e in ends if e)} {left}"
        return f"{right} between {_shifted(left, low, length)} and {_shifted(left, high, length)}"
    if low is not None:
        return f"{right} from {_shifted(left, low, length)} on"
    if high is not None:
        return f"{right} up to {_shifted(left, high, length)}"
    return f"any {right} and {left}"


def _shifted(name: str, by: int, length: Callable[[int], str]) -> str:
    if by == 0:
        return name
    return f"{name} + {length(by)}" if by > 0 else f"{name} - {length(-by)}"


def call_text(function: str, argument: str | None, distinct: bool) -> str:
    return f"{function}({'distinct ' if distinct else ''}{argument or '*'})"


def columns_text(columns: Iterable[tuple[str, exp.Expr]], meanings: Mapping[str, str] | None = None) -> str:
    """A select list as one would write it, without the engine's own columns."""
    shown = []
    for name, expression in columns:
        if not is_hidden(name):
            text = sql_text(expression, meanings)
            shown.append(name if text == name else f"{text} as {name}")
    return ", ".join(shown) or "nothing but its time"


def names_text(names: Iterable[str]) -> str:
    return ", ".join(name for name in names if not is_hidden(name)) or "nothing but its time"


def sql_text(expression: exp.Expr, meanings: Mapping[str, str] | None = None) -> str:
    """Spark SQL with quotes only around the names that need them, and hidden names replaced by what they mean."""
    plain = expression.copy()
    for identifier in plain.find_all(exp.Identifier):
        if _PLAIN.fullmatch(identifier.name) or identifier.name in (meanings or {}):
            identifier.set("quoted", False)
            identifier.set("this", (meanings or {}).get(identifier.name, identifier.name))
    return plain.sql("spark", identify=False)
