"""How a graph is executed: physical choices that never change an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from millstream.errors import NameProblem, TypeProblem
from millstream.graph.components import Components
from millstream.graph.graph import Graph
from millstream.graph.rules import STRATEGIES
from millstream.graph.table import Arc
from millstream.operators.edges import Deliver
from millstream.settings import SETTINGS, Settings

CHANGEABLE = tuple(f"execution.{name}" for name in ("strategy", "strategies", "limit", "promises", "breaks", "weights"))
"""What SET may change while a graph runs."""

_ARC = re.compile(r"#?(\d+)\s*->\s*#?(\d+)")


@dataclass(frozen=True)
class Execution:
    """What SET execution.* chooses for every executor of a run."""

    strategy: str = "depth-first"
    limit: int | None = None
    """Tuples that an operator takes before another may run; None for whole blocks."""
    arcs: bool = False
    """Whether promises go over arcs of their own, past the operators that do not need them, or through every operator."""
    strategies: tuple[tuple[str, str], ...] = ()
    """By the sink of a query, for the operators that work for it alone."""
    breaks: tuple[Arc, ...] = ()
    auto: bool = False
    """Whether break points are chosen from what operators cost and keep, beside those above."""
    weights: tuple[tuple[str, int], ...] = ()
    """By the sink of a query: the share of the time for its component of the graph."""
    trial: int = SETTINGS["feedback.trial"].default
    """Tuples that a join asks its consumers about before it is judged whether that is worth it; 0 asks always."""

    @classmethod
    def of(cls, settings: Settings) -> Execution:
        breaks = settings.get("execution.breaks")
        return cls(
            settings.get("execution.strategy"),
            settings.get("execution.limit") or None,
            settings.get("execution.promises") == "arcs",
            tuple((sink, _strategy(value)) for sink, value in _pairs("execution.strategies", settings)),
            () if breaks in ("none", "auto") else _arcs(breaks),
            breaks == "auto",
            tuple((sink, _weight(value)) for sink, value in _pairs("execution.weights", settings)),
            settings.get("feedback.trial"),
        )

    @property
    def text(self) -> str:
        """For people."""
        told = [self.strategy + "".join(f", {strategy} for {sink}" for sink, strategy in self.strategies)]
        if self.limit:
            told.append(f"{self.limit} tuple{'s' if self.limit > 1 else ''} at a time")
        if self.breaks or self.auto:
            by_hand = [f"#{producer} -> #{consumer}" for producer, consumer in self.breaks]
            told.append(f"break points {', '.join([*by_hand, *(['chosen while it runs'] if self.auto else [])])}")
        if self.arcs:
            told.append("promises over TSM arcs")
        if self.weights:
            told.append("weights " + ", ".join(f"{sink}: {weight}" for sink, weight in self.weights))
        return "; ".join(told)

    def check(self, graph: Graph, before: Execution | None = None) -> None:
        """Names and numbers must be those of the graph, but for what was said before of a query that has gone since."""
        before = before or Execution()
        if (self.strategies, self.weights, self.breaks) == (before.strategies, before.weights, before.breaks):
            return
        sinks = {v.config.sink.name.lower(): v.config.sink.name for v in graph.sinks if isinstance(v.config, Deliver)}
        told = ("execution.strategies", self.strategies, before.strategies), ("execution.weights", self.weights, before.weights)
        for what, names, known in told:
            for name, _ in set(names).difference(known):
                if name.lower() not in sinks:
                    raise NameProblem.unknown(f"query into a sink in {what}", name, sorted(sinks.values()))
        arcs = {(producer, v.number) for v in graph.vertices for producer in v.inputs}
        for producer, consumer in set(self.breaks).difference(before.breaks):
            if (producer, consumer) not in arcs:
                hint = "EXPLAIN GRAPH shows the numbers of operators and the buffers between them"
                raise NameProblem(f"there is no buffer from #{producer} to #{consumer} to break at", hint=hint)

    def breaks_of(self, graph: Graph) -> str:
        """`execution.breaks` as it is for a graph that some buffers have gone from."""
        if not self.breaks:
            return "auto" if self.auto else "none"
        arcs = {(producer, v.number) for v in graph.vertices for producer in v.inputs}
        left = [f"{producer} -> {consumer}" for producer, consumer in self.breaks if (producer, consumer) in arcs]
        return ", ".join(left) or "none"

    def by_operator(self, graph: Graph) -> dict[int, str]:
        """The strategies of operators that have one of their own."""
        if not self.strategies:
            return {}
        chosen = {sink.lower(): strategy for sink, strategy in self.strategies}
        leads: dict[int, set[str]] = {}
        for v in reversed(graph.vertices):
            if isinstance(v.config, Deliver):
                leads[v.number] = {v.config.sink.name.lower()}
            for producer in v.inputs:
                leads.setdefault(producer, set()).update(leads.get(v.number, ()))
        found = {}
        for number, sinks in leads.items():
            if len(sinks) == 1 and (sink := next(iter(sinks))) in chosen:
                found[number] = chosen[sink]
        return found

    def weights_of(self, graph: Graph, components: Components) -> dict[int, int]:
        """By component, where it is not 1: the sum over the sinks that are named."""
        if not self.weights:
            return {}
        weights = {sink.lower(): weight for sink, weight in self.weights}
        found: dict[int, dict[str, int]] = {}
        for v in graph.sinks:
            sink = v.config.sink.name.lower()  # type: ignore[attr-defined]
            if sink in weights:
                found.setdefault(components.of(v.number), {})[sink] = weights[sink]
        return {component: sum(sinks.values()) for component, sinks in found.items()}


def _pairs(name: str, settings: Settings) -> list[tuple[str, str]]:
    """`A: x, B: y`."""
    found = []
    for part in filter(None, (part.strip() for part in settings.get(name).split(","))):
        key, colon, value = (text.strip() for text in part.partition(":"))
        if not (key and colon and value):
            raise TypeProblem(f"{name} takes pairs such as 'Sink: value, Other: value', not {part!r}")
        found.append((key, value))
    return found


def _strategy(value: str) -> str:
    if value not in STRATEGIES:
        raise NameProblem.unknown("execution.strategies", value, STRATEGIES)
    return value


def _weight(value: str) -> int:
    if not value.isdigit() or not int(value):
        raise TypeProblem(f"execution.weights takes whole numbers of at least 1, not {value!r}")
    return int(value)


def _arcs(text: str) -> tuple[Arc, ...]:
    found = []
    for part in text.split(","):
        match = _ARC.fullmatch(part.strip())
        if match is None:
            raise TypeProblem(f"execution.breaks takes 'none', 'auto' or buffers such as '2 -> 3, 5 -> 6', not {text!r}")
        found.append((int(match[1]), int(match[2])))
    return tuple(found)
