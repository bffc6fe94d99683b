"""Random streams: how they are declared, what arrives, and a naive account of which tuples are late."""

# ruff: noqa: E501 - a query reads best on one line

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

SECOND = 1_000_000
NAN = float("nan")
BASES = (0, -20 * SECOND, 1_700_000_000 * SECOND)
FLOATS = (0.0, -0.0, 1.5, -2.25, 1024.5, NAN, float("inf"), float("-inf"))
KEYS = {"BIGINT": pa.int64(), "INT": pa.int32(), "DECIMAL(12,0)": pa.decimal128(12, 0), "STRING": pa.string(), "DOUBLE": pa.float64()}
OTHERS = {
    "i": ("INT", pa.int32()), "x": ("DOUBLE", pa.float64()), "m": ("DECIMAL(10,2)", pa.decimal128(10, 2)), "s": ("STRING", pa.string()),
    "b": ("BOOLEAN", pa.bool_()), "d": ("DATE", pa.date32()), "kind": ("STRING", pa.string()), "ts": ("TIMESTAMP", pa.timestamp("us", "UTC")),
}  # fmt: skip
CLAUSES = {
    "beat": "(ts)", "close": "(k)", "group": "(k, ts)",
    "upto": "(k <= i)", "below": "(k < i)", "from": "(k > i + 2)", "between": "(k BETWEEN i - 1 AND i)", "members": "(k IN (i, i + 2))", "is": "(k = i)",
}  # fmt: skip
CONDITIONS: dict[str, Callable[[Any, int], bool]] = {
    "upto": lambda k, i: k <= i, "below": lambda k, i: k < i, "from": lambda k, i: k > i + 2, "between": lambda k, i: i - 1 <= k <= i,
    "members": lambda k, i: k in (i, i + 2), "is": lambda k, i: k == i,
}  # fmt: skip
CHECKS: dict[str, tuple[str, str, Callable[[Any], bool]]] = {
    "few": ("i", "i BETWEEN -2 AND 3", lambda v: -2 <= v <= 3), "some": ("i", "i IN (-3, 0, 1, 2, 3000000000)", lambda v: v in (-3, 0, 1, 2)),
    "positive": ("m", "m IN (1.5, 0)", lambda v: v in (Decimal("1.5"), Decimal(0))), "texts": ("s", "s IN ('', 'a', 'b')", lambda v: v in ("", "a", "b")),
    "days": ("d", "d >= '1970-01-01'", lambda v: v >= 0), "floats": ("x", "x IN (0, 1.5, -2.25, 1024.5)", lambda v: v in (0, 1.5, -2.25, 1024.5)),
    "keys": ("k", "k > 0", lambda v: v > 0),
}  # fmt: skip
UNIQUE = {"unique": ("k",), "pairs": ("k", "i")}
CLUSTERED = {"clustered": ("k",), "flocks": ("b", "k")}


@dataclass(frozen=True)
class StreamSpec:
    """A stream of columns k, i, x, m, s, b, d, kind, ts; `kind` tells tuples from punctuations."""

    name: str
    key: str = "BIGINT"
    order: str = "slack"
    slack: int = 0
    punctuations: tuple[str, ...] = ()
    rows: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    declared: tuple[str, ...] = ()
    horizon: int | None = None
    """For how long it is checked that closed values and unique keys do not come again."""

    @property
    def ddl(self) -> str:
        columns = ", ".join([f"k {self.key}", *(f"{name} {sql}" for name, (sql, _) in OTHERS.items())])
        order = {"slack": f" SLACK {self.slack} MICROSECONDS", "ordered": " ORDERED", "punctuated": ""}[self.order]
        horizon = "" if self.horizon is None else f" FOR {self.horizon} MICROSECONDS"
        clauses = "".join(f" PUNCTUATE ON {CLAUSES[p]} WHEN kind = '{p}'{horizon if p == 'close' else ''}" for p in self.punctuations)
        clauses += "".join(f" UNIQUE ({', '.join(UNIQUE[d])}){horizon}" for d in self.declared if d in UNIQUE)
        clauses += "".join(f" CLUSTERED BY ({', '.join(CLUSTERED[d])})" for d in self.declared if d in CLUSTERED)
        clauses += "".join(f" CHECK ({CHECKS[d][1]})" for d in self.declared if d in CHECKS)
        return f"CREATE STREAM {self.name} ({columns}) TIMESTAMP BY ts{order}{clauses};"

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("k", KEYS[self.key]), *((name, kind) for name, (_, kind) in OTHERS.items())])

    def table(self, rows: list[dict[str, Any]] | None = None) -> pa.Table:
        rows = list(self.rows) if rows is None else rows
        arrays = []
        for f in self.schema:
            values = [row[f.name] for row in rows]
            stored = pa.int64() if f.name == "ts" else pa.int32() if f.name == "d" else f.type
            array = pa.array(values, stored)
            arrays.append(array.view(f.type) if f.name == "ts" else array.cast(f.type))
        return pa.table(arrays, schema=self.schema)

    def tuples(self) -> list[dict[str, Any]]:
        """The rows that are tuples and become no letters."""
        refused = self.arrived()[1]
        rows = [row for row in self.rows if row["kind"] not in self.punctuations]
        return [row for row in rows if not any(row is r for r in refused)]

    def arrived(self) -> tuple[pa.Table, list[dict[str, Any]]]:
        """The tuples that count, and those that are late or have no usable time (paper 004, section 3, in a loop)."""
        mark = None
        closed: dict[Any, int | None] = {}  # key: no tuple before this time, None for no tuple at all
        used: dict[Any, int | None] = {}  # of each key that is unique: no tuple before this time
        finished: set[Any] = set()  # of each clustering: the clusters that are over
        current: dict[str, Any] = {}  # and the one that is open
        conditions: list[Callable[[Any], bool]] = []
        kept, refused = [], []
        for row in self.rows:
            ts, kind, key = row["ts"], row["kind"], _key(row["k"])
            keys = [(d, *(_key(row[c]) for c in UNIQUE[d])) for d in self.declared if d in UNIQUE]
            keys = [k for k in keys if None not in k]
            clusters = [(d, *(_key(row[c]) for c in CLUSTERED[d])) for d in self.declared if d in CLUSTERED]
            if ts is None:
                refused.append(row)
            elif kind in self.punctuations:
                if kind in CONDITIONS:
                    if row["i"] is None:
                        refused.append(row)
                    else:
                        conditions.append(partial(_holds, kind, row["i"]))
                elif kind == "beat":
                    mark = ts if mark is None else max(mark, ts)
                elif kind == "close" and self.horizon is None:
                    closed[key] = None
                elif kind == "close" and closed.get(key, 0) is not None:
                    closed[key] = max(closed.get(key, ts), ts + self.horizon + 1)
                elif closed.get(key, 0) is not None:
                    closed[key] = max(closed.get(key, ts), ts)  # type: ignore[type-var]
            elif any(row[CHECKS[d][0]] is not None and not CHECKS[d][2](row[CHECKS[d][0]]) for d in self.declared if d in CHECKS):
                refused.append(row)
            else:
                late = mark is not None and ts < mark
                late |= key in closed and (closed[key] is None or ts < closed[key])  # type: ignore[operator]
                late |= key is not None and any(holds(key) for holds in conditions)
                late |= any(k in used and (used[k] is None or ts < used[k]) for k in keys)
                late |= any(c in finished and current[c[0]] != c for c in clusters)
                (refused if late else kept).append(row)
                if not late:  # a late tuple promises nothing
                    used |= {k: None if self.horizon is None else max(used.get(k, ts), ts + self.horizon + 1) for k in keys}
                    for c in clusters:
                        if current.get(c[0], c) != c:
                            finished.add(current[c[0]])
                        current[c[0]] = c
                if self.order != "punctuated":
                    here = ts - (self.slack if self.order == "slack" else 0)
                    mark = here if mark is None else max(mark, here)
        return self.table(kept), refused


def _holds(kind: str, i: int, k: Any) -> bool:
    return CONDITIONS[kind](k, i)


def _key(value: Any) -> Any:
    return "NaN" if value != value else value


def make_stream(
    r: random.Random, name: str, *, close: bool | None = None, key: str | None = None, late: bool = False, base: int | None = None,
    horizons: tuple[int | None, ...] = (None,), scale: int = 1,
) -> StreamSpec:  # fmt: skip
    """A stream whose tuples mostly keep its promises; with `late` some do not."""
    key = key or r.choice(["BIGINT", "BIGINT", "INT", "DECIMAL(12,0)"])
    order = r.choice(["slack", "slack", "ordered", "punctuated"])
    slack = r.choice([0, 1, 2 * SECOND, 7 * SECOND])
    kinds = [p for p in ("beat", "group") if r.random() < (0.8 if order == "punctuated" and p == "beat" else 0.2)]
    whole = key in ("BIGINT", "INT")
    declared = [d for d in (*UNIQUE, *CLUSTERED, *CHECKS) if r.random() < 0.07 and (whole or d != "keys")]
    if whole:
        kinds += [kind for kind in CONDITIONS if r.random() < 0.05]
    if close and whole and r.random() < 0.3:
        kinds.append(r.choice(list(CONDITIONS)))
    elif close and r.random() < 0.4:
        declared.append(r.choice(["unique", "clustered"]))
    elif close or (close is None and r.random() < 0.3):
        kinds.append("close")
    count = r.choice([0, 1, 3, 8, 20, 40])
    seed = r.randrange(1 << 30)
    base = r.choice(BASES) if base is None else base
    kinds = list(dict.fromkeys(kinds))
    spec = StreamSpec(name, key, order, slack, tuple(kinds), (), tuple(dict.fromkeys(declared)), r.choice(horizons))
    return replace(spec, rows=tuple(_rows(random.Random(seed), spec, count, base, late, scale)))


def key_of(number: int | None, sql: str) -> Any:
    if number is None or sql in ("BIGINT", "INT"):
        return number
    if sql == "STRING":
        return f"k{number}"
    return Decimal(number) if sql.startswith("DECIMAL") else (float(number), -0.0, NAN)[number % 3]


def _rows(r: random.Random, spec: StreamSpec, count: int, base: int, late: bool, scale: int) -> list[dict[str, Any]]:
    now, rows = base, []
    keys = [None, *range(r.choice([1, 3, 6]))]
    ended: list[Any] = []
    grain = r.choice([SECOND, SECOND, 500_000, 1])
    for _ in range(count):
        now += r.choice([0, 0, 1, 1, 2, 5, 30]) * (SECOND if r.random() < 0.8 else grain) * scale
        back = r.randrange(spec.slack + 1) // grain * grain if spec.order == "slack" else 0
        if late and r.random() < 0.15:
            back += r.choice([1, SECOND, 20 * SECOND])
        if spec.order == "punctuated":
            back = r.choice([0, 0, SECOND, 5 * SECOND])
        kind = r.choice(spec.punctuations) if spec.punctuations and r.random() < 0.2 else "row"
        pool = [k for k in keys if k not in ended] or ([None] if late else [99])
        number = r.choice(keys if late and r.random() < 0.3 else pool)
        if set(spec.declared) & {"unique", "pairs"} and r.random() < (0.8 if late else 0.97):
            number = len(rows)
        elif set(spec.declared) & {"clustered", "flocks"} and r.random() < (0.8 if late else 0.97):
            number = len(rows) // 3
        ts = now - (5 * SECOND if kind == "beat" and spec.order == "punctuated" else 20 * SECOND if kind == "group" else back)
        if kind == "close":
            ended.append(number)
        rows.append(
            {
                "k": key_of(number, spec.key), "ts": None if late and r.random() < 0.05 else ts, "kind": kind,
                "i": r.choice([None, *range(-3, 4)]), "x": r.choice([None, *FLOATS]), "m": r.choice([None, Decimal("1.50"), Decimal("-2.25"), Decimal("0.00")]),
                "s": r.choice([None, "", "a", "b", "añ", "a longer text than twelve"]), "b": r.choice([None, True, False]),
                "d": r.choice([None, -1, 0, 1, 19_000]),
            }
        )  # fmt: skip
    return rows
