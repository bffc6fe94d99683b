"""The cut for one process: everything behind the sources is one stage."""

from __future__ import annotations

from millstream.graph.cut import INGEST, Crossing, Cut, audits
from millstream.graph.graph import Graph
from millstream.operators.edges import Enter


def whole(graph: Graph) -> Cut:
    """Stateless operators right behind a source run where it is read, as on Spark; all others are stage 0."""
    stage_of: dict[int, int] = {}
    crossings: list[Crossing] = []
    for v in graph.vertices:
        ingest = isinstance(v.config, Enter) or (v.config.stateless and stage_of[v.inputs[0]] == INGEST)
        stage_of[v.number] = INGEST if ingest else 0
        for port, producer in enumerate(v.inputs):
            if stage_of[producer] != stage_of[v.number]:
                crossings.append(Crossing(len(crossings), producer, v.number, port, None, INGEST, 0))
    return Cut(graph, stage_of, (*crossings, *audits(graph, stage_of, len(crossings))))
