"""Where the time goes, and how fast tuples come: what the metrics are made of."""

from __future__ import annotations

import pytest

from millstream.runtime.meter import Meter
from millstream.runtime.spent import OURS, Spent, batch_time


def test_the_parts_are_those_of_the_busiest_worker_of_each_stage() -> None:
    spent = [
        Spent(-1, "a", {"read": 1.0, "transfer": 0.1}),
        Spent(-1, "b", {"read": 0.4}),
        Spent(-1, "b", {"read": 0.9}),  # a second task in the same worker
        Spent(0, "a", {"work": 0.5, "state": 0.2, "transfer": 0.3}),
        Spent(0, "b", {"work": 0.6}),
    ]
    found = batch_time(4.0, spent, 0.25)
    assert found.parts == pytest.approx({"read": 1.3, "work": 0.5, "state": 0.2, "sink": 0.25, "transfer": 0.3, "spark": 1.45})
    assert sum(found.parts.values()) == pytest.approx(4.0)
    assert found.ours == pytest.approx(sum(found.parts[part] for part in OURS)) and found.share("spark") == pytest.approx(1.45 / 4)


def test_parts_never_add_up_to_more_than_there_was() -> None:
    found = batch_time(1.0, [Spent(0, "a", {"work": 3.0, "transfer": 1.0})], 0.0)
    assert found.parts["work"] == pytest.approx(0.75) and found.parts["spark"] == pytest.approx(0.0)
    assert batch_time(0.5, [], 0.0).parts["spark"] == 0.5


def test_rates_look_back_ten_seconds() -> None:
    meter = Meter()
    start = meter.seen[0][0]
    for second in range(1, 31):
        rate_in, rate_out = meter.rates(100 * second, second, start + second)
    assert (rate_in, rate_out) == pytest.approx((100, 1))
    for second in range(31, 46):
        rate_in, rate_out = meter.rates(3000, 30, start + second)
    assert (rate_in, rate_out) == (0, 0)  # silence
