"""Join pairs tuples of two inputs with equal keys and times within a band, in any order of arrival."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from millstream.operators.contract import Config, Due, Needs, Operator
from millstream.plan.nodes import Band

WINDOW, PUNCTUATED, PUNCTUATED_WINDOW = "window", "punctuated", "punctuated-window"


@dataclass(frozen=True)
class Join(Config):
    """OOP-Join (paper 004, Figure 4), with the ranges the right way round and any number of bands.

    All bands speak of one column of the right side (`axis`), so a left tuple covers an interval of it: the
    intersection of its bands. Keys are columns of equal type. `condition` is what is left, over both sides' columns.
    Kinds: inner, left, semi, anti.
    """

    left: pa.Schema
    right: pa.Schema
    kind: str
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    bands: tuple[Band, ...]
    condition: exp.Expr | None
    output: tuple[str, ...]
    stamp: tuple[str, str, str] | None = None
    """(name, left time, right time): the later of both as a column of its own."""
    origin: str = ""
    algorithm: str = WINDOW
    """What lets go of stored tuples: time (`window`: WJoin), finished values (`punctuated`: PJoin), or both (PWJoin of paper 002)."""
    twins: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = ((), ())
    """For each side: keys that are a column of it in a wider type, and that column."""
    right_reach: tuple[tuple[str, int], ...] = ()
    """Times of a right tuple, and how far each reaches: the least of these ends is the last `left_time` that it can meet."""
    left_time: str | None = None
    latest: str | None = None
    """The latest of several left times, where it is a column: never the one that lets a left tuple go."""
    others: tuple[Band, ...] = ()
    """Bands over other columns of the right side by which times move on.

    Results keep to them by `condition`."""
    indexed: bool = True
    """False looks at every stored tuple in reach: nested loops, as paper 003 has them."""
    feedback: bool = False
    """Whether it takes part in demand feedback (paper 003): tells producers what it does not need, and holds back what nobody needs."""

    @cached_property
    def pair_schema(self) -> pa.Schema:
        return pa.schema([*self.left, *self.right])

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([self._field(name) for name in self.output])

    def _field(self, name: str) -> pa.Field:
        if self.stamp is not None and name == self.stamp[0]:
            return pa.field(name, self.left.field(self.stamp[1]).type)
        return self.pair_schema.field(name)

    @property
    def axis(self) -> str | None:
        return self.bands[0].right if self.bands else None

    @property
    def choices(self) -> dict[str, str]:
        return {"join.feedback": str(self.feedback).lower(), "join.index": "hash" if self.indexed else "none"}

    @property
    def moving(self) -> tuple[Band, ...]:
        """The bands by which times move on."""
        return (*self.bands, *self.others)

    @property
    def needs(self) -> Needs:
        # A left tuple that found nobody lies in the bucket of its own key, and has nulls in place of the right one.
        spreading = None if self.kind == "inner" else (0,)
        keys = (self.left_keys, self.right_keys)
        same = tuple(((0, a), (1, b)) for a, b in zip(*keys, strict=True))
        return Needs(keys=keys, linear="purge", value="purge", spreading=spreading, together=self.feedback, same=same)

    @property
    def name(self) -> str:
        return f"{self.kind} join" if self.algorithm == WINDOW else f"{self.kind} {self.algorithm} join"

    @property
    def label(self) -> str:
        keys = " and ".join(f"{a} = {b}" for a, b in zip(self.left_keys, self.right_keys, strict=True))
        bands = " and ".join(str(band) for band in self.bands)
        rest = self.condition.sql("spark") if self.condition is not None else ""
        return f"{self.name} on " + " and ".join(part for part in (keys, bands, rest) if part)

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        """The inverse of `JoinPromises._marks`."""
        if any(band.right == attribute for band in self.moving):
            if self.kind not in ("inner", "left"):
                return ()
            lows = [(band.left, band.low) for band in self.moving if band.right == attribute and band.low is not None]
            return tuple((Due(0, left, mark - low), Due(1, attribute, mark)) for left, low in lows)
        if self.stamp is not None and attribute == self.stamp[0]:
            both = (Due(0, self.stamp[1], mark), Due(1, self.stamp[2], mark))
            if self.kind != "left":
                return (both,)
            return tuple((*both, *way) for way in self.ways(self.stamp[1], mark))
        highs = [(band.right, band.high) for band in self.moving if band.left == attribute and band.high is not None]
        return tuple((Due(0, attribute, mark), Due(1, right, mark + high)) for right, high in highs)

    def build(self, journal: bool = False) -> Operator:
        from millstream.operators.running_join import RunningJoin

        return RunningJoin(self, journal)
