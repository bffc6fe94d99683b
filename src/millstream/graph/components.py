"""Components of a query graph: what shares no buffer can be scheduled apart."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.graph.graph import Vertex


class Components:
    """Which vertices are connected. One more costs no more when there are many; where some go, the rest is looked at anew."""

    def __init__(self, vertices: Iterable[Vertex] = ()) -> None:
        self._leader: dict[int, int] = {}
        self.add(vertices)

    def add(self, vertices: Iterable[Vertex]) -> None:
        for v in vertices:
            self._leader[v.number] = v.number
            for producer in v.inputs:
                first, second = sorted((self.of(v.number), self.of(producer)))
                self._leader[second] = first

    def of(self, number: int) -> int:
        """The first vertex of its component."""
        leader = self._leader
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number
