"""A window without an index finds the same rows, and looks at all of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.state.row_window import RowWindow


def window(indexed: bool) -> RowWindow:
    made = RowWindow(pa.schema([("v", pa.int64())]), indexed=indexed)
    for first in range(0, 1000, 100):
        values = np.arange(first, first + 100)
        times = np.zeros(100, dtype=np.int64)
        made.insert(pa.record_batch({"v": pa.array(values)}), (values % 7).astype(np.uint64), times, times)
    return made


def test_without_an_index_every_row_is_looked_at() -> None:
    found, looked = {}, {}
    for indexed in (True, False):
        rows = window(indexed)
        rows.discard(np.arange(0, 600))
        zero = np.zeros(2, dtype=np.int64)
        pairs = list(rows.probe(np.array([3, 5], dtype=np.uint64), np.ones(2, dtype=np.bool_), zero, zero))
        values = [(probes, rows.take(at).column("v").to_pylist()) for probes, at in pairs]
        found[indexed] = sorted((int(p), v) for probes, those in values for p, v in zip(probes, those, strict=True))
        looked[indexed] = rows.probes
    assert found[True] == found[False] == sorted((p, v) for p, key in enumerate((3, 5)) for v in range(600, 1000) if v % 7 == key)
    assert looked[False] == 2 * 1000 > 5 * looked[True]
