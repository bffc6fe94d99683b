"""One pass over the times of a block as it arrives: does any tuple need a closer look, and how far does the block lead."""

from __future__ import annotations

from millstream.kernels.compiled import Int64s, compiled, given


@compiled
def _follow(times: Int64s, mark: int, slack: int, first: int, last: int) -> tuple[bool, int, int, int]:
    low, at = last, -1
    for i in range(len(times)):
        t = times[i]
        if t < mark or t < first or t > last:
            return False, mark, low, at
        if t < low:
            low = t
        if slack >= 0 and t - slack > mark:
            mark, at = t - slack, i
    return True, mark, low, at


def follow(times: Int64s, mark: int, slack: int | None, first: int, last: int) -> tuple[int, int, int] | None:
    """The low-water mark after the block, its earliest time, and the tuple that moved the mark there or -1.

    None when a tuple is late or outside `first` to `last`.

    A tuple is late when its time lies before the mark that the tuples before it have led to; with slack None
    tuples move no mark.
    """
    fine, after, low, at = _follow(given(times, "int64"), mark, -1 if slack is None else slack, first, last)
    return (int(after), int(low), int(at)) if fine else None
