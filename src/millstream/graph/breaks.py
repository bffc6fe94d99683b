"""Break points that let memory fall fastest: a path is cut where the next operators reduce it more slowly (Chain)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from millstream.graph.table import Arc, State

LEAST = 1e-9
"""The cost of an operator that was too fast to be measured."""


@dataclass(frozen=True)
class Fragment:
    """Operators that run one after the other; `slope` is the memory that they free by cost."""

    operators: tuple[int, ...]
    slope: float


def paths(table: Mapping[int, State]) -> list[list[int]]:
    """The operators of a table that is broken nowhere, as paths without forks and meetings."""
    found = []
    for number, state in table.items():
        before = [p for p in state.preds if p is not None]
        if len(before) == 1 and len(state.preds) == 1 and len(table[before[0]].succs) == 1:
            continue  # within a path
        path = [number]
        while len(succs := table[path[-1]].succs) == 1 and len(table[succs[0]].preds) == 1:
            path.append(succs[0])
        found.append(path)
    return found


def fragments(path: Sequence[int], selectivity: Callable[[int], float], cost: Callable[[int], float], *, leaves: bool) -> list[Fragment]:
    """Along the lower envelope of the path's progress: each fragment frees memory faster than any other that begins where it does.

    What comes out of a path that `leaves` is in nobody's memory any more.
    """
    found = []
    at = 0
    while at < len(path):
        best, slope = at + 1, float("-inf")
        left, spent = 1.0, 0.0
        for end in range(at, len(path)):
            spent += left * max(cost(path[end]), LEAST)
            left *= selectivity(path[end])
            freed = 1.0 if leaves and end == len(path) - 1 else 1.0 - left
            if freed / spent > slope:
                best, slope = end + 1, freed / spent
        found.append(Fragment(tuple(path[at:best]), slope))
        at = best
    return found


def break_points(table: Mapping[int, State], slopes: Mapping[int, float]) -> set[Arc]:
    """Where execution would go on into operators that free memory more slowly."""
    return {(number, succ) for number, state in table.items() for succ in state.succs if slopes[succ] < slopes[number]}
