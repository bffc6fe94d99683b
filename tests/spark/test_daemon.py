"""The daemon of Python workers."""

from __future__ import annotations

import gc
from unittest.mock import Mock

import pytest

from millstream.runtime.spark.daemon import SeldomGarbage


def test_workers_collect_garbage_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    collections = Mock()
    monkeypatch.setattr(gc, "collect", collections)
    seldom = SeldomGarbage(tasks=3)
    counts = []
    for _ in range(7):
        seldom.collect()
        counts.append(collections.call_count)
    assert counts == [0, 0, 1, 1, 1, 2, 2]
