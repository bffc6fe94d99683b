"""What a join keeps, for how long, and how much that is expected to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from millstream.core.rates import Rates
from millstream.graph.graph import Graph, Vertex
from millstream.operators.edges import Enter
from millstream.operators.in_order import InOrder
from millstream.operators.join import PUNCTUATED, WINDOW, Join
from millstream.operators.many_join import FIXED, ManyJoin
from millstream.operators.union import Union
from millstream.plan.catalog import Stream
from millstream.plan.cost import expected_state
from millstream.plan.explain import span
from millstream.plan.window import DAY

SECOND = 1_000_000

RatesOf = Callable[[Stream], Rates | None]


@dataclass(frozen=True)
class _Side:
    """One input of a join, as far as it can be traced to a stream."""

    name: str
    window: int | None
    """Microseconds for which a tuple is kept, by time."""
    closes: str | None
    """The key whose values it declares finished."""
    stream: Stream | None


def keeps(join: Join | ManyJoin, v: Vertex, graph: Graph, rates_of: RatesOf) -> list[str]:
    """Lines for EXPLAIN."""
    if isinstance(join, ManyJoin):
        return _many(join, v, graph)
    sides = [_side(join, v, graph, port) for port in (0, 1)]
    lines = [f"keeps: {'; '.join(_text(own, other) for own, other in (sides, sides[::-1]))}"]
    expected = _expected(sides, rates_of)
    return lines if expected is None else [*lines, expected]


def _many(join: ManyJoin, v: Vertex, graph: Graph) -> list[str]:
    """How long tuples wait for all others, and which inputs those of each one visit in turn."""
    names, windows = [], []
    for port, axis in enumerate(join.axes):
        stream = _traced(graph, v.inputs[port], frozenset([str(axis)]))
        names.append(stream.name if stream is not None else f"input {port}")
        others = [join.ends(str(axis), other) for other in range(len(join.inputs)) if other != port]
        unit = _unit(join.inputs[port].field(str(axis)).type)
        windows.append(unit * max(min(end for _, end in ends) for ends in others))
    kept = [f"tuples of {name} for {span(window)}" for name, window in zip(names, windows, strict=True)]
    paths = [f"{name} visits {', '.join(names[other] for other in join.path(port))}" for port, name in enumerate(names)]
    routes = "; ".join(paths) if join.routing == FIXED else "whichever makes the fewest partial results, found out as it runs"
    return [f"keeps: {'; '.join(kept)}", f"routes: {routes}"]


def _side(join: Join, v: Vertex, graph: Graph, port: int) -> _Side:
    window = None
    if join.algorithm != PUNCTUATED:
        ends = []
        for band in join.bands:
            end = band.high if port == 0 else None if band.low is None else -band.low
            if end is not None:
                ends.append(end * _unit(join.left.field(band.left).type))
        window = min(ends, default=None)
    keys = frozenset((join.left_keys, join.right_keys)[port])
    closed = _closed(graph, v.inputs[port], keys) if join.algorithm != WINDOW else None
    stream = _traced(graph, v.inputs[port], keys)
    name = stream.name if stream is not None else "the left input" if port == 0 else "the right input"
    return _Side(name, window, None if closed is None else ", ".join(closed), stream)


def _unit(kind: pa.DataType) -> int:
    """The microseconds in one step of a time of this type."""
    return DAY if pa.types.is_date(kind) else 1


def _traced(graph: Graph, number: int, columns: frozenset[str]) -> Stream | None:
    """The stream that columns come from as they are."""
    v = graph[number]
    while not isinstance(v.config, Enter):
        found = v.config.source_columns(columns) if len(v.inputs) == 1 else None
        if found is None:
            return None
        columns, v = frozenset(found.values()), graph[v.inputs[0]]
    return v.config.stream


def _closed(graph: Graph, number: int, columns: frozenset[str]) -> tuple[str, ...] | None:
    """Those of the columns whose values a vertex declares finished, by their names in the stream that does."""
    config, inputs = graph[number].config, graph[number].inputs
    if isinstance(config, InOrder):
        config = config.inner
    if isinstance(config, Enter):
        return next((c for c in config.stream.closings if set(c) <= columns - {config.stream.time}), None)
    if isinstance(config, Union):
        members = [_closed(graph, i, columns) for i in inputs]
        return None if None in members else members[0]
    if isinstance(config, Join):
        if config.algorithm == WINDOW:
            return None
        pairs = list(zip(config.left_keys, config.right_keys, strict=True))
        sides = (frozenset(own for own, other in pairs if {own, other} & columns), frozenset(b for a, b in pairs if {a, b} & columns))
        return next((c for i, names in zip(inputs, sides, strict=True) if (c := _closed(graph, i, names))), None)
    kept = {name: found[name] for name in columns if (found := config.source_columns([name])) is not None}
    return _closed(graph, inputs[0], frozenset(kept.values())) if len(inputs) == 1 else None


def _text(own: _Side, other: _Side) -> str:
    ways = [] if own.window is None else [f"for {span(own.window)}" if own.window > 0 else "until the other side has come so far"]
    if other.closes is not None:
        ways.append(f"until {other.name} has closed their {other.closes}")
    return f"tuples of {own.name} {', or '.join(ways)}" if ways else f"tuples of {own.name} to the end"


def _expected(sides: list[_Side], rates_of: RatesOf) -> str | None:
    """By the cost model of paper 002, where the streams say how fast they are."""
    rates = [None if side.stream is None else rates_of(side.stream) for side in sides]
    windows = [side.window for side in sides]
    if None in rates or None in windows:
        return None
    at = max(max(w for w in windows if w is not None) / SECOND, 1.0)
    plain, closed = [], []
    for own, other in ((0, 1), (1, 0)):
        mine, theirs, window = rates[own], rates[other], windows[own]
        assert mine is not None and theirs is not None and window is not None
        plain.append(expected_state(mine, Rates(theirs.tuples), window / SECOND, at))
        closed.append(expected_state(mine, theirs if sides[other].closes else Rates(theirs.tuples), window / SECOND, at))
    told = f"expected after {span(round(at * SECOND))}: {sum(closed):,.0f} tuples"
    return told if round(sum(closed)) == round(sum(plain)) else f"{told}, {sum(plain):,.0f} without punctuations"
