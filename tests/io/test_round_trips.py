"""What a sink writes, a source with the same options reads back: random tables of all types."""

import json
import shutil
import tempfile
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.io import open_sink
from millstream.io.write.jsonl import JsonlEncoder
from tests.io.kit import TYPES, Answer, read_file

TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from('",\n\r\t\\;| \0'), max_size=8)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "TINYINT": st.integers(-128, 127),
    "DOUBLE": st.floats(),
    "FLOAT": st.floats(width=32),
    "STRING": TEXT,
    "BOOLEAN": st.booleans(),
    "TIMESTAMP": st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)),
    "DATE": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    "BINARY": st.binary(max_size=6),
    "DECIMAL": st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-9_999_999, max_value=9_999_999),
    "INTERVAL": st.timedeltas(timedelta(days=-9999), timedelta(days=9999)),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=6))
    rows = draw(st.integers(0, 6))
    columns = [pa.array(draw(st.lists(st.none() | VALUES[kind], min_size=rows, max_size=rows)), TYPES[kind]) for kind in kinds]
    return pa.table(columns, names=[f"c{i}" for i in range(len(kinds))])


def same(left: pa.Table, right: pa.Table) -> bool:
    """Equal, and NaN equals NaN; -0.0 is not 0.0."""
    return left.schema.equals(right.schema) and str(left.to_pydict()) == str(right.to_pydict())


def there_and_back(table: pa.Table, options: dict[str, str], epoch: int | None) -> Answer:
    folder = Path(tempfile.mkdtemp())
    try:
        sink = open_sink("O", {"path": str(folder / "out"), **options}, None)
        sink.check(table.schema)
        writer = sink.writer(table.schema, "0", epoch)
        for batch in table.to_batches(max_chunksize=2):
            writer.write(batch)
        part = writer.close()
        if epoch is not None:
            sink.commit(epoch, [part])
        sink.finish()
        return read_file(folder / "out", table.schema, options)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "options",
    [
        {"format": "jsonl"},
        {"format": "csv"},
        {"format": "parquet"},
        {"format": "csv", "delimiter": ";", "quote": "'", "null_value": "NULL"},
        {"format": "csv", "delimiter": "-", "header": "false"},
        {"format": "csv", "delimiter": "|", "null_value": "1"},
    ],
    ids=lambda options: " ".join(options.values()),
)
@given(table=tables(), epoch=st.none() | st.just(0))
def test_round_trip(options: dict[str, str], table: pa.Table, epoch: int | None) -> None:
    answer = there_and_back(table, options, epoch)
    assert not answer.letters and same(answer.table, table)


@given(tables())
def test_json_lines_are_json(table: pa.Table) -> None:
    import io

    out = io.BytesIO()
    encoder = JsonlEncoder(table.schema)
    for batch in table.to_batches():
        encoder.write(out, batch)
    lines = out.getvalue().decode().split("\n")[:-1]
    rows = [json.loads(line, parse_float=Decimal) for line in lines]
    assert len(rows) == table.num_rows
    for row, expected in zip(rows, table.to_pylist(), strict=True):
        assert list(row) == list(expected)
        for name, value in expected.items():
            if isinstance(value, (bool, str, int, type(None))):
                assert row[name] == value
            elif isinstance(value, Decimal):
                assert Decimal(row[name]) == value
            elif isinstance(value, datetime):
                assert len(row[name]) == 27 and datetime.fromisoformat(row[name]) == value


def test_the_forms_are_fixed() -> None:
    import io

    table = pa.table(
        {
            "t": pa.array([datetime(2026, 1, 1), None], TYPES["TIMESTAMP"]),
            "d": pa.array([date(2026, 1, 1), None]),
            "n": pa.array([Decimal("1.50"), None], TYPES["DECIMAL"]),
            "p": pa.array([float("nan"), float("-inf")]),
            "b": pa.array([b"hi", None]),
            "i": pa.array([timedelta(seconds=1.5), None], TYPES["INTERVAL"]),
            "l": pa.array([[1, None], None]),
            "s": pa.array(['a"\n\u2028é', None]),
            "z": pa.nulls(2),
            "m": pa.array([{"t": datetime(2026, 1, 1), "n": float("inf")}, None]),
        }
    )
    out = io.BytesIO()
    JsonlEncoder(table.schema).write(out, table.to_batches()[0])
    first, second = out.getvalue().decode().splitlines()[0:1] + out.getvalue().decode().split("\n")[1:2]
    assert first.startswith(
        '{"t":"2026-01-01T00:00:00.000000Z","d":"2026-01-01","n":1.50,"p":"NaN","b":"aGk=","i":1500000,"l":[1,null],"s":"a\\"\\n'
    )
    assert second == '{"t":null,"d":null,"n":null,"p":"-Infinity","b":null,"i":null,"l":null,"s":null,"z":null,"m":null}'
    assert '"m":{"t":"2026-01-01T00:00:00.000000Z","n":"Infinity"}' in out.getvalue().decode()
