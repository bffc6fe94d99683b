"""Random joins, each written twice."""

# ruff: noqa: E501 - a query reads best on one line

from __future__ import annotations

import random

from tests.oracle.queries import Query, Relation, expanded, relation, window_text
from tests.oracle.streams import SECOND

EQUALITIES = (
    "{a}.k = {b}.k", "{a}.k = {b}.k", "{a}.k = {b}.k", "{a}.s = {b}.s", "{a}.i = {b}.i", "{a}.i = {b}.k", "{a}.x = {b}.x", "{a}.m = {b}.m", "{a}.d = {b}.d",
    "{a}.i % 2 = {b}.i % 3", "upper({a}.s) = {b}.s", "{a}.b = {b}.b", "{a}.m = {b}.i",
    "CAST({a}.m AS DECIMAL(10,1)) = {b}.m", "CAST({a}.m AS DECIMAL(12,4)) = CAST({b}.m AS DECIMAL(10,1))",
)  # fmt: skip
RESIDUALS = (
    "{a}.i < {b}.i",
    "{a}.s <> {b}.s",
    "{a}.x IS NOT NULL",
    "{b}.i > 0",
    "{a}.i + {b}.i > 0",
    "({a}.b OR {b}.b)",
    "{a}.ts < {b}.ts",
)
WINDOWS = (None, 0, 1, SECOND, 3 * SECOND, 10 * SECOND, 60 * SECOND)


def _window(size: int | None) -> str:
    return "" if size is None else " [NOW]" if size == 0 else f" [RANGE {size} MICROSECONDS]"


def band(a: str, b: str, first: int | None, second: int | None) -> list[str]:
    """`a [RANGE first], b [RANGE second]`: b.ts - first <= a.ts <= b.ts + second."""
    parts = []
    if first is not None:
        parts.append(f"epoch_us({b}.ts) - {first} <= epoch_us({a}.ts)")
    if second is not None:
        parts.append(f"epoch_us({a}.ts) <= epoch_us({b}.ts) + {second}")
    return parts


def _time_conditions(r: random.Random, a: str, b: str, windowed: bool) -> tuple[list[str], list[str]]:
    """Conditions on times in WHERE or ON, in both forms; enough to bound the join where windows do not."""
    if windowed and r.random() < 0.7:
        return [], []
    kind = r.randrange(6)
    low, high = r.choice([0, 1, 3]), r.choice([0, 2, 5])
    if kind == 0:
        same = [f"{a}.ts BETWEEN {b}.ts - INTERVAL {low} SECONDS AND {b}.ts + INTERVAL {high} SECONDS"]
    elif kind == 1:
        same = [f"{b}.ts > {a}.ts - INTERVAL {low + 1} SECONDS", f"{b}.ts - INTERVAL {high} SECONDS < {a}.ts"]
    elif kind == 2:
        same = [f"date_trunc('minute', {a}.ts) = date_trunc('minute', {b}.ts)"]
    elif kind == 3:
        same = [f"{a}.ts = {b}.ts"]
    elif kind == 4:
        same = [f"{a}.ts + INTERVAL {low} SECONDS >= {b}.ts", f"{a}.ts <= {b}.ts + INTERVAL {high} SECONDS"]
    else:
        return (
            [f"to_date({a}.ts) = to_date({b}.ts)"],
            [f"CAST({a}.ts AS DATE) = CAST({b}.ts AS DATE)"],
        )
    return same, same


def two_way(r: random.Random, streams: list[str]) -> Query:
    """Inner, left, semi and anti joins of two relations."""
    one, two = relation(r, streams), relation(r, streams)
    sizes = (r.choice(WINDOWS), r.choice(WINDOWS))
    equal = [r.choice(EQUALITIES).format(a="a", b="b") for _ in range(r.choice([0, 1, 1, 1, 2]))]
    times, duck_times = _time_conditions(r, "a", "b", None not in sizes)
    rest = [r.choice(RESIDUALS).format(a="a", b="b") for _ in range(r.choice([0, 0, 1, 2]))]
    kind = r.choice(["inner", "inner", "comma", "LEFT", "LEFT SEMI", "LEFT ANTI"])
    bands = band("a", "b", *sizes)
    conditions, duck = [*equal, *times, *rest], [*equal, *duck_times, *rest, *bands] or ["true"]
    columns = ["a.k AS ak", "a.ts AS at", "a.i AS ai"] + (
        [] if kind in ("LEFT SEMI", "LEFT ANTI") else ["b.k AS bk", "b.ts AS bt", "b.s AS bs"]
    )
    chosen = ", ".join(r.sample(columns, r.randint(1, len(columns))))
    after = r.choice(["", "", " WHERE a.i > 0"]) if kind != "comma" else ""
    left, right = f"{one.ours}{_window(sizes[0])} AS a", f"{two.ours}{_window(sizes[1])} AS b"
    duck_right, duck_left = f"{two.duck} AS b", f"{one.duck} AS a"
    if kind == "comma":
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        ours = f"SELECT {chosen} FROM {left}, {right}{where}"
        return Query(ours, f"SELECT {chosen} FROM {duck_left}, {duck_right} WHERE {' AND '.join(duck)}")
    join = {"inner": "JOIN", "LEFT": "LEFT JOIN", "LEFT SEMI": "LEFT SEMI JOIN", "LEFT ANTI": "LEFT ANTI JOIN"}[kind]
    on = " AND ".join(conditions) or "true"
    ours = f"SELECT {chosen} FROM {left} {join} {right} ON {on}{after}"
    if kind in ("LEFT SEMI", "LEFT ANTI"):
        there = f"{'' if kind == 'LEFT SEMI' else 'NOT '}EXISTS (SELECT 1 FROM {duck_right} WHERE {' AND '.join(duck)})"
        return Query(ours, f"SELECT {chosen} FROM {duck_left}{after or ' WHERE true'} AND {there}")
    return Query(ours, f"SELECT {chosen} FROM {duck_left} {join} {duck_right} ON {' AND '.join(duck)}{after}")


def many_way(r: random.Random, streams: list[str]) -> Query:
    """Three or four inputs: the ranges hold for every pair."""
    count = r.choice([3, 3, 4])
    names = "abcd"[:count]
    relations: list[Relation] = [relation(r, streams, r.choice([0, 1])) for _ in names]
    sizes = [r.choice(WINDOWS[2:]) for _ in names]
    if r.random() < 0.3:
        sizes[r.randrange(count)] = None
    conditions, duck = [], []
    for n, b in enumerate(names[1:], 1):
        a = r.choice(names[:n])
        if r.random() < 0.9:
            conditions.append(r.choice(EQUALITIES[:6]).format(a=a, b=b))
    if r.random() < 0.3:
        conditions.append(r.choice(RESIDUALS).format(a=names[0], b=names[-1]))
    duck += conditions
    for n, a in enumerate(names):
        for m in range(n + 1, count):
            duck += band(a, names[m], sizes[n], sizes[m])
            if sizes[n] is None or sizes[m] is None:
                bound = f"{a}.ts BETWEEN {names[m]}.ts - INTERVAL 9 SECONDS AND {names[m]}.ts + INTERVAL 4 SECONDS"
                conditions.append(bound)
                duck.append(bound)
    columns = ", ".join([f"{n}.ts AS {n}t" for n in names] + [f"{names[0]}.k AS k", f"{names[-1]}.i AS i"])
    ours = ", ".join(f"{relation_.ours}{_window(size)} AS {n}" for n, relation_, size in zip(names, relations, sizes, strict=True))
    theirs = ", ".join(f"{relation_.duck} AS {n}" for n, relation_ in zip(names, relations, strict=True))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return Query(f"SELECT {columns} FROM {ours}{where}", f"SELECT {columns} FROM {theirs} WHERE {' AND '.join(duck) or 'true'}")


def chained(r: random.Random, streams: list[str]) -> Query:
    """A left, semi or anti join (or one with a table) in the middle of others, or behind them."""
    sizes = [r.choice(WINDOWS[2:]) for _ in range(3)]
    a, b, c = (relation(r, streams, 0) for _ in range(3))
    kind = r.choice(["LEFT", "LEFT SEMI", "LEFT ANTI", "TABLE"])
    first, last = band("a", "b", sizes[0], sizes[1]), band("a", "c", sizes[0], sizes[2])
    if kind == "TABLE":
        ours = f"SELECT a.ts AS at, t.label AS l, c.ts AS ct FROM {a.ours}{_window(sizes[0])} AS a JOIN T AS t ON a.i = t.id JOIN {c.ours}{_window(sizes[2])} AS c ON a.k = c.k"
        duck = f"SELECT a.ts, t.label, c.ts FROM {a.duck} AS a JOIN T AS t ON a.i = t.id JOIN {c.duck} AS c ON a.k = c.k AND {' AND '.join(last)}"
        return Query(ours, duck)
    select = "a.ts AS at, c.ts AS ct" + (", b.ts AS bt" if kind == "LEFT" else "")
    word = "EXISTS" if kind == "LEFT SEMI" else "NOT EXISTS"
    right = f"JOIN {c.duck} AS c ON a.i = c.i AND {' AND '.join(last)}"
    if r.random() < 0.4:
        ours = (
            f"SELECT {select} FROM {a.ours}{_window(sizes[0])} AS a JOIN {c.ours}{_window(sizes[2])} AS c ON a.i = c.i "
            f"{kind} JOIN {b.ours}{_window(sizes[1])} AS b ON a.k = b.k"
        )
        met = " AND ".join(["a.k = b.k", *first, *band("c", "b", sizes[2], sizes[1])])
        if kind == "LEFT":
            return Query(ours, f"SELECT {select} FROM {a.duck} AS a {right} LEFT JOIN {b.duck} AS b ON {met}")
        return Query(ours, f"SELECT {select} FROM {a.duck} AS a {right} WHERE {word} (SELECT 1 FROM {b.duck} AS b WHERE {met})")
    ours = (
        f"SELECT {select} FROM {a.ours}{_window(sizes[0])} AS a {kind} JOIN {b.ours}{_window(sizes[1])} AS b ON a.k = b.k "
        f"JOIN {c.ours}{_window(sizes[2])} AS c ON a.i = c.i"
    )
    there = f"SELECT 1 FROM {b.duck} AS b WHERE a.k = b.k AND {' AND '.join(first)}"
    if kind == "LEFT":
        # Every pair lies within its windows; where the left join found nobody there is no pair.
        pair = f" AND (b.ts IS NULL OR ({' AND '.join(band('b', 'c', sizes[1], sizes[2]))}))"
        return Query(
            ours, f"SELECT {select} FROM {a.duck} AS a LEFT JOIN {b.duck} AS b ON a.k = b.k AND {' AND '.join(first)} {right}{pair}"
        )
    return Query(ours, f"SELECT {select} FROM {a.duck} AS a {right} WHERE {word} ({there})")


def calendar(r: random.Random, streams: list[str]) -> Query:
    """Joins over dates and truncated times that progress under names of their own."""
    one, two = relation(r, streams), relation(r, streams)
    ours = "(SELECT k, i, s, ts, to_date(ts) AS day, date_trunc('minute', ts) AS minute, unix_micros(ts) AS n FROM {} AS y)"
    duck = "(SELECT k, i, s, ts, CAST(ts AS DATE) AS day, date_trunc('minute', ts) AS minute, epoch_us(ts) AS n FROM {} AS y)"
    days = r.choice([0, 1, 2])
    conditions = r.choice(
        [
            [f"a.day <= b.day + INTERVAL {days} DAY", "b.day - 1 <= a.day"],
            ["a.day = b.day"],
            ["a.minute = date_trunc('minute', b.ts)"],
            ["date_trunc('minute', a.ts) = b.minute", "a.k = b.k"],
            ["a.minute BETWEEN b.minute - INTERVAL 1 MINUTE AND b.ts"],
            ["a.n BETWEEN b.n - 5000000 AND b.n + 1000000", "a.s = b.s"],
            ["date_trunc('hour', a.ts) = date_trunc('hour', b.ts)", "a.i = b.i"],
        ]
    )
    kind = r.choice(["JOIN", "JOIN", "LEFT JOIN"])
    select = "SELECT a.ts AS at, b.ts AS bt, a.day AS d, b.i AS i"
    where = f"AS b ON {' AND '.join(conditions)}"
    return Query(
        f"{select} FROM {ours.format(one.ours)} AS a {kind} {ours.format(two.ours)} {where}",
        f"{select} FROM {duck.format(one.duck)} AS a {kind} {duck.format(two.duck)} {where}",
    )


def outer_parts(r: random.Random, streams: list[str]) -> Query:
    """Joins of left joins: each part brings hidden times of its own."""
    names, ours, duck = "abc"[: r.choice([2, 3])], [], []
    for name in names:
        one, two, size = r.choice(streams), r.choice(streams), r.choice([0, 2, 8]) * SECOND
        kind, columns = r.choice(["LEFT JOIN", "JOIN"]), "q.k AS k, q.i AS i, q.ts AS ts, r.ts AS other"
        ours.append(f"(SELECT {columns} FROM {one}{_window(size)} AS q {kind} {two}{_window(size)} AS r ON q.i = r.i) AS {name}")
        duck.append(
            f"(SELECT {columns} FROM {one} AS q {kind} {two} AS r ON q.i = r.i AND {' AND '.join(band('q', 'r', size, size))}) AS {name}"
        )
    bounds = [f"{a}.ts BETWEEN {b}.ts - INTERVAL 3 SECONDS AND {b}.ts + INTERVAL 5 SECONDS" for a in names for b in names if a < b]
    where = " AND ".join([*bounds, *r.sample([f"a.k = {names[-1]}.k", "a.i > 0", f"{names[-1]}.other IS NULL"], r.randint(0, 2))])
    select = "SELECT a.i AS i, " + ", ".join(f"{n}.ts AS {n}t, {n}.other AS {n}o" for n in names)
    return Query(f"{select} FROM {', '.join(ours)} WHERE {where}", f"{select} FROM {', '.join(duck)} WHERE {where}")


def using(r: random.Random, streams: list[str]) -> Query:
    """USING and stars."""
    one, two = r.choice(streams), r.choice(streams)
    sizes = (r.choice(WINDOWS[2:]), r.choice(WINDOWS[2:]))
    names = r.choice(["k", "k, s", "i"])
    kept = ("k", "i", "ts")
    left = f"(SELECT CAST(k AS BIGINT) AS k, i, s, ts FROM {one})"
    right = f"(SELECT CAST(k AS BIGINT) AS k, i, s, ts FROM {two})"
    bands = " AND ".join(band("a", "b", *sizes))
    equal = " AND ".join(f"a.{n} = b.{n}" for n in names.split(", "))
    rest = ", ".join(f"b.{c}" for c in ("k", "i", "s", "ts") if c not in names.split(", "))
    if r.random() < 0.3:
        columns = ", ".join(f"a.{c}" for c in kept)
        return Query(
            f"SELECT {columns} FROM {left}{_window(sizes[0])} AS a LEFT SEMI JOIN {right}{_window(sizes[1])} AS b USING ({names})",
            f"SELECT {columns} FROM {left} AS a WHERE EXISTS (SELECT 1 FROM {right} AS b WHERE {equal} AND {bands})",
        )
    return Query(
        f"SELECT * FROM {left}{_window(sizes[0])} AS a JOIN {right}{_window(sizes[1])} AS b USING ({names})",
        f"SELECT a.*, {rest} FROM {left} AS a JOIN {right} AS b ON {equal} AND {bands}",
    )


def punctuated(r: random.Random, streams: list[str]) -> Query:
    """Joins on a key that all sides declare finished, with windows or without; groups that only such promises close."""
    if r.random() < 0.3:
        return _punctuated_three(r, streams)
    one, two = r.choice(streams), r.choice(streams)
    sizes = (r.choice(WINDOWS), r.choice(WINDOWS)) if r.random() < 0.5 else (None, None)
    kind = r.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
    rest = r.choice(["", " AND a.i < b.i", " AND a.s = b.s"])
    on, ours = f"a.k = b.k{rest}", f"{one}{_window(sizes[0])} AS a {kind} {two}{_window(sizes[1])} AS b"
    duck_on = " AND ".join([on, *band("a", "b", *sizes)])
    if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
        there = f"{'NOT ' if 'ANTI' in kind else ''}EXISTS (SELECT 1 FROM {two} AS b WHERE {duck_on})"
        columns, by = r.choice([("a.k AS k, a.ts AS at", ""), ("a.k AS k, count(*) AS n, max(a.i) AS high", " GROUP BY a.k")])
        return Query(f"SELECT {columns} FROM {ours} ON {on}{by}", f"SELECT {columns} FROM {one} AS a WHERE {there}{by}")
    columns, by = "a.k AS ak, a.ts AS at, b.ts AS bt, b.i AS bi", ""
    if r.random() < 0.5:
        key = r.choice(["a", "b"]) if kind == "JOIN" else "a"
        columns, by = f"{key}.k AS k, count(*) AS n, min(b.i) AS low", f" GROUP BY {key}.k"
    return Query(f"SELECT {columns} FROM {ours} ON {on}{by}", f"SELECT {columns} FROM {one} AS a {kind} {two} AS b ON {duck_on}{by}")


def _punctuated_three(r: random.Random, streams: list[str]) -> Query:
    """Whichever columns are compared and grouped by: all three are equal."""
    sizes = [r.choice(WINDOWS) for _ in "abc"] if r.random() < 0.5 else [None] * 3
    chosen = [r.choice(streams) for _ in "abc"]
    equal = ["a.k = b.k", r.choice(["a.k = c.k", "b.k = c.k"]), *r.choice([[], ["a.i < c.i"]])]
    columns, by = "a.k AS ak, b.ts AS bt, c.k AS ck, c.i AS ci", ""
    if r.random() < 0.6:
        key = r.choice("abc")
        columns, by = f"{key}.k AS k, count(*) AS n, min(b.i) AS low", f" GROUP BY {key}.k"
    bands = [part for i, j in ((0, 1), (0, 2), (1, 2)) for part in band("abc"[i], "abc"[j], sizes[i], sizes[j])]
    ours = ", ".join(f"{stream}{_window(size)} AS {name}" for stream, size, name in zip(chosen, sizes, "abc", strict=True))
    theirs = ", ".join(f"{stream} AS {name}" for stream, name in zip(chosen, "abc", strict=True))
    return Query(
        f"SELECT {columns} FROM {ours} WHERE {' AND '.join(equal)}{by}",
        f"SELECT {columns} FROM {theirs} WHERE {' AND '.join([*equal, *bands])}{by}",
    )


def table(r: random.Random, streams: list[str]) -> Query:
    """Streams with a static table T (id INT, label STRING, low TIMESTAMP)."""
    source = relation(r, streams)
    kind = r.choice(["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
    on = " AND ".join(["a.i = t.id", *r.sample(["t.label <> a.s", "t.id > 0", "a.k IS NOT NULL", "a.ts > t.low"], r.choice([0, 0, 1, 2]))])
    if r.random() < 0.15:
        on = "a.ts > t.low"
    semi = kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
    there = f"{'' if 'SEMI' in kind else 'NOT '}EXISTS (SELECT 1 FROM T AS t WHERE {on})"
    duck = (
        f"(SELECT a.* FROM {source.duck} AS a WHERE {there})" if semi else f"(SELECT a.*{{}} FROM {source.duck} AS a {kind} T AS t ON {on})"
    )
    if r.random() < 0.4:
        text, width, slide = window_text(r)
        label, more = ("a.k", "") if semi else ("t.label", ", t.label")
        rows = expanded(duck.format(more), width, slide)
        return Query(
            f"SELECT {label} AS l, count(*) AS n FROM {source.ours} {text} AS a {kind} T AS t ON {on} GROUP BY {label}",
            f"SELECT {label[2:]}, count(*), window_start, window_end FROM {rows} GROUP BY {label[2:]}, window_start, window_end",
        )
    columns = "a.k AS k, a.ts AS at" + ("" if semi else ", t.label AS l, t.id AS id")
    if semi:
        return Query(f"SELECT {columns} FROM {source.ours} AS a {kind} T AS t ON {on}", f"SELECT {columns} FROM {duck} AS a")
    ours = f"SELECT {columns} FROM {source.ours} AS a {kind} T AS t ON {on}"
    return Query(ours, f"SELECT {columns} FROM {source.duck} AS a {kind} T AS t ON {on}")


def joined_window(r: random.Random, streams: list[str]) -> Query:
    """A window over the results of a join, or over what a left join has left."""
    one, two = relation(r, streams, 0), relation(r, streams, 0)
    sizes = (r.choice(WINDOWS[2:]), r.choice(WINDOWS[2:]))
    kind = r.choice(["JOIN", "JOIN", "LEFT JOIN"])
    bands = " AND ".join(band("a", "b", *sizes))
    text, width, slide = window_text(r)
    columns = "a.k AS k, a.ts AS ts, b.ts AS other, b.i AS i, b.k AS bk, a.s AS s, b.s AS bs"
    equal = r.choice(["a.k = b.k", "a.k = b.k AND a.s = b.s", "a.s = b.s"])
    inner = f"SELECT {columns} FROM {one.ours}{_window(sizes[0])} AS a {kind} {two.ours}{_window(sizes[1])} AS b ON {equal}"
    duck = f"(SELECT {columns} FROM {one.duck} AS a {kind} {two.duck} AS b ON {equal} AND {bands})"
    attribute = r.choice(["ts", "other", None])
    if attribute is None:
        duck = f"(SELECT *, greatest(ts, coalesce(other, ts)) AS late FROM {duck})"
    rows = expanded(duck, width, slide, f"epoch_us({attribute or 'late'})", "" if attribute != "other" else " WHERE other IS NOT NULL")
    if attribute is not None:
        text = text.replace("]", f", WA {attribute}]")
    if r.random() < 0.3 and attribute == "other":
        some = " WHERE other IS NOT NULL" if kind == "LEFT JOIN" else ""
        return Query(
            f"SELECT other, count(*) AS n FROM ({inner}) AS z{some} GROUP BY other",
            f"SELECT other, count(*) FROM {duck}{some} GROUP BY other",
        )
    by = ", ".join(r.sample(["k", "bk", "s", "bs"], r.randint(1, 2)))
    return Query(
        f"SELECT {by}, count(*) AS n, sum(i) AS t FROM ({inner}) AS z {text} GROUP BY {by}",
        f"SELECT {by}, count(*), CAST(sum(i) AS BIGINT), window_start, window_end FROM {rows} GROUP BY {by}, window_start, window_end",
    )
