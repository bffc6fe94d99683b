"""Enabling timestamps: what a silent source may promise when somebody waits for it."""

from __future__ import annotations

from millstream.core.types import MIN_TIME
from millstream.plan.catalog import Stream


def enabling_timestamp(stream: Stream, mark: int, last_arrival: int, now: int, last_made: int) -> int | None:
    """The mark that `stream` can promise at `now`, or None when it can not or may not promise more than before.

    External time: the mark its tuples have led to, plus the time that has passed since the last of them arrived,
    less the declared skew (paper 000, section 5). Internal and latent time: the clock. A stream that has not
    shown a tuple yet knows nothing of its source's time. `last_made` is the last enabling timestamp.

    Three policies: on demand makes one whenever it is asked, every P at most one each P, none never does.
    """
    policy = stream.ets.policy
    if policy == "none":
        return None
    if stream.timestamp.kind != "external":
        made = now
    elif mark == MIN_TIME:
        return None
    else:
        made = mark + (now - last_arrival) - stream.ets.skew
    if made <= max(mark, last_made):
        return None
    if policy == "every" and last_made > MIN_TIME and made < last_made + int(stream.ets.period or 0):
        return None
    return made
