"""What the benchmark of planning measures, and how it shows it."""

from __future__ import annotations

import json

import pytest

from millstream.bench import plan
from millstream.bench.plan import KINDS, Planning, measure
from millstream.cli.plan import show


def test_every_kind_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "FEW", 1)
    monkeypatch.setattr(plan, "MANY", 3)
    found = measure(repeats=1)
    assert [each.kind for each in found] == list(KINDS)
    assert all(0 < each.few < 60 and 0 < each.many < 60 for each in found)


def test_a_table_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = [Planning("case", 0.01, 0.1), Planning("joins", 0.1, 2.1), Planning("unions", 0.01, 0.16)]
    assert [each.within for each in found] == [True, False, False]
    show(found, as_json=False)
    shown = capsys.readouterr().out
    assert "10.0 x" in shown and "21.0 x" in shown and all(len(line) <= 80 for line in shown.splitlines())
    show(found, as_json=True)
    told = json.loads(capsys.readouterr().out)["kinds"][1]
    assert told == {"kind": "joins", "few_s": 0.1, "many_s": 2.1, "ratio": 21.0, "within": False}
