"""The content of a letter about a parquet row is a JSON line that a stream of the same columns reads back."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.core.letters import as_json
from tests.io.kit import read_file, read_text, schema

COLUMNS = "k TINYINT, s STRING, b BINARY, x DOUBLE, m DECIMAL, d DATE, t TIMESTAMP, o BOOLEAN, i INTERVAL"
ROW = {
    "s": 'a "b" \n' + "long " * 1000, "b": b"\x00\xff", "x": float("nan"), "m": Decimal("1.50"),
    "d": date(2020, 2, 29),
    "t": datetime(2020, 1, 1, 12, 0, 0, 5, UTC), "o": None, "i": 1500,
}  # fmt: skip


def test_a_broken_row_is_read_back_once_its_fault_is_mended(tmp_path: Path) -> None:
    kind = schema(COLUMNS)
    written = pa.table(
        {"K": pa.array([1, 300]), **{f.name: pa.array([ROW[f.name]] * 2, f.type) for f in list(kind)[1:]}}
    )
    pq.write_table(written, tmp_path / "a.parquet")
    found = read_file(tmp_path / "a.parquet", COLUMNS)
    (letter,) = found.letters
    assert letter.line == 2 and list(json.loads(letter.content or "")) == kind.names
    again = read_text(tmp_path, "again.jsonl", (letter.content or "").replace('"k": 300', '"k": 1'), COLUMNS)
    assert (
        not again.letters
        and str(again.rows) == str(found.rows)
        and again.rows[0][1:3] == (ROW["s"], ROW["b"])
    )


def test_every_type_is_read_back_from_a_late_tuple(tmp_path: Path) -> None:
    kind = schema("x DOUBLE, b BINARY, m DECIMAL, i INTERVAL")
    numbers = [Decimal("-0.01"), None, Decimal(7), Decimal(1)]
    values = [[float("inf"), -float("inf"), 0.5, None], [b"", b"\n", None, b"ab"], numbers, [-1, 0, None, 9]]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(v, f.type) for v, f in zip(values, kind, strict=True)], schema=kind
    )
    text = "\n".join(as_json(batch, row) for row in range(4))
    again = read_text(tmp_path, "a.jsonl", text, "x DOUBLE, b BINARY, m DECIMAL, i INTERVAL").table
    assert again.equals(pa.Table.from_batches([batch]))
