"""Which windows each timestamp belongs to: window w covers [w * slide, w * slide + range)."""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Int64s, compiled, given


@compiled
def _tumble(ts: Int64s, slide: int) -> Int64s:
    wids = np.empty(len(ts), dtype=np.int64)
    for i in range(len(ts)):
        wids[i] = ts[i] // slide
    return wids


@compiled
def _count(ts: Int64s, width: int, slide: int) -> int:
    total = 0
    for i in range(len(ts)):
        offset = ts[i] % slide
        if offset < width:
            total += (width - 1 - offset) // slide + 1
    return total


@compiled
def _expand(ts: Int64s, width: int, slide: int, positions: Int64s, wids: Int64s) -> None:
    at = 0
    for i in range(len(ts)):
        offset = ts[i] % slide
        if offset < width:
            newest = ts[i] // slide
            for back in range((width - 1 - offset) // slide, -1, -1):
                positions[at] = i
                wids[at] = newest - back
                at += 1


def expand_windows(ts: Int64s, range: int, slide: int) -> tuple[Int64s, Int64s]:
    """A position and a window for each pair of a timestamp and a window that covers it, in order of both.

    A slide greater than the range leaves gaps, and timestamps in a gap have no window. Tumbling windows
    (range == slide) have exactly one each and take a path of their own.
    """
    if range <= 0 or slide <= 0:
        raise ValueError("range and slide must be positive")
    ts = given(ts, np.int64)
    if range == slide:
        return np.arange(len(ts), dtype=np.int64), _tumble(ts, slide)
    total = _count(ts, range, slide)
    positions, wids = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    _expand(ts, range, slide, positions, wids)
    return positions, wids
