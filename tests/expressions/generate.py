"""Random expressions over the common subset, each written twice: in Spark SQL and in DuckDB's SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from millstream.core.types import TIMESTAMP

Pair = tuple[str, str]
EDGES = [0, 1, -1, 2, 7, -7, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), -(2**63) + 1]
FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 0.1, 1e300, -1e-300, float("nan"), float("inf"), float("-inf")]
LETTERS = "aAbBñÑß€😀 _%.-0"

SCHEMA = pa.schema(
    {
        "i": pa.int64(),
        "k": pa.int32(),
        "n": pa.int64(),
        "o": pa.int64(),
        "x": pa.float64(),
        "y": pa.float64(),
        "s": pa.string(),
        "u": pa.string(),
        "t": TIMESTAMP,
        "v": TIMESTAMP,
        "d": pa.date32(),
        "e": pa.date32(),
        "b": pa.bool_(),
        "c": pa.bool_(),
        "m": pa.decimal128(10, 2),
        "w": pa.decimal128(12, 3),
    }
)

_micros = st.integers(-(10**16), 10**16) | st.sampled_from([0, -1, 1, 86_400_000_000, -86_400_000_001])
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-20, 20),
    "k": st.integers(-20, 20),
    "n": st.sampled_from(EDGES),
    "o": st.sampled_from(EDGES),
    "x": st.sampled_from(FLOATS),
    "y": st.sampled_from(FLOATS),
    "s": st.text(LETTERS, max_size=6),
    "u": st.text(LETTERS, max_size=3),
    "t": _micros,
    "v": _micros,
    "d": st.integers(-40_000, 40_000),
    "e": st.integers(-40_000, 40_000),
    "b": st.booleans(),
    "c": st.booleans(),
    "m": st.decimals(-1000, 1000, places=2),
    "w": st.decimals(-1000, 1000, places=3),
}


@st.composite
def batches(draw: Any, most: int = 12) -> pa.RecordBatch:
    size = draw(st.integers(0, most))
    columns = []
    for field in SCHEMA:
        cells = draw(st.lists(st.none() | _VALUES[field.name], min_size=size, max_size=size))
        stored = pa.int64() if field.type == TIMESTAMP else pa.int32() if field.type == pa.date32() else field.type
        columns.append(pa.array(cells, stored).cast(field.type))
    return pa.record_batch(columns, schema=SCHEMA)


def _columns(*names: str) -> st.SearchStrategy[Pair]:
    return st.sampled_from([(n, n) for n in names])


def _same(*texts: str) -> st.SearchStrategy[Pair]:
    return st.sampled_from([(t, t) for t in texts])


def _fill(spark: str, duck: str | None, *parts: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    """A template with {0}, {1}, ... for the parts, in both languages."""
    other = spark if duck is None else duck
    return st.tuples(*parts).map(lambda p: (spark.format(*(a for a, _ in p)), other.format(*(b for _, b in p))))


def _choice(kind: st.SearchStrategy[Pair], condition: st.SearchStrategy[Pair]) -> list[st.SearchStrategy[Pair]]:
    return [
        _fill("coalesce({0}, {1})", None, kind, kind),
        _fill("nullif({0}, {1})", None, kind, kind),
        _fill("if({0}, {1}, {2})", "(case when {0} then {1} else {2} end)", condition, kind, kind),
        _fill("(case when {0} then {1} when {2} then {3} end)", None, condition, kind, condition, kind),
        _fill("(case {0} when {1} then {2} else {3} end)", None, kind, kind, kind, kind),
    ]


def _extremes(kind: st.SearchStrategy[Pair]) -> list[st.SearchStrategy[Pair]]:
    return [_fill("greatest({0}, {1})", None, kind, kind), _fill("least({0}, {1}, {2})", None, kind, kind, kind)]


def expressions(depth: int) -> dict[str, st.SearchStrategy[Pair]]:
    """A strategy for each kind of value."""
    if depth == 0:
        return {
            "int": _columns("i", "k") | _same("3", "(-2)", "0"),
            "edge": _columns("n", "o") | _same("9223372036854775807", "0", "2147483648"),
            "float": _columns("x", "y")
            | st.sampled_from([("1.5D", "1.5::double"), ("(-0.0D)", "(-0.0::double)"), ("double('NaN')", "'nan'::double")]),
            "text": _columns("s", "u") | _same("''", "'añ'", "'%'"),
            "time": _columns("t", "v") | _same("timestamp '1969-07-20 20:17:40.5'"),
            "date": _columns("d", "e") | _same("date '2024-02-29'"),
            "bool": _columns("b", "c") | _same("true", "false"),
            "decimal": _columns("m", "w") | _same("0.5", "12.345"),
        }
    low = expressions(depth - 1)
    number, real, text, time, date, truth, exact, edge = (
        low[k] for k in ("int", "float", "text", "time", "date", "bool", "decimal", "edge")
    )
    comparable = [number, edge, real, text, time, date, exact]
    operator = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    compared = st.one_of(
        [
            st.tuples(kind, operator, kind).map(lambda p: (f"({p[0][0]} {p[1]} {p[2][0]})", f"({p[0][1]} {p[1]} {p[2][1]})"))
            for kind in comparable
        ]
    )
    mixed = st.one_of(
        [_fill("({0} < {1})", None, a, b) for a, b in ((number, real), (exact, number), (exact, edge), (date, time), (real, edge))]
    )
    return {
        "int": st.one_of(
            low["int"],
            _fill("({0} + {1})", None, number, number),
            _fill("({0} - {1})", None, number, number),
            _fill("({0} * i)", None, number),
            _fill("({0} div {1})", "({0} // nullif({1}, 0))", number, number),
            _fill("({0} % {1})", "({0} % nullif({1}, 0))", number, number),
            _fill("length({0})", None, text),
            _fill("instr({0}, {1})", None, text, text),
            _fill("abs({0})", None, number),
            _fill("(- {0})", None, number),
            _fill("datediff({0}, {1})", "({0} - {1})", date, date),
            _fill("year({0})", None, time),
            _fill("month({0})", None, date),
            _fill("hour({0})", None, time),
            _fill("minute({0})", None, time),
            _fill("weekofyear({0})", None, time),
            _fill("dayofyear({0})", None, date),
            _fill("dayofweek({0})", "(dayofweek({0}) + 1)", date),
            _fill("cast({0} as int)", None, truth),
            *_choice(number, truth),
            *_extremes(number),
        ),
        "edge": st.one_of(edge, _fill("unix_micros({0})", "epoch_us({0})", time), *_choice(edge, truth), *_extremes(edge)),
        "float": st.one_of(
            real,
            _fill("({0} + {1})", None, real, real),
            _fill("({0} * {1})", None, real, real),
            _fill("({0} / {1})", "({0} / nullif({1}, 0))", real, real),
            _fill("({0} / {1})", "({0} / nullif({1}, 0))", number, number),
            _fill("({0} % {1})", "({0} % nullif({1}, 0))", real, real),
            _fill("(- {0})", None, real),
            _fill("abs({0})", None, real),
            _fill("({0} - {1})", None, real, number),
            _fill("({0} + {1})", None, real, exact),
            _fill("cast({0} as double)", None, edge),
            *_choice(real, truth),
            *_extremes(real),
        ),
        "text": st.one_of(
            text,
            _fill("({0} || {1})", None, text, text),
            _fill("upper({0})", None, text),
            _fill("lower({0})", None, text),
            _fill("reverse({0})", None, text),
            _fill("trim({0})", None, text),
            _fill("ltrim({0})", None, text),
            _fill("rtrim({0})", None, text),
            _fill("substring({0}, 2, 3)", None, text),
            _fill("substring({0}, -3)", None, text),
            _fill("substring({0}, -4, 2)", None, text),
            _fill("left({0}, 2)", None, text),
            _fill("right({0}, 2)", None, text),
            _fill("replace({0}, 'a', {1})", None, text, text),
            _fill("lpad({0}, 4, 'xy')", None, text),
            _fill("rpad({0}, 4, 'xy')", None, text),
            _fill("repeat({0}, 2)", None, text),
            _fill("concat_ws('-', {0}, {1})", None, text, text),
            _fill("split_part({0}, ' ', 2)", None, text),
            _fill("split_part({0}, '-', -1)", None, text),
            _fill("md5({0})", None, text),
            _fill("regexp_replace({0}, '[ab]', '<>')", "regexp_replace({0}, '[ab]', '<>', 'g')", text),
            _fill("regexp_extract({0}, 'a(.)', 1)", None, text),
            _fill("cast({0} as string)", "cast({0} as varchar)", number),
            _fill("cast({0} as string)", "cast({0} as varchar)", truth),
            _fill("cast({0} as string)", "cast({0} as varchar)", date),
            _fill("cast({0} as string)", "cast({0} as varchar)", time),
            _fill("cast(x as string)", "cast(x as varchar)"),
            *_choice(text, truth),
            *_extremes(text),
        ),
        "time": st.one_of(
            time,
            _fill("({0} + interval 90 minute)", None, time),
            _fill("({0} - interval 36 hour)", None, time),
            _fill("({0} + interval 1 month)", None, time),
            *[
                _fill(f"date_trunc('{u}', {{0}})", None, time)
                for u in ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
            ],
            _fill("cast({0} as timestamp)", None, date),
            *_choice(time, truth),
            *_extremes(time),
        ),
        "date": st.one_of(
            date,
            _fill("to_date({0})", "cast({0} as date)", time),
            _fill("date_add({0}, cast(i as int))", "({0} + cast(i as int))", date),
            _fill("date_sub({0}, 3)", "({0} - 3)", date),
            _fill("last_day({0})", None, date),
            _fill("add_months({0}, 5)", "cast({0} + interval 5 month as date)", date),
            _fill("trunc({0}, 'MM')", "cast(date_trunc('month', {0}) as date)", date),
            *_choice(date, truth),
            *_extremes(date),
        ),
        "decimal": st.one_of(
            exact,
            _fill("({0} + {1})", None, exact, exact),
            _fill("({0} - {1})", None, exact, exact),
            _fill("(m * {0})", None, number),
            _fill("(- {0})", None, exact),
            _fill("abs({0})", None, exact),
            _fill("round(w, 1)", None),
            _fill("floor(w)", None),
            _fill("ceil(w)", None),
            _fill("cast({0} as decimal(20,4))", None, number),
            *_choice(_columns("m"), truth),
            *_extremes(_columns("w")),
        ),
        "bool": st.one_of(
            truth,
            compared,
            mixed,
            _fill("({0} and {1})", None, truth, truth),
            _fill("({0} or {1})", None, truth, truth),
            _fill("(not {0})", None, truth),
            *[_fill("({0} is null)", None, kind) for kind in comparable],
            *[_fill("({0} is not distinct from {1})", None, k, k) for k in comparable],
            *[_fill("({0} is distinct from {1})", None, k, k) for k in comparable],
            *[_fill("({0} in ({1}, {2}, null))", None, k, k, k) for k in (number, text, real)],
            *[_fill("({0} between {1} and {2})", None, k, k, k) for k in comparable],
            _fill("({0} is true)", None, truth),
            _fill("({0} is not false)", None, truth),
            *[_fill(f"({{0}} {op} '{p}')", None, text) for op in ("like", "ilike", "not like") for p in ("a%", "%B_", "_", "%ñ%", "")],
            _fill("startswith({0}, {1})", "starts_with({0}, {1})", text, text),
            _fill("contains({0}, {1})", None, text, text),
            _fill("endswith({0}, 'a')", "suffix({0}, 'a')", text),
            _fill("({0} rlike 'a.b|^B')", "regexp_matches({0}, 'a.b|^B')", text),
            _fill("({0} - {1} > interval 3 hour)", "(epoch_us({0}) - epoch_us({1}) > 10800000000)", time, time),
            *_choice(truth, truth),
        ),
    }


def plain(value: Any) -> Any:
    """Values of both engines in one form: no zones, -0.0 as 0.0, NaN as a word."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, Decimal):
        return value.normalize() + 0
    return value
