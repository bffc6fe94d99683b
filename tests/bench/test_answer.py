"""The checksum by which the benchmarks compare answers."""

from __future__ import annotations

import pyarrow as pa

from millstream.bench.answer import digest

TABLE = pa.table({"k": [1, 2, 2], "ts": pa.array([10, 20, 30], pa.timestamp("us"))})


def test_neither_order_nor_the_unit_of_time_matters() -> None:
    other = TABLE.take([2, 0, 1]).set_column(1, "ts", TABLE.take([2, 0, 1])["ts"].cast(pa.timestamp("ns", "UTC")))
    assert digest(other) == digest(TABLE)


def test_every_value_and_the_number_of_rows_matter() -> None:
    others = [
        TABLE.slice(1),
        pa.concat_tables([TABLE, TABLE.slice(2)]),
        TABLE.set_column(0, "k", pa.array([1, 2, 3])),
        TABLE.set_column(0, "k", pa.array([2, 1, 2])),
        TABLE.set_column(1, "ts", pa.array([10, 20, 31], pa.timestamp("us"))),
    ]
    assert len({str(digest(table)) for table in [TABLE, *others]}) == 6
