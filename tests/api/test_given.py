"""Frames and tables of any library are taken, anything else is refused in one line where it is given."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import millstream as ms
from millstream.core.types import TIMESTAMP
from millstream.io.contract import Source
from millstream.session.rows import _value

FRAME = pd.DataFrame(
    {
        "units": [1, 2, 3],
        "name": ["a", None, "c"],
        "ts": pd.to_datetime([f"2026-01-01 12:0{minute}" for minute in range(3)]),
    }
)
"""A frame with a column that is named like a method of a source."""
NAMES = pa.array(["a", None, "c"], pa.string_view())
COLUMNS = "units BIGINT, name STRING, ts TIMESTAMP"
MOMENTS = [datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in range(3)]
ANSWER = [{"units": 1, "name": "a", "ts": MOMENTS[0]}, {"units": 3, "name": "c", "ts": MOMENTS[2]}]


class Exporting:
    """The least that a library's frame has in common with others."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def relation() -> Any:
    return duckdb.sql(
        "SELECT * FROM (VALUES (1::BIGINT, 'a', TIMESTAMP '2026-01-01 12:00:00'),"
        " (2, NULL, TIMESTAMP '2026-01-01 12:01:00'),"
        " (3, 'c', TIMESTAMP '2026-01-01 12:02:00')) AS t(units, name, ts)"
    )


FORMS: dict[str, Any] = {
    "pandas": lambda: FRAME,
    "pandas, filtered": lambda: pd.concat([FRAME, FRAME[:1]]).iloc[:3].set_index(pd.Index([7, 8, 9])),
    "pandas, indexed": lambda: FRAME.set_index("units"),
    "pandas, zoned": lambda: FRAME.assign(
        ts=(FRAME["ts"] + pd.Timedelta(hours=1)).dt.tz_localize("Europe/Berlin")
    ),
    "pandas, categorical": lambda: FRAME.assign(name=FRAME["name"].astype("category")),
    "duckdb": relation,
    "arrow": lambda: pa.Table.from_pandas(FRAME),
    "batch": lambda: pa.RecordBatch.from_pandas(FRAME),
    "reader": lambda: pa.Table.from_pandas(FRAME).to_reader(),
    "any": lambda: Exporting(pa.Table.from_pandas(FRAME)),
    "views": lambda: pa.Table.from_pandas(FRAME[["units", "ts"]]).append_column("name", NAMES),
}


@pytest.mark.parametrize("schema", [None, COLUMNS], ids=["own", "declared"])
@pytest.mark.parametrize("form", FORMS)
def test_frames_and_tables_of_any_library_are_streams(form: str, schema: str | None) -> None:
    stream = (
        ms.Session("local").add_stream("A", FORMS[form](), schema=schema, time="ts").where("name IS NOT NULL")
    )
    assert stream.select("units", "name", "ts").start().wait().to_arrow().to_pylist() == ANSWER


@pytest.mark.parametrize("form", FORMS)
def test_frames_and_tables_of_any_library_are_tables_and_inputs_of_tests(form: str) -> None:
    session = ms.Session("local")
    session.add_table("T", FORMS[form]())
    session.sql(
        f"CREATE STREAM A ({COLUMNS}) TIMESTAMP BY ts ORDERED WITH (path = 'a.csv');"
        "CREATE SINK Out WITH (connector = 'memory');"
        "INSERT INTO Out SELECT T.units AS units, T.name AS name, A.ts AS ts FROM A, T WHERE A.name = T.name"
    )
    assert ms.testing.run(session, {"A": FORMS[form]()}) == ANSWER
    live = ms.testing.Live(session)
    live.push("A", FORMS[form]())
    assert live.rows() == ANSWER


def test_tables_take_what_streams_take() -> None:
    session = ms.Session("local")
    assert session.add_table("T", [{"k": 1}, {"k": 2, "name": "Bo"}]).columns == ["k", "name"]
    assert session.add_table("U", [(1, "Ada")], schema="k INT, name STRING").columns == ["k", "name"]
    assert session.add_table(
        "V", [(1, "Ada")], schema=pa.schema([("k", pa.uint8()), ("`", pa.large_string())])
    ).columns == ["k", "`"]


def test_each_tuple_of_an_iterator_is_taken() -> None:
    """Both the columns and the tuples come from it, and it can be read once."""
    stream = ms.Session("local").add_stream(
        "A", ({"k": number, "late": None if number else 1} for number in range(3))
    )
    assert stream.start().wait().to_arrow()["k"].to_pylist() == [0, 1, 2]


FORM = "give dictionaries, sequences in column order, or a frame or table of pandas, Polars, DuckDB or Arrow"
WRONG: list[tuple[Any, str]] = [
    (["abc"], f"tuple 1 is a value of type str; {FORM}"),
    ([("a", "b", None), b"abc"], f"tuple 2 is a value of type bytes; {FORM}"),
    ("abc", f"a value of type str is no list of tuples; {FORM}"),
    ([{1, 2, 3}], f"tuple 1 is a value of type set; {FORM}"),
    ([1], f"tuple 1 is a value of type int; {FORM}"),
    (5, f"a value of type int is no list of tuples; {FORM}"),
    (None, f"a value of type NoneType is no list of tuples; {FORM}"),
    (pd.DataFrame, f"the class DataFrame is no list of tuples; {FORM}"),
    (FRAME["name"], f"tuple 1 is a value of type str; {FORM}"),
    (pa.array([1]), "a value of type Int64Array can not be read as a table: "),
    (
        pd.DataFrame({"x": [1, "x"]}),
        "a value of type DataFrame can not be read as a table: Could not convert 'x'",
    ),
    ({"x": ["a"]}, "a dictionary is no list of tuples; pyarrow.table(...) makes a table of columns"),
]


@pytest.mark.parametrize(("rows", "message"), WRONG, ids=[str(message)[:40] for _, message in WRONG])
def test_what_is_no_list_of_tuples_is_refused(rows: Any, message: str) -> None:
    session = ms.Session("local")
    session.sql(
        "CREATE STREAM B (x STRING, y STRING, z STRING) WITH (path = 'b.csv');"
        "CREATE SINK Out WITH (connector = 'memory')"
    )
    session.sql("INSERT INTO Out SELECT x FROM B")
    for give, owner in (
        (lambda: session.add_stream("A", rows, schema="x STRING, y STRING, z STRING"), "stream A"),
        (lambda: session.add_stream("A", rows), "stream A"),
        (lambda: session.add_table("A", rows), "table A"),
        (lambda: ms.testing.run(session, {"B": rows}), "stream B"),
        (lambda: ms.testing.Live(session).push("B", rows), "stream B"),
    ):
        with pytest.raises(ms.errors.TypeProblem) as told:
            give()
        assert str(told.value).startswith(f"{owner}: {message}")


DECLARATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({"rows": []}, "no tuple tells what its columns are; name them with schema="),
    "no columns": ({"rows": pd.DataFrame()}, "there are no columns; name them with schema="),
    "no names": ({"rows": [(1, 2)]}, "the tuples do not name their columns; name them with schema="),
    "no type": ({"rows": [{"a": 1}, {"a": "x"}]}, "the values of column `a` have no type in common: "),
    "only nulls": ({"rows": [{"a": None}]}, "column `a` has nothing but nulls; name its type with schema="),
    "lists": (
        {"rows": pa.table({"a": [[1]]})},
        "column `a` is list<item: int64>, which is no type of the language",
    ),
    "case": ({"rows": pa.table([[1], [2]], names=["a", "A"])}, "two columns are called `A`; rename one"),
    "twice": ({"rows": pa.table([[1], [2]], names=["a", "a"])}, "two columns are called `a`; rename one"),
    "reserved": ({"rows": pa.table({"__a": [1]})}, "the name `__a` is reserved"),
    "too large": (
        {"rows": pa.table({"a": pa.array([2**63], pa.uint64())})},
        "column `a`: Integer value 9223372036854775808",
    ),
    "no schema": (
        {"rows": [(1,)], "schema": ["a"]},
        "a value of type list is no schema; write schema='k BIGINT",
    ),
}


@pytest.mark.parametrize("case", DECLARATIONS)
def test_columns_that_can_not_be_declared_are_told_without_a_false_place(case: str) -> None:
    given, message = DECLARATIONS[case]
    for kind in ("stream", "table"):
        with pytest.raises(ms.MillstreamError) as told:
            getattr(ms.Session("local"), f"add_{kind}")("A", **given)
        assert str(told.value).startswith(f"{kind} A: {message}")


def test_a_wrong_timestamp_is_told_without_a_false_place() -> None:
    session = ms.Session("local")
    with pytest.raises(ms.MillstreamError, match=r"^stream A: no column `tss`; did you mean `ts`\?"):
        session.add_stream("A", FRAME, time="tss")
    with pytest.raises(
        ms.MillstreamError, match=r"^stream A: its text goes on behind a `;`; leave the `;` out"
    ):
        session.add_stream("A", [(1,)], schema="a INT); CREATE STREAM B (b INT")
    with pytest.raises(
        ms.MillstreamError, match=r"^stream A: slack is about a timestamp; name its column with time="
    ):
        session.add_stream("A", FRAME, slack="2 seconds")


class Half:
    """A part of a source."""

    schema = pa.schema([("k", pa.int64())])
    bounded = True

    def units(self, start: object, end: object) -> list[object]:
        return []


def test_sources_and_sinks_are_checked_when_they_are_given() -> None:
    session = ms.Session("local")
    lack = "`check`, `initial`, `latest`, `read`, `arrived`, `finished`, `release`, `close`"
    with pytest.raises(
        ms.errors.SourceProblem,
        match=rf"^stream A: a value of type Half is no source: it has no {lack}; give tuples, or",
    ):
        session.add_stream("A", Half())
    with pytest.raises(
        ms.errors.SourceProblem, match=r"^stream A: the class ListSource is no source; give tuples, or"
    ):
        session.add_stream("A", ms.ListSource)
    lack = "`name`, `distributed`, `check`, `writer`, `commit`, `finish`"
    function = f"a value of type builtin_function_or_method is no sink: it has no {lack}"
    for wrong, said in ((print, function), (ms.MemorySink, "the class MemorySink is no sink")):
        way_out = "leave it out to keep the answer in memory, or write CREATE SINK"
        with pytest.raises(ms.errors.SinkProblem, match=rf"^sink P: {said}; {way_out}"):
            session.add_sink("P", wrong)
    assert list(session.pipeline.catalog.relations) == list(session.pipeline.catalog.sinks) == []


def test_a_source_brings_the_types_it_is_declared_with() -> None:
    session = ms.Session("local")
    source = ms.ListSource("A", pa.schema([("k", pa.uint32()), ("ts", TIMESTAMP)]))
    with pytest.raises(
        ms.MillstreamError,
        match=r"^stream A: its source brings \(k uint32, .*\), declared is \(k int64, ",
    ):
        session.add_stream("A", source, time="ts")
    assert isinstance(
        session.add_stream("B", ms.ListSource("B", pa.schema([("k", pa.int64())]))), ms.StreamHandle
    )
    assert not [name for name in vars(Source) if not name.startswith("_") and not hasattr(source, name)]


@pytest.mark.parametrize("kind", ["stream", "table", "sink"])
def test_a_name_is_a_text(kind: str) -> None:
    given = [] if kind == "sink" else [[{"k": 1}]]
    with pytest.raises(
        ms.errors.TypeProblem, match=f"the name of a {kind} is a text, not a value of type int"
    ):
        getattr(ms.Session("local"), f"add_{kind}")(5, *given)


def test_a_source_in_memory_takes_arrow() -> None:
    feed = ms.ListSource("Feed", pa.schema([("k", pa.int64())]), ended=False)
    said = "stream Feed: push takes a record batch or a table of Arrow, not a list"
    with pytest.raises(ms.errors.SourceProblem, match=said):
        feed.push([{"k": 1}])  # type: ignore[arg-type]


def test_missing_values_of_pandas_are_null_and_numbers_are_whole_where_the_column_is() -> None:
    schema = "k BIGINT, d DATE, m DECIMAL(5, 2), s STRING, x DOUBLE, ts TIMESTAMP"
    frame = pd.DataFrame(
        {
            "k": pd.array([1, None], "Int64"),
            "d": pd.to_datetime(["2026-01-01", None]),
            "m": [1.5, None],
            "s": ["a", float("nan")],
            "x": [float("nan"), 2.0],
            "ts": pd.to_datetime(["2026-01-01 12:00", "2026-01-01 12:01"]),
        }
    )
    stream = ms.Session("local").add_stream("A", frame.to_dict("records"), schema=schema, time="ts")
    first, second = (list(row.values()) for row in stream.start().wait().to_arrow().to_pylist())
    assert [str(value) for value in first[:5]] == ["1", "2026-01-01", "1.50", "a", "nan"]
    assert second[:5] == [None, None, None, None, 2.0]
    moments = [
        np.datetime64("2026-01-01T12:00:00"),
        date(2026, 1, 2),
        pd.Timestamp("2026-01-03"),
        np.float64(1e15),
    ]
    stream = ms.Session("local").add_stream("B", [(moment,) for moment in moments], schema="ts TIMESTAMP")
    assert [row["ts"].isoformat()[:16] for row in stream.start().wait().to_arrow().to_pylist()] == [
        "2026-01-01T12:00", "2026-01-02T00:00", "2026-01-03T00:00", "2001-09-09T01:46",
    ]  # fmt: skip
    for kind, value in (
        ("INT", 1.5),
        ("BIGINT", Decimal("0.5")),
        ("TIMESTAMP", 0.5),
        ("DATE", np.float32(0.5)),
        ("INT", float("inf")),
    ):
        with pytest.raises(
            ms.errors.TypeProblem,
            match=f"stream A: a value does not fit column `k`: {value} is no whole number",
        ):
            ms.Session("local").add_stream("A", [(value,)], schema=f"k {kind}")


def test_an_empty_time_is_a_letter() -> None:
    """NaT is a datetime of the year 1 to whoever asks it."""
    query = (
        ms.Session("local")
        .add_stream("A", [(pd.NaT,), (None,)], schema="ts TIMESTAMP", time="ts")
        .start()
        .wait()
    )
    assert (query.to_arrow().num_rows, query.metrics().letters) == (0, {"null-timestamp": 2})


def test_reserved_names_are_refused() -> None:
    session = ms.Session("local")
    table = pa.table({"k": [1]})
    for add in (
        lambda: session.add_stream("__S", table),
        lambda: session.add_table("__T", table),
        lambda: session.add_table("T", pa.table({"__k": [1]})),
        lambda: session.add_sink("__P"),
    ):
        with pytest.raises(ms.errors.NameProblem, match=r"`__.` is reserved"):
            add()


def test_a_table_needs_names_that_differ_in_more_than_their_case() -> None:
    session = ms.Session("local")
    with pytest.raises(ms.errors.NameProblem, match="two columns are called `K`"):
        session.add_table("T", pa.table({"k": [1], "K": [2]}))
    with pytest.raises(ms.errors.TypeProblem, match="table T: the tuples do not name their columns"):
        session.add_table("T", [(1,)])


VALUES: list[tuple[Any, str, object]] = [
    ("2026-01-01 12:00:05", "TIMESTAMP", datetime(2026, 1, 1, 12, 0, 5, tzinfo=UTC)),
    ("2026-01-01T14:00:05+02:00", "TIMESTAMP", datetime(2026, 1, 1, 12, 0, 5, tzinfo=UTC)),
    (5, "DECIMAL(10, 2)", Decimal("5.00")),
    (0.1, "DECIMAL(10, 2)", Decimal("0.10")),
    (0.123, "DECIMAL(10, 2)", None),
    (1e300, "FLOAT", None),
    (0.5, "FLOAT", 0.5),
    (pd.Timestamp("2026-01-01"), "DATE", date(2026, 1, 1)),
    (pd.Timestamp("2026-01-01 05:00"), "DATE", None),
    (1.5, "BIGINT", None),
    (2, "BOOLEAN", None),
    (b"\xff", "STRING", None),
    ("soon", "TIMESTAMP", None),
    ("x", "DECIMAL(5, 2)", None),
]


@pytest.mark.parametrize("as_frame", [True, False], ids=["frame", "tuples"])
@pytest.mark.parametrize(
    ("value", "kind", "expected"), VALUES, ids=[f"{value} {kind}" for value, kind, _ in VALUES]
)
def test_a_value_is_taken_as_it_is_or_refused(
    value: Any, kind: str, expected: object, as_frame: bool
) -> None:
    """Dictionaries and frames with the declared columns agree on what fits."""
    rows = pd.DataFrame({"c": [value, None]}) if as_frame else [{"c": value}, {"c": None}]
    session = ms.Session("local")
    if expected is None:
        with pytest.raises(ms.errors.TypeProblem, match=r"stream A: .*column `c`: "):
            session.add_stream("A", rows, schema=f"c {kind}")
    else:
        answer = session.add_stream("A", rows, schema=f"c {kind}").start().wait().to_arrow()
        assert answer["c"].to_pylist() == [expected, None]


def test_a_session_of_spark_leaves_arrow_as_it_was(spark: object) -> None:
    """The same rows give the same answer in one process before and after a run on Spark in that process."""
    moment = datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert pa.array([moment], TIMESTAMP)[0].as_py() == moment
    for runtime in ("spark", "local"):
        session = ms.Session(runtime)
        stream = session.add_stream("A", [{"ts": moment}], schema="ts TIMESTAMP", time="ts")
        assert stream.start().wait().to_arrow()["ts"].to_pylist() == [moment]


def test_an_offset_counts_where_arrow_is_told_to_pass_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYARROW_IGNORE_TIMEZONE", "1")
    assert _value("2026-01-01T14:00:05+02:00", TIMESTAMP).utcoffset() == timedelta(0)
    with pytest.raises(ValueError, match="outside the years"):
        _value("0001-01-01T00:00:00+02:00", TIMESTAMP)


class Failing:
    """A frame whose library fails when it exports."""

    def __init__(self, problem: Exception) -> None:
        self.problem = problem

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        raise self.problem


@pytest.mark.parametrize("problem", [AssertionError(), RuntimeError("no session\n\tat java.base/Thread.run(Thread.java)")])
def test_a_frame_that_can_not_be_exported_is_refused_in_one_line(problem: Exception) -> None:
    with pytest.raises(ms.errors.TypeProblem) as told:
        ms.Session("local").add_stream("S", Failing(problem))
    said = str(problem).split("\n")[0] or "AssertionError"
    assert str(told.value).startswith(f"stream S: a value of type Failing can not be read as a table: {said}; give dictionaries")


def test_a_frame_of_spark_that_can_not_be_exported_names_its_way_to_a_table() -> None:
    kind = type("DataFrame", (Failing,), {"__module__": "pyspark.sql.classic.dataframe"})
    with pytest.raises(ms.errors.TypeProblem, match=r"AssertionError; make a table of the DataFrame with its toArrow\(\)$"):
        ms.Session("local").add_table("T", kind(AssertionError()))
