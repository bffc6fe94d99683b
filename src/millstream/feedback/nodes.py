"""Nodes of the lattice of sub-tuples: the sets of components whose join values a consumer looks for together (paper 003, Figure 7)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class Node:
    """A sub-tuple is known by its values in `columns`, names of the consumer's input; `partners` are those they must be equal to.

    The empty one is in every tuple: nobody needs it as long as there is no partner at all (demand-driven operator execution).
    """

    columns: tuple[str, ...]
    partners: tuple[str, ...]
    level: int = 1
    """Its components."""


def lattice(keys: Mapping[tuple[str, str], Hashable], most: int) -> Iterator[Node]:
    """From the empty sub-tuple upwards, of at most so many components; `keys` tells the component of each (column, partner)."""
    components = dict.fromkeys(keys.values())
    for level in range(min(most, len(components)) + 1):
        for chosen in combinations(components, level):
            pairs = [pair for pair, component in keys.items() if component in chosen]
            yield Node(tuple(column for column, _ in pairs), tuple(partner for _, partner in pairs), level)
