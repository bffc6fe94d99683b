"""Every type through a select, a group and a join, and the values that are easy to get wrong."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from tests.runtimes.case import Case, at

KINDS: dict[str, tuple[str, list[Any]]] = {
    "boolean": ("BOOLEAN", [True, False, None]),
    "tinyint": ("TINYINT", [-128, 127, 0, None]),
    "smallint": ("SMALLINT", [-32768, 32767, 0, None]),
    "int": ("INT", [-(2**31), 2**31 - 1, 0, None]),
    "bigint": ("BIGINT", [-(2**63), 2**63 - 1, 0, None]),
    "float": ("FLOAT", [1.5, -0.25, float("inf"), float("nan"), 0.0, None]),
    "double": ("DOUBLE", [1.5, 5e-324, float("-inf"), float("nan"), 0.0, None]),
    "decimal": ("DECIMAL(38, 10)", [Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.0000000001"), Decimal(0), None]),
    "string": ("STRING", ["", " ", "a", "A", "é", "日本", "e\u0301", "line\nbreak", "it's", None]),
    "binary": ("BINARY", [b"", b"\x00", b"\xff\xfe", None]),
    "date": ("DATE", [date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31), None]),
    "timestamp": ("TIMESTAMP", [at(0), at(0.000001), at(-2e9), None]),
}


def stream(kind: str) -> str:
    return "".join(f"CREATE STREAM {name} (x {kind}, n INT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 5 SECONDS;\n" for name in "AB")


def typed(name: str) -> list[Case]:
    """The values of a type, grouped; joined with themselves; and carried through a left join."""
    kind, values = KINDS[name]
    rows = [(value, n, at(n % 4)) for n, value in enumerate([*values, *values])]
    return [
        Case(
            f"{name}_grouped",
            f"{kind.split('(')[0]} columns and keys",
            "INSERT INTO Out SELECT x, count(*) AS n, count(x) AS m, max(x) AS top FROM A [RANGE 10 SECONDS] GROUP BY x;"
            if name not in ("boolean", "binary")
            else "INSERT INTO Out SELECT x, count(*) AS n, count(x) AS m, x AS top FROM A [RANGE 10 SECONDS] GROUP BY x;",
            """SELECT x, count(*) AS n, count(x) AS m, x AS top, time_bucket(INTERVAL 10 SECONDS, ts) AS window_start,
               time_bucket(INTERVAL 10 SECONDS, ts) + INTERVAL 10 SECONDS AS window_end FROM A GROUP BY ALL""",
            streams=stream(kind),
            inputs={"A": rows},
        ),
        Case(
            f"{name}_joined",
            f"{kind.split('(')[0]} columns and keys",
            "INSERT INTO Out SELECT A.x, A.n, B.x AS y, B.n AS m FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 5 SECONDS] ON A.x = B.x;",
            "SELECT A.x, A.n, B.x AS y, B.n AS m FROM A LEFT JOIN B ON A.x = B.x",
            streams=stream(kind),
            inputs={"A": rows, "B": rows[1 : len(rows) // 2]},
        ),
    ]


ZEROS = [(0.0, 1, at(0)), (-0.0, 2, at(1)), (float("nan"), 3, at(1)), (-float("nan"), 4, at(2)), (1.0, 5, at(3))]

CASES = [
    *(case for name in KINDS for case in typed(name)),
    Case(
        "zeros_and_nans_as_groups",
        "0.0 and -0.0 are one key, all NaNs are one key",
        "INSERT INTO Out SELECT count(*) AS n, sum(n) AS s FROM A [RANGE 10 SECONDS] GROUP BY x;",
        rows=[{"n": n, "s": s, "window_start": at(0), "window_end": at(10)} for n, s in ((2, 3), (2, 7), (1, 5))],
        streams=stream("DOUBLE"),
        inputs={"A": ZEROS},
    ),
    Case(
        "zeros_and_nans_as_keys",
        "0.0 and -0.0 are one key, all NaNs are one key",
        "INSERT INTO Out SELECT A.n, B.n AS m FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.x = B.x;",
        rows=[{"n": n, "m": m} for n, m in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (3, 4), (4, 3), (4, 4), (5, 5))],
        streams=stream("DOUBLE"),
        inputs={"A": ZEROS, "B": ZEROS},
    ),
    Case(
        "nan_in_aggregates",
        "NaN in aggregates",
        "INSERT INTO Out SELECT max(x) AS a, min(x) AS b, sum(x) AS c FROM A [RANGE 10 SECONDS];",
        rows=[{"a": float("nan"), "b": 0.0, "c": float("nan"), "window_start": at(0), "window_end": at(10)}],
        streams=stream("DOUBLE"),
        inputs={"A": ZEROS},
    ),
    Case(
        "decimal_arithmetic",
        "DECIMAL arithmetic",
        "INSERT INTO Out SELECT x * 2 AS a, x + CAST('0.001' AS DECIMAL(4, 3)) AS b, x > 1 AS c FROM A;",
        "SELECT x * 2 AS a, x + CAST('0.001' AS DECIMAL(4, 3)) AS b, x > 1 AS c FROM A",
        streams=stream("DECIMAL(10, 2)"),
        inputs={"A": [(Decimal("1.10"), 1, at(0)), (Decimal("-99999999.99"), 2, at(1)), (None, 3, at(2))]},
    ),
    Case(
        "text_functions",
        "string functions",
        "INSERT INTO Out SELECT upper(x) AS u, length(x) AS l, concat(x, '!') AS c, x LIKE '%a%' AS h, substring(x, 2, 3) AS s FROM A;",
        "SELECT upper(x) AS u, CAST(length(x) AS INT) AS l, x || '!' AS c, x LIKE '%a%' AS h, substring(x, 2, 3) AS s FROM A",
        streams=stream("STRING"),
        inputs={"A": [(text, n, at(n)) for n, text in enumerate(["banana", "", "日本語です", None])]},
    ),
    Case(
        "long_texts",
        "STRING columns and keys",
        "INSERT INTO Out SELECT A.n, B.n AS m FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.x = B.x;",
        "SELECT A.n, B.n AS m FROM A, B WHERE A.x = B.x",
        streams=stream("STRING"),
        inputs={stream: [("x" * (1000 + n % 3), n, at(n % 4)) for n in range(9)] for stream in "AB"},
    ),
]
