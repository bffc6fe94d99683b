"""Cut a query graph into stages: a stage ends where the next operator needs its tuples by another key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from millstream.graph.cubes import Joined, Route, joined
from millstream.graph.graph import Graph, Vertex
from millstream.operators.contract import Keys
from millstream.operators.edges import Deliver, Enter

INGEST = -1
"""The stage number of what runs where a source is read."""


@dataclass(frozen=True)
class Crossing:
    """An arc from one stage to a later one: its tuples are spread over the later stage's buckets by `keys`."""

    number: int
    producer: int
    consumer: int | None
    """None when only the gate is meant, which tells of late tuples."""
    port: int
    keys: Keys
    from_stage: int
    to_stage: int
    route: Route | None = None
    """In place of keys: for the inputs of joins of many streams."""


@dataclass(frozen=True)
class Cut:
    """Which stage each vertex belongs to, and the arcs that cross from stage to stage."""

    graph: Graph
    stage_of: dict[int, int]
    crossings: tuple[Crossing, ...] = field(default=())
    wanted: dict[int, list[Keys]] = field(default_factory=dict)
    """The key by which each port wants its tuples."""
    parts: dict[int, list[tuple[str, ...]]] = field(default_factory=dict)
    """The column lists by which the output of each vertex is spread."""
    next: int = 0
    """The number of the next crossing: those of dropped ones are not used again."""

    @cached_property
    def stages(self) -> int:
        return 1 + max(self.stage_of.values())

    def members(self, stage: int) -> list[Vertex]:
        return [v for v in self.graph.vertices if self.stage_of[v.number] == stage]

    def into(self, stage: int) -> list[Crossing]:
        return [c for c in self.crossings if c.to_stage == stage]

    def out_of(self, vertex: int) -> list[Crossing]:
        return [c for c in self.crossings if c.producer == vertex]

    def path(self, vertex: int) -> list[Vertex]:
        """From a source to a vertex of the ingest part: one operator after the other."""
        found = [self.graph[vertex]]
        while found[-1].inputs:
            found.append(self.graph[found[-1].inputs[0]])
        return found[::-1]


def cut(graph: Graph, before: Cut | None = None) -> Cut:
    """With a cut of the graph as it was before some vertices came and others went: what stayed is cut as it was."""
    old = before or Cut(graph, {})
    groups = joined(graph)
    wanted = _wanted(graph, groups) | {number: keys for number, keys in old.wanted.items() if number in graph.by_number}
    routes = {port: route for group in groups for port, route in group.routes.items()}
    stage_of: dict[int, int] = {}
    parts: dict[int, list[tuple[str, ...]]] = {}
    for v in _in_turn(graph, groups):
        if v.number in old.stage_of:
            stage_of[v.number], parts[v.number] = old.stage_of[v.number], old.parts[v.number]
        elif isinstance(v.config, Enter) or (v.config.stateless and stage_of[v.inputs[0]] == INGEST):
            stage_of[v.number], parts[v.number] = INGEST, []
        elif (group := next((g for g in groups if g.routes and v.number in g.members), None)) is not None:
            stage_of[v.number], parts[v.number] = 1 + max(stage_of[graph[n].inputs[port]] for n, port in group.routes), []
        else:
            stage_of[v.number] = _stage(v, wanted, stage_of, parts)
            parts[v.number] = _partitions(v, graph, wanted, stage_of, parts)
    crossings = [c for c in old.crossings if c.producer in graph.by_number and (c.consumer is None or c.consumer in graph.by_number)]
    known = {(c.producer, c.consumer, c.port) for c in crossings}
    number = old.next
    for v in graph.vertices:
        for port, producer in enumerate(v.inputs):
            if stage_of[producer] != stage_of[v.number] and (producer, v.number, port) not in known:
                keys, route = wanted[v.number][port], routes.get((v.number, port))
                crossings.append(Crossing(number, producer, v.number, port, keys, stage_of[producer], stage_of[v.number], route))
                number += 1
    for source in audits(graph, stage_of):
        if (source, None, 0) not in known:
            crossings.append(Crossing(number, source, None, 0, None, INGEST, 0))
            number += 1
    return Cut(graph, stage_of, tuple(crossings), wanted, parts, number)


def _in_turn(graph: Graph, groups: Sequence[Joined]) -> Iterator[Vertex]:
    """Vertices behind their inputs; joins of many streams as one, behind all that they read."""
    group_of = {member: group for group in groups if group.routes for member in group.members}
    done: set[int] = set()

    def visit(number: int) -> Iterator[Vertex]:
        if number in done:
            return
        group = group_of.get(number)
        members = sorted(group.members) if group is not None else [number]
        for member in members:
            for before in graph[member].inputs:
                if before not in members:
                    yield from visit(before)
        done.update(members)
        yield from (graph[member] for member in members)

    for v in graph.vertices:
        yield from visit(v.number)


def audits(graph: Graph, stage_of: dict[int, int]) -> Iterator[int]:
    """The sources whose values can be closed and whose tuples are filtered before every gate: they need a crossing for a gate alone.

    A gate tells that a tuple is late when its value was closed in an earlier unit. Tuples that the queries throw away before
    that must be told of too, whatever the units are.
    """
    for v in graph.sources:
        reading = [w for w in graph.vertices if stage_of[w.number] == INGEST and _kept(w, graph) == v.number]
        seen = any(stage_of[consumer] != INGEST for w in reading for consumer, _ in graph.consumers[w.number])
        if v.config.stream.closed_columns and not seen:  # type: ignore[attr-defined]
            yield v.number


def _kept(v: Vertex, graph: Graph) -> int | None:
    """The source whose every tuple comes out of this vertex of the ingest part."""
    while v.inputs:
        if not v.config.keeps_all:
            return None
        v = graph[v.inputs[0]]
    return v.number


def _wanted(graph: Graph, groups: Sequence[Joined]) -> dict[int, list[Keys]]:
    """The key by which each port wants its tuples; who does not care wants what its only consumers want."""
    wanted: dict[int, list[Keys]] = {}
    common = {port: keys for group in groups for port, keys in group.keys.items()}
    for v in reversed(graph.vertices):
        own = [common.get((v.number, port), keys) for port, keys in enumerate(v.config.needs.keys)]
        if all(k is None for k in own) and not isinstance(v.config, Deliver):
            later = {wanted[consumer][port] for consumer, port in graph.consumers[v.number]}
            if len(later) == 1 and (keys := later.pop()) is not None:
                own = _back(v, keys)
        wanted[v.number] = own
    return wanted


def _back(v: Vertex, keys: tuple[str, ...]) -> list[Keys]:
    if len(v.inputs) != 1:
        return [keys] * len(v.inputs)  # a union: the same columns on every input
    names = v.config.source_columns(keys)
    return [None if names is None else tuple(names[k] for k in keys)]


def _stage(v: Vertex, wanted: dict[int, list[Keys]], stage_of: dict[int, int], parts: dict[int, list[tuple[str, ...]]]) -> int:
    stages = [0]
    for port, producer in enumerate(v.inputs):
        keys = wanted[v.number][port]
        fits = keys is None or any(_fits(p, keys, len(v.inputs)) for p in parts[producer])
        stages.append(stage_of[producer] + (0 if fits and stage_of[producer] != INGEST else 1))
    return max(stages)


def _fits(part: tuple[str, ...], keys: tuple[str, ...], ports: int) -> bool:
    """Tuples spread by fewer of the columns still meet; two inputs must be spread by exactly the same ones."""
    return part == keys if ports > 1 else set(part) <= set(keys)


def _partitions(
    v: Vertex, graph: Graph, wanted: dict[int, list[Keys]], stage_of: dict[int, int], parts: dict[int, list[tuple[str, ...]]]
) -> list[tuple[str, ...]]:
    """The column lists by which the output of a vertex is spread over the buckets."""
    found: list[list[tuple[str, ...]]] = []
    for port, producer in enumerate(v.inputs):
        keys = wanted[v.number][port]
        if stage_of[producer] != stage_of[v.number]:
            found.append([] if keys is None else [keys])
        else:
            found.append([p for p in parts[producer] if keys is None or _fits(p, keys, len(v.inputs))])
    if v.config.stateless:
        back = v.config
        names: dict[str, str] = {}
        for name in back.schema.names:
            source = back.source_columns([name])
            if source is not None:
                names.setdefault(source[name], name)
        return [tuple(names[c] for c in p) for p in found[0] if all(c in names for c in p)]
    kept = [[p for p in alternatives if all(c in v.config.schema.names for c in p)] for alternatives in found]
    if v.config.needs.keys[0] is None:  # a union is spread by what spreads all of its inputs
        return [p for p in kept[0] if all(p in others for others in kept[1:])]
    spreading = v.config.needs.spreading
    return [p for port, alternatives in enumerate(kept) if spreading is None or port in spreading for p in alternatives]
