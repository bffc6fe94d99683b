"""Punctuations by value and by time, and the three kinds of timestamps."""

from __future__ import annotations

from tests.runtimes.case import Case, at

CLOSING = (
    "CREATE STREAM Bid (auction INT, price INT, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts {order} PUNCTUATE ON (auction) WHEN closed;"
)
BIDS = [
    (1, 10, False, at(0)),
    (2, 20, False, at(1)),
    (1, 30, False, at(2)),
    (1, None, True, at(3)),
    (3, 7, False, at(3)),
    (2, 5, False, at(9)),
    (2, None, True, at(9)),
    (None, 1, False, at(9)),
    (4, 9, False, at(10)),
]
BEATS = "CREATE STREAM A (k INT, beat BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts PUNCTUATE ON (ts) WHEN beat;"
BEATING = [
    (1, False, at(8)),
    (2, False, at(3)),
    (1, False, at(0)),
    (None, True, at(10)),
    (1, False, at(31)),
    (2, False, at(12)),
    (None, True, at(30)),
]
BUCKET = "time_bucket(INTERVAL 10 SECONDS, ts) AS window_start, time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end"
DOOR = "CREATE STREAM Door (door INT, n INT) TIMESTAMP INTERNAL AS ts;"
LOG = "CREATE STREAM Log (line STRING, n INT) TIMESTAMP LATENT; CREATE STREAM More (line STRING, n INT) TIMESTAMP LATENT;"
DOORS = [(n % 3, n) for n in range(20)]
LINES = [(f"line {n % 4}", n) for n in range(20)]

CASES = [
    Case(
        "punctuated_groups",
        "PUNCTUATE ON a column: GROUP BY without a window",
        "INSERT INTO Out SELECT auction, count(*) AS n, max(price) AS top FROM Bid GROUP BY auction;",
        "SELECT auction, count(*) AS n, max(price) AS top FROM Bid WHERE NOT closed GROUP BY auction",
        streams=CLOSING.format(order="ORDERED"),
        inputs={"Bid": BIDS},
    ),
    Case(
        "punctuated_groups_in_windows",
        "PUNCTUATE ON a column: in windows",
        "INSERT INTO Out SELECT auction, count(*) AS n FROM Bid [RANGE 10 SECONDS] GROUP BY auction;",
        f"SELECT auction, count(*) AS n, {BUCKET} FROM Bid WHERE NOT closed GROUP BY ALL",
        streams=CLOSING.format(order="SLACK 5 SECONDS"),
        inputs={"Bid": BIDS},
    ),
    Case(
        "punctuated_distinct",
        "PUNCTUATE ON a column: SELECT DISTINCT without a window",
        "INSERT INTO Out SELECT DISTINCT auction, price > 8 AS high FROM Bid;",
        "SELECT DISTINCT auction, price > 8 AS high FROM Bid WHERE NOT closed",
        streams=CLOSING.format(order="ORDERED"),
        inputs={"Bid": BIDS},
    ),
    Case(
        "punctuations_are_no_tuples",
        "PUNCTUATE ON a column",
        "INSERT INTO Out SELECT * FROM Bid;",
        "FROM Bid WHERE NOT closed",
        streams=CLOSING.format(order="ORDERED"),
        inputs={"Bid": BIDS},
    ),
    Case(
        "punctuated_pairs",
        "PUNCTUATE ON several columns",
        "INSERT INTO Out SELECT a, b, count(*) AS n FROM P GROUP BY a, b;",
        "SELECT a, b, count(*) AS n FROM P WHERE NOT done GROUP BY a, b",
        streams="CREATE STREAM P (a INT, b STRING, done BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts ORDERED PUNCTUATE ON (a, b) WHEN done;",
        inputs={
            "P": [(1, "x", False, at(0)), (1, "y", False, at(0)), (1, "x", True, at(1)), (2, "x", False, at(2)), (1, "y", False, at(3))]
        },
    ),
    Case(
        "heartbeats",
        "heartbeats: PUNCTUATE ON the time",
        "INSERT INTO Out SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k;",
        f"SELECT k, count(*) AS n, {BUCKET} FROM A WHERE NOT beat GROUP BY ALL",
        streams=BEATS,
        inputs={"A": BEATING},
    ),
    Case(
        "heartbeats_in_a_join",
        "heartbeats: PUNCTUATE ON the time",
        "INSERT INTO Out SELECT x.ts AS a, y.ts AS b FROM A [RANGE 10 SECONDS] AS x, A [NOW] AS y WHERE x.k = y.k;",
        """SELECT x.ts AS a, y.ts AS b FROM A AS x, A AS y
           WHERE x.k = y.k AND NOT x.beat AND NOT y.beat AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 10 SECONDS""",
        streams=BEATS,
        inputs={"A": BEATING},
    ),
    Case(
        "no_progress_at_all",
        "streams that promise nothing until they end",
        "INSERT INTO Out SELECT k, count(*) AS n FROM A [RANGE 10 SECONDS] GROUP BY k;",
        f"SELECT k, count(*) AS n, {BUCKET} FROM A WHERE NOT beat GROUP BY ALL",
        streams=BEATS,
        inputs={"A": [row for row in BEATING if not row[1]]},
    ),
    Case(
        "enabling_timestamps",
        "ETS clauses",
        "INSERT INTO Out SELECT count(*) AS n FROM A UNION B UNION C [RANGE 10 SECONDS];",
        f"SELECT count(*) AS n, {BUCKET} FROM (FROM A UNION ALL FROM B UNION ALL FROM C) GROUP BY ALL",
        streams="""
CREATE STREAM A (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW 500 MILLISECONDS;
CREATE STREAM B (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS EVERY 100 MILLISECONDS;
CREATE STREAM C (k INT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 2 SECONDS ETS NONE;
""",
        inputs={"A": [(1, at(n)) for n in range(40)], "B": [(2, at(5))], "C": [(3, at(30)), (3, at(28)), (3, at(29))]},
    ),
    Case(
        "internal",
        "TIMESTAMP INTERNAL",
        "INSERT INTO Out SELECT door, n FROM Door WHERE n > 3;",
        "FROM Door WHERE n > 3",
        streams=DOOR,
        inputs={"Door": DOORS},
    ),
    Case(
        "internal_stamped",
        "TIMESTAMP INTERNAL",
        "INSERT INTO Out SELECT n, ts > CAST('2020-01-01' AS TIMESTAMP) AS late FROM Door;",
        "SELECT n, true AS late FROM Door",
        streams=DOOR,
        inputs={"Door": DOORS},
    ),
    Case(
        "internal_in_windows",
        "TIMESTAMP INTERNAL",
        "INSERT INTO Out SELECT door, m FROM (SELECT door, count(*) AS m FROM Door [RANGE 20000 DAYS] GROUP BY door) AS D;",
        "SELECT door, count(*) AS m FROM Door GROUP BY door",
        streams=DOOR,
        inputs={"Door": DOORS},
    ),
    Case(
        "latent",
        "TIMESTAMP LATENT",
        "INSERT INTO Out SELECT * FROM Log WHERE n > 3;",
        "FROM Log WHERE n > 3",
        streams=LOG,
        inputs={"Log": LINES},
    ),
    Case(
        "latent_union",
        "TIMESTAMP LATENT",
        "INSERT INTO Out SELECT n, line FROM Log UNION More;",
        "SELECT n, line FROM Log UNION ALL SELECT n, line FROM More",
        streams=LOG,
        inputs={"Log": LINES, "More": LINES[:3]},
    ),
    Case(
        "latent_rows",
        "TIMESTAMP LATENT",
        "INSERT INTO Out SELECT line, sum(n) AS s FROM Log [ROWS 6] GROUP BY line;",
        """SELECT line, CAST(sum(n) AS BIGINT) AS s, n // 6 * 6 AS window_start, n // 6 * 6 + 6 AS window_end
           FROM (SELECT line, CAST(n AS BIGINT) AS n FROM Log) GROUP BY ALL""",
        streams=LOG,
        inputs={"Log": LINES},
    ),
    Case(
        "latent_join",
        "TIMESTAMP LATENT",
        "INSERT INTO Out SELECT x.n, y.n AS m FROM Log [RANGE 20000 DAYS] AS x, More [RANGE 20000 DAYS] AS y WHERE x.line = y.line;",
        "SELECT x.n, y.n AS m FROM Log AS x, More AS y WHERE x.line = y.line",
        streams=LOG,
        inputs={"Log": LINES, "More": LINES[:3]},
    ),
]
