"""What the latency benchmark measures, and how it shows it."""

from __future__ import annotations

import json

import pytest

from millstream.bench.latency import SIDES, Latency, Path, measure
from millstream.cli.latency import show


@pytest.mark.parametrize("side", SIDES)
def test_one_tuple_at_a_time_through_six_operators(side: str) -> None:
    path = Path(side)
    assert path.operators == 6
    for number in range(1, 11):
        assert 0 < path.send() < 60
        assert path.run.progress.written == {0: number}
    metrics = {o.name.split()[0]: o for o in path.run.report().operators}
    union = metrics["in-order" if side.startswith("in order") else "union"]
    assert (union.tuples_in, union.tuples_out, union.queue) == (10, 10, 0)
    assert (union.idle > 0) == side.startswith("in order")  # each tuple finds the other stream silent


def test_sides_take_turns_and_all_tuples_count() -> None:
    found = measure(tuples=20, rounds=4, warm=2)
    assert [each.name for each in found] == list(SIDES)
    assert all(len(each.rounds) == 4 and len(each.seconds) == 20 and each.operators == 6 for each in found)
    assert all(each.quietest <= each.late for each in found)


def test_figures() -> None:
    one = Latency("one", 6, [[0.001] * 99 + [0.1], [0.002] * 100])
    assert (one.quietest, one.median) == (0.001, pytest.approx(0.0015, abs=0.0006))
    assert 0.002 <= one.late <= 0.1


def test_a_table_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    sides = [Latency("latent time", 6, [[0.0001] * 10]), Latency("in order", 6, [[0.00025] * 10])]
    show(sides, as_json=False)
    shown = capsys.readouterr().out
    assert "2.50 x" in shown and "0.250" in shown and all(len(line) <= 80 for line in shown.splitlines()[:-1])
    show(sides, as_json=True)
    assert json.loads(capsys.readouterr().out)["sides"][1] == {
        "side": "in order", "operators": 6, "tuples": 10, "median_ms": 0.25, "p99_ms": 0.25, "quietest_ms": 0.25,
    }  # fmt: skip
