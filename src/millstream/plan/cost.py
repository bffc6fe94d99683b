"""What a join is expected to keep (paper 002, section 5)."""

from __future__ import annotations


def window_join_state(rate: float, window: float, closed: float = 0.0, values: float = 0.0) -> float:
    """Equation 1: tuples of one side at a time when the other side has closed so many of the values that have occurred.

    Of `rate` tuples a second each stays for `window` seconds, unless the other side has closed its value: as likely as a value that
    has occurred is among the closed ones. Without punctuations that is `rate * window`.
    """
    purged = min(1.0, closed / values) if values > 0 else 0.0
    return rate * window * (1.0 - purged)
