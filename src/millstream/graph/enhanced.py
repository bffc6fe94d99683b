"""The enhanced query graph: arcs that take time stamps from one idle-waiting-prone operator to the next, past all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from millstream.core.block import empty_batch
from millstream.core.punctuation import Punctuation
from millstream.graph.graph import Graph, Vertex
from millstream.operators.edges import Deliver, Enter

Branches = Callable[[int], Iterable[tuple[int, int]]]
"""For a vertex the (consumer, port) pairs that read it."""


@dataclass(frozen=True)
class TsmArc:
    """From an operator that makes promises (or a source) to the next one that can use them (paper 001, section 4)."""

    passed: tuple[Vertex, ...]
    """The operators that it bypasses: none of them keeps state, so what they would do to a promise is known."""
    consumer: int
    port: int
    """-1 where the arc ends at an operator whose output leaves this part of the graph."""

    @cached_property
    def empty(self) -> pa.RecordBatch | None:
        """No tuples, of the kind that come at the end of the arc; None where it bypasses nothing."""
        return empty_batch(self.passed[-1].config.schema) if self.passed else None

    def translate(self, punctuations: Iterable[Punctuation]) -> tuple[Punctuation, ...]:
        """What a promise means at the end of the arc."""
        found = tuple(punctuations)
        for vertex in self.passed:
            found = tuple(new for old in found for new in vertex.config.translate(old))
        return found


def tsm_arcs(start: Iterable[tuple[int, int]], vertices: Mapping[int, Vertex], branches: Branches, outlets: set[int]) -> list[TsmArc]:
    """The arcs to all who can use what is promised to these (consumer, port) pairs."""
    return list(_follow(start, (), vertices, branches, outlets))


def enhanced(graph: Graph) -> list[tuple[int, TsmArc]]:
    """All arcs of a graph, each with the source or operator it begins at; they begin and end where promises are made.

    The paper has them between idle-waiting-prone operators. Ours end at every operator that keeps state: out of order, too, its
    results and its memory wait for promises.
    """
    vertices = {v.number: v for v in graph.vertices}

    def branches(number: int) -> list[tuple[int, int]]:
        return [(consumer, port) for consumer, port in graph.consumers[number] if not isinstance(vertices[consumer].config, Deliver)]

    makers = [v for v in graph.vertices if isinstance(v.config, Enter) or not (v.config.stateless or isinstance(v.config, Deliver))]
    return [(v.number, arc) for v in makers for arc in tsm_arcs(branches(v.number), vertices, branches, set())]


def _follow(
    pairs: Iterable[tuple[int, int]], passed: tuple[Vertex, ...], vertices: Mapping[int, Vertex], branches: Branches, outlets: set[int]
) -> Iterator[TsmArc]:
    for consumer, port in pairs:
        vertex = vertices[consumer]
        if not vertex.config.stateless:
            yield TsmArc(passed, consumer, port)
            continue
        beyond = (*passed, vertex)
        if consumer in outlets:
            yield TsmArc(beyond, consumer, -1)
        yield from _follow(branches(consumer), beyond, vertices, branches, outlets)
