"""The examples of the language's description, word for word but a space or two."""

from __future__ import annotations

import pytest

from millstream.errors import UnsupportedProblem
from millstream.language import Insert, parse, parse_query

DECLARATIONS = """
CREATE STREAM Bid (auction BIGINT, bidder BIGINT, price DOUBLE, closed BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 2 SECONDS            -- external, disordered by at most 2 s; also: ORDERED, or nothing (punctuated)
  PUNCTUATE ON (auction) WHEN closed         -- such a row is a punctuation: no more rows with this auction
  ETS ON DEMAND SKEW 500 MILLISECONDS        -- also: ETS EVERY 100 MILLISECONDS, ETS NONE
  WITH (connector = 'file', format = 'parquet', path = '${in}/bid');

CREATE STREAM Door (door INT)   TIMESTAMP INTERNAL AS ts  WITH (connector = 'socket', port = 9009);
CREATE STREAM Log  (line STRING) TIMESTAMP LATENT          WITH (connector = 'file', format = 'text', path = '${in}/log');
CREATE TABLE  Rate (currency STRING, factor DOUBLE) WITH (format = 'csv', path = '${in}/rate.csv');

CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '${out}');
CREATE SINK Screen WITH (connector = 'console');
"""

QUERIES = """
INSERT INTO Out SELECT srcIP, count(*) AS n FROM Main1 UNION ALL Main2 [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY srcIP;

INSERT INTO Out SELECT A.item_id, count(*) AS bids
FROM Auction [RANGE 12 HOURS] AS A, Bid [NOW] AS B WHERE A.item_id = B.item_id GROUP BY A.item_id;   -- closed by punctuation

INSERT INTO Out SELECT * FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], C [RANGE 5 MINUTES] WHERE A.x = B.x AND A.y = C.y;

INSERT INTO Out SELECT A.k, A.v, B.v AS bv FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 5 SECONDS] ON A.k = B.k; -- also LEFT SEMI, LEFT ANTI
INSERT INTO Out SELECT DISTINCT k, g FROM A [RANGE 1 MINUTE];                                                    -- once per window

INSERT INTO Out SELECT c.id AS case_id, p.id AS product_id, p.ts
FROM SEQ(CaseRead AS c, ProductRead AS p) MODE RECENT WITHIN 1 HOUR PARTITION BY line;

CREATE VIEW Big AS SELECT * FROM Bid WHERE price > 100;       -- shared by the queries that read it (a fork)
CREATE AGGREGATE spread(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'my_aggregates:Spread';
"""

SEQUENCE = """
INSERT INTO Out SELECT c.id AS case_id, p.id AS product_id, p.ts
FROM SEQ(CaseRead AS c, ProductRead AS p) MODE RECENT WITHIN 1 HOUR PARTITION BY line;
"""

VARIABLES = {"in": "/in", "out": "/out"}


def test_declarations():
    assert [f"{type(s).__name__} {s.name}" for s in parse(DECLARATIONS, variables=VARIABLES)] == [
        "CreateStream Bid",
        "CreateStream Door",
        "CreateStream Log",
        "CreateTable Rate",
        "CreateSink Out",
        "CreateSink Screen",
    ]


def test_queries():
    assert SEQUENCE in QUERIES
    statements = parse(QUERIES.replace(SEQUENCE, ""))
    assert [type(s).__name__ for s in statements] == ["Insert"] * 5 + ["CreateView", "CreateAggregate"]
    for statement in statements:
        if isinstance(statement, Insert):
            assert parse_query(statement.query.sql(dialect="millstream")) == statement.query


def test_a_sequence_is_refused_by_name():
    with pytest.raises(UnsupportedProblem, match="SEQ patterns are not supported yet") as caught:
        parse(SEQUENCE)
    assert (caught.value.place.line, caught.value.place.column) == (3, 6)
