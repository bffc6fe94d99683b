"""What a join is expected to keep (paper 002, section 5)."""

from __future__ import annotations

from millstream.core.rates import Rates


def window_join_state(rate: float, window: float, closed: float = 0.0, values: float = 0.0) -> float:
    """Equation 1: tuples of one side at a time when the other side has closed so many of the values that have occurred.

    Of `rate` tuples a second each stays for `window` seconds, unless the other side has closed its value: as likely as a value that
    has occurred is among the closed ones. Without punctuations that is `rate * window`.
    """
    purged = min(1.0, closed / values) if values > 0 else 0.0
    return rate * window * (1.0 - purged)


def expected_state(own: Rates, other: Rates, window: float, at: float) -> float:
    """Of one side of a join, so many seconds after the start: equation 1 with what is known of both streams."""
    return window_join_state(own.tuples, min(window, at), other.closings * at, own.values_until(at))
