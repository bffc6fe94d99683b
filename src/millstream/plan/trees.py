"""Join trees: the shapes in which streams can be joined two at a time, and which is expected to make the least."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations

from millstream.errors import TypeProblem

Tree = int | tuple["Tree", "Tree"]
"""A stream by its place in FROM, or two trees to be joined."""

AUTO, WRITTEN, LEFT_DEEP, RIGHT_DEEP, BUSHY = "auto", "written", "left-deep", "right-deep", "bushy"
MANY, EDDY = "m-join", "eddy"
"""No tree at all: one operator that keeps no partial results, with fixed routes or with routes that change."""
SHAPES = (AUTO, WRITTEN, LEFT_DEEP, RIGHT_DEEP, BUSHY, MANY, EDDY)
_Found = tuple[float, int, Tree]
"""What a tree makes, how far it is from the one in the order of FROM, and the tree."""
LARGE = 10
"""Streams beyond which not every tree is looked at."""


def left_deep(order: Sequence[int]) -> Tree:
    tree: Tree = order[0]
    for leaf in order[1:]:
        tree = (tree, leaf)
    return tree


def right_deep(order: Sequence[int]) -> Tree:
    tree: Tree = order[-1]
    for leaf in reversed(order[:-1]):
        tree = (leaf, tree)
    return tree


def bushy(order: Sequence[int]) -> Tree:
    """Neighbours are joined, and then the results, as often as it takes (paper 003, Table II)."""
    trees: list[Tree] = list(order)
    while len(trees) > 1:
        pairs: list[Tree] = [(a, b) for a, b in zip(trees[::2], trees[1::2], strict=False)]
        trees = pairs + trees[2 * len(pairs) :]
    return trees[0]


_TOKEN = re.compile(r"[()]|[^\s(),]+")


def count(text: str) -> int:
    """The streams in a tree that is written so; joins of more or fewer are not meant."""
    return sum(token not in "()" for token in _TOKEN.findall(text))


def parse_tree(text: str, names: Sequence[str] | None) -> Tree:
    """`((A B) (C D))`: each stream of FROM once, by its name or, where that is not clear, its place counted from 1.

    Without names whatever stands there counts as a stream, to see whether it is a tree at all.
    """
    tokens = _TOKEN.findall(text)
    place, places = 0, iter(range(len(tokens)))

    def tree() -> Tree:
        nonlocal place
        if place == len(tokens):
            raise _wrong(text, "it ends too early", names)
        token, place = tokens[place], place + 1
        if token == ")":
            raise _wrong(text, "a join has two inputs", names)
        if token != "(":
            return next(places) if names is None else _leaf(text, token, names)
        both = tree(), tree()
        if place == len(tokens):
            raise _wrong(text, "a `)` is missing", names)
        if tokens[place] != ")":
            raise _wrong(text, "a join has two inputs, in parentheses", names)
        place += 1
        return both

    found = tree()
    if place < len(tokens):
        raise _wrong(text, "there is more behind its end", names)
    if names is not None and sorted(leaves(found)) != list(range(len(names))):
        raise _wrong(text, "it must have each stream once", names)
    return found


def _leaf(text: str, token: str, names: Sequence[str]) -> int:
    if token.isdigit() and 1 <= int(token) <= len(names):
        return int(token) - 1
    found = [i for i, name in enumerate(names) if name.lower() == token.lower()]
    if len(found) != 1:
        raise _wrong(text, f"`{token}` is {'more than one' if found else 'none'} of its streams", names)
    return found[0]


def _wrong(text: str, why: str, names: Sequence[str] | None) -> TypeProblem:
    if names is None:
        return TypeProblem(f"join.tree = '{text}' is not a tree: {why}", hint="write one such as '((A B) (C D))'")
    known = ", ".join(f"{n + 1} {name}" for n, name in enumerate(names))
    return TypeProblem(f"join.tree = '{text}' does not fit a join of {len(names)} streams: {why}", hint=f"the streams are {known}")


def leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [*leaves(tree[0]), *leaves(tree[1])]


def shown(tree: Tree, names: Sequence[str]) -> str:
    return names[tree] if isinstance(tree, int) else f"({shown(tree[0], names)} {shown(tree[1], names)})"


def cheapest(count: int, made: Callable[[frozenset[int]], float], *, most: int = LARGE) -> Tree:
    """The tree whose partial results are the fewest; `made` tells how many a join of some of the streams makes.

    Of trees that make as many the one nearest to left-deep in the order of FROM. Beyond `most` streams only left-deep trees are
    looked at, one more stream at a time.
    """
    if count > most:
        return _greedy(count, made)
    best: dict[frozenset[int], _Found] = {frozenset([i]): (0.0, 0, i) for i in range(count)}
    for size in range(2, count + 1):
        for chosen in combinations(range(count), size):
            whole = frozenset(chosen)
            ways = [(best[frozenset(part)], best[whole.difference(part)]) for part in _parts(chosen)]
            cost, away, tree = min((_joined(*way) for way in ways), key=lambda found: found[:2])
            best[whole] = (cost + (made(whole) if size < count else 0.0), away, tree)
    return best[frozenset(range(count))][2]


def _parts(chosen: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Those for the left side: of two parts the one with the first stream."""
    first, rest = chosen[0], chosen[1:]
    return [(first, *part) for size in range(len(rest)) for part in combinations(rest, size)]


def _joined(left: _Found, right: _Found) -> _Found:
    """`away` counts what is not as in a left-deep tree, and then what is not in the order of FROM."""
    (cost, away, a), (other, otherwise, b) = left, right
    late = int(b < max(leaves(a))) if isinstance(b, int) else 100
    return cost + other, away + otherwise + late, (a, b)


def _greedy(count: int, made: Callable[[frozenset[int]], float]) -> Tree:
    order = [0]
    while len(order) < count:
        order.append(min((i for i in range(count) if i not in order), key=lambda i: (made(frozenset([*order, i])), i)))
    return left_deep(order)
