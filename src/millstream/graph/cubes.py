"""Joins of many streams as one: a tuple goes to every bucket where a result may need it (HyperCube shares), so that one shuffle is enough.

Columns that all results have equal are one dimension. A bucket is a point in the space of all dimensions; a tuple goes to the points
that have its values in the dimensions it knows, and any in the others. All tuples of a result meet in one point, and only there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from millstream.core.united import united
from millstream.graph.graph import Graph

Port = tuple[int, int]
"""A vertex and the number of its input."""


@dataclass(frozen=True)
class Cube:
    """For each stream, which of the dimensions it knows."""

    streams: tuple[tuple[bool, ...], ...]

    def shares(self, buckets: int) -> tuple[int, ...]:
        """In how many parts each dimension is cut, so that a bucket gets the least; their product is at most `buckets`."""
        return _shares(self, buckets)


@lru_cache(maxsize=256)
def _shares(cube: Cube, buckets: int) -> tuple[int, ...]:
    dimensions = len(cube.streams[0])

    def load(shares: tuple[int, ...]) -> tuple[float, int]:
        parts = [prod(share for share, known in zip(shares, stream, strict=True) if known) for stream in cube.streams]
        return sum(1 / part for part in parts), prod(shares)

    return min((shares for shares in _factors(dimensions, buckets)), key=load)


def _factors(dimensions: int, most: int) -> Iterator[tuple[int, ...]]:
    if not dimensions:
        yield ()
        return
    for share in range(most, 0, -1):
        yield from ((share, *rest) for rest in _factors(dimensions - 1, most // share))


@dataclass(frozen=True)
class Route:
    """Where the tuples of one stream go: the column that tells its place in each dimension, None where it goes to all."""

    cube: Cube
    columns: tuple[str | None, ...]

    def points(self, buckets: int) -> list[tuple[tuple[int, ...], int]]:
        """Each bucket in use, by its place in every dimension."""
        shares = self.cube.shares(buckets)
        return [(place, number) for number, place in enumerate(product(*(range(share) for share in shares)))]

    def speaks(self, bucket: int, buckets: int) -> bool:
        """True for one of the buckets that a tuple goes to: it tells of it for all."""
        place = next((place for place, number in self.points(buckets) if number == bucket), None)
        return place is not None and all(at == 0 for at, column in zip(place, self.columns, strict=True) if column is None)


@dataclass(frozen=True)
class Joined:
    """Joins that read each other with nothing but stateless operators between, and how their inputs are spread."""

    members: frozenset[int]
    keys: Mapping[Port, tuple[str, ...]]
    """With a column that all streams have in common: by which each input, from outside or from another member, is spread."""
    routes: Mapping[Port, Route]
    """Without one: how the inputs from outside are."""


def joined(graph: Graph) -> list[Joined]:
    """The joins of a graph that want to be together, as far as equal columns connect their inputs."""
    groups = [_Group(graph, members) for members in _members(graph)]
    return [found for group in groups if (found := group.spread()) is not None]


def _members(graph: Graph) -> list[frozenset[int]]:
    """Vertices that want to be together, with the stateless ones between them."""
    groups: dict[int, set[int]] = {}
    for v in graph.vertices:
        if not v.config.needs.together:
            continue
        group = groups.setdefault(v.number, {v.number})
        for number in v.inputs:
            found = way(graph, number)
            if found is not None:
                group |= groups[found[-1]] | set(found)
                groups.update((member, group) for member in group)
    different = {id(group): frozenset(group) for group in groups.values()}
    return [group for group in different.values() if sum(n not in group for member in group for n in graph[member].inputs) > 2]


def way(graph: Graph, number: int) -> list[int] | None:
    """From an input up to a vertex that wants to be together, if it alone reads what is on the way."""
    found = []
    while len(graph.consumers[number]) == 1:
        v = graph[number]
        found.append(number)
        if v.config.needs.together:
            return found
        if not v.config.stateless or len(v.inputs) != 1:
            return None
        number = v.inputs[0]
    return None


class _Group:
    def __init__(self, graph: Graph, members: frozenset[int]) -> None:
        self.graph = graph
        self.members = members
        ports = [(n, port) for n in sorted(members) for port in range(len(graph[n].inputs))]
        self.ports = [(n, port) for n, port in ports if graph[n].config.needs.together]
        self.outside = [(n, port) for n, port in ports if graph[n].inputs[port] not in members]

    def spread(self) -> Joined | None:
        classes = self._classes()
        for common in classes:
            columns = {port: self._column(port, common) for port in self.ports}
            if all(columns.values()):
                return Joined(self.members, {port: (str(name),) for port, name in columns.items()}, {})
        if not classes:
            return None
        known = [[min((name for at, name in c if at == port), default=None) for c in classes] for port in self.outside]
        cube = Cube(tuple(tuple(name is not None for name in names) for names in known))
        return Joined(self.members, {}, {port: Route(cube, tuple(names)) for port, names in zip(self.outside, known, strict=True)})

    def _classes(self) -> list[set[tuple[Port, str]]]:
        """Columns of inputs from outside that every result has equal, of more than one input."""
        classes: list[set[tuple[Port, str]]] = []
        for number in sorted(self.members):
            needs = self.graph[number].config.needs
            if not needs.together:
                continue
            for columns in needs.same:
                found = {traced for port, name in columns if (traced := self._traced((number, port), name)) is not None}
                if len(found) > 1:
                    classes = united(classes, found)
        return classes

    def _traced(self, port: Port, column: str) -> tuple[Port, str] | None:
        """The input from outside that a column comes from as it is."""
        number = self.graph[port[0]].inputs[port[1]]
        if number not in self.members:
            return port, column
        v = self.graph[number]
        if v.config.needs.together:
            side = next((side for side, n in enumerate(v.inputs) if column in self.graph[n].config.schema.names), None)
            return None if side is None else self._traced((number, side), column)
        found = v.config.source_columns([column])
        return None if found is None else self._traced((number, 0), found[column])

    def _column(self, port: Port, common: set[tuple[Port, str]]) -> str | None:
        """The name of a column at an input, from outside or not, if it is there."""
        names = self.graph[self.graph[port[0]].inputs[port[1]]].config.schema.names
        return next((name for name in names if self._traced(port, name) in common), None)
