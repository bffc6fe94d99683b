"""A stream that follows an arrival pattern of paper 002, made and never stored: any unit of it can be made again."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.errors import MillstreamError, NameProblem, SourceProblem
from millstream.io.contract import NO_LIMITS, Limits, Position, Reading, Unit
from millstream.io.generate.columns import fill
from millstream.io.generate.notation import ArrivalPattern
from millstream.io.generate.recipe import CHUNK, Begin, Recipe
from millstream.io.options import Options
from millstream.io.read.values import type_name

START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
DESCENDING = 1_000_000_000
"""Where descending values begin in a stream without end."""
BLOCK = 1000
AT_ONCE = 100
"""Units that are offered when nobody says how many."""
MARKER = "closed"


@dataclass
class GeneratorSource:
    """A unit is some rows of a chunk (see `Recipe`). A position says where its chunk begins, so that nothing before it need be made."""

    name: str
    schema: pa.Schema
    recipe: Recipe
    key: str
    marker: str | None = None
    unit: int = CHUNK
    clock: bool = False
    """Tuples come when their time, counted from the beginning of the run, has come."""
    limits: Limits = NO_LIMITS
    over: bool = field(default=False, init=False)

    @classmethod
    def of(cls, name: str, schema: pa.Schema, options: Options) -> GeneratorSource:
        pattern = _pattern(options)
        tuples = options.integer("tuples", None)
        key, marker = _key(schema, options), _marker(schema, options)
        seed = options.integer("seed", None)
        recipe = Recipe(
            pattern,
            seed=zlib.crc32(name.lower().encode()) if seed is None else seed,
            every=_length(options, "every", 10_000, least=1),
            start=_or(options.moment("start"), START),
            tuples=tuples,
            marked=marker is not None,
            disorder=_length(options, "disorder", 0),
        )
        if pattern.domain is None:
            recipe = replace(recipe, **_values(pattern, tuples, options))
        pace = options.choice("pace", ("data", "clock"), "clock" if tuples is None else "data")
        unit = _or(options.integer("unit", None, 1, CHUNK), CHUNK)
        return cls(name, schema, recipe, key, marker, unit, pace == "clock")

    def hosted(self, directory: str | None, limits: Limits) -> GeneratorSource:
        return replace(self, limits=limits)

    @property
    def bounded(self) -> bool:
        """By the clock only once the last tuple has come: until then there is nothing to read now and then."""
        return self.recipe.tuples is not None and (self.over or not self.clock)

    def check(self) -> None: ...

    def initial(self) -> Position:
        began = {"began": _now()} if self.clock else {}
        return {"units": 0, **self.recipe.begin._asdict(), "row": 0, **began}

    def latest(self, start: Position, limit: int | None) -> Position:
        ends: list[Position] = []

        def sizes() -> Iterator[tuple[int, int | None]]:
            for unit, end in islice(self._walk(start, self._come(start) if self.clock else None), AT_ONCE if limit is None else limit):
                ends.append(end)
                rows = unit.detail["end"] - unit.detail["first"]
                yield rows * len(self.schema) * 8, rows

        taken = self.limits.fitting(sizes())
        end = ends[taken - 1] if taken else start
        self.over = self.over or self.finished(end)
        return end

    def units(self, start: Position, end: Position) -> list[Unit]:
        return [unit for unit, _ in self._walk(start, (end["chunk"], end["row"]))]

    def _walk(self, start: Position, bound: tuple[int, int] | None) -> Iterator[tuple[Unit, Position]]:
        """The units from a position to a row of a chunk, each with the position behind it."""
        begin, row, number = _begin(start), start["row"], start["units"]
        while not self.recipe.over(begin) and (bound is None or (begin.chunk, row) < bound):
            rows = self.recipe.rows(begin)
            end = min(row + self.unit, rows if bound is None or begin.chunk < bound[0] else min(rows, bound[1]))
            unit = Unit(number, {**begin._asdict(), "first": row, "end": end})
            begin, row, number = (self.recipe.after(begin), 0, number + 1) if end == rows else (begin, end, number + 1)
            yield unit, {**start, "units": number, **begin._asdict(), "row": row}

    def _come(self, start: Position) -> tuple[int, int]:
        """The first row that is still to come."""
        now = self.recipe.start + _now() - start["began"]
        begin = _begin(start)
        while not self.recipe.over(begin):
            behind = self.recipe.after(begin)
            if behind.time > now:
                return begin.chunk, int(np.searchsorted(self.recipe.make(begin).arrivals, now, "right"))
            begin = behind
        return begin.chunk, 0

    def read(self, unit: Unit, batch_size: int) -> Iterator[Reading]:
        begin, first, end = _begin(unit.detail), unit.detail["first"], unit.detail["end"]
        try:
            chunk = _chunk(self.recipe, begin, self.schema, self.key, self.marker)
        except SourceProblem as problem:
            raise SourceProblem(f"stream {self.name}: {problem.message}", hint=problem.hint) from problem.__cause__
        line = self.recipe.rows_before(begin) + 1
        for at in range(first, end, batch_size):
            to = min(at + batch_size, end)
            yield Reading(chunk.slice(at, to - at), file=self.name, lines=np.arange(line + at, line + to, dtype=np.int64))

    def arrived(self, unit: Unit) -> int | None:
        return None

    def finished(self, position: Position) -> bool:
        return self.recipe.over(_begin(position))

    def release(self, position: Position) -> None: ...

    def close(self) -> None: ...


@lru_cache(maxsize=8)
def _chunk(recipe: Recipe, begin: Begin, schema: pa.Schema, key: str, marker: str | None) -> pa.RecordBatch:
    """Kept for a while, because several small units may be cut from it."""
    return fill(recipe, begin, recipe.make(begin), schema, key, marker)


def _begin(position: Position) -> Begin:
    return Begin(position["chunk"], position["tuples"], position["time"])


def _now() -> int:
    return time.time_ns() // 1000


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _length(options: Options, name: str, default: int, least: int = 0) -> int:
    length = _or(options.duration(name), default)
    if length < least:
        raise options.wrong(f"`{name}` is no time at all", "write a length such as '10 milliseconds'")
    return length


def _pattern(options: Options) -> ArrivalPattern:
    if not options.has("pattern"):
        raise options.wrong(
            "the option `pattern` is missing", "add pattern = 'punct-asc-100-40' to WITH; numbered tuples are connector = 'rate'"
        )
    try:
        return ArrivalPattern.parse(options.required("pattern"))
    except MillstreamError as problem:
        raise type(problem)(f"{options.owner}: {problem.message}", place=options.place, hint=problem.hint) from None


def _values(pattern: ArrivalPattern, tuples: int | None, options: Options) -> dict[str, Any]:
    """Which values are punctuated: about as many as there are segments, from 0 on, in each order."""
    segments = None if tuples is None else max(1, -(-tuples // pattern.size))
    first = 0
    if pattern.order == "desc":
        first = DESCENDING if segments is None else segments - 1
    found: dict[str, Any] = {"first": options.integer("first", first, -(2**61), 2**61), "irrelevant": options.flag("irrelevant", False)}
    if pattern.match is not None:
        found["ahead"] = options.integer("ahead", 10, 1, 1_000_000)
    if pattern.order == "random":
        found["block"] = options.integer("block", min(BLOCK, segments or BLOCK), 1, 1_000_000)
    return found


def _key(schema: pa.Schema, options: Options) -> str:
    asked = options.text("key")
    if asked is not None:
        return _column(schema, asked, options, "key", "an integer", pa.types.is_integer)
    for column in schema:
        if pa.types.is_integer(column.type):
            return str(column.name)
    raise NameProblem(f"{options.owner} has no integer column for the key", place=options.place, hint="declare one, such as `k BIGINT`")


def _marker(schema: pa.Schema, options: Options) -> str | None:
    asked = options.text("marker")
    if asked is not None:
        return _column(schema, asked, options, "marker", "a BOOLEAN", pa.types.is_boolean)
    return next((c.name for c in schema if c.name.lower() == MARKER and pa.types.is_boolean(c.type)), None)


def _column(schema: pa.Schema, asked: str, options: Options, role: str, wanted: str, fits: Any) -> str:
    found = next((column for column in schema if column.name.lower() == asked.lower()), None)
    if found is None:
        raise NameProblem.unknown("column", asked, schema.names, within=options.owner, place=options.place)
    if not fits(found.type):
        raise options.wrong(f"the {role} column `{found.name}` is {type_name(found.type)}", f"choose {wanted} column")
    return str(found.name)
