"""What the options of a stream tell of its rates, before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping

from millstream.core.rates import Rates
from millstream.errors import MillstreamError
from millstream.io.generate.notation import ArrivalPattern
from millstream.io.options import Options


def rates_of(given: Mapping[str, str], *, closes: bool, unique: bool) -> Rates | None:
    """Known of streams that are made, not of those that come from outside; what is wrong with options is told when they are opened.

    `closes`: the stream declares values finished; `unique`: each tuple its own.
    """
    options = Options("stream", given, None)
    connector = given.get("connector")
    try:
        if connector == "generator":
            return _generated(options, closes)
        rate = options.number("rows_per_second") if connector == "rate" else None
    except MillstreamError:
        return None
    return None if rate is None else Rates(rate, values=rate, closings=rate if unique else 0.0)


def _generated(options: Options, closes: bool) -> Rates:
    pattern = ArrivalPattern.parse(options.required("pattern"))
    tuples = 1_000_000 / (options.duration("every") or 10_000)
    if pattern.domain is not None:
        return Rates(tuples, ahead=float(pattern.domain))
    ahead = 0 if pattern.match is None else options.integer("ahead", 10, 1, 1_000_000) or 0
    return Rates(tuples, tuples / pattern.size if closes else 0.0, tuples / pattern.size, float(ahead))
