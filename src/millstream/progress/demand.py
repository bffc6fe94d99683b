"""Demand: what operators wait for, told as marks of the streams that could bring it about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from millstream.core.types import MAX_TIME
from millstream.graph.graph import Graph
from millstream.operators.contract import Due

Need = Mapping[str, int]
"""For each stream the mark it must reach; all of them together let something go. MAX_TIME: only its end will do."""

Waiting = tuple[int, Due]
"""A vertex of the graph, and a mark on one of its inputs that it waits for."""


class Demand:
    """Follows what operators wait for against the flow, to the sources (paper 000, section 3.2: backtracking).

    What leads to a promise is a property of the configured operators alone (`Config.ways`), so it is found without their state, across
    stages and buckets alike. We depart from the paper in asking all sources at once, not the one whose buffer is empty.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._back = lru_cache(maxsize=4096)(self._behind)

    def needs(self, waiting: Iterable[Waiting]) -> list[Need]:
        """Of operators that are there: one that has gone waits for nothing."""
        return [self._need(number, due) for number, due in waiting if number in self.graph.by_number]

    def _need(self, number: int, due: Due) -> Need:
        if due.port < 0:
            return self._back(number, due.attribute, due.mark)
        return self._back(self.graph[number].inputs[due.port], due.attribute, due.mark)

    def _behind(self, number: int, attribute: str, mark: int) -> dict[str, int]:
        """What leads to the promise `attribute < mark` on the output of a vertex: the way that is complete soonest."""
        vertex = self.graph[number]
        if not vertex.inputs:
            stream = vertex.config.stream  # type: ignore[attr-defined]
            return {stream.name: mark if attribute == stream.time else MAX_TIME}
        if mark == MAX_TIME or not (ways := vertex.config.ways(attribute, mark)):
            return _together(self._behind(producer, "", MAX_TIME) for producer in vertex.inputs)
        if len(ways) == len(ways[0]) == 1:
            (due,) = ways[0]
            return self._behind(vertex.inputs[due.port], due.attribute, due.mark)
        found = [_together(self._behind(vertex.inputs[due.port], due.attribute, due.mark) for due in way) for way in ways]
        return min(found, key=lambda need: max(need.values()))


def _together(needs: Iterable[Need]) -> dict[str, int]:
    """All of them at once: a stream that several ask must go as far as the furthest."""
    found: dict[str, int] = {}
    for need in needs:
        for stream, mark in need.items():
            found[stream] = max(found.get(stream, mark), mark)
    return found


@dataclass(frozen=True)
class Outlook:
    """How far a stream has promised to be, and how far it could."""

    mark: int
    could: int
    """The enabling timestamp it could make now; no more than the mark when it can make none."""
    moves: bool = False
    """New tuples are about to come from it: nobody knows yet how far they lead."""


def called(needs: Iterable[Need], outlooks: Mapping[str, Outlook]) -> set[str]:
    """The streams whose enabling timestamps let something go now: those that are behind where all others are or could be.

    A stream that could promise enough alone is not asked while another is still behind: it would promise early, for nothing.
    """
    asked: set[str] = set()
    for need in needs:
        behind = {name: mark for name, mark in need.items() if outlooks[name].mark < mark and not outlooks[name].moves}
        if all(outlooks[name].could >= mark for name, mark in behind.items()):
            asked |= behind.keys()
    return asked
