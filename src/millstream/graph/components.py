"""Components of a query graph: what shares no buffer can be scheduled apart."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.graph.graph import Vertex


def components(vertices: Sequence[Vertex]) -> list[set[int]]:
    """The connected parts, in the order of their first vertices."""
    leader = {v.number: v.number for v in vertices}

    def find(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    for v in vertices:
        for producer in v.inputs:
            first, second = sorted((find(v.number), find(producer)))
            leader[second] = first
    found: dict[int, set[int]] = {}
    for v in vertices:
        found.setdefault(find(v.number), set()).add(v.number)
    return list(found.values())
