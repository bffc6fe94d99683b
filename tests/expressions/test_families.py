"""Each family of functions against a table of expected values over one batch with awkward values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D
from typing import Any

import pyarrow as pa
import pytest

from millstream.core.types import INTERVAL, TIMESTAMP
from millstream.errors import DataProblem
from tests.expressions.kit import BATCH, compiled, values

HOUR, DAY = 3_600_000_000, 86_400_000_000
BIG = 2**63 - 1
LATE = 1_700_000_000_123_456

ARITHMETIC = [
    ("j + 1", [3, 4, 1, 2]),
    ("i / j", [0.5, None, None, float(BIG)]),
    ("i div j", [0, None, None, BIG]),
    ("-7 div 2", [-3] * 4),
    ("i % j", [1, None, None, 0]),
    ("pmod(i, 5)", [1, None, 3, 2]),
    ("pmod(-7, 0)", [None] * 4),
    ("x / 0", [None] * 4),
    ("1 % 0", [None] * 4),
    ("-x", [-1.5, "NaN", None, 0.0]),
    ("m + 1", [D("2.50"), None, D("-1.25"), D("100000000.99")]),
    ("m / 3", [D("0.5"), None, D("-0.75"), D("33333333.33")]),
    ("m / 0", [None] * 4),
    ("m % 2", [D("1.50"), None, D("-0.25"), D("1.99")]),
    ("m div 2", [0, None, -1, 49999999]),
    ("m + x", [3.0, None, None, 99999999.99]),
    ("i + '1'", [2, None, -6, None]),
    ("try_add(i, 1)", [2, None, -6, None]),
    ("i & 3", [1, None, 1, 3]),
    ("abs(j - 2)", [0, 1, 2, 1]),
    ("round(2.5D)", [3.0] * 4),
    ("round(-2.5D)", [-3.0] * 4),
    ("bround(2.5D)", [2.0] * 4),
    ("round(m, 1)", [D("1.5"), None, D("-2.3"), D("100000000.0")]),
    ("floor(m)", [D(1), None, D(-3), D(99999999)]),
    ("ceil(1.2D)", [2] * 4),
    ("floor(-1.2D)", [-2] * 4),
    ("ln(0)", [None] * 4),
    ("sqrt(j - 1)", [1.0, 2.0**0.5, "NaN", 0.0]),
    ("pow(j, 2)", [4.0, 9.0, 0.0, 1.0]),
    ("log10(100)", [2.0] * 4),
    ("log(2, 8)", [3.0] * 4),
    ("-9223372036854775808", [-(2**63)] * 4),
]
COMPARISON = [
    ("x = y", [False, True, None, True]),
    ("x < y", [True, False, None, False]),
    ("x > y", [False, False, None, False]),
    ("x >= 1", [True, True, None, False]),
    ("1 < x", [True, True, None, False]),
    ("x < double('NaN')", [True, False, None, True]),
    ("x <=> y", [False, True, False, True]),
    ("i <=> null", [False, True, False, False]),
    ("i in (1, null)", [True, None, None, None]),
    ("i not in (1, 2)", [False, None, True, True]),
    ("x in (1.5, double('NaN'))", [True, True, None, False]),
    ("i between 0 and 10", [True, None, False, False]),
    ("m > 1.5", [False, None, False, True]),
    ("m < i", [False, None, False, True]),
    ("i = '1'", [True, None, False, False]),
    ("t > '2020-01-01'", [False, False, None, True]),
    ("d = '1970-01-01'", [True, False, None, False]),
    ("d < t", [False, True, None, True]),
    ("greatest(i, j, 3)", [3, 3, 3, BIG]),
    ("least(x, y)", [1.5, "NaN", 1.0, 0.0]),
    ("isnan(x)", [False, True, False, False]),
]
LOGIC = [
    ("b and null", [None, False, None, None]),
    ("b or null", [True, None, None, True]),
    ("not b", [False, True, None, False]),
    ("b is not false", [True, False, True, True]),
    ("i is not null", [True, False, True, True]),
    ("case when i > 0 then 'p' when i < 0 then 'n' end", ["p", None, "n", "p"]),
    ("case j when 2 then 2.5 else j end", [D("2.5"), D(3), D(0), D(1)]),
    ("if(b, i, j)", [1, 3, 0, BIG]),
    ("coalesce(x, i, 0)", [1.5, "NaN", -7.0, 0.0]),
    ("nvl2(i, 1, 2)", [1, 2, 1, 1]),
    ("nullif(i, 1)", [None, None, -7, BIG]),
    # a branch that fails is never computed for the tuples that do not take it
    ("case when s rlike '^[0-9]+$' then cast(s as int) else -1 end", [-1, -1, -1, -1]),
    ("if(j > 5, cast(s as int), j)", [2, 3, 0, 1]),
    ("coalesce(j, cast(s as int))", [2, 3, 0, 1]),
    ("j > 5 and cast(s as int) = 1", [False] * 4),
    ("j < 5 or cast(s as int) = 1", [True] * 4),
]
STRINGS = [
    ("s || 'x'", ["añbx", "  Hi x", None, "x"]),
    ("concat(s, j)", ["añb2", "  Hi 3", None, "1"]),
    ("concat_ws('-', s, j)", ["añb-2", "  Hi -3", "0", "-1"]),
    ("concat_ws(s, 'a', 'b')", ["aañbb", "a  Hi b", None, "ab"]),
    ("concat_ws('-', cast(null as string), null)", [""] * 4),
    ("s like 'a_b'", [True, False, None, False]),
    ("s not ilike '%HI%'", [True, False, None, True]),
    ("'a%' like 'a!%' escape '!'", [True] * 4),
    ("'ab' like 'a!%' escape '!'", [False] * 4),
    ("'a%' like 'a\\\\%'", [True] * 4),
    ("s like any ('a%', '%i%')", [True, True, None, False]),
    ("s like s || '%'", [True, True, None, True]),
    ("s rlike 'H.'", [False, True, None, False]),
    ("upper(s)", ["AÑB", "  HI ", None, ""]),
    ("length(s)", [3, 5, None, 0]),
    ("trim(s)", ["añb", "Hi", None, ""]),
    ("trim(both 'ab' from s)", ["ñ", "  Hi ", None, ""]),
    ("substring(s, 2, 1)", ["ñ", " ", None, ""]),
    ("substring(s, 0, 2)", ["añ", "  ", None, ""]),
    ("substring(s, -2)", ["ñb", "i ", None, ""]),
    ("substring(s, j)", ["ñb", "Hi ", None, ""]),
    ("substring('abc', -5, 3)", ["a"] * 4),
    ("left(s, 2)", ["añ", "  ", None, ""]),
    ("right(s, 1)", ["b", " ", None, ""]),
    ("lpad(s, 5, 'xy')", ["xyañb", "  Hi ", None, "xyxyx"]),
    ("rpad(s, 2)", ["añ", "  ", None, "  "]),
    ("instr(s, 'b')", [3, 0, None, 0]),
    ("locate('b', s, 4)", [0, 0, None, 0]),
    ("replace(s, 'b')", ["añ", "  Hi ", None, ""]),
    ("repeat('ab', j)", ["abab", "ababab", "", "ab"]),
    ("split_part('a,b,c', ',', -1)", ["c"] * 4),
    ("substring_index('a.b.c', '.', 2)", ["a.b"] * 4),
    ("regexp_replace('abab', '(a)b', '$1-')", ["a-a-"] * 4),
    ("regexp_extract(s, '(.)b', 1)", ["ñ", "", None, ""]),
    ("translate('abc', 'abc', 'xy')", ["xy"] * 4),
    ("initcap('heLLo wORLD')", ["Hello World"] * 4),
    ("sha2('a', 256)", ["ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"] * 4),
]
TIMES = [
    ("year(t)", [1970, 1969, None, 2023]),
    ("dayofweek(t)", [5, 4, None, 3]),
    ("second(t)", [0, 59, None, 20]),
    ("date_trunc('minute', t)", [0, -60_000_000, None, 1_699_999_980_000_000]),
    ("date_trunc('week', t)", [-3 * DAY, -3 * DAY, None, 1_699_833_600_000_000]),
    ("to_date(t)", [dt.date(1970, 1, 1), dt.date(1969, 12, 31), None, dt.date(2023, 11, 14)]),
    ("trunc(d, 'MM')", [dt.date(1970, 1, 1), dt.date(1969, 12, 1), None, dt.date(2022, 1, 1)]),
    ("unix_timestamp(t)", [0, -1, None, LATE // 10**6]),
    ("unix_millis(t)", [0, -1, None, LATE // 1000]),
    ("unix_micros(t)", [0, -1, None, LATE]),
    ("timestamp_millis(j)", [2000, 3000, 0, 1000]),
    ("t + interval 1 minute", [60_000_000, 59_999_999, None, LATE + 60_000_000]),
    ("t - interval '1 day 2 hours'", [-26 * HOUR, -26 * HOUR - 1, None, LATE - 26 * HOUR]),
    ("t - d", [0, DAY - 1, None, LATE - 19_000 * DAY]),
    ("t - d > interval 1 hour", [False, True, None, True]),
    ("(t - d) * 2", [0, 2 * DAY - 2, None, 2 * (LATE - 19_000 * DAY)]),
    ("interval j seconds", [2_000_000, 3_000_000, 0, 1_000_000]),
    ("interval '1:02' hour to minute", [62 * 60_000_000] * 4),
    ("timestamp '2024-01-31 10:00:00' + interval 1 month = timestamp '2024-02-29 10:00:00'", [True] * 4),
    ("d + interval 1 day", [dt.date(1970, 1, 2), dt.date(1970, 1, 1), None, dt.date(2022, 1, 9)]),
    ("d + interval 1 hour", [HOUR, -DAY + HOUR, None, 19_000 * DAY + HOUR]),
    ("datediff(t, '1970-01-05')", [-4, -5, None, 19_671]),
    ("timestampdiff(hour, t, d)", [0, -23, None, -16_222]),
    ("timestampadd(minute, j, t)", [120_000_000, 179_999_999, None, LATE + 60_000_000]),
    ("date_format(t, 'yyyy-MM-dd HH:mm:ss.SSS')", ["1970-01-01 00:00:00.000", "1969-12-31 23:59:59.999", None, "2023-11-14 22:13:20.123"]),
    ("to_timestamp('02/01/2020 03', 'dd/MM/yyyy HH')", [1_577_934_000_000_000] * 4),
    ("extract(hour from t)", [0, 23, None, 22]),
]
CASTS = [
    ("cast(t as bigint)", [0, -1, None, LATE // 10**6]),
    ("cast(t as string)", ["1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", None, "2023-11-14 22:13:20.123456"]),
    ("cast(x as string)", ["1.5", "nan", None, "-0.0"]),
    ("cast(m as string)", ["1.50", None, "-2.25", "99999999.99"]),
    ("cast(m as int)", [1, None, -2, 99999999]),
    ("cast(-1.9D as int)", [-1] * 4),
    ("cast(2.345D as decimal(5,2))", [D("2.35")] * 4),
    ("cast(m as decimal(12,1))", [D("1.5"), None, D("-2.3"), D("100000000.0")]),
    ("try_cast(s as int)", [None] * 4),
    ("try_cast(x as int)", [1, None, None, 0]),
    ("cast(' +12 ' as bigint)", [12] * 4),
    ("try_cast('0x1F' as int)", [None] * 4),
    ("try_cast('1.5' as int)", [None] * 4),
    ("cast('-Infinity' as double)", [float("-inf")] * 4),
    ("cast('yes' as boolean)", [True] * 4),
    ("cast('2020-1-2' as date)", [dt.date(2020, 1, 2)] * 4),
    ("try_cast('2023-02-29' as date)", [None] * 4),
    ("cast('1970-01-01 02:00:00+02:00' as timestamp)", [0] * 4),
    ("cast('1970-01-01T00:00:00.1234567Z' as timestamp)", [123_456] * 4),
    ("cast('1970' as timestamp)", [0] * 4),
    ("cast(3 as timestamp)", [3_000_000] * 4),
    ("cast(b as int)", [1, 0, None, 1]),
]


@pytest.mark.parametrize(("text", "expected"), ARITHMETIC + COMPARISON + LOGIC + STRINGS + TIMES + CASTS)
def test_value(text: str, expected: list[Any]) -> None:
    batch = BATCH[:3] if text == "i + '1'" else BATCH
    found = values(text, batch)
    assert found == pytest.approx(expected[: len(found)], rel=1e-12) if "log" in text else found == expected[: len(found)]


def test_rounding_beyond_all_places_of_a_type_gives_zero() -> None:
    batch = pa.record_batch(
        {
            "i": pa.array([1, None, 2**63 - 1, -(2**63)]),
            "j": pa.array([2**31 - 1, -(2**31), 5, None], pa.int32()),
            "m": pa.array([D("99999999.99"), D("-0.01"), None, D("1.00")], pa.decimal128(10, 2)),
        }
    )
    for digits in (-20, -30, -(2**31)):
        assert values(f"round(i, {digits})", batch) == [0, None, 0, 0]
        assert values(f"bround(m, {digits})", batch) == [D(0), D(0), None, D(0)]
    assert values("round(j, -10)", batch) == [0, 0, 0, None]
    assert values("round(j, -9)", batch[1:]) == [-2_000_000_000, 0, None]
    assert values("round(m, -8)", batch) == [D(100_000_000), D(0), None, D(0)]
    assert values("round(i, -18)", batch[:2]) == [0, None]
    with pytest.raises(DataProblem):
        values("round(i, -19)", batch)


def test_an_interval_of_months_may_be_negative() -> None:
    assert values("t + (-interval 1 month)") == values("t - interval 1 month")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("j + 1", pa.int32()),
        ("i + j", pa.int64()),
        ("i / j", pa.float64()),
        ("j div 2", pa.int64()),
        ("m * m", pa.decimal128(21, 4)),
        ("m + i", pa.decimal128(23, 2)),
        ("m / 3", pa.decimal128(14, 6)),
        ("m * 1.5", pa.decimal128(13, 3)),
        ("m * x", pa.float64()),
        ("1.5", pa.decimal128(2, 1)),
        ("1e3", pa.float64()),
        ("3000000000", pa.int64()),
        ("1L", pa.int64()),
        ("floor(x)", pa.int64()),
        ("t - t", INTERVAL),
        ("t + interval 1 day", TIMESTAMP),
        ("d + 1", pa.date32()),
        ("null", pa.null()),
        ("coalesce(j, i)", pa.int64()),
        ("cast(s as float) + j", pa.float32()),
    ],
)
def test_type(text: str, kind: pa.DataType) -> None:
    assert compiled(text).type == kind


def test_decimals_of_38_digits_multiply_and_divide_exactly() -> None:
    batch = pa.record_batch({"h": pa.array([D("1.0000000001"), D("-3"), None], pa.decimal128(38, 10))})
    assert values("h * h", batch) == [D("1.000000"), D("9.000000"), None]
    assert values("h / h", batch) == [D("1.000000"), D("1.000000"), None]
    assert values("h = 1.0000000001", batch) == [True, False, None]
    assert values("h < 1.00000000010000000000000000001", batch) == [True, True, None]


def test_no_tuple_may_take_the_memory_of_all() -> None:
    with pytest.raises(DataProblem, match="repeat makes no string"):
        values("repeat('ab', i)")
