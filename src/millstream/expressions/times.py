"""Functions of dates and timestamps, all in UTC: fields, truncation, conversion to and from numbers and formats, differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.core.types import INTERVAL, TIMESTAMP
from millstream.errors import TypeProblem, UnsupportedProblem
from millstream.expressions import raw
from millstream.expressions.calendar import add_months_to_date, civil, days_from, month_lengths, moved_months, truncated
from millstream.expressions.casts import cast
from millstream.expressions.coercion import day, moment, whole
from millstream.expressions.formats import read_times, write_times
from millstream.expressions.intervals import MICROS, MONTHS, add_days, constant_interval, of_units, shift, unit_name
from millstream.expressions.node import Datum, Node, call, rowwise
from millstream.expressions.registry import Call, Scope, function, rule

DAY = MICROS["day"]
Ints = npt.NDArray[Any]


def _of_days(field: Callable[[Ints], Ints]) -> Callable[[Node, str], Node]:
    """A field of the date part."""

    def build(node: Node, what: str) -> Node:
        if pa.types.is_date32(node.type):
            return call(raw.on_integers(lambda v: field(v.astype(np.int64)).astype(np.int32), pa.int32()), pa.int32(), [node])
        return call(raw.on_integers(lambda v: field(v // DAY).astype(np.int32), pa.int32()), pa.int32(), [moment(node, what)])

    return build


def _of_time(size: int, count: int) -> Callable[[Node, str], Node]:
    """A field of the time of day."""

    def build(node: Node, what: str) -> Node:
        return call(raw.on_integers(lambda v: (v // size % count).astype(np.int32), pa.int32()), pa.int32(), [moment(node, what)])

    return build


def _day_of_year(days: Ints) -> Ints:
    year, _, _ = civil(days)
    return days - days_from(year, np.ones_like(year), 1) + 1


def _iso_week(days: Ints) -> Ints:
    thursday = days - (days + 3) % 7 + 3
    return (_day_of_year(thursday) - 1) // 7 + 1


FIELDS: dict[str, Callable[[Node, str], Node]] = {
    "year": _of_days(lambda d: civil(d)[0]),
    "quarter": _of_days(lambda d: (civil(d)[1] + 2) // 3),
    "month": _of_days(lambda d: civil(d)[1]),
    "week": _of_days(_iso_week),
    "day": _of_days(lambda d: civil(d)[2]),
    "dayofweek": _of_days(lambda d: (d + 4) % 7 + 1),
    "weekday": _of_days(lambda d: (d + 3) % 7),
    "doy": _of_days(_day_of_year),
    "hour": _of_time(MICROS["hour"], 24),
    "minute": _of_time(MICROS["minute"], 60),
    "second": _of_time(MICROS["second"], 60),
}
_FIELD_FUNCTIONS: tuple[tuple[str, str, type[exp.Expr] | None], ...] = (
    ("year", "year", exp.Year), ("quarter", "quarter", exp.Quarter), ("month", "month", exp.Month), ("weekofyear", "week", exp.WeekOfYear),
    ("day", "day", exp.Day), ("dayofmonth", "day", exp.DayOfMonth), ("dayofweek", "dayofweek", exp.DayOfWeek), ("weekday", "weekday", None),
    ("dayofyear", "doy", exp.DayOfYear), ("hour", "hour", exp.Hour), ("minute", "minute", exp.Minute), ("second", "second", exp.Second),
)  # fmt: skip


def _register_field(name: str, field: str, node: type[exp.Expr] | None) -> None:
    function(name)(lambda nodes, call_: FIELDS[field](nodes[0], call_.name))
    if node is not None:
        rule(node)(lambda expression, scope: FIELDS[field](scope.compile(_unwrapped(expression.this)), name))


def _unwrapped(expression: exp.Expr) -> exp.Expr:
    """The parser wraps arguments of year() and its kin in a conversion to a date, which costs and loses nothing to skip."""
    return expression.this if isinstance(expression, exp.TsOrDsToDate) and not expression.args.get("format") else expression


for _name, _field, _node in _FIELD_FUNCTIONS:
    _register_field(_name, _field, _node)


@rule(exp.Extract)
def _extract(expression: exp.Extract, scope: Scope) -> Node:
    return _field_of(expression.this.name, scope.compile(expression.expression), "extract")


@function("date_part", "datepart", at_least=2)
def _date_part(nodes: Sequence[Node], name: Call) -> Node:
    if not nodes[0].is_constant:
        raise TypeProblem(f"{name.name} takes a constant field", hint="write date_part('year', ts)")
    return _field_of(str(nodes[0].value), nodes[1], name.name)


def _field_of(field: str, node: Node, what: str) -> Node:
    word = {"dow": "dayofweek", "dayofyear": "doy", "dow_iso": "weekday"}.get(field.lower(), field.lower())
    if word not in FIELDS:
        word = unit_name(field, what)
    if word not in FIELDS:
        raise TypeProblem(f"{what} does not know the field {field}", hint=f"there is {', '.join(FIELDS)}")
    return FIELDS[word](node, what)


_TRUNCATIONS = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}


def truncation_unit(expression: exp.Expr) -> str:
    """The unit of date_trunc and trunc, in lower case."""
    unit = expression.args.get("unit")
    word = (unit.name if unit is not None else "").lower()
    if isinstance(unit, exp.WeekStart) or word.startswith("week"):
        return "week"
    return unit_name(_TRUNCATIONS.get(word, word), "date_trunc")


@rule(exp.TimestampTrunc)
def _date_trunc(expression: exp.TimestampTrunc, scope: Scope) -> Node:
    unit = truncation_unit(expression)
    node = moment(scope.compile(expression.this), "date_trunc")
    if unit in MICROS and unit != "week":
        size = MICROS[unit]
        return call(raw.on_integers(lambda v: v - v % size, TIMESTAMP), TIMESTAMP, [node])
    return call(raw.on_integers(lambda v: truncated(v // DAY, unit) * DAY, TIMESTAMP), TIMESTAMP, [node])


@rule(exp.DateTrunc)
def _trunc(expression: exp.DateTrunc, scope: Scope) -> Node:
    unit = truncation_unit(expression)
    node = day(scope.compile(expression.this), "trunc")
    if unit in MICROS and unit != "week":
        return node
    return call(raw.on_integers(lambda v: truncated(v, unit).astype(np.int32), pa.date32()), pa.date32(), [node])


@rule(exp.TsOrDsToDate)
def _to_date(expression: exp.TsOrDsToDate, scope: Scope) -> Node:
    node = scope.compile(expression.this)
    layout = expression.args.get("format")
    if layout is not None and pa.types.is_string(node.type):
        return cast(read_times(node, layout.name, "to_date"), pa.date32())
    return cast(node, pa.date32()) if pa.types.is_string(node.type) else day(node, "to_date")


@rule(exp.StrToTime)
def _to_timestamp(expression: exp.StrToTime, scope: Scope) -> Node:
    node = scope.compile(expression.this)
    if not pa.types.is_string(node.type):
        return moment(node, "to_timestamp")
    return read_times(node, expression.args["format"].name, "to_timestamp")


@rule(exp.TimeStrToTime)
def _as_timestamp(expression: exp.TimeStrToTime, scope: Scope) -> Node:
    return cast(scope.compile(expression.this), TIMESTAMP)


@rule(exp.TimeToStr)
def _date_format(expression: exp.TimeToStr, scope: Scope) -> Node:
    return write_times(scope.compile(expression.this), expression.args["format"].name, "date_format")


@rule(exp.StrToUnix)
def _unix_timestamp(expression: exp.StrToUnix, scope: Scope) -> Node:
    node = scope.compile(expression.this)
    layout = expression.args.get("format")
    if pa.types.is_string(node.type):
        written = "" if layout is None else layout.name
        standard = written.replace("strict", "") in ("", "%Y-%m-%d %H:%M:%S")
        node = cast(node, TIMESTAMP) if standard else read_times(node, written, "unix_timestamp")
    return cast(moment(node, "unix_timestamp"), pa.int64())


@rule(exp.UnixToStr)
def _from_unixtime(expression: exp.UnixToStr, scope: Scope) -> Node:
    seconds = whole(scope.compile(expression.this), "from_unixtime")
    return write_times(cast(seconds, TIMESTAMP), expression.args["format"].name, "from_unixtime")


def _unix(name: str, size: int, node: type[exp.Expr]) -> None:
    kernel = raw.on_integers(lambda v: v // size, pa.int64())
    function(name, node=node)(lambda nodes, call_: call(kernel, pa.int64(), [moment(nodes[0], call_.name)]))


_unix("unix_seconds", MICROS["second"], exp.UnixSeconds)
_unix("unix_millis", 1_000, exp.UnixMillis)
_unix("unix_micros", 1, exp.UnixMicros)


def _from_number(name: str, size: int) -> None:
    scale = pa.scalar(size)
    kernel: Callable[[Datum], Datum] = lambda a: pc.multiply_checked(a, scale).cast(TIMESTAMP)  # noqa: E731
    function(name)(lambda nodes, call_: call(kernel, TIMESTAMP, [whole(nodes[0], call_.name)], fallible=True))


_from_number("timestamp_seconds", MICROS["second"])
_from_number("timestamp_millis", 1_000)
_from_number("timestamp_micros", 1)


@function("unix_date", node=exp.UnixDate)
def _unix_date(nodes: Sequence[Node], name: Call) -> Node:
    return call(lambda a: a.cast(pa.int32()), pa.int32(), [day(nodes[0], name.name)])


@function("date_from_unix_date", node=exp.DateFromUnixDate)
def _date_from_unix_date(nodes: Sequence[Node], name: Call) -> Node:
    return call(lambda a: a.cast(pa.int32()).cast(pa.date32()), pa.date32(), [whole(nodes[0], name.name)], fallible=True)


@rule(exp.TsOrDsAdd)
def _date_add(expression: exp.TsOrDsAdd, scope: Scope) -> Node:
    """date_add and date_sub: a DATE some days on, whatever the argument was."""
    return add_days(day(scope.compile(expression.this), "date_add"), whole(scope.compile(expression.expression), "date_add"))


@rule(exp.TimestampAdd)
def _timestamp_add(expression: exp.TimestampAdd, scope: Scope) -> Node:
    unit = unit_name(expression.args["unit"].name, "timestampadd")
    amount = whole(scope.compile(expression.expression), "timestampadd")
    span = constant_interval(amount.value, unit) if amount.is_constant and amount.value is not None else of_units(amount, unit)
    moved = shift("+", moment(scope.compile(expression.this), "timestampadd"), span)
    assert moved is not None
    return moved


@function("add_months", at_least=2, node=exp.AddMonths, args=("this", "expression"))
def _add_months(nodes: Sequence[Node], name: Call) -> Node:
    """The same day of a later month, or its last day."""
    pairs = rowwise(lambda days, months: int(moved_months(np.array([days]), months)[0]), pa.int32())

    def kernel(date: Datum, months: Datum) -> pa.Array:
        return pairs(date.cast(pa.int32()), months).cast(pa.date32())

    date, months = day(nodes[0], name.name), whole(nodes[1], name.name)
    if months.is_constant and months.value is not None:
        return call(add_months_to_date(months.value), pa.date32(), [date], fallible=True)
    return call(kernel, pa.date32(), [date, months], fallible=True)


@function("last_day", node=exp.LastDay)
def _last_day(nodes: Sequence[Node], name: Call) -> Node:
    def last(days: Ints) -> Ints:
        year, month, _ = civil(days)
        return (days_from(year, month, 1) + month_lengths(year, month) - 1).astype(np.int32)

    return call(raw.on_integers(last, pa.date32()), pa.date32(), [day(nodes[0], name.name)])


@rule(exp.DateDiff)
def _datediff(expression: exp.DateDiff, scope: Scope) -> Node:
    """datediff(end, start): boundaries of days between the two dates; datediff(unit, start, end) counts whole units."""
    unit = expression.args.get("unit")
    if unit is not None and unit.name.lower() not in ("day", "days"):
        return _whole_units(scope.compile(_unwrapped(expression.this)), scope.compile(_unwrapped(expression.expression)), unit.name)
    end, start = (day(scope.compile(_unwrapped(e)), "datediff") for e in (expression.this, expression.expression))
    return call(lambda a, b: pc.subtract(a.cast(pa.int32()), b.cast(pa.int32())), pa.int32(), [end, start])


@rule(exp.TimestampDiff)
def _timestampdiff(expression: exp.TimestampDiff, scope: Scope) -> Node:
    return _whole_units(scope.compile(expression.this), scope.compile(expression.expression), expression.args["unit"].name)


def _whole_units(end: Node, start: Node, unit: str) -> Node:
    size = unit_name(unit, "timestampdiff")
    if size in MONTHS:
        raise UnsupportedProblem(f"timestampdiff in {unit} is not supported", hint="count days, or compare year(...) and month(...)")
    span = shift("-", moment(end, "timestampdiff"), moment(start, "timestampdiff"))
    assert span is not None and span.type == INTERVAL
    return call(lambda a: pc.divide(a.cast(pa.int64()), pa.scalar(MICROS[size])), pa.int64(), [span])


@rule(exp.CurrentTimestamp, exp.CurrentDate, exp.Rand, exp.Randn, exp.Uuid)
def _not_a_function(expression: exp.Func, scope: Scope) -> Node:
    return _refuse(expression.sql_name().lower())


@function("now", "uuid", "rand", at_least=0, at_most=1)
def _now(nodes: Sequence[Node], name: Call) -> Node:
    return _refuse(name.name)


def _refuse(name: str) -> Node:
    raise UnsupportedProblem(
        f"{name} is not supported: an answer must follow from the streams alone, on every run",
        hint="declare the stream TIMESTAMP INTERNAL AS ts to have the time of entry as a column",
    )
