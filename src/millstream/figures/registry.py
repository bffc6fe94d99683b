"""The figures that `millstream figures` knows, by paper."""

from __future__ import annotations

from collections.abc import Callable

from millstream.figures import ets, feedback, punctuated_join, query_graph
from millstream.figures.report import Options, Report

FIGURES: dict[str, Callable[[Options], Report]] = {
    "ets": ets.figures,
    "query-graph": query_graph.figures,
    "punctuated-join": punctuated_join.figures,
    "feedback": feedback.figures,
}
