"""Declared keys, clusters, bounds and ranges: which tuples break them depends on the order of arrival alone, whatever the cut."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.pipeline import Pipeline
from millstream.testing.run import run
from tests.oracle.buckets import run_hosted
from tests.oracle.watch import Watch
from tests.runtimes.case import at
from tests.runtimes.compare import assert_same

SLACK = 3
UNIQUE = {"UNIQUE (k)": ("k",), "UNIQUE (j)": ("j",), "UNIQUE (k, j)": ("k", "j")}
CLUSTERED = {"CLUSTERED BY (k)": ("k",), "CLUSTERED BY (j, k)": ("j", "k")}
CHECKS: dict[str, Callable[[Any, Any], bool]] = {
    "CHECK (k BETWEEN 1 AND 3)": lambda k, j: k is None or 1 <= k <= 3,
    "CHECK (j IN ('a', 'b'))": lambda k, j: j is None or j in ("a", "b"),
}
MARKERS: dict[str, Callable[[Any, int], bool]] = {
    "(k <= number DIV 4 - 3)": lambda k, number: k <= number // 4 - 3,
    "(k IN (number % 4, 3))": lambda k, number: k in (number % 4, 3),
    "(k BETWEEN number % 4 AND 2)": lambda k, number: number % 4 <= k <= 2,
}
ROWS = st.lists(
    st.tuples(
        st.sampled_from([*range(12), None]),
        st.sampled_from(["a", "a", "b", "c", None]),
        st.sampled_from(["tuple"] * 30 + ["closed", "beat", "marker"]),
        st.sampled_from([*range(0, 16), *range(4, 10), None]),
    ),
    max_size=60,
)


def _drawn(r: random.Random) -> list[Any]:
    """Many tuples whose time goes on, mostly in clusters: more than a list that is drawn one by one has."""
    kinds, noise, back = ["tuple"] * 30 + ["closed", "beat", "marker"], r.choice([0.05, 0.4]), r.choice([2, 8])
    rows = []
    for n in range(60):
        k = r.choice([*range(12), None]) if r.random() < noise else n // 5
        rows.append((k, r.choice("aaaaab"), r.choice(kinds), n // 4 + 8 - r.randrange(back)))
    return rows


CLAUSES = st.tuples(
    st.sets(st.sampled_from([*UNIQUE, *CLUSTERED]), min_size=1, max_size=2), st.sets(st.sampled_from([*CHECKS]), max_size=1),
    st.sampled_from([None, *MARKERS]),
)  # fmt: skip
Row = tuple[int, Any, Any, str, datetime | None]


def reference(rows: list[Row], clauses: set[str], checks: set[str], marker: str | None) -> tuple[list[Row], list[tuple[str, int]]]:
    """The tuples that count, and the numbers of the others with the reason: one after the other, as they arrive."""
    mark, kept, letters = datetime.min.replace(tzinfo=at(0).tzinfo), [], []
    closed: set[Any] = set()
    holds: list[int] = []
    used: set[Any] = set()
    over: set[Any] = set()
    open_: dict[str, Any] = {}
    for row in rows:
        number, k, j, kind, ts = row
        keys = [(c, *(row[1 + "kj".index(name)] for name in UNIQUE[c])) for c in sorted(clauses & {*UNIQUE})]
        keys = [key for key in keys if None not in key]
        clusters = [(c, *(row[1 + "kj".index(name)] for name in CLUSTERED[c])) for c in sorted(clauses & {*CLUSTERED})]
        if ts is None:
            letters.append(("null-timestamp", number))
        elif kind == "closed":
            closed.add(k)
        elif kind == "beat":
            mark = max(mark, ts)
        elif kind == "marker" and marker is not None:
            holds.append(number)
        elif not all(CHECKS[c](k, j) for c in checks):
            letters.append(("check", number))
        else:
            late = k in closed or ts < mark or any(key in used for key in keys)
            late |= any(c in over and open_[c[0]] != c for c in clusters)
            late |= k is not None and marker is not None and any(MARKERS[marker](k, at_) for at_ in holds)
            mark = max(mark, ts - timedelta(seconds=SLACK))
            if late:
                letters.append(("late", number))
                continue
            kept.append(row)
            used |= set(keys)
            for c in clusters:
                if open_.get(c[0], c) != c:
                    over.add(open_[c[0]])
                open_[c[0]] = c
    return kept, letters


@settings(deadline=None)
@given(ROWS, CLAUSES, st.integers(1, 5), st.integers(1, 6), st.sampled_from([0, 0, 1, 3]))
def test_broken_claims(drawn: list[Any], clauses: tuple[set[str], set[str], str | None], batch: int, files: int, buckets: int) -> None:
    check(drawn, *clauses, batch, files, buckets)


def test_broken_claims_in_longer_streams() -> None:
    for seed in range(50):
        r = random.Random(seed)
        declared = set(r.sample([*UNIQUE, *CLUSTERED], r.choice([1, 1, 2])))
        marker = r.choice([None, None, *MARKERS])
        check(
            _drawn(r),
            declared,
            {c for c in CHECKS if r.random() < 0.1},
            marker,
            r.choice([3, 5, 99]),
            r.choice([3, 6]),
            r.choice([0, 0, 2]),
        )


def check(drawn: list[Any], declared: set[str], checks: set[str], marker: str | None, batch: int, files: int, buckets: int) -> None:
    rows = [(number, k, j, kind, None if second is None else at(second)) for number, (k, j, kind, second) in enumerate(drawn)]
    kept, letters = reference(rows, declared, checks, marker)
    pipeline = Pipeline()
    pipeline.add_text(f"""
        CREATE STREAM S (number INT, k INT, j STRING, kind STRING, ts TIMESTAMP) TIMESTAMP BY ts SLACK {SLACK} SECONDS
          PUNCTUATE ON (k) WHEN kind = 'closed' PUNCTUATE ON (ts) WHEN kind = 'beat'
          {"" if marker is None else f"PUNCTUATE ON {marker} WHEN kind = 'marker'"} {" ".join(sorted(declared | checks))};
        CREATE SINK Kept WITH (connector = 'memory');
        CREATE SINK Groups WITH (connector = 'memory');
        INSERT INTO Kept SELECT number FROM S WHERE number >= 0;
        INSERT INTO Groups SELECT k, j, count(*) AS n FROM S GROUP BY k, j;""")
    if buckets:
        chance = random.Random(len(rows))
        result = run_hosted(pipeline, {"S": rows}, buckets=buckets, chance=chance, watch=Watch(), batch=batch, files={"S": files})
    else:
        result = run(pipeline, {"S": rows}, runtime="local", batch=batch, files={"S": files})
    assert_same(result.rows("Kept"), [{"number": row[0]} for row in kept])
    assert sorted((letter.kind, json.loads(letter.content or "")["number"]) for letter in result.letters) == sorted(letters)
    groups: dict[Any, int] = {}
    for _, k, j, _, _ in kept:
        groups[k, j] = groups.get((k, j), 0) + 1
    assert_same(result.rows("Groups"), [{"k": k, "j": j, "n": n} for (k, j), n in groups.items()])
