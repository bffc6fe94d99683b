"""Every statement of the language, in the spellings users may type."""

from __future__ import annotations

import pyarrow as pa
import pytest

from millstream.core.types import TIMESTAMP
from millstream.errors import Place
from millstream.language import (
    CreateAggregate,
    CreateSink,
    CreateStream,
    CreateTable,
    CreateView,
    Ets,
    Explain,
    Insert,
    SetOption,
    Timestamp,
    parse,
)
from millstream.language.durations import NO_LIMIT
from millstream.language.statements import Members, Span

DECLARED = "CREATE STREAM S (k BIGINT, closed BOOLEAN, ts TIMESTAMP) "


def one(text: str, **variables: str):
    (statement,) = parse(text, variables=variables)
    return statement


def test_or_replace():
    table, sink = "TABLE T (k INT) WITH (path = 'x')", "SINK S WITH (connector = 'memory')"
    for rest in ("STREAM A (k INT)", table, sink, "VIEW V AS SELECT 1"):
        assert one(f"CREATE OR REPLACE {rest}").replace
        assert not one(f"CREATE {rest}").replace


def test_a_stream_with_every_clause():
    stream = one(
        """CREATE STREAM Bid (auction BIGINT, bidder BIGINT, price DOUBLE, closed BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 2 SECONDS            -- external, disordered by at most 2 s; ${not} a variable
  PUNCTUATE ON (auction) WHEN closed
  PUNCTUATE ON (ts) WHEN price = 0
  ETS ON DEMAND SKEW 500 MILLISECONDS
  WITH (connector = 'file', format = 'parquet', path = '${in}/bid');""",
        **{"in": "/data"},
    )
    assert isinstance(stream, CreateStream)
    assert stream.name == "Bid" and stream.place == Place(1, 1, 1)
    assert [(c.name, c.type) for c in stream.columns] == [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.float64()),
        ("closed", pa.bool_()),
        ("ts", TIMESTAMP),
    ]
    assert stream.timestamp == Timestamp("external", "ts", "slack", 2_000_000)
    assert [p.columns for p in stream.punctuate] == [("auction",), ("ts",)]
    assert stream.punctuate[1].when.sql() == "price = 0" and stream.punctuate[1].place.line == 4
    assert stream.ets == Ets("on-demand", None, 500_000)
    assert stream.options == {"connector": "file", "format": "parquet", "path": "/data/bid"}


@pytest.mark.parametrize(
    ("clauses", "timestamp", "ets"),
    [
        ("", Timestamp("latent"), Ets()),
        ("TIMESTAMP LATENT", Timestamp("latent"), Ets()),
        ("timestamp by TS ordered", Timestamp("external", "ts", "ordered"), Ets()),
        (
            "TIMESTAMP BY ts AHEAD 5 MINUTES",
            Timestamp("external", "ts", "punctuated", ahead=300_000_000),
            Ets(),
        ),
        ("TIMESTAMP BY ts ORDERED ahead 0s", Timestamp("external", "ts", ahead=0), Ets()),
        (
            "TIMESTAMP BY ts SLACK 1 MS AHEAD NONE",
            Timestamp("external", "ts", "slack", 1000, NO_LIMIT),
            Ets(),
        ),
        ("TIMESTAMP BY ts", Timestamp("external", "ts", "punctuated"), Ets()),
        ("TIMESTAMP INTERNAL AS ts ETS NONE", Timestamp("internal", "ts"), Ets("none")),
        (
            "ETS EVERY 100 MS SKEW 1.5 sec TIMESTAMP BY ts",
            Timestamp("external", "ts", "punctuated"),
            Ets("every", 100_000, 1_500_000),
        ),
        ("WITH (a = 1) ETS ON DEMAND TIMESTAMP LATENT", Timestamp("latent"), Ets("on-demand")),
    ],
)
def test_clauses_come_in_any_order(clauses, timestamp, ets):
    stream = one(DECLARED + clauses)
    assert (stream.timestamp, stream.ets) == (timestamp, ets)
    assert [c.name for c in stream.columns] == ["k", "closed", "ts"]


def test_an_internal_timestamp_adds_its_column():
    stream = one("CREATE STREAM Door (door INT) TIMESTAMP INTERNAL AS ts PUNCTUATE ON (ts) WHEN door = 0 WITH (port = 9009)")
    assert [(c.name, c.type) for c in stream.columns] == [("door", pa.int32()), ("ts", TIMESTAMP)]
    assert stream.options == {"port": "9009"}


def test_tables_sinks_and_views():
    table, sink, view = parse(
        "CREATE TABLE Rate (currency STRING, factor DOUBLE) WITH (format = 'csv');"
        "CREATE SINK `my sink` WITH (Connector = 'console', header = TRUE, csv.sep = '\\'', wait = -1.5);"
        "CREATE VIEW Big AS SELECT * FROM Bid WHERE price > 100;"
    )
    assert isinstance(table, CreateTable) and isinstance(sink, CreateSink) and isinstance(view, CreateView)
    assert [c.name for c in table.columns] == ["currency", "factor"]
    assert sink.name == "my sink"
    assert sink.options == {"connector": "console", "header": "true", "csv.sep": "'", "wait": "-1.5"}
    assert view.query.sql(dialect="millstream") == "SELECT * FROM Bid WHERE price > 100"


def test_an_aggregate():
    aggregate = one("CREATE AGGREGATE spread(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'my_aggregates:Spread'")
    assert isinstance(aggregate, CreateAggregate)
    assert (aggregate.name, aggregate.returns, aggregate.language, aggregate.body) == (
        "spread",
        pa.float64(),
        "python",
        "my_aggregates:Spread",
    )
    assert [(p.name, p.type) for p in aggregate.parameters] == [("x", pa.float64())]


@pytest.mark.parametrize(("form", "expected"), [("", "logical"), ("LOGICAL", "logical"), ("graph", "graph"), ("SPARK", "spark")])
def test_explain(form, expected):
    explain = one(f"EXPLAIN {form} SELECT a FROM A")
    assert isinstance(explain, Explain) and explain.form == expected and explain.query.sql() == "SELECT a FROM A"
    explain = one(f"EXPLAIN {form} INSERT INTO Out SELECT a FROM A")
    assert isinstance(explain.query, Insert) and explain.query.sink == "Out" and explain.form == expected


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("SET execution.order = 'out-of-order'", "execution.order", "out-of-order"),
        ("set Execution.Batch = 4096", "execution.batch", 4096),
        ("SET join.feedback = true", "join.feedback", True),
        ("SET join.feedback = FALSE", "join.feedback", False),
        ("SET join.algorithm = auto", "join.algorithm", "auto"),
        ("SET x = -0.5", "x", -0.5),
        ("SET source.max_files_per_batch = 2", "source.max_files_per_batch", 2),
    ],
)
def test_set(text, name, value):
    option = one(text)
    assert isinstance(option, SetOption)
    assert (option.name, option.value) == (name, value) and type(option.value) is type(value)


@pytest.mark.parametrize(
    ("spelling", "kind"),
    [
        ("BOOLEAN", pa.bool_()),
        ("TINYINT", pa.int8()),
        ("SMALLINT", pa.int16()),
        ("INT", pa.int32()),
        ("INTEGER", pa.int32()),
        ("BIGINT", pa.int64()),
        ("LONG", pa.int64()),
        ("FLOAT", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("DECIMAL", pa.decimal128(10, 0)),
        ("DECIMAL(12)", pa.decimal128(12, 0)),
        ("DECIMAL(12, 2)", pa.decimal128(12, 2)),
        ("STRING", pa.string()),
        ("VARCHAR", pa.string()),
        ("BINARY", pa.binary()),
        ("DATE", pa.date32()),
        ("TIMESTAMP", TIMESTAMP),
        ("TIMESTAMP_LTZ", TIMESTAMP),
        ("TIMESTAMP(6)", TIMESTAMP),
    ],
)
def test_types(spelling, kind):
    assert one(f"CREATE STREAM S (x {spelling}, y INT)").columns[0].type == kind


def test_places_through_comments_and_statements():
    text = "-- first; not a statement\n\nSET a = 1;;\n/* ' ; */ SET b = 'x;y';\n  -- more\n  INSERT INTO Out\n  SELECT *\n  FROM A;\n-- end"
    assert [s.place for s in parse(text, file="p.sql")] == [
        Place(3, 1, 1, "p.sql"),
        Place(4, 11, 2, "p.sql"),
        Place(6, 3, 3, "p.sql"),
    ]


def test_nothing_is_no_statement():
    assert parse("") == parse(" ;; -- x\n") == []


def test_punctuate_takes_names_in_any_case() -> None:
    text = "CREATE STREAM S (k INT, b BOOLEAN, ts TIMESTAMP) TIMESTAMP BY TS ORDERED PUNCTUATE ON (K, Ts) WHEN B WITH (path = 's');"
    (stream,) = parse(text)
    assert isinstance(stream, CreateStream)
    assert stream.timestamp.column == "ts" and stream.punctuate[0].columns == ("k", "ts")


def test_promises_of_values() -> None:
    (stream,) = parse(
        "CREATE STREAM S (a BIGINT, b STRING, upto INT) UNIQUE (A) CHECK (b IN ('x', 'y')) PUNCTUATE ON (a <= upto) WHEN b = 'x' "
        "CLUSTERED BY (b, a) UNIQUE (a, b) CHECK (a BETWEEN 1 AND 9) PUNCTUATE ON (a IN (upto, upto + 1)) WHEN b = 'y' CHECK (upto > 0)"
    )
    assert isinstance(stream, CreateStream)
    assert [key.columns for key in stream.unique] == [("a",), ("a", "b")]
    assert [key.columns for key in stream.clustered] == [("b", "a")]
    assert [(c.column, c.condition.sql()) for c in stream.checks] == [
        ("b", "b IN ('x', 'y')"),
        ("a", "a BETWEEN 1 AND 9"),
        ("upto", "upto > 0"),
    ]
    assert [p.told for p in stream.punctuate] == ["a <= upto", "a IN (upto, upto + 1)"]
    first, second, third = (check.values for check in stream.checks)
    assert isinstance(first, Members) and isinstance(second, Span) and isinstance(third, Span)
    assert [e.name for e in first.values] == ["x", "y"]
    assert second.low_inclusive and second.high_inclusive and third.high is None and not third.low_inclusive
