"""The state table: for each operator of a graph its predecessors, its successors, and the rules by which execution moves on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

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


class StateTable:
    """The lines of all operators of a part of a graph. It changes with the graph: one operator costs no more when there are many."""

    def __init__(
        self, vertices: Iterable[Vertex] = (), strategies: Mapping[int, Strategy] = MappingProxyType({}), breaks: Iterable[Arc] = ()
    ) -> None:
        self.lines: dict[int, State] = {}
        self.strategies = dict(strategies)
        self.breaks = set(breaks)
        self._inputs: dict[int, tuple[int, ...]] = {}
        self._readers: dict[int, list[int]] = {}
        for v in vertices:
            self._add(v)
        self._update(self._inputs)

    def __getitem__(self, operator: int) -> State:
        return self.lines[operator]

    def __contains__(self, operator: int) -> bool:
        return operator in self.lines

    def plan(self, strategies: Mapping[int, Strategy], breaks: Iterable[Arc]) -> None:
        """Other strategies, other break points: every line may be another."""
        self.strategies, self.breaks = dict(strategies), set(breaks)
        self._update(self._inputs)

    def change(self, gone: Iterable[Vertex], fresh: Sequence[Vertex], strategies: Mapping[int, Strategy]) -> set[int]:
        """Operators that go and come; tells whose lines are new."""
        touched: set[int] = set()
        for v in gone:
            touched.update(v.inputs)
            for producer in dict.fromkeys(v.inputs):
                self._readers[producer].remove(v.number)
            for known in (self._inputs, self._readers, self.lines, self.strategies):
                known.pop(v.number, None)
        self.strategies.update(strategies)
        for v in fresh:
            touched |= {v.number, *v.inputs}
            self._add(v)
        if not any(strategy.paths for strategy in {self.strategies.get(number) for number in touched} if strategy is not None):
            return self._update(touched)
        near = {reader for number in touched for reader in self._readers.get(number, ()) if self._paths(number, reader)}
        return self._update(touched | near)

    def _add(self, v: Vertex) -> None:
        if isinstance(v.config, Enter):
            return
        for producer in dict.fromkeys(v.inputs):
            self._readers.setdefault(producer, []).append(v.number)
        if not isinstance(v.config, Deliver):
            self._inputs[v.number] = v.inputs

    def _update(self, operators: Iterable[int]) -> set[int]:
        inside = self._inputs
        found = {number for number in operators if number in inside}
        broken = bool(self.breaks) or any(strategy.paths for strategy in set(self.strategies.values()))
        for number in sorted(found):
            preds = tuple(p if p in inside and not self.broken(p, number) else None for p in inside[number])
            readers = [c for c in self._readers.get(number, ()) if c in inside]
            if broken:
                readers = [c for c in readers if not self.broken(number, c)]
            self.lines[number] = State(number, preds, tuple(readers))
        return found

    def _paths(self, producer: int, consumer: int) -> bool:
        return any(n in self.strategies and self.strategies[n].paths for n in (producer, consumer))

    def broken(self, producer: int, consumer: int) -> bool:
        """At a break point, and where a strategy runs paths only, at every arc at which paths meet or part."""
        if (producer, consumer) in self.breaks:
            return True
        return self._paths(producer, consumer) and (len(self._readers[producer]) > 1 or len(self._inputs[consumer]) > 1)


def table_text(table: StateTable) -> list[str]:
    """As the paper prints it: a fork stands between a producer and its several consumers."""
    lines = [("state", "pred", "succ", "transition")]
    for _, state in sorted(table.lines.items()):
        preds = ", ".join("-" if p is None else _fork(table, p) for p in state.preds) or "-"
        name = table.strategies[state.operator].short
        if len(state.succs) > 1:
            lines.append((f"#{state.operator}", preds, f"fork #{state.operator}", f"{name}-{state.place}"))
            lines += [(f"fork #{state.operator}", f"#{state.operator}", f"#{succ}", f"{name}-Fork") for succ in state.succs]
        else:
            lines.append((f"#{state.operator}", preds, f"#{state.succs[0]}" if state.succs else "-", f"{name}-{state.place}"))
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _fork(table: StateTable, number: int) -> str:
    return f"fork #{number}" if len(table[number].succs) > 1 else f"#{number}"
