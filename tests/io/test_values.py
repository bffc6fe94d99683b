"""Text and values: the bulk kernel, the careful way and Python's own parsers agree."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.io.read.values import convert, convert_carefully
from tests.io.kit import TS, TYPES

D = pa.decimal128(5, 2)


def value(text: str, kind: pa.DataType) -> object:
    values, bad = convert(pa.array([text]), kind)
    assert (values.null_count == 1) == bool(bad)
    return bad[0][1] if bad else values[0].as_py()


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-02T03:04:05",
        "2020-01-02 03:04:05Z",
        "2020-01-02T03:04:05.000000Z",
        "2020-01-02T05:04:05+02:00",
        "2020-01-02T05:04:05+0200",
        "2020-01-02T05:04:05 +02",
        "2020-01-02t03:04:05.000000000z",
        " 2020-01-02T03:04:05 ",
    ],
)
def test_timestamps_with_and_without_a_zone(text: str) -> None:
    assert value(text, TS) == datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_timestamps_of_many_forms_in_one_column() -> None:
    texts = ["2020-01-01", "2020-01-01T00:00:00.5Z", None, "2020-01-01T01:00+01:00", "2020-01-01T00:00:00.123456"]
    values, bad = convert(pa.array(texts), TS)
    day = datetime(2020, 1, 1, tzinfo=UTC)
    assert not bad and values.to_pylist() == [day, day + timedelta(milliseconds=500), None, day, day + timedelta(microseconds=123456)]


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("2020-01-01T00:00:00.1234567", TS, "is finer than a microsecond"),
        ("2020-02-30T00:00:00", TS, "is not a TIMESTAMP"),
        ("1577836800", TS, "is not a TIMESTAMP"),
        ("2020-01-01T24:00:00Z", TS, "is not a TIMESTAMP"),
        ("2020-02-30", pa.date32(), "is not a DATE"),
        ("2020-1-1", pa.date32(), "is not a DATE"),
        ("9223372036854775808", pa.int64(), "is out of range for BIGINT"),
        ("-129", pa.int8(), "is out of range for TINYINT"),
        ("1.0", pa.int32(), "is not an INT"),
        ("1e3", pa.int64(), "is not a BIGINT"),
        ("٣", pa.int64(), "is not a BIGINT"),
        ("", pa.int64(), "is not a BIGINT"),
        ("1.005", D, "does not fit DECIMAL(5,2) exactly"),
        ("1000", D, "does not fit DECIMAL(5,2) exactly"),
        ("x", D, "is not a DECIMAL(5,2)"),
        ("NaN", D, "is not a DECIMAL(5,2)"),
        ("yes", pa.bool_(), "is not a BOOLEAN"),
        ("0x10", pa.int32(), "is not an INT"),
        ("0X10", pa.int64(), "is not a BIGINT"),
        ("0x10", pa.duration("us"), "is not an INTERVAL"),
        ("1e999", pa.float64(), "is out of range for DOUBLE"),
        ("-1e39", pa.float32(), "is out of range for FLOAT"),
        ("0000-12-31", pa.date32(), "lies outside the years 1 to 9999"),
        ("0000-01-01T00:00:00", TS, "lies outside the years 1 to 9999"),
        ("0001-01-01T00:00:00+01:00", TS, "is not a TIMESTAMP"),
        ("1_000", pa.float64(), "is not a DOUBLE"),
        ("a b", pa.binary(), "is not base64"),
        ("1s", pa.duration("us"), "is not an INTERVAL"),
    ],
)
def test_broken_values_say_why(text: str, kind: pa.DataType, reason: str) -> None:
    assert value(text, kind) == f"{text!r} {reason}"


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (" 12 ", pa.int64(), 12),
        ("+7", pa.int32(), 7),
        ("007", pa.int8(), 7),
        ("TRUE", pa.bool_(), True),
        ("0", pa.bool_(), False),
        ("Infinity", pa.float64(), float("inf")),
        ("-inf", pa.float64(), float("-inf")),
        (".5", pa.float64(), 0.5),
        ("1.500", D, Decimal("1.50")),
        ("1e2", D, Decimal("100")),
        ("0.000", D, Decimal("0")),
        ("aGk=", pa.binary(), b"hi"),
        ("", pa.binary(), b""),
        ("-5", pa.duration("us"), timedelta(microseconds=-5)),
    ],
)
def test_lenient_forms(text: str, kind: pa.DataType, expected: object) -> None:
    assert value(text, kind) == expected


def test_a_few_broken_among_many() -> None:
    texts = [str(i) for i in range(1000)]
    texts[17], texts[900] = "x", " 900"
    values, bad = convert(pa.array(texts), pa.int64())
    assert bad == [(17, "'x' is not a BIGINT")] and values[900].as_py() == 900 and values[17].as_py() is None


LIKELY = st.text(st.sampled_from("0123456789.eE+-xXnaNifTZ: t/_"), max_size=12)
ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=-9, minutes=-30))])
MOMENTS = st.datetimes(timezones=ZONES).map(lambda t: t.isoformat())


@given(st.lists(LIKELY | MOMENTS, min_size=1, max_size=5), st.sampled_from([k for n, k in TYPES.items() if n not in ("STRING", "BINARY")]))
def test_bulk_and_careful_agree_on_any_text(texts: list[str], kind: pa.DataType) -> None:
    bulk, bad = convert(pa.array(texts), kind)
    careful, careful_bad = convert_carefully(pa.array(texts), kind)
    assert bad == careful_bad and bulk.cast(pa.string()).equals(careful.cast(pa.string()))
    for index, text in enumerate(texts):  # the neighbours of a value do not change it
        alone, _ = convert(pa.array([text]), kind)
        assert alone.cast(pa.string())[0] == bulk.cast(pa.string())[index]


@given(st.lists(MOMENTS, min_size=1, max_size=5))
def test_timestamps_are_what_python_says(texts: list[str]) -> None:
    values, bad = convert(pa.array(texts), TS)
    expected = []
    for text in texts:
        moment = datetime.fromisoformat(text)
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
        expected.append(since // timedelta(microseconds=1))
    assert not bad and values.view(pa.int64()).to_pylist() == expected


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-1000, max_value=1000))
def test_decimals_are_exact_or_broken(number: Decimal) -> None:
    found = value(str(number), D)
    exact = number == number.quantize(Decimal("0.01")) and abs(number) < 1000
    assert found == number if exact else isinstance(found, str)
