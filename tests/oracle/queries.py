"""Random queries, each written twice: in our language, and in relational form for DuckDB."""

# ruff: noqa: E501 - a query reads best on one line

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.oracle.streams import SECOND

DECIMAL_KEY = "CAST(k AS DECIMAL(20,0))"
"""The key of streams whose keys have several types, for a union of them; it must be a number and not NaN."""
COLUMNS = ("k", "i", "x", "m", "s", "b", "d", "ts")
FILTERS = (
    "i > 0", "b", "NOT b", "s LIKE 'a%'", "k IS NOT NULL", "x > 0", "m >= 0", "i BETWEEN -1 AND 2", "s IN ('a', 'b')", "d IS NULL OR i < 2", "i % 2 = 0",
)  # fmt: skip
COMPUTED = (
    ("i + 1", "i + 1"), ("i * 2 - 1", "i * 2 - 1"), ("upper(s)", "upper(s)"), ("coalesce(i, 7)", "coalesce(i, 7)"), ("s || '!'", "s || '!'"),
    ("CASE WHEN b THEN i ELSE -i END", "CASE WHEN b THEN i ELSE -i END"), ("ts + INTERVAL 3 SECONDS", "ts + INTERVAL 3 SECONDS"),
    ("date_trunc('minute', ts)", "date_trunc('minute', ts)"), ("to_date(ts)", "CAST(ts AS DATE)"), ("x / 2", "x / 2"), ("x IS NULL", "x IS NULL"),
)  # fmt: skip
GROUPS = (
    ("k", "k"), ("s", "s"), ("b", "b"), ("d", "d"), ("x", "x"), ("m", "m"), ("i % 2", "i % 2"), ("coalesce(i, 0)", "coalesce(i, 0)"), ("upper(s)", "upper(s)"),
    ("date_trunc('minute', ts)", "date_trunc('minute', ts)"), ("i > 0", "i > 0"), ("ts", "ts"),
)  # fmt: skip
PROGRESSING = (
    ("date_trunc('minute', ts)", "date_trunc('minute', ts)"), ("ts", "ts"), ("to_date(ts)", "CAST(ts AS DATE)"), ("ts + INTERVAL 1 SECOND", "ts + INTERVAL 1 SECOND"),
    ("unix_micros(ts)", "epoch_us(ts)"),
)  # fmt: skip
AGGREGATES = (
    ("count(*)", "count(*)"), ("count(i)", "count(i)"), ("count(DISTINCT s)", "count(DISTINCT s)"), ("count(DISTINCT x)", "count(DISTINCT x)"),
    ("sum(i)", "CAST(sum(i) AS BIGINT)"), ("sum(DISTINCT i)", "CAST(sum(DISTINCT i) AS BIGINT)"), ("sum(x)", "sum(x)"), ("sum(m)", "sum(m)"),
    ("min(i)", "min(i)"), ("max(x)", "max(x)"), ("min(x)", "min(x)"), ("max(s)", "max(s)"), ("min(s)", "min(s)"), ("max(ts)", "max(ts)"), ("min(d)", "min(d)"),
    ("max(m)", "max(m)"), ("max(b)", "max(b)"), ("avg(i)", "avg(i)"), ("avg(x)", "avg(x)"), ("avg(m)", "round(avg(m), 6)"), ("stddev(i)", "stddev(i)"),
    ("variance(i)", "variance(i)"), ("stddev_pop(i)", "stddev_pop(i)"), ("var_pop(i)", "var_pop(i)"), ("bool_and(b)", "bool_and(b)"), ("bool_or(b)", "bool_or(b)"),
    ("count_if(b)", "count(*) FILTER (WHERE b)"), ("count(*) FILTER (WHERE i > 0)", "count(*) FILTER (WHERE i > 0)"),
    ("sum(i) FILTER (WHERE b)", "CAST(sum(i) FILTER (WHERE b) AS BIGINT)"), ("count(DISTINCT i) FILTER (WHERE b)", "count(DISTINCT i) FILTER (WHERE b)"),
    ("sum(i + 1)", "CAST(sum(i + 1) AS BIGINT)"), ("count(k)", "count(k)"),
)  # fmt: skip
HAVINGS = (
    ("count(*) > 1", "count(*) > 1"),
    ("max(i) IS NOT NULL", "max(i) IS NOT NULL"),
    ("count(DISTINCT s) < 3", "count(DISTINCT s) < 3"),
)
RANGES = (1, SECOND, 5 * SECOND, 10 * SECOND, 60 * SECOND)


@dataclass(frozen=True)
class Query:
    """One SELECT in both forms; `ordered` names a column by which ours must come out in order."""

    ours: str
    duck: str
    ordered: str | None = None
    by: tuple[str, ...] = ()
    """All columns of ORDER BY, where DuckDB orders its rows in the same way."""


@dataclass(frozen=True)
class Relation:
    """Something with the columns of a stream that can stand in FROM."""

    ours: str
    duck: str


def relation(r: random.Random, streams: list[str], depth: int = 1) -> Relation:
    """A stream, a filtered or projected one, a view, a union of several, or the result of another query."""
    name = r.choice(streams)
    chosen = r.randrange(11 if depth else 4)
    if chosen < 4:
        return Relation(name, name)
    if chosen == 4:
        condition = r.choice(FILTERS)
        text = f"(SELECT * FROM {name} WHERE {condition})"
        return Relation(text, text)
    if chosen == 5:
        text = f"(SELECT k, -i AS i, x, m, lower(s) AS s, b, d, ts FROM {name})"
        return Relation(text, text)
    if chosen == 6:
        return Relation(f"V{name}", f"V{name}")
    if chosen == 8:
        text = f"(SELECT DISTINCT k, i, x, m, s, b, d, ts FROM {name})"
        return Relation(text, text)
    if chosen == 9:
        width = r.choice([2, 10]) * SECOND
        select = "SELECT k, max(i) AS i, max(x) AS x, max(m) AS m, max(s) AS s, bool_or(b) AS b, min(d) AS d, window_start AS ts"
        ours = f"({select} FROM {name} [RANGE {width} MICROSECONDS] GROUP BY k)"
        return Relation(ours, f"({select} FROM {expanded(name, width, width)} GROUP BY k, window_start)")
    if chosen == 10:
        other, kind, size = r.choice(streams), r.choice(["SEMI", "ANTI"]), r.choice([1, 6]) * SECOND
        bound = f"epoch_us(r.ts) - {size} <= epoch_us(q.ts) AND epoch_us(q.ts) <= epoch_us(r.ts) + {size} AND q.i = r.i"
        columns = "q.k AS k, q.i AS i, q.x AS x, q.m AS m, q.s AS s, q.b AS b, q.d AS d, q.ts AS ts"
        width = f"[RANGE {size} MICROSECONDS]"
        ours = f"(SELECT {columns} FROM {name} {width} AS q LEFT {kind} JOIN {other} {width} AS r ON q.i = r.i)"
        word = "EXISTS" if kind == "SEMI" else "NOT EXISTS"
        return Relation(ours, f"(SELECT {columns} FROM {name} AS q WHERE {word} (SELECT 1 FROM {other} AS r WHERE {bound}))")
    members = [relation(r, streams, 0) for _ in range(r.choice([2, 3]))]
    columns = f"{DECIMAL_KEY} AS k, i, x, m, s, b, d, ts"
    ours = " UNION ALL ".join(f"SELECT {columns} FROM {m.ours}" for m in members)
    return Relation(f"({ours})", f"({ours})")


def views(streams: list[str]) -> list[str]:
    return [f"CREATE VIEW V{name} AS SELECT k, i + 1 AS i, x, m, s, b, d, ts FROM {name} WHERE i IS NULL OR i > -2;" for name in streams]


def _where(r: random.Random, chance: float = 0.4) -> str:
    return f" WHERE {r.choice(FILTERS)}" if r.random() < chance else ""


def scan(r: random.Random, streams: list[str]) -> Query:
    """SELECT with expressions and a condition."""
    source, where = relation(r, streams), _where(r, 0.7)
    items = r.sample([*((c, c) for c in COLUMNS), *COMPUTED], r.randint(1, 5))
    ours = ", ".join(f"{a} AS c{n}" for n, (a, _) in enumerate(items))
    duck = ", ".join(f"{b} AS c{n}" for n, (_, b) in enumerate(items))
    order, ordered = "", None
    if r.random() < 0.25:
        ours, duck, order, ordered = f"{ours}, ts AS tt", f"{duck}, ts AS tt", " ORDER BY tt", "tt"
    return Query(f"SELECT {ours} FROM {source.ours} AS r{where}{order}", f"SELECT {duck} FROM {source.duck} AS r{where}", ordered)


def expanded(source: str, width: int, slide: int, attribute: str = "epoch_us(ts)", where: str = "", times: bool = True) -> str:
    """Each tuple once per window that covers it; the floor of a division, for negative times too."""
    floor = f"(({attribute}) - ((({attribute}) % {slide}) + {slide}) % {slide}) // {slide}"
    last = f"((({attribute}) - {width}) - (((({attribute}) - {width}) % {slide}) + {slide}) % {slide}) // {slide} + 1"
    start, end = f"__w * {slide}", f"__w * {slide} + {width}"
    if times:
        start, end = f"make_timestamp({start})", f"make_timestamp({end})"
    inner = f"SELECT *, unnest(generate_series({last}, {floor})) AS __w FROM {source} AS q{where}"
    return f"(SELECT *, {start} AS window_start, {end} AS window_end FROM ({inner}))"


def _grouping(r: random.Random, least: int = 0, pool: tuple[tuple[str, str], ...] = GROUPS) -> list[tuple[str, str]]:
    return r.sample(pool, r.randint(least, 3))


def _aggregate_lists(r: random.Random, groups: list[tuple[str, str]], ends: bool) -> tuple[str, str, str, str]:
    calls = r.sample(AGGREGATES, r.randint(1, 4))
    ours = [f"{a} AS g{n}" for n, (a, _) in enumerate(groups)] + [f"{a} AS a{n}" for n, (a, _) in enumerate(calls)]
    duck = [f"{b} AS g{n}" for n, (_, b) in enumerate(groups)] + [f"{b} AS a{n}" for n, (_, b) in enumerate(calls)]
    by = [b for _, b in groups]
    if ends:
        duck += ["window_start", "window_end"]
        by += ["window_start", "window_end"]
    spelled = r.choice(["expressions", "aliases", "positions"])
    keys = [{"expressions": a, "aliases": f"g{n}", "positions": str(n + 1)}[spelled] for n, (a, _) in enumerate(groups)]
    having_ours = having_duck = ""
    if r.random() < 0.25:
        a, b = r.choice(HAVINGS)
        having_ours, having_duck = f" HAVING {a}", f" HAVING {b}"
    return (
        ", ".join(ours), (f" GROUP BY {', '.join(keys)}" if keys else "") + having_ours,
        ", ".join(duck), (f" GROUP BY {', '.join(by)}" if by else "") + having_duck,
    )  # fmt: skip


def window_text(r: random.Random) -> tuple[str, int, int]:
    width = r.choice(RANGES[1:])
    slide = r.choice([width, width, width // 2, 3 * SECOND, 2 * width])
    text = f"[RANGE {width} MICROSECONDS]" if slide == width else f"[RANGE {width} MICROSECONDS SLIDE {slide} MICROSECONDS]"
    return text, width, slide


def window_aggregate(r: random.Random, streams: list[str]) -> Query:
    source, where = relation(r, streams), _where(r)
    text, width, slide = window_text(r)
    select, by, duck_select, duck_by = _aggregate_lists(r, _grouping(r), True)
    rows = expanded(source.duck, width, slide, where=where)
    return Query(f"SELECT {select} FROM {source.ours} {text} AS r{where}{by}", f"SELECT {duck_select} FROM {rows}{duck_by}")


def rows_aggregate(r: random.Random, streams: list[str]) -> Query:
    """ROWS windows count arrival numbers, as the source presented them."""
    name, where = r.choice(streams), _where(r)
    width = r.choice([1, 2, 5, 10])
    slide = r.choice([width, 1, 3, 2 * width])
    text = f"[ROWS {width}]" if slide == width else f"[ROWS {width} SLIDE {slide}]"
    select, by, duck_select, duck_by = _aggregate_lists(r, _grouping(r), True)
    rows = expanded(f"{name}_numbered", width, slide, "number", where, times=False)
    return Query(f"SELECT {select} FROM {name} {text} AS r{where}{by}", f"SELECT {duck_select} FROM {rows}{duck_by}")


def progressing_aggregate(r: random.Random, streams: list[str]) -> Query:
    source, where = relation(r, streams), _where(r)
    groups = [r.choice(PROGRESSING), *_grouping(r, 0, GROUPS[:9])[:2]]
    r.shuffle(groups)
    select, by, duck_select, duck_by = _aggregate_lists(r, groups, False)
    return Query(f"SELECT {select} FROM {source.ours} AS r{where}{by}", f"SELECT {duck_select} FROM {source.duck} AS r{where}{duck_by}")


def closed_aggregate(r: random.Random, streams: list[str]) -> Query:
    """Groups that only a value punctuation closes."""
    name, where = r.choice(streams), _where(r)
    groups = [("k", "k"), *_grouping(r, 0, GROUPS[1:9])[:1]]
    r.shuffle(groups)
    select, by, duck_select, duck_by = _aggregate_lists(r, groups, False)
    return Query(f"SELECT {select} FROM {name}{where}{by}", f"SELECT {duck_select} FROM {name}{where}{duck_by}")


def distinct(r: random.Random, streams: list[str]) -> Query:
    source, where = relation(r, streams), _where(r)
    columns = ", ".join(r.sample(COLUMNS, r.randint(1, 3)))
    if r.random() < 0.3:
        columns = ", ".join(dict.fromkeys(["ts", *columns.split(", ")]))
        return Query(
            f"SELECT DISTINCT {columns} FROM {source.ours} AS r{where}", f"SELECT DISTINCT {columns} FROM {source.duck} AS r{where}"
        )
    text, width, slide = window_text(r)
    rows = expanded(source.duck, width, slide, where=where)
    return Query(
        f"SELECT DISTINCT {columns} FROM {source.ours} {text} AS r{where}",
        f"SELECT DISTINCT {columns}, window_start, window_end FROM {rows}",
    )


def nested(r: random.Random, streams: list[str]) -> Query:
    """A window over the results of a window."""
    source = relation(r, streams)
    text, width, slide = window_text(r)
    inner = f"SELECT k, count(*) AS n, max(i) AS top FROM {source.ours} {text} AS r GROUP BY k"
    rows = expanded(source.duck, width, slide)
    duck = f"(SELECT k, count(*) AS n, max(i) AS top, window_start, window_end FROM {rows} GROUP BY k, window_start, window_end)"
    chosen = r.randrange(4)
    if chosen == 0:
        text, width, slide = window_text(r)
        outer = f"(SELECT k, n, top FROM {duck})" if False else f"(SELECT k, n, top, window_start AS ts FROM {duck})"
        again = expanded(outer, width, slide)
        return Query(
            f"SELECT sum(n) AS t, max(top) AS best FROM ({inner}) AS z {text}",
            f"SELECT CAST(sum(n) AS BIGINT), max(top), window_start, window_end FROM {again} GROUP BY window_start, window_end",
        )
    if chosen == 1:
        key = r.choice(["window_start", "window_end"])
        return Query(
            f"SELECT {key} AS w, max(n) AS best FROM ({inner}) AS z GROUP BY {key}", f"SELECT {key}, max(n) FROM {duck} GROUP BY {key}"
        )
    if chosen == 2:
        return Query(
            f"SELECT z.k, z.n, y.n AS other FROM ({inner}) AS z JOIN ({inner}) AS y ON z.window_start = y.window_start AND z.n > y.n",
            f"SELECT z.k, z.n, y.n FROM {duck} AS z JOIN {duck} AS y ON z.window_start = y.window_start AND z.n > y.n",
        )
    return Query(
        f"SELECT z.k, z.n, r.ts AS at FROM {streams[0]} AS r JOIN ({inner}) AS z ON r.k = z.k AND r.ts >= z.window_start AND r.ts < z.window_end",
        f"SELECT z.k, z.n, r.ts FROM {streams[0]} AS r JOIN {duck} AS z ON r.k = z.k AND r.ts >= z.window_start AND r.ts < z.window_end",
    )


def chain(r: random.Random, streams: list[str]) -> Query:
    """Streams chained by UNION ALL in FROM, and unions in order."""
    names = [r.choice(streams) for _ in range(r.choice([2, 3]))]
    columns = "k, i, x, m, s, b, d, kind, ts"
    union = " UNION ALL ".join(f"SELECT {DECIMAL_KEY} AS k, {columns[3:]} FROM {name}" for name in names)
    if r.random() < 0.5:
        text, width, slide = window_text(r)
        rows = expanded(f"({union})", width, slide)
        return Query(
            f"SELECT s, count(*) AS n, max(ts) AS last FROM {' UNION ALL '.join(names)} {text} AS z GROUP BY s",
            f"SELECT s, count(*), max(ts), window_start, window_end FROM {rows} GROUP BY s, window_start, window_end",
        )
    ours = " UNION ALL ".join(f"SELECT i, s, ts AS tt FROM {name}" for name in names)
    return Query(f"{ours} ORDER BY tt{r.choice(['', ', i', ', s DESC'])}", ours, "tt")


Family = Callable[[random.Random, list[str]], Query]
