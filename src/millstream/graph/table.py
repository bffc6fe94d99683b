"""The state table: for each operator of a graph its predecessors, its successors, and the rules by which execution moves on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from millstream.graph.graph import Vertex
from millstream.graph.rules import Strategy
from millstream.operators.edges import Deliver, Enter

Arc = tuple[int, int]
"""From a producer to a consumer."""


@dataclass(frozen=True)
class State:
    """One line of the table (paper 001, Tables 1 to 3)."""

    operator: int
    preds: tuple[int | None, ...]
    """By port; None where a source, another part of the graph, or a break point is before it."""
    succs: tuple[int, ...]
    """None of them where results leave, or behind which a break point is."""

    @property
    def source(self) -> bool:
        return all(pred is None for pred in self.preds)

    @property
    def sink(self) -> bool:
        return not self.succs

    @property
    def place(self) -> str:
        if self.source:
            return "Source-Sink" if self.sink else "Source"
        return "Sink" if self.sink else "NOS"


def states(vertices: Sequence[Vertex], breaks: Collection[Arc] = ()) -> dict[int, State]:
    """The table of the operators among these vertices, broken at some arcs."""
    inside = {v.number for v in vertices if not isinstance(v.config, (Enter, Deliver))}
    succs: dict[int, list[int]] = {number: [] for number in inside}
    preds: dict[int, tuple[int | None, ...]] = {}
    for v in vertices:
        if v.number not in inside:
            continue
        preds[v.number] = tuple(p if p in inside and (p, v.number) not in breaks else None for p in v.inputs)
        for producer in dict.fromkeys(preds[v.number]):
            if producer is not None:
                succs[producer].append(v.number)
    return {number: State(number, preds[number], tuple(succs[number])) for number in sorted(inside)}


def junctions(vertices: Sequence[Vertex]) -> set[Arc]:
    """The arcs at which paths meet or part: broken there, a graph falls into paths."""
    arcs = [(producer, v.number) for v in vertices for producer in v.inputs]
    out = Counter(producer for producer, _ in arcs)
    into = Counter(consumer for _, consumer in arcs)
    return {(producer, consumer) for producer, consumer in arcs if out[producer] > 1 or into[consumer] > 1}


def plan_states(vertices: Sequence[Vertex], strategies: Mapping[int, Strategy], breaks: Collection[Arc] = ()) -> dict[int, State]:
    """The table under these strategies: where one runs paths only, the graph is broken at its junctions."""
    paths = {number for number, strategy in strategies.items() if strategy.paths}
    broken = {arc for arc in junctions(vertices) if not paths.isdisjoint(arc)} if paths else set()
    return states(vertices, broken.union(breaks))


def table_text(table: Mapping[int, State], strategies: Mapping[int, Strategy]) -> list[str]:
    """As the paper prints it: a fork stands between a producer and its several consumers."""
    lines = [("state", "pred", "succ", "transition")]
    for state in table.values():
        preds = ", ".join("-" if p is None else _fork(table, p) for p in state.preds) or "-"
        name = strategies[state.operator].short
        if len(state.succs) > 1:
            lines.append((f"#{state.operator}", preds, f"fork #{state.operator}", f"{name}-{state.place}"))
            lines += [(f"fork #{state.operator}", f"#{state.operator}", f"#{succ}", f"{name}-Fork") for succ in state.succs]
        else:
            lines.append((f"#{state.operator}", preds, f"#{state.succs[0]}" if state.succs else "-", f"{name}-{state.place}"))
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _fork(table: Mapping[int, State], number: int) -> str:
    return f"fork #{number}" if len(table[number].succs) > 1 else f"#{number}"
