"""JSON lines: what is read, what is broken, and on which line."""

import gzip
import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import SourceProblem
from millstream.io.read.jsonl import JsonReader
from tests.io.kit import read_text, schema


def test_missing_keys_are_null_and_extra_keys_are_ignored(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.jsonl", '{"a":1,"x":[1,{"y":2}]}\n{}\n{"s":"b"}', "a BIGINT, s STRING")
    assert answer.rows == [(1, None), (None, None), (None, "b")] and answer.lines == [1, 2, 3]


def test_a_key_that_differs_in_case_is_not_lost_in_silence(tmp_path: Path) -> None:
    with pytest.raises(SourceProblem, match=r"stream S: .*a\.jsonl has the key `itemID` where the column is `itemId`"):
        read_text(tmp_path, "a.jsonl", '{"itemID":1}\n', "itemId BIGINT")
    assert read_text(tmp_path, "a.jsonl", '{"A":1,"a":2}\n', "a BIGINT").rows == [(2,)]


def test_broken_lines_are_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    lines = [
        '{"a":1,"t":"2020-01-01T00:00:00Z"}',
        "",
        '{"a":"1"}',
        '{"a":[1]}',
        '{"a":{"b":1}}',
        '{"a":1.5}',
        '{"a":128}',
        '{"t":1577836800}',
        "null",
        "[1]",
        '{"a":1',
        '{"a":1}{"a":2}',
        '{"a":1,"a":2}',
        '{"a":true}',
        '{"t":"yesterday"}',
        '  {"a":2}  ',
        '{"t":"2026',
    ]
    answer = read_text(tmp_path, "a.jsonl", "\n".join(lines), "a TINYINT, t TIMESTAMP")
    assert answer.rows == [(1, datetime(2020, 1, 1, tzinfo=UTC)), (2, None)] and answer.lines == [1, 16]
    reasons = dict(answer.reasons)
    assert list(reasons) == [*range(3, 16), 17]
    assert reasons[3] == 'column `a`: "1" is not a TINYINT'
    assert reasons[4] == "column `a`: an array is not a TINYINT" and reasons[5] == "column `a`: an object is not a TINYINT"
    assert reasons[6] == "column `a`: '1.5' is not a TINYINT" and reasons[7] == "column `a`: '128' is out of range for TINYINT"
    assert reasons[8].startswith("column `t`: 1577836800 is not a TIMESTAMP (write it as a string")
    assert reasons[9] == reasons[10] == "not a JSON object" and reasons[11].startswith("not JSON") and reasons[12].startswith("not JSON")
    assert not any("at at" in reason for reason in reasons.values())
    assert reasons[13] == "the key 'a' is given twice" and reasons[14] == "column `a`: true is not a TINYINT"
    assert reasons[15] == "column `t`: 'yesterday' is not a TIMESTAMP"


@pytest.mark.parametrize("text", ["null", "null\n", "1\n2\n", "\n\n", "[]"])
def test_text_that_crashes_arrows_reader_does_not_reach_it(tmp_path: Path, text: str) -> None:
    assert read_text(tmp_path, "a.jsonl", text, "a BIGINT").rows == []


def test_an_object_over_two_lines_is_broken_even_when_the_count_fits(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.jsonl", '{"a":\n1}\n{"a":1}{"a":2}\n', "a BIGINT")
    assert answer.rows == [] and [line for line, _ in answer.reasons] == [1, 2, 3]


def test_an_int_has_an_article_of_its_own(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.jsonl", '{"a":[1],"b":{}}\n{"a":1,"b":{}}', "a INT, b BIGINT")
    reasons = {1: "column `a`: an array is not an INT", 2: "column `b`: an object is not a BIGINT"}
    assert dict(answer.reasons) == reasons


def test_numbers_keep_their_digits(tmp_path: Path) -> None:
    text = (
        '{"a":9223372036854775807,"d":1234567.89,"p":0.1}\n{"a":-9223372036854775808,"d":"1.50","p":1e300}\n'
        '{"d":1.500,"p":"NaN"}\n{"p":"-Infinity"}\n'
    )
    rows = read_text(tmp_path, "a.jsonl", text, "a BIGINT, d DECIMAL, p DOUBLE").rows
    assert rows[:2] == [(2**63 - 1, Decimal("1234567.89"), 0.1), (-(2**63), Decimal("1.50"), 1e300)]
    assert rows[2][1] == Decimal("1.50") and rows[2][2] != rows[2][2] and rows[3][2] == float("-inf")
    answer = read_text(tmp_path, "a.jsonl", '{"d":1.505}\n{"p":1e999}\n{"p":"7"}', "d DECIMAL, p DOUBLE")
    assert answer.reasons == [
        (1, "column `d`: '1.505' does not fit DECIMAL(9,2) exactly"),
        (2, "column `p`: 1e999 is out of range for DOUBLE"),
        (3, 'column `p`: "7" is not a DOUBLE'),
    ]


def test_numbers_that_are_too_large_are_broken_in_every_type(tmp_path: Path) -> None:
    text = '{"f":1.5}\n{"f":1e39}\n{"f":"-Infinity"}\n'
    schema = pa.schema([("f", pa.float32())])
    readings = list(JsonReader("A", schema).read(io.BytesIO(text.encode()), "a", 100))
    assert [row for reading in readings for row in reading.batch.column(0).to_pylist()] == [
        1.5,
        float("-inf"),
    ]
    assert [letter.reason for reading in readings for letter in reading.letters] == [
        "column `f`: '1e39' is out of range for FLOAT"
    ]
    (reading,) = JsonReader("A", schema).read(io.BytesIO(b'{"f":1.5}\n{"f":1e39}\n'), "a", 100)
    assert reading.batch.num_rows == 1


def test_numbers_for_a_string_column_keep_their_spelling(tmp_path: Path) -> None:
    assert read_text(tmp_path, "a.jsonl", '{"s":1.50}\n{"s":true}\n{"s":"x"}', "s STRING").rows == [("1.50",), ("true",), ("x",)]


def test_bytes_dates_and_intervals(tmp_path: Path) -> None:
    answer = read_text(
        tmp_path, "a.jsonl", '{"b":"aGk=","d":"2020-02-29","i":1500000}\n{"b":"?"}\n{"d":"2021-02-29"}', "b BINARY, d DATE, i INTERVAL"
    )
    assert answer.table.to_pydict()["b"] == [b"hi"] and str(answer.rows[0][1]) == "2020-02-29" and answer.rows[0][2].total_seconds() == 1.5
    assert [line for line, _ in answer.reasons] == [2, 3]


def test_utf8_bom_crlf_gzip_and_half_surrogates(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbf{"s":"\xc3\xa9"}\r\n{"s":"\xff"}\r\n{"s":"\\ud800"}\r\n{"s":"\\ud83d\\ude00"}\r\n'
    answer = read_text(tmp_path, "a.jsonl", text, "s STRING")
    assert answer.rows == [("é",), ("😀",)] and answer.lines == [1, 4] and [line for line, _ in answer.reasons] == [2, 3]
    assert read_text(tmp_path, "b.jsonl.gz", gzip.compress(b'{"s":"x"}\n'), "s STRING").rows == [("x",)]


def test_deep_nesting_is_broken_not_a_crash(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.jsonl", '{"a":' + "[" * 100_000 + "]" * 100_000 + '}\n{"a":1}\n', "a BIGINT")
    assert answer.rows == [(1,)] and answer.reasons == [(1, "nested too deeply")]


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.lists(st.integers(), max_size=2)
COLUMNS = schema("a BIGINT, b BOOLEAN, p DOUBLE, s STRING, d DECIMAL, t TIMESTAMP, x INTERVAL")
ROWS = st.lists(st.dictionaries(st.sampled_from([*COLUMNS.names, "other"]), VALUES), min_size=1, max_size=6)


@given(ROWS)
def test_what_the_fast_path_accepts_it_reads_as_the_careful_one(rows: list[dict[str, Any]]) -> None:
    block = "".join(json.dumps(row) + "\n" for row in rows).encode()
    reader = JsonReader("S", COLUMNS)
    fast = reader.fast(block, len(rows))
    batch, lines, letters = reader.careful(block, "f", 1)
    assert len(letters) + batch.num_rows == len(rows)
    if fast is not None:
        assert not letters and str(fast.to_pylist()) == str(batch.to_pylist()) and lines.tolist() == list(range(1, len(rows) + 1))


CLEAN = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(-(2**63), 2**63 - 1),
        "b": st.booleans(),
        "p": st.floats(allow_nan=False, allow_infinity=False),
        "s": st.text(max_size=6),
        "t": st.datetimes().map(lambda t: t.isoformat()),
        "x": st.integers(-(10**15), 10**15),
    },
)


@given(st.lists(CLEAN, min_size=1, max_size=6))
def test_clean_lines_take_the_fast_path(rows: list[dict[str, Any]]) -> None:
    block = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    reader = JsonReader("S", COLUMNS)
    fast = reader.fast(block, len(rows))
    assert fast is not None and fast.equals(reader.careful(block, "f", 1)[0])
