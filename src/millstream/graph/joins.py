"""What a logical join becomes: its one axis, what lets its tuples go, and what was chosen for all joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from millstream.plan import nodes
from millstream.plan.nodes import Band, Node
from millstream.settings import Settings

AUTO = "auto"


@dataclass(frozen=True)
class Joins:
    """What was chosen for joins."""

    algorithm: str = AUTO
    feedback: bool = True
    indexed: bool = True
    tree: str = AUTO

    @classmethod
    def of(cls, settings: Settings) -> Joins:
        indexed = settings.get("join.index") == "hash"
        return cls(settings.get("join.algorithm"), settings.get("join.feedback"), indexed, settings.get("join.tree"))


def neighbours(plan: Node) -> Iterator[Node]:
    """Joins of streams before or behind another join, with nothing between but what passes tuples one by one."""
    for node in plan.walk():
        if isinstance(node, nodes.Join):
            found = [below for child in node.inputs if (below := _joined(child)) is not None]
            yield from found
            if found and not node.static:
                yield node


def _joined(node: Node) -> Node | None:
    while isinstance(node, (nodes.Filter, nodes.Project)) or (isinstance(node, nodes.Join) and node.static):
        node = node.inputs[0]
    return node if isinstance(node, nodes.Join) else None


def one_axis(node: nodes.Join) -> tuple[tuple[Band, ...], tuple[Band, ...], list[exp.Expr]]:
    """The bands over its axis; the others, which become conditions unless they follow from these."""
    chosen, others = (
        tuple(b for b in node.bands if (b.right == node.axis) is same) for same in (True, False)
    )
    latest = {side.time for side in (node.left, node.right) if side.time not in side.times}
    stated = [b for b in others if not {b.left, b.right} & latest]
    return chosen, others, [part for b in stated for part in b.conditions(node.pair_schema)]


def twins_of(keys: Sequence[exp.Expr], names: tuple[str, ...], heard: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Keys that are a column in a wider type, and that column."""
    return tuple((name, key.name) for key, name in zip(keys, names, strict=True) if key.name in heard and key.name != name)
