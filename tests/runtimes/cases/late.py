"""Tuples that break a promise or can not be computed: they become dead letters, the others go on."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.runtimes.case import AB, Case, at

BUCKET = "time_bucket(INTERVAL 10 SECONDS, ts) AS window_start, time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end"
CLOSING = """
CREATE STREAM Bid (auction INT, price INT, closed BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 1 MINUTE PUNCTUATE ON (auction) WHEN closed;
"""

FUTURE = datetime(2999, 1, 1, tzinfo=UTC)

CASES = [
    Case(
        "later_than_the_slack",
        "late tuples become dead letters",
        "INSERT INTO Out SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k;",
        f"SELECT k, count(*) AS n, {BUCKET} FROM A WHERE v < 90 GROUP BY ALL",
        inputs={
            "A": [
                (1, 1, at(0)),
                (1, 2, at(20)),
                (1, 3, at(15)),
                (1, 98, at(14.9)),
                (2, 4, at(30)),
                (1, 99, at(3)),
                (2, 5, at(25)),
            ]
        },
        letters=[("A", "late", '"v": 98'), ("A", "late", '"v": 99')],
    ),
    Case(
        "out_of_order",
        "late tuples become dead letters",
        "INSERT INTO Out SELECT k, w, ts FROM B;",
        "SELECT k, w, ts FROM B WHERE w < 90",
        inputs={"B": [(1, 1, at(5)), (1, 2, at(5)), (1, 91, at(4.999999)), (1, 3, at(6))]},
        letters=[("B", "late", '"w": 91')],
    ),
    Case(
        "late_for_a_join",
        "late tuples become dead letters",
        "INSERT INTO Out SELECT v, w FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 5 SECONDS] ON A.k = B.k;",
        """SELECT v, w FROM (FROM A WHERE v < 90) AS A LEFT JOIN (FROM B WHERE w < 90) AS B
           ON A.k = B.k AND B.ts BETWEEN A.ts - INTERVAL 5 SECONDS AND A.ts + INTERVAL 5 SECONDS""",
        inputs={
            "A": [(1, 1, at(1)), (1, 2, at(10)), (1, 99, at(2)), (2, 3, at(20))],
            "B": [(1, 5, at(2)), (1, 6, at(12)), (1, 98, at(3)), (2, 7, at(13))],
        },
        letters=[("A", "late", '"v": 99'), ("B", "late", '"w": 98')],
    ),
    Case(
        "after_a_heartbeat",
        "late tuples become dead letters",
        "INSERT INTO Out SELECT k, count(*) AS n FROM H [RANGE 10 SECONDS] GROUP BY k;",
        f"SELECT k, count(*) AS n, {BUCKET} FROM H WHERE NOT beat AND k < 9 GROUP BY ALL",
        streams="CREATE STREAM H (k INT, beat BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts PUNCTUATE ON (ts) WHEN beat;",
        inputs={
            "H": [
                (1, False, at(3)),
                (None, True, at(10)),
                (1, False, at(10)),
                (9, False, at(9)),
                (1, False, at(12)),
            ]
        },
        letters=[("H", "late", '"k": 9')],
    ),
    Case(
        "ahead_of_its_arrival",
        "tuples ahead of their arrival become dead letters",
        "INSERT INTO Out SELECT k, count(*) AS n FROM F [RANGE 10 SECONDS] GROUP BY k;"
        " INSERT INTO Closed SELECT k, v FROM U;",
        {
            "Out": f"SELECT k, count(*) AS n, {BUCKET} FROM F WHERE k < 8 GROUP BY ALL",
            "Closed": "SELECT k, v FROM U WHERE v < 90",
        },
        streams="""
        CREATE STREAM F (k INT, beat BOOLEAN, ts TIMESTAMP)
          TIMESTAMP BY ts SLACK 1 SECOND AHEAD 5 MINUTES PUNCTUATE ON (ts) WHEN beat;
        CREATE STREAM U (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED AHEAD 1 DAY UNIQUE (k);
        """,
        inputs={
            "F": [
                (1, False, at(0)),
                (9, False, FUTURE),
                (2, False, at(1)),
                (8, True, FUTURE),
                (1, False, at(12)),
                (2, False, at(30)),
            ],
            "U": [(1, 91, FUTURE), (1, 1, at(0)), (2, 2, at(1)), (1, 92, at(2))],
        },
        letters=[
            ("F", "ahead", '"k": 9'),
            ("F", "ahead", '"k": 8'),
            ("U", "ahead", '"v": 91'),
            ("U", "late", '"v": 92'),
        ],
    ),
    Case(
        "after_its_value_was_closed",
        "tuples of a closed value become dead letters",
        "INSERT INTO Out SELECT auction, count(*) AS n FROM Bid GROUP BY auction;",
        "SELECT auction, count(*) AS n FROM Bid WHERE NOT closed AND price < 90 GROUP BY auction",
        streams=CLOSING,
        inputs={
            "Bid": [
                (1, 1, False, at(0)),
                (1, None, True, at(1)),
                (2, 2, False, at(1)),
                (1, 99, False, at(2)),
                (2, None, True, at(3)),
                (3, 3, False, at(4)),
                (2, 98, False, at(5)),
            ]
        },
        letters=[("Bid", "late", '"price": 99'), ("Bid", "late", '"price": 98')],
    ),
    Case(
        "without_a_time",
        "tuples without a timestamp become dead letters",
        "INSERT INTO Out SELECT k, v FROM A;",
        "SELECT k, v FROM A WHERE ts IS NOT NULL",
        inputs={"A": [(1, 1, at(0)), (2, 2, None), (3, 3, at(1))]},
        letters=[("A", "null-timestamp", '"v": 2')],
    ),
    Case(
        "can_not_be_computed",
        "tuples that can not be computed become dead letters",
        "INSERT INTO Out SELECT k, v * 1000000000 AS q FROM A;",
        "SELECT k, v * 1000000000 AS q FROM A WHERE abs(v) < 3 OR v IS NULL",
        inputs={"A": [(1, 2, at(0)), (2, 3, at(1)), (3, None, at(1)), (4, -9, at(2)), (5, -2, at(2))]},
        letters=[("A", "error", '"k": 2'), ("A", "error", '"k": 4')],
    ),
    Case(
        "can_not_be_cast",
        "tuples that can not be computed become dead letters",
        "INSERT INTO Out SELECT n, count(*) AS c FROM (SELECT CAST(s AS INT) AS n, ts FROM T) [RANGE 10 SECONDS] AS S GROUP BY n;",
        f"SELECT TRY_CAST(s AS INT) AS n, count(*) AS c, {BUCKET} FROM T WHERE s <> 'many' GROUP BY ALL",
        streams="CREATE STREAM T (s STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;",
        inputs={"T": [("1", at(0)), ("many", at(1)), ("1", at(2)), ("-3", at(11))]},
        letters=[("T", "error", '"s": "many"')],
    ),
    Case(
        "everything_is_late",
        "late tuples become dead letters",
        "INSERT INTO Out SELECT count(*) AS n FROM A UNION B [RANGE 10 SECONDS];",
        f"SELECT count(*) AS n, {BUCKET} FROM (SELECT ts, v FROM A UNION ALL SELECT ts, w FROM B) WHERE v < 90 GROUP BY ALL",
        streams=AB,
        inputs={
            "A": [(1, 0, at(100)), *((1, 90 + n, at(n)) for n in range(5))],
            "B": [(1, 0, at(n)) for n in range(5)],
        },
        letters=[("A", "late", f'"v": {90 + n}') for n in range(5)],
    ),
]
