"""Routes through a many-join: which window a partial result visits next, and how it finds its partners there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from millstream.expressions import compile_expression
from millstream.expressions.compile import Compiled
from millstream.feedback.work import Work
from millstream.operators.many_join import FIXED, ManyJoin
from millstream.plan.rules.transform import columns_of

Columns = tuple[str, ...]

LEARNED = 1 << 14
"""Tuples after which what was seen before counts half."""
LOOK = 32
"""An Eddy looks at the route it knows least about so often: once in so many blocks."""


@dataclass(frozen=True)
class Check:
    """A part of the condition, over some of the columns."""

    columns: Columns
    compiled: Compiled

    @classmethod
    def of(cls, part: exp.Expr, config: ManyJoin) -> Check:
        columns = tuple(sorted(columns_of(part)))
        schema = pa.schema([config.inputs[config.owner[name]].field(name) for name in columns])
        return cls(columns, compile_expression(part, schema))


@dataclass(frozen=True)
class Step:
    """A half join: partial results of some inputs meet the window of one more."""

    port: int
    index: int
    probe: Columns
    """Columns of the partial result whose hash is looked for."""
    equal: tuple[tuple[str, str], ...]
    """Columns that must be equal, whatever the hash."""
    sure: tuple[tuple[str, str], ...]
    """Those of them that the index does not know."""
    starts: tuple[tuple[str, int], ...]
    ends: tuple[tuple[str, int], ...]
    """Times of the partial result that bound the time of its partners, and by how much."""
    checks: tuple[Check, ...]


@dataclass
class Routes:
    config: ManyJoin
    seen: dict[tuple[frozenset[int], int], Work] = field(default_factory=dict)
    decisions: int = 0

    def __post_init__(self) -> None:
        self.paths = [self.config.path(start) for start in range(len(self.config.inputs))]
        self._steps: dict[tuple[frozenset[int], int], Step] = {}

    @cached_property
    def indexes(self) -> tuple[tuple[Columns, ...], ...]:
        """By which columns the tuples of each input are found: on fixed routes by all that are known there, else by single ones."""
        found: list[dict[Columns, None]] = [{} for _ in self.config.inputs]
        if self.config.routing == FIXED:
            for start, path in enumerate(self.paths):
                for place, port in enumerate(path):
                    joined = frozenset((start, *path[:place]))
                    found[port][tuple(name for _, name in self.config.pairs(joined, port))] = None
        else:
            for columns in self.config.same:
                for port, name in columns:
                    found[port][(name,)] = None
            if not all(self.config.connected(start) for start in range(len(found))):
                for names in found:
                    names.setdefault((), None)
        return tuple(tuple(names) for names in found)

    def next(self, joined: frozenset[int], start: int) -> int:
        """The window to visit now."""
        if self.config.routing == FIXED:
            return self.paths[start][len(joined) - 1]
        rest = [port for port in range(len(self.config.inputs)) if port not in joined]
        self.decisions += 1
        known = {port: self.seen.setdefault((joined, port), Work(LEARNED)) for port in rest}
        tied = [port for port in rest if self.config.pairs(joined, port)] or rest
        if self.decisions % LOOK == 0:
            return min(tied, key=lambda port: known[port].taken)
        return min(tied, key=lambda port: known[port].made / max(known[port].taken, 1.0))

    def took(self, joined: frozenset[int], port: int, taken: int, made: int) -> None:
        self.seen.setdefault((joined, port), Work(LEARNED)).add(taken, made)

    def step(self, joined: frozenset[int], port: int) -> Step:
        found = self._steps.get((joined, port))
        if found is None:
            found = self._steps[joined, port] = self._step(joined, port)
        return found

    def _step(self, joined: frozenset[int], port: int) -> Step:
        config = self.config
        equal = config.pairs(joined, port)
        known = {name: column for column, name in equal}
        index, names = max(enumerate(self.indexes[port]), key=lambda each: len(each[1]) if set(each[1]) <= set(known) else -1)
        axis, owner = config.axes[port], config.owner
        starts = [(other, -end) for (one, other), end in config.reach.items() if one == axis and owner[other] in joined]
        ends = [(one, end) for (one, other), end in config.reach.items() if other == axis and owner[one] in joined]
        both = joined | {port}
        bands = [band for band in config.bands if {owner[band.left], owner[band.right]} <= both]
        late = [band for band in bands if port in (owner[band.left], owner[band.right]) and axis not in (band.left, band.right)]
        schema = pa.schema([each for inputs in config.inputs for each in inputs])
        conditions = [part for band in late for part in band.conditions(schema)]
        for part in config.conditions:
            owners = {owner[name] for name in columns_of(part)}
            if (port in owners and owners <= both) if owners else len(both) == len(config.inputs):
                conditions.append(part)
        sure = tuple(pair for pair in equal if pair[1] not in names)
        probe = tuple(known[name] for name in names)
        return Step(port, index, probe, equal, sure, tuple(starts), tuple(ends), tuple(Check.of(part, config) for part in conditions))
