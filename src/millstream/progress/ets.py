"""Enabling timestamps: what a silent source may promise when somebody waits for it."""

from __future__ import annotations

from millstream.core.types import MIN_TIME
from millstream.plan.catalog import Stream

LIVE = 3600 * 1_000_000
"""Microseconds. Tuples that are older than this when they arrive are history that is read again, not a live source."""


def enabling_timestamp(stream: Stream, mark: int, last_arrival: int, now: int, last_made: int, lag: int | None) -> int | None:
    """The mark that `stream` can promise at `now`, or None when it can not or may not promise more than before.

    External time with a declared skew: the mark its tuples have led to, plus the time that has passed since the last
    of them arrived, less the skew (paper 000, section 5). Without one we look at how old tuples have been when they
    arrived: never older than `lag` so far, so none older than that will come. That holds for sources that follow
    the clock only: where files land once a minute it makes no tuple late, and history that is read again gets none.
    Internal and latent time: the clock. A stream that has not shown a tuple yet knows nothing of its source's time.
    `last_made` is the last enabling timestamp.

    Three policies: on demand makes one whenever it is asked, every P at most one each P, none never does.
    """
    policy = stream.ets.policy
    if policy == "none":
        return None
    if stream.timestamp.kind != "external":
        made = now
    elif mark == MIN_TIME:
        return None
    elif stream.ets.skew is not None:
        made = mark + (now - last_arrival) - stream.ets.skew
    elif lag is None or lag > LIVE:
        return None
    else:
        made = now - lag
    if made <= max(mark, last_made):
        return None
    if policy == "every" and last_made > MIN_TIME and made < last_made + int(stream.ets.period or 0):
        return None
    return made
