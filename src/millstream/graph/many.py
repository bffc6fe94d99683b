"""A tree of inner joins as one many-join: what its leaves are, which columns are equal, and what is left to compare."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from millstream.core.united import united
from millstream.plan import nodes
from millstream.plan.nodes import Band, Node
from millstream.plan.rules.transform import columns_of

Key = tuple[int, exp.Expr]
"""A leaf, and an expression over its columns."""


@dataclass
class Leaves:
    """What a tree of joins joins, in the order of the leaves."""

    top: nodes.Join
    joins: list[nodes.Join] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    keys: list[tuple[Key, Key]] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)
    conditions: list[exp.Expr] = field(default_factory=list)

    @property
    def owner(self) -> dict[str, int]:
        return {name: leaf for leaf, node in enumerate(self.nodes) for name in node.schema.names}

    @property
    def stamp(self) -> tuple[str, tuple[str, ...]] | None:
        if self.top.time != self.top.stamp:
            return None
        return self.top.stamp, tuple(str(node.time) for node in self.nodes)

    @property
    def output(self) -> tuple[str, ...]:
        return tuple(self.top.schema.names)

    def keys_of(self, leaf: int) -> list[exp.Expr]:
        """What tuples of one leaf are found by, each once."""
        return list(dict.fromkeys(key for pair in self.keys for place, key in pair if place == leaf))

    def same(self, column: list[dict[exp.Expr, str]]) -> tuple[tuple[tuple[int, str], ...], ...]:
        """Columns that are equal to each other, directly or by others; `column` names each leaf's keys."""
        classes: list[set[tuple[int, str]]] = []
        for (one, a), (other, b) in self.keys:
            classes = united(classes, [(one, column[one][a]), (other, column[other][b])])
        return tuple(tuple(sorted(found)) for found in classes)


def leaves_of(top: nodes.Join) -> Leaves | None:
    """None for a join of two, one that is not inner, or where some result has to be known by a time that a join on the way makes."""
    if not _inner(top):
        return None
    found = Leaves(top)
    _collect(top, found)
    known = found.owner
    if len(found.nodes) < 3 or not all(name in known or name == top.stamp for name in top.schema.names):
        return None
    for join in found.joins:
        for (a, b), typed in zip(join.keys, join.typed_keys, strict=True):
            owners = [{known.get(name, -1) for name in columns_of(side)} for side in (a, b)]
            if all(len(owner) == 1 and -1 not in owner for owner in owners):
                one, other = (owner.pop() for owner in owners)
                found.keys.append(((one, typed[0]), (other, typed[1])))
            else:
                found.conditions.append(exp.EQ(this=a, expression=b))
        found.conditions += join.condition
        found.bands += [band for band in join.bands if {band.left, band.right} <= known.keys()]
    return found if all(columns_of(part) <= known.keys() for part in found.conditions) else None


def _inner(node: nodes.Join) -> bool:
    return node.kind == "inner" and not node.static


def _collect(node: nodes.Join, found: Leaves) -> None:
    found.joins.append(node)
    for side in (node.left, node.right):
        if isinstance(side, nodes.Join) and _inner(side):
            _collect(side, found)
        else:
            found.nodes.append(side)
