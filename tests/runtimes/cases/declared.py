"""What streams promise of values: keys that are unique, values that come in clusters, values that can occur, ranges and lists in rows."""

from __future__ import annotations

from tests.runtimes.case import Case, at

AUCTION = """
CREATE STREAM Auction (item INT, seller STRING, ts TIMESTAMP) TIMESTAMP BY ts ORDERED UNIQUE (item);
CREATE STREAM Bid (item INT, price INT, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts ORDERED PUNCTUATE ON (item) WHEN closed;
"""
AUCTIONS = [(1, "a", at(0)), (2, "b", at(1)), (None, "n", at(1)), (3, "c", at(2)), (None, "m", at(3)), (2, "late", at(4)), (4, "d", at(5))]
BIDS = [(1, 5, False, at(1)), (2, 6, False, at(2)), (1, 7, False, at(2)), (1, None, True, at(3)), (3, 8, False, at(4))]

CASES = [
    Case(
        "unique_key_joins",
        "joins that unique keys and punctuations purge, without windows",
        "INSERT INTO Out SELECT A.item, A.seller, B.price FROM Auction AS A JOIN Bid AS B ON A.item = B.item;",
        "SELECT A.item, A.seller, B.price FROM Auction AS A JOIN Bid AS B ON A.item = B.item WHERE NOT B.closed AND seller <> 'late'",
        streams=AUCTION,
        inputs={"Auction": AUCTIONS, "Bid": BIDS},
        letters=[("Auction", "late", '"seller": "late"')],
    ),
    Case(
        "unique_key_groups",
        "`UNIQUE`: each tuple closes its own value; null never repeats",
        "INSERT INTO Out SELECT item, count(*) AS n, min(seller) AS seller FROM Auction GROUP BY item;",
        "SELECT item, count(*) AS n, min(seller) AS seller FROM Auction WHERE seller <> 'late' GROUP BY item",
        streams=AUCTION,
        inputs={"Auction": AUCTIONS},
        letters=[("Auction", "late", '"seller": "late"')],
    ),
    Case(
        "unique_pairs",
        "`UNIQUE` over several columns, and several keys",
        "INSERT INTO Out SELECT a, b, c FROM P WHERE c > 1;",
        "SELECT a, b, c FROM P WHERE c BETWEEN 2 AND 89 AND NOT (a = 3 AND c = 3)",
        streams="CREATE STREAM P (a INT, b STRING, c INT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 2 SECONDS UNIQUE (a, b) UNIQUE (c);",
        inputs={
            "P": [
                (1, "x", 1, at(10)),
                (1, "y", 2, at(10)),
                (2, "x", 3, at(11)),
                (1, "x", 90, at(11)),
                (3, "z", 3, at(12)),
                (3, "z", 4, at(12)),
                (4, "z", 91, at(3)),
                (4, "z", 5, at(12)),
            ]
        },
        letters=[("P", "late", '"c": 90'), ("P", "late", '"a": 3, "b": "z", "c": 3'), ("P", "late", '"c": 91')],
    ),
    Case(
        "clusters",
        "`CLUSTERED BY`: a value is finished when another one comes",
        "INSERT INTO Out SELECT student, count(*) AS n, avg(grade) AS mean FROM Grade GROUP BY student;",
        "SELECT student, count(*) AS n, avg(grade) AS mean FROM Grade WHERE grade < 90 GROUP BY student",
        streams="CREATE STREAM Grade (student STRING, grade INT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 5 SECONDS CLUSTERED BY (student);",
        inputs={
            "Grade": [
                *(("ann", n, at(10 + n)) for n in range(4)),
                ("bob", 5, at(14)),
                ("eve", 93, at(2)),
                ("bob", 6, at(13)),
                ("ann", 91, at(15)),
                (None, 7, at(16)),
                (None, 8, at(15)),
                ("eve", 9, at(17)),
                ("bob", 92, at(17)),
                ("eve", 10, at(18)),
            ]
        },
        letters=[("Grade", "late", '"grade": 91'), ("Grade", "late", '"grade": 92'), ("Grade", "late", '"grade": 93')],
    ),
    Case(
        "checks",
        "`CHECK`: values that can occur, as a list or a range; null passes",
        "INSERT INTO Out SELECT region, k, d FROM C;",
        "SELECT region, k, d FROM C WHERE ts < TIMESTAMPTZ '2024-05-01 12:00:10Z'",
        streams="""CREATE STREAM C (region STRING, k INT, d DATE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
          CHECK (region IN ('eu', 'us')) CHECK (k BETWEEN 1 AND 3) CHECK (k IN (0, 1, 3)) CHECK (d >= '2024-01-01');""",
        inputs={
            "C": [
                ("eu", 1, None, at(0)),
                ("us", 3, at(0).date(), at(1)),
                ("eu", 2, None, at(20)),
                ("asia", 1, None, at(21)),
                (None, None, None, at(2)),
                ("eu", 0, None, at(22)),
                ("eu", 1, at(-(10**7) * 3).date(), at(23)),
            ]
        },
        letters=[("C", "check", '"k": 2'), ("C", "check", '"asia"'), ("C", "check", '"k": 0'), ("C", "check", '"d": "20')],
    ),
    Case(
        "check_on_a_join",
        "`CHECK` lets a join drop what can find no partner",
        "INSERT INTO Out SELECT A.k, A.v, B.w FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 5 SECONDS] ON A.k = B.k;",
        """SELECT A.k, A.v, B.w FROM A LEFT JOIN B ON A.k = B.k
           AND B.ts BETWEEN A.ts - INTERVAL 5 SECONDS AND A.ts + INTERVAL 5 SECONDS""",
        streams="""CREATE STREAM A (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
        CREATE STREAM B (k INT, w INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED CHECK (k >= 2);""",
        inputs={"A": [(n % 4, n, at(n)) for n in range(20)], "B": [(2 + n % 2, n, at(n)) for n in range(20)]},
    ),
    Case(
        "marker_ranges",
        "marker rows that close ranges and lists of values",
        "INSERT INTO Out SELECT k, count(*) AS n FROM M GROUP BY k;",
        "SELECT k, count(*) AS n FROM M WHERE kind IS NULL AND a IS NULL GROUP BY k",
        streams="""CREATE STREAM M (k INT, kind STRING, a BIGINT, b INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
          PUNCTUATE ON (k <= a) WHEN kind = 'upto' PUNCTUATE ON (k BETWEEN a AND b) WHEN kind = 'range'
          PUNCTUATE ON (k IN (a, b)) WHEN kind = 'list';""",
        inputs={
            "M": [
                *((k, None, None, None, at(0)) for k in (1, 2, 3, 4, 5, 6, None, 1)),
                (None, "upto", 2, None, at(1)),
                (1, None, 99, None, at(2)),
                (3, None, None, None, at(2)),
                (None, "list", 4, None, at(3)),
                (4, None, 98, None, at(4)),
                (5, None, None, None, at(4)),
                (None, "range", None, 7, at(5)),
                (None, "range", 6, 1 << 30, at(5)),
                (7, None, 97, None, at(6)),
                (5, None, None, None, at(7)),
            ]
        },
        letters=[("M", "late", '"a": 99'), ("M", "late", '"a": 98'), ("M", "late", '"a": 97'), ("M", "error", '"b": 7')],
    ),
]
