"""Random compositions with several times: each query is written twice, and the planner may refuse it."""



from __future__ import annotations

import random

from tests.oracle.queries import Family, Query, Relation, expanded
from tests.oracle.streams import SECOND

TIMES = ("ts", "t2")
SECOND_TIMES = (
    "ts", "ts", "ts + INTERVAL 7 SECONDS", "ts - INTERVAL 3 SECONDS", "date_trunc('minute', ts)",
    "date_trunc('second', ts + INTERVAL 1 SECOND)",
    "CASE WHEN b THEN ts ELSE ts + INTERVAL 1 SECOND END",
)  # fmt: skip
"""The last one does not progress."""
STANDING = {
    "timestamp_seconds(unix_seconds(ts) * 0)": "make_timestamp(epoch_us(ts) * 0)",
    "timestamp_seconds(unix_seconds(ts) DIV 1000000000000)": "make_timestamp(epoch_us(ts) // 1000000000000000000)",
    "timestamp_seconds(TRY_CAST(unix_seconds(ts) AS TINYINT))":
        "make_timestamp(TRY_CAST(floor(epoch_us(ts) / 1000000) AS TINYINT)::BIGINT * 1000000)",
}  # fmt: skip
"""Times that look as if they progressed and stand still or are null, each with DuckDB's spelling."""
SIZES = (1, SECOND, 5 * SECOND, 10 * SECOND, 60 * SECOND)
NULLS = (
    ("", "{} NULLS FIRST"),
    (" DESC", "{} DESC NULLS LAST"),
    *((f"{d} NULLS {n}", f"{{}}{d} NULLS {n}") for d in ("", " DESC") for n in ("FIRST", "LAST")),
)
"""What is written behind a column, and the same for DuckDB with the default of Spark spelled out."""


def base(r: random.Random, streams: list[str]) -> Relation:
    """A stream with the columns k, i, ts and t2, a second time."""
    name, second = r.choice(streams), r.choice((*SECOND_TIMES, r.choice([*STANDING])))
    where = r.choice(["", "", " WHERE i > 0", " WHERE i IS NULL OR i < 2"])
    text = f"(SELECT CAST(k AS BIGINT) AS k, i, ts, {{}} AS t2 FROM {name}{where})"
    return Relation(text.format(second), text.format(STANDING.get(second, second)))


def compose(
    r: random.Random, streams: list[str], depth: int, kinds: str = "join union distinct window group filter"
) -> Relation:
    """A relation of the same columns, of operators on one another."""
    if depth == 0:
        return base(r, streams)
    return {
        "join": joined,
        "union": union,
        "distinct": deduplicated,
        "window": windowed,
        "group": grouped,
        "filter": filtered,
    }[r.choice(kinds.split())](r, streams, depth - 1)


def filtered(r: random.Random, streams: list[str], depth: int) -> Relation:
    one = compose(r, streams, depth)
    select = f"SELECT k, i, {r.choice(['ts, t2', 't2 AS ts, ts AS t2', 'ts, ts AS t2', 't2 AS ts, t2'])}"
    where = r.choice([" WHERE i > 0", " WHERE t2 >= ts", " WHERE k IS NOT NULL", ""])
    return Relation(f"({select} FROM {one.ours} AS f{where})", f"({select} FROM {one.duck} AS f{where})")


def union(r: random.Random, streams: list[str], depth: int) -> Relation:
    one, two = compose(r, streams, depth), compose(r, streams, 0)
    parts = "(SELECT k, i, ts, t2 FROM {} AS u UNION ALL SELECT k, i, ts, t2 FROM {} AS v)"
    return Relation(parts.format(one.ours, two.ours), parts.format(one.duck, two.duck))


def window(r: random.Random) -> tuple[str, int, int, str]:
    """The text of a window on one of the times, its width and its slide, and the time."""
    width, time = r.choice(SIZES[1:]), r.choice(TIMES)
    slide = r.choice([width, width, width // 2, 2 * width])
    sliding = "" if slide == width else f" SLIDE {slide} MICROSECONDS"
    return f"[RANGE {width} MICROSECONDS{sliding}, WA {time}]", width, slide, time


def in_windows(r: random.Random, one: Relation) -> tuple[str, str]:
    text, width, slide, time = window(r)
    return f"{one.ours} {text} AS w", expanded(
        one.duck, width, slide, f"epoch_us({time})", f" WHERE {time} IS NOT NULL"
    )


def deduplicated(r: random.Random, streams: list[str], depth: int) -> Relation:
    """DISTINCT in windows, with the times of its tuples or those of its windows; or without a window."""
    one = compose(r, streams, depth)
    if r.random() < 0.3:
        return Relation(
            f"(SELECT DISTINCT k, i, ts, t2 FROM {one.ours} AS w)",
            f"(SELECT DISTINCT k, i, ts, t2 FROM {one.duck} AS w)",
        )
    ours, duck = in_windows(r, one)
    columns = r.choice(["k, i, ts, t2", "k, i, ts, t2", "k, ts, t2", "k"])
    shown = {
        "k, i, ts, t2": "k, i, ts, t2",
        "k, ts, t2": "k, CAST(k AS INT) AS i, ts, t2",
        "k": "k, CAST(k AS INT) AS i, window_start AS ts, window_end AS t2",
    }
    if columns != "k" and r.random() < 0.3:
        shown[columns] = f"k, CAST(k AS INT) AS i, ts, {r.choice(['window_start', 'window_end'])} AS t2"
    inner = f"SELECT DISTINCT {columns}"
    return Relation(
        f"(SELECT {shown[columns]} FROM ({inner} FROM {ours}) AS x)",
        f"(SELECT {shown[columns]} FROM ({inner}, window_start, window_end FROM {duck}) AS x)",
    )


def windowed(r: random.Random, streams: list[str], depth: int) -> Relation:
    """Groups of a window, with its ends for times."""
    ours, duck = in_windows(r, compose(r, streams, depth))
    times = r.choice(
        [
            "window_start AS ts, window_end AS t2",
            "window_end AS ts, window_start AS t2",
            "window_start AS ts, window_start AS t2",
        ]
    )
    select = f"SELECT k, max(i) AS i, {times}"
    return Relation(
        f"({select} FROM {ours} GROUP BY k)", f"({select} FROM {duck} GROUP BY k, window_start, window_end)"
    )


def grouped(r: random.Random, streams: list[str], depth: int) -> Relation:
    """Groups of the times themselves."""
    one = compose(r, streams, depth)
    select = r.choice(["SELECT k, max(i) AS i, ts, t2", "SELECT k, max(i) AS i, ts, max(t2) AS t2"])
    by = "k, ts" if "max(t2)" in select else "k, ts, t2"
    return Relation(
        f"({select} FROM {one.ours} AS g GROUP BY {by})", f"({select} FROM {one.duck} AS g GROUP BY {by})"
    )


def joined(r: random.Random, streams: list[str], depth: int) -> Relation:
    sides = [compose(r, streams, depth), compose(r, streams, r.choice([0, 0, depth]))]
    r.shuffle(sides)
    return join_of(r, *sides)


def join_of(r: random.Random, one: Relation, two: Relation) -> Relation:
    """Bands between any two of the times, by windows or by conditions; one band or two."""
    kind = r.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
    on = [r.choice(["a.k = b.k", "a.k = b.k", "a.i = b.i"])]
    ours, duck = [f"{one.ours} AS a", f"{two.ours} AS b"], list(on)
    if r.random() < 0.3:
        times, sizes = (r.choice(TIMES), r.choice(TIMES)), (r.choice(SIZES), r.choice(SIZES))
        left, right = (
            f" [RANGE {size} MICROSECONDS, WA {time}]" for size, time in zip(sizes, times, strict=True)
        )
        ours = [f"{one.ours}{left} AS a", f"{two.ours}{right} AS b"]
        duck.append(
            f"epoch_us(a.{times[0]}) - epoch_us(b.{times[1]}) BETWEEN -{sizes[0]} AND {sizes[1]}"
        )
    else:
        for _ in range(r.choice([1, 1, 2])):
            a, b, low, high = r.choice(TIMES), r.choice(TIMES), r.choice([0, 1, 20]), r.choice([0, 2, 20])
            on.append(f"b.{b} BETWEEN a.{a} - INTERVAL {low} SECONDS AND a.{a} + INTERVAL {high} SECONDS")
        duck = list(on)
    if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
        columns, word = (
            "a.k AS k, a.i AS i, a.ts AS ts, a.t2 AS t2",
            "EXISTS" if "SEMI" in kind else "NOT EXISTS",
        )
        there = f"SELECT 1 FROM {two.duck} AS b WHERE {' AND '.join(duck)}"
        theirs = f"(SELECT {columns} FROM {one.duck} AS a WHERE {word} ({there}))"
        return Relation(f"(SELECT {columns} FROM {ours[0]} {kind} {ours[1]} ON {' AND '.join(on)})", theirs)
    first, second = r.choice(["a.ts", "a.t2"]), r.choice(["a.ts", "a.t2", "b.ts", "b.t2"])
    columns = f"a.k AS k, b.i AS i, {first} AS ts, {second} AS t2"
    return Relation(
        f"(SELECT {columns} FROM {ours[0]} {kind} {ours[1]} ON {' AND '.join(on)})",
        f"(SELECT {columns} FROM {one.duck} AS a {kind} {two.duck} AS b ON {' AND '.join(duck)})",
    )


def outermost(r: random.Random, one: Relation) -> Query:
    """What a query does with a composition in the end."""
    chosen = r.randrange(5)
    if chosen == 0:
        return Query(f"SELECT k, i, ts, t2 FROM {one.ours} AS z", f"SELECT k, i, ts, t2 FROM {one.duck} AS z")
    if chosen == 1:
        ours, duck = in_windows(r, one)
        select = "SELECT k, count(*) AS n, max(i) AS best"
        return Query(
            f"{select} FROM {ours} GROUP BY k",
            f"{select}, window_start, window_end FROM {duck} GROUP BY k, window_start, window_end",
        )
    if chosen == 2:
        by = r.choice(["ts", "t2", "ts, t2", "t2, k"])
        return Query(
            f"SELECT {by}, count(*) AS n FROM {one.ours} AS z GROUP BY {by}",
            f"SELECT {by}, count(*) FROM {one.duck} AS z GROUP BY {by}",
        )
    if chosen == 3:
        columns = r.choice(["ts", "t2, i", "k, ts", "k, t2, ts"])
        return Query(
            f"SELECT DISTINCT {columns} FROM {one.ours} AS z",
            f"SELECT DISTINCT {columns} FROM {one.duck} AS z",
        )
    return in_order(r, one)


def in_order(r: random.Random, one: Relation) -> Query:
    """ORDER BY with nulls on either end."""
    time = r.choice(TIMES)
    keys = [("k", *r.choice(NULLS)), ("i", *r.choice(NULLS))]
    r.shuffle(keys)
    select, by = f"SELECT {time} AS tt, k, i FROM", ("tt", *(name for name, _, _ in keys))
    ours = ", ".join(name + written for name, written, _ in keys)
    duck = ", ".join(spelled.format(name) for name, _, spelled in keys)
    return Query(
        f"{select} {one.ours} AS z ORDER BY tt, {ours}",
        f"{select} {one.duck} AS z ORDER BY tt, {duck}",
        "tt",
        by,
    )


def composed(r: random.Random, streams: list[str]) -> Query:
    """Any operators on one another."""
    return outermost(r, compose(r, streams, r.choice([1, 2, 2, 3])))


def window_joined(r: random.Random, streams: list[str]) -> Query:
    """Windows on any of the times, below a join."""
    sides = [windowed(r, streams, 0), compose(r, streams, r.choice([0, 1]), "window filter group")]
    r.shuffle(sides)
    return outermost(r, join_of(r, *sides))


def distinct_joined(r: random.Random, streams: list[str]) -> Query:
    """DISTINCT in windows, below a join."""
    sides = [deduplicated(r, streams, 0), compose(r, streams, r.choice([0, 1]), "distinct filter group")]
    r.shuffle(sides)
    return outermost(r, join_of(r, *sides))


def ordered(r: random.Random, streams: list[str]) -> Query:
    """ORDER BY over a union, a filter or groups, with nulls first and last."""
    return in_order(r, compose(r, streams, r.choice([0, 1]), "filter union window group"))


EPOCH = "DATE '1970-01-01'"
DAYS = ((1, "1 DAY"), (2, "48 HOURS"), (3, "3 DAYS"), (7, "1 WEEK"), (10, "10 DAYS"))


def dated(r: random.Random, streams: list[str]) -> Relation:
    """A relation of k, i and the date d: tuples with their date, or the groups of each date."""
    name = r.choice(streams)
    if r.random() < 0.5:
        text = f"(SELECT CAST(k AS BIGINT) AS k, i, CAST(ts AS DATE) AS d FROM {name})"
        return Relation(text, text)
    select = "SELECT CAST(count(*) AS BIGINT) AS k, max(i) AS i, CAST(ts AS DATE) AS d"
    text = f"({select} FROM {name} GROUP BY CAST(ts AS DATE))"
    return Relation(text, text)


def dates(r: random.Random, streams: list[str]) -> Query:
    """Windows of whole days on a DATE: of groups, of DISTINCT, and of joins with dates and with times."""
    one, (days, written), (more, sliding) = dated(r, streams), r.choice(DAYS), r.choice(DAYS)
    chosen = r.randrange(4)
    if chosen < 2:
        text = f"[RANGE {written}, WA d]" if days == more else f"[RANGE {written} SLIDE {sliding}, WA d]"
        rows = expanded(one.duck, days, more, f"d - {EPOCH}", times=False)
        ends = ", ".join(
            f"CAST({EPOCH} + CAST({end} AS INT) AS DATE) AS {end}" for end in ("window_start", "window_end")
        )
        if chosen == 0:
            return Query(
                f"SELECT DISTINCT k FROM {one.ours} {text} AS w", f"SELECT DISTINCT k, {ends} FROM {rows}"
            )
        select = "SELECT i, count(*) AS n, max(k) AS best, max(d) AS last"
        return Query(
            f"{select} FROM {one.ours} {text} AS w GROUP BY i",
            f"{select}, {ends} FROM {rows} AS w GROUP BY i, w.window_start, w.window_end",
        )
    kind, equal = r.choice(["JOIN", "LEFT JOIN"]), r.choice(["a.k = b.k", "a.i = b.i"])
    if chosen == 2:
        two = dated(r, streams)
        text, band = f"{two.ours} [RANGE {sliding}, WA d]", f"b.d - a.d BETWEEN -{more} AND {days}"
        columns = "a.k AS k, a.d AS d, b.d AS other"
    else:
        size, timed = r.choice(SIZES), f"(SELECT CAST(k AS BIGINT) AS k, i, ts FROM {r.choice(streams)})"
        two, text = Relation(timed, timed), f"{timed} [RANGE {size} MICROSECONDS, WA ts]"
        midnight = "epoch_us(CAST(a.d AS TIMESTAMP))"
        band = f"epoch_us(b.ts) - {midnight} BETWEEN -{size} AND {days * 86_400 * SECOND}"
        columns = "a.k AS k, a.d AS d, b.ts AS other"
    return Query(
        f"SELECT {columns} FROM {one.ours} [RANGE {written}, WA d] AS a {kind} {text} AS b ON {equal}",
        f"SELECT {columns} FROM {one.duck} AS a {kind} {two.duck} AS b ON {equal} AND {band}",
    )


COMPOSITIONS: dict[str, Family] = {
    "composed": composed, "window-joined": window_joined, "distinct-joined": distinct_joined, "ordered": ordered,
    "dates": dates,
}  # fmt: skip
