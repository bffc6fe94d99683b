"""One logical join for every physical one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import widens
from millstream.errors import PlanProblem
from millstream.expressions import compile_expression
from millstream.language.types import cast_to
from millstream.plan.catalog import STAMP
from millstream.plan.nodes.base import Expression, Node
from millstream.plan.scope import column
from millstream.plan.window import Window


@dataclass(frozen=True)
class Band:
    """`low <= right - left <= high` between a column of either side, ends included; None leaves an end open."""

    left: str
    right: str
    low: int | None
    high: int | None

    def conditions(self, schema: pa.Schema) -> list[exp.Expr]:
        """The same as comparisons. Of times the distance is compared: a time moved so far may lie outside the calendar."""
        parts: list[exp.Expr] = []
        for bound, compare in ((self.low, exp.GTE), (self.high, exp.LTE)):
            if bound is None:
                continue
            kind = schema.field(self.left).type
            if pa.types.is_integer(kind):
                end: exp.Expr = exp.Add(this=column(self.left), expression=exp.Literal.number(bound))
                parts.append(compare(this=column(self.right), expression=end))
                continue
            unit = exp.Var(this="DAY" if pa.types.is_date(kind) else "MICROSECOND")
            length = exp.Interval(this=exp.Literal.string(str(bound)), unit=unit)
            distance = exp.Sub(this=column(self.right), expression=column(self.left))
            parts.append(compare(this=distance, expression=length))
        return parts

    def __str__(self) -> str:
        return f"{self.low} <= {self.right} - {self.left} <= {self.high}"


@dataclass(frozen=True)
class Join(Node):
    """One logical join for every physical one: equal keys, bands between times, and a condition on what is left.

    `kind` is inner, left, semi or anti. Semi and anti joins give the columns of the left side only.
    The default progressing attribute of an inner or left join is the later of both times.
    """

    left: Node
    right: Node
    kind: str = "inner"
    condition: tuple[Expression, ...] = ()
    keys: tuple[tuple[Expression, Expression], ...] = ()
    bands: tuple[Band, ...] = ()
    windows: tuple[Window, ...] | None = None
    """How far its streams reach towards further inputs of the same FROM clause; None until the windows are recognised."""
    stamp: str = STAMP
    """A hidden name for the later of both times, which neither side uses."""
    stamped: bool = True
    """False when nobody reads the later of both times."""
    keep: tuple[str, ...] | None = None
    """The columns that someone reads; None for all."""
    windowed: bool = False
    """True where time alone is to let tuples go, if it can: then nothing is heard of closed values."""

    def __post_init__(self) -> None:
        both = set(self.left.schema.names) & set(self.right.schema.names)
        if both:
            raise PlanProblem(f"both sides of a join have a column {sorted(both)}")

    @cached_property
    def pair_schema(self) -> pa.Schema:
        """Left and right columns side by side: what conditions are written over."""
        return pa.schema([*self.left.schema, *self.right.schema])

    @cached_property
    def time(self) -> str | None:
        if self.kind in ("semi", "anti"):
            return self.left.time
        if self.static:
            return self.left.time
        if not self.stamped or self.left.time is None or self.right.time is None:
            return None
        alike = self.left.schema.field(self.left.time).type == self.right.schema.field(self.right.time).type
        return self.stamp if alike else None

    @cached_property
    def times(self) -> frozenset[str]:
        if self.time is None or self.time != self.stamp:
            return self.left.times if self.time is not None else frozenset()
        if self.kind != "inner":
            return frozenset([self.stamp])
        same = {
            b.name
            for a, b in self.keys
            if isinstance(a, exp.Column) and isinstance(b, exp.Column) and a.name in self.left.times
        }
        return self.left.times | (self.right.times - same)

    @property
    def static(self) -> bool:
        """True when the right side is a table."""
        return not self.right.streaming

    @cached_property
    def schema(self) -> pa.Schema:
        schema = self.pair_schema if self.kind in ("inner", "left") else self.left.schema
        if self.time == self.stamp:
            schema = schema.append(pa.field(self.stamp, self.left.schema.field(str(self.left.time)).type))
        return schema if self.keep is None else pa.schema([schema.field(name) for name in self.keep])

    @cached_property
    def axis(self) -> str | None:
        """The right column by which time lets go of left tuples, if one does.

        Of several it is the one that most bands bound.
        """

        def worth(name: str) -> tuple[bool, bool, int, int, bool]:
            mine = [b for b in self.bands if b.right == name]
            ends = sum((b.low is not None) + (b.high is not None) for b in mine)
            lets_go = any(b.high is not None for b in mine)
            return name in self.right.progressing, lets_go, ends, len(mine), name == self.right.time

        return max(dict.fromkeys(b.right for b in self.bands), key=worth, default=None)

    @cached_property
    def right_reach(self) -> tuple[tuple[tuple[str, int], ...], str | None]:
        """The reach of right tuples by their times, and the left time whose marks let them go.

        It is the latest of the left times where all right times are tied to it, else one that is tied to one.
        """
        lows = {
            (b.left, b.right): b.low
            for b in self.bands
            if b.low is not None and b.left in self.left.progressing
        }
        latest = self.left.time
        if (
            latest is not None
            and self.right.times
            and all((latest, time) in lows for time in self.right.times)
        ):
            return tuple((time, -lows[latest, time]) for time in sorted(self.right.times)), latest
        ending = next((pair for pair in lows if pair[1] == self.axis), next(iter(lows), None))
        return (((ending[1], -lows[ending]),), ending[0]) if ending is not None else ((), None)

    @cached_property
    def by_time(self) -> tuple[bool, bool]:
        """For each side, True when marks of the other side free its tuples."""
        lefts = (
            any(b.high is not None for b in self.bands if b.right == self.axis)
            and self.axis in self.right.progressing
        )
        return lefts, self.right_reach[1] is not None

    @cached_property
    def by_value(self) -> tuple[bool, bool]:
        """For each side, True when closed values of the other side free its tuples."""
        lefts, rights = self.heard
        return any(s <= rights for s in self.right.punctuated), any(s <= lefts for s in self.left.punctuated)

    @property
    def let_go(self) -> tuple[bool, bool]:
        """For each side, True when something frees its tuples."""
        left, right = (time or value for time, value in zip(self.by_time, self.by_value, strict=True))
        return left, right

    @cached_property
    def moving(self) -> tuple[Band, ...]:
        """The bands by which times move on: both columns progress.

        Unmatched left tuples come out by the axis alone.
        """
        both = [
            b for b in self.bands if b.left in self.left.progressing and b.right in self.right.progressing
        ]
        return tuple(b for b in both if b.right == self.axis or self.kind in ("inner", "semi"))

    @cached_property
    def progressing(self) -> frozenset[str]:
        if self.static:
            return self.left.progressing
        # A time of one side moves on when the band ties it to the other side's low-water mark.
        lefts = {band.left for band in self.moving if band.high is not None}
        found = lefts | {band.right for band in self.moving if band.low is not None}
        timed = self.left.time in self.left.progressing and self.right.time in self.right.progressing
        if self.time == self.stamp and timed and (self.kind == "inner" or self.left.time in lefts):
            found.add(self.stamp)
        return frozenset(c for c in found if c in self.schema.names)

    @cached_property
    def nullable(self) -> frozenset[str]:
        """None but behind a left or anti join: bands match no null.

        Tuples without a partner pass there, in a left join with nulls for the right side.
        """
        if self.static or self.kind == "anti":
            return self.left.nullable & self.progressing
        return (
            (self.left.nullable | set(self.right.schema.names)) & self.progressing
            if self.kind == "left"
            else frozenset()
        )

    @cached_property
    def typed_keys(self) -> tuple[tuple[Expression, Expression], ...]:
        """Both sides of each key in one type, so that equal values have equal hashes."""
        return tuple(self._typed(a, b) for a, b in self.keys)

    def _typed(self, a: Expression, b: Expression) -> tuple[Expression, Expression]:
        left, right = compile_expression(a, self.left.schema).type, compile_expression(b, self.right.schema).type
        compile_expression(exp.EQ(this=a, expression=b), self.pair_schema)  # says what is wrong when they can not be compared
        if left == right:
            return a, b
        common = compile_expression(exp.func("coalesce", a.copy(), b.copy(), dialect="spark"), self.pair_schema).type
        return (
            a if left == common else cast_to(a, common),
            b if right == common else cast_to(b, common),
        )

    @cached_property
    def heard(self) -> tuple[frozenset[str], frozenset[str]]:
        """Key columns of each side whose finished values the join hears of: those that it compares as they are, or in a wider type."""
        if self.windowed and all(self.by_time):
            return frozenset(), frozenset()
        return (
            _heard([(pair[0], typed[0]) for pair, typed in zip(self.keys, self.typed_keys, strict=True)], self.left.schema),
            _heard([(pair[1], typed[1]) for pair, typed in zip(self.keys, self.typed_keys, strict=True)], self.right.schema),
        )

    @cached_property
    def closes(self) -> frozenset[frozenset[str]]:
        """Key columns of either side whose values are declared finished some time: then partners need not be kept."""
        left, right = self.heard
        return frozenset({s for s in self.left.punctuated if s <= left} | {s for s in self.right.punctuated if s <= right})

    @cached_property
    def punctuated(self) -> frozenset[frozenset[str]]:
        if self.static:
            return self.left.punctuated
        left, right = self.heard
        same = {a.name: b.name for a, b in self.keys if a.name in left and b.name in right}
        back = {b: a for a, b in same.items()}
        if self.kind in ("left", "anti"):
            # A tuple without a partner may come out after the right side has closed its value.
            return frozenset(
                s for s in self.left.punctuated if s <= left and all(c in self.schema.names for c in s)
            )
        found = set(self.closes)
        found |= {frozenset(same[c] for c in s) for s in found if all(c in same for c in s)}
        found |= {frozenset(back[c] for c in s) for s in found if all(c in back for c in s)}
        return frozenset(s for s in found if all(c in self.schema.names for c in s))


def _heard(keys: list[tuple[Expression, Expression]], schema: pa.Schema) -> frozenset[str]:
    plain = [(key, typed) for key, typed in keys if isinstance(key, exp.Column)]
    kinds = {key.name: (schema.field(key.name).type, compile_expression(typed, schema).type) for key, typed in plain}
    return frozenset(name for name, (own, common) in kinds.items() if own == common or widens(own, common))
