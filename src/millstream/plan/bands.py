"""What bands say together: if v is near a and s is near v, then s is near a."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from millstream.plan.nodes import Band, Filter, Join, Node

FAR = 1 << 61
"""Beyond all times that there are: sums of distances stay within 64 bits."""


def reach(bands: Iterable[Band]) -> dict[tuple[str, str], int]:
    """How far the second of two times lies behind the first at most: by the bands, and what follows from them."""
    found: dict[tuple[str, str], int] = {}
    for band in bands:
        for pair, end in (((band.left, band.right), band.high), ((band.right, band.left), None if band.low is None else -band.low)):
            if end is not None:
                found[pair] = min(found.get(pair, end), end)
    times = dict.fromkeys(name for pair in found for name in pair)
    for middle in times:
        for one in times:
            for other in times:
                if one != other and (one, middle) in found and (middle, other) in found:
                    way = max(-FAR, min(FAR, found[one, middle] + found[middle, other]))
                    found[one, other] = min(found.get((one, other), way), way)
    return found


def merged_bands(bands: list[Band]) -> list[Band]:
    """One band per pair of columns: all of them must hold."""
    merged: dict[tuple[str, str], Band] = {}
    for band in bands:
        known = merged.get((band.left, band.right))
        if known is not None:
            lows = [b.low for b in (known, band) if b.low is not None]
            highs = [b.high for b in (known, band) if b.high is not None]
            band = Band(band.left, band.right, max(lows) if lows else None, min(highs) if highs else None)
        merged[band.left, band.right] = band
    return list(merged.values())


def implied_bands(left: Node, right: Node, bands: Sequence[Band]) -> list[Band]:
    """Bands between times of both sides of an inner join that have none by themselves."""
    most = reach([*bands, *_below(left), *_below(right)])
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
