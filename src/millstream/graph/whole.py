"""The cut for one process: everything behind the sources is one stage."""

from __future__ import annotations

from millstream.graph.cut import INGEST, Crossing, Cut
from millstream.graph.graph import Graph


def whole(graph: Graph) -> Cut:
    """A stream crosses once, however many read it: behind its gate the stage has a buffer for all of them."""
    sources = [v.number for v in graph.sources]
    stage_of = _Zero(dict.fromkeys(sources, INGEST))
    crossings = tuple(Crossing(source, source, source, 0, None, INGEST, 0) for source in sorted(sources))
    return Cut(graph, stage_of, crossings)


class _Zero(dict[int, int]):
    """Zero for every number that is not in it."""

    def __missing__(self, number: int) -> int:
        return 0
