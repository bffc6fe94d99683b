"""Bands that follow from others: if v is near a and s is near v, then s is near a."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from millstream.plan.nodes import Band, Filter, Join, Node

Most = dict[tuple[str, str], int]
"""For two times: how far the second is behind the first at most."""


def implied_bands(left: Node, right: Node, bands: Sequence[Band]) -> list[Band]:
    """Between times of both sides of an inner join that have no band by themselves."""
    most = _closed([*bands, *_below(left), *_below(right)])
    known = {(band.left, band.right) for band in bands}
    found = []
    for a in sorted(left.progressing):
        for b in sorted(right.progressing):
            high, low = most.get((a, b)), most.get((b, a))
            if (a, b) not in known and (high is not None or low is not None):
                found.append(Band(a, b, None if low is None else -low, high))
    return found


def _below(node: Node) -> Iterator[Band]:
    """Of the inner joins that a side consists of."""
    if isinstance(node, Filter):
        yield from _below(node.input)
    elif isinstance(node, Join) and node.kind == "inner" and not node.static:
        yield from (*node.bands, *_below(node.left), *_below(node.right))


def _closed(bands: Sequence[Band]) -> Most:
    """The shortest way from each time to each other one."""
    most: Most = {}
    for band in bands:
        for pair, end in (((band.left, band.right), band.high), ((band.right, band.left), None if band.low is None else -band.low)):
            if end is not None:
                most[pair] = min(most.get(pair, end), end)
    names = sorted({name for pair in most for name in pair})
    for via in names:
        for a in names:
            for b in names:
                first, second = most.get((a, via)), most.get((via, b))
                if a != b and first is not None and second is not None:
                    most[a, b] = min(most.get((a, b), first + second), first + second)
    return most
