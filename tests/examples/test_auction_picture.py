"""The auction's picture shows what its story says."""

from __future__ import annotations

import importlib.util
import sys
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest

from tests.examples.kit import ROOT


@pytest.fixture
def picture(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """One day, looked at every half hour."""
    spec = importlib.util.spec_from_file_location("picture", ROOT / "auction" / "picture.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "picture", module)  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DAYS", 1)
    monkeypatch.setattr(module, "STEP", timedelta(minutes=30))
    return module


def test_answers_come_at_the_close_and_state_follows_open_auctions(picture: ModuleType, tmp_path: Path) -> None:
    house = picture.House.make()
    told, by_time = picture.play("auction.sql", house), picture.play("by_time.sql", house)
    assert set(told.out) == {a["item_id"] for a in house.auctions if house.final(a["item_id"]) <= told.times[-1]}
    assert all(timedelta(0) <= at - house.final(item) <= picture.STEP for item, at in told.out.items())
    assert all(at - house.auctions[item]["ts"] >= picture.WINDOW for item, at in by_time.out.items())
    assert all(held <= 2 * house.open_at(at) for at, held in zip(told.times, told.held, strict=True))
    assert max(by_time.held) > 3 * max(told.held)
    assert by_time.bids and all(told.bids[item] == bids for item, bids in by_time.bids.items())
    picture.draw(house, told, by_time, str(tmp_path / "auction.png"))
    assert (tmp_path / "auction.png").read_bytes().startswith(b"\x89PNG")
