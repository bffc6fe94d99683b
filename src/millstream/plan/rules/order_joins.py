"""Join the streams of one FROM in the order that is expected to make the fewest partial results, or in the one that was chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from sqlglot import exp

from millstream.core.rates import Rates
from millstream.core.united import united
from millstream.errors import NameProblem
from millstream.plan import trees
from millstream.plan.catalog import Stream
from millstream.plan.nodes import Band, Filter, Join, Node, Project, Scan
from millstream.plan.rules.transform import bottom_up, columns_of
from millstream.plan.scope import column
from millstream.plan.trees import Tree

RatesOf = Callable[[Stream], Rates | None]

SECOND = 1_000_000
UNBOUNDED = 3600.0
"""Seconds that a stream is thought to reach where nothing bounds it."""
VALUES = 100.0
"""Different values that a column is thought to have where nothing is known."""
PASSING = 1 / 3
"""The share of tuples that a filter is thought to let pass."""


def order_joins(plan: Node, *, tree: str = trees.AUTO, rates_of: RatesOf = lambda stream: None) -> Node:
    if tree == trees.WRITTEN:
        return plan
    if tree not in trees.SHAPES:
        if "(" not in tree:
            raise NameProblem.unknown("join.tree", tree, trees.SHAPES)
        trees.parse_tree(tree, None)
    return bottom_up(plan, partial(_change, tree=tree, rates_of=rates_of))


def _change(node: Node, *, tree: str, rates_of: RatesOf) -> Node:
    """Joins that read each other are ordered together, from whoever reads the uppermost of them."""
    if _inner(node):
        return node
    inputs = tuple(_ordered(child, tree, rates_of) for child in node.inputs)
    return node if inputs == node.inputs else node.with_inputs(inputs)


def _ordered(node: Node, tree: str, rates_of: RatesOf) -> Node:
    if not _inner(node):
        return node
    assert isinstance(node, Join)
    whole = _Whole.of(node)
    if len(whole.leaves) < 3:
        return node
    chosen = whole.shape(tree, rates_of)
    return node if chosen == whole.written else whole.build(chosen)


def _inner(node: Node) -> bool:
    return isinstance(node, Join) and node.kind == "inner" and not node.static


@dataclass
class _Whole:
    """All inner joins that read each other, as one."""

    top: Join
    leaves: list[Node]
    bands: list[Band]
    conditions: list[exp.Expr]
    stamps: list[str]
    written: Tree = 0
    same: list[set[str]] = field(default_factory=list)

    @classmethod
    def of(cls, node: Join) -> _Whole:
        found = cls(node, [], [], [], [])
        found.written = found._collect(node)
        return found

    def _collect(self, node: Node) -> Tree:
        if not _inner(node):
            self.leaves.append(node)
            return len(self.leaves) - 1
        assert isinstance(node, Join)
        tree = self._collect(node.left), self._collect(node.right)
        self.bands += node.bands
        self.conditions += node.condition
        self.stamps.append(node.stamp)
        return tree

    @property
    def names(self) -> list[str]:
        return ["+".join(sorted({n.stream.name for n in leaf.walk() if isinstance(n, Scan)})) for leaf in self.leaves]

    def shape(self, tree: str, rates_of: RatesOf) -> Tree:
        order = range(len(self.leaves))
        if tree in (trees.LEFT_DEEP, trees.RIGHT_DEEP, trees.BUSHY):
            return {trees.LEFT_DEEP: trees.left_deep, trees.RIGHT_DEEP: trees.right_deep, trees.BUSHY: trees.bushy}[tree](order)
        if tree not in trees.SHAPES and trees.count(tree) == len(order):
            return trees.parse_tree(tree, self.names)
        return trees.cheapest(len(order), _Estimate(self, rates_of).made)

    # -- building -------------------------------------------------------------------------------------------------

    def build(self, tree: Tree) -> Node:
        """Each condition goes to the first join that has all its columns."""
        self.bands, self.conditions, self.stamps = list(self.bands), list(self.conditions), list(self.stamps)
        self.same = self._equal_columns()
        built = self._build(tree)
        assert isinstance(built, Join) and not self.bands and not self.conditions
        return built

    def _build(self, tree: Tree) -> Node:
        if isinstance(tree, int):
            return self.leaves[tree]
        left, right = self._build(tree[0]), self._build(tree[1])
        lefts, rights = set(left.schema.names), set(right.schema.names)
        bands = [band if band.left in lefts else _mirrored(band) for band in self.bands if {band.left, band.right} <= lefts | rights]
        conditions = [part for part in self.conditions if columns_of(part) <= lefts | rights]
        self.bands = [band for band in self.bands if not {band.left, band.right} <= lefts | rights]
        self.conditions = [part for part in self.conditions if part not in conditions]
        if not any(isinstance(part, exp.EQ) for part in conditions):
            conditions += self._implied(lefts, rights)
        return replace(self.top, left=left, right=right, bands=tuple(bands), condition=tuple(conditions), stamp=self.stamps.pop(0))

    def _equal_columns(self) -> list[set[str]]:
        """Columns of one type that the conditions make equal to each other."""
        kinds = {field.name: field.type for leaf in self.leaves for field in leaf.schema}
        found: list[set[str]] = []
        for part in self.conditions:
            sides = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
            pair = {side.name for side in sides if isinstance(side, exp.Column)}
            if len(pair) == 2 and len({kinds[name] for name in pair}) == 1:
                found = united(found, pair)
        return found

    def _implied(self, lefts: set[str], rights: set[str]) -> list[exp.Expr]:
        """What is equal to the same is equal: for inputs that no condition connects by itself."""
        pairs = [(min(names & lefts), min(names & rights)) for names in self.same if names & lefts and names & rights]
        return [exp.EQ(this=column(a), expression=column(b)) for a, b in pairs]


def _mirrored(band: Band) -> Band:
    low, high = (None if end is None else -end for end in (band.high, band.low))
    return Band(band.right, band.left, low, high)


class _Estimate:
    """How many results a join of some streams makes in a second; where rates are not known, what is joined without a condition."""

    def __init__(self, whole: _Whole, rates_of: RatesOf) -> None:
        self.bands = whole.bands
        self.owner = {name: place for place, leaf in enumerate(whole.leaves) for name in leaf.schema.names}
        self.equal = [frozenset(self.owner[name] for name in columns_of(part)) for part in whole.conditions if isinstance(part, exp.EQ)]
        self.rates = [_leaf_rates(leaf, rates_of) for leaf in whole.leaves]

    def made(self, chosen: frozenset[int]) -> float:
        rates = [rates for place, rates in enumerate(self.rates) if place in chosen and rates is not None]
        if len(rates) < len(chosen):
            return float(self._components(chosen) - 1)
        product, reach = 1.0, self._reach(chosen)
        for each in rates:
            product *= each.tuples * reach
        for owners in self.equal:
            if len(owners) > 1 and owners <= chosen:
                product /= max(self._values(place) for place in owners)
        return product / reach

    def _values(self, place: int) -> float:
        rates = self.rates[place]
        assert rates is not None
        return rates.values_until(60) or VALUES

    def _components(self, chosen: frozenset[int]) -> int:
        """Parts that no equality connects."""
        parts = [{place} for place in chosen]
        for owners in self.equal:
            if owners <= chosen:
                parts = united(parts, owners)
        return len(parts)

    def _reach(self, chosen: frozenset[int]) -> float:
        """Seconds within which all tuples of a result lie."""
        found = UNBOUNDED
        for band in self.bands:
            if {self.owner[band.left], self.owner[band.right]} <= chosen and band.low is not None and band.high is not None:
                found = min(found, max(band.high - band.low, 1) / SECOND)
        return found


def _leaf_rates(leaf: Node, rates_of: RatesOf) -> Rates | None:
    passing = 1.0
    while isinstance(leaf, (Filter, Project)):
        passing *= PASSING if isinstance(leaf, Filter) else 1.0
        leaf = leaf.input
    rates = rates_of(leaf.stream) if isinstance(leaf, Scan) else None
    return None if rates is None else replace(rates, tuples=rates.tuples * passing)
