"""A query graph is a list of operator configurations in topological order, joined by arcs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from millstream.operators.contract import Config
from millstream.operators.edges import Deliver, Enter


@dataclass(frozen=True)
class Vertex:
    """One operator of the graph, and the vertices whose output it reads, one a port."""

    number: int
    config: Config
    inputs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Vertices in topological order: every input of a vertex has a smaller number. The number of one that was dropped is not used again."""

    vertices: tuple[Vertex, ...]

    def __getitem__(self, number: int) -> Vertex:
        return self.by_number[number]

    @cached_property
    def by_number(self) -> dict[int, Vertex]:
        return {v.number: v for v in self.vertices}

    @cached_property
    def consumers(self) -> dict[int, list[tuple[int, int]]]:
        """For each vertex the (vertex, port) pairs that read it; several make a fork."""
        found: dict[int, list[tuple[int, int]]] = {v.number: [] for v in self.vertices}
        for vertex in self.vertices:
            for port, producer in enumerate(vertex.inputs):
                found[producer].append((vertex.number, port))
        return found

    @cached_property
    def sources(self) -> list[Vertex]:
        return [v for v in self.vertices if isinstance(v.config, Enter)]

    @cached_property
    def sinks(self) -> list[Vertex]:
        return [v for v in self.vertices if isinstance(v.config, Deliver)]
