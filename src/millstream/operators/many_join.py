"""Many-join pairs tuples of many inputs at once and stores no partial results: M-Join, or an Eddy where routes change as it runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from millstream.operators.contract import Config, Due, Needs, Operator
from millstream.plan.bands import reach
from millstream.plan.nodes import Band

FIXED, ADAPTIVE = "m-join", "eddy"


def gone(time: str) -> str:
    """For `Due`, in place of a column: the tuples that are let go when all other inputs have moved on so far."""
    return f"gone: {time}"


@dataclass(frozen=True)
class ManyJoin(Config):
    """An inner join of three inputs or more. A tuple that comes in visits the windows of all others, one after the other.

    Each input has one window, and nothing else is kept (paper 003, Figure 2). Compared with a tree of joins that costs less memory
    and, as partial results are made again and again, more work. Columns have different names in all inputs.
    """

    inputs: tuple[pa.Schema, ...]
    same: tuple[tuple[tuple[int, str], ...], ...]
    """Columns, as (input, name), that every result has equal; they have one type."""
    bands: tuple[Band, ...]
    conditions: tuple[exp.Expr, ...]
    output: tuple[str, ...]
    stamp: tuple[str, tuple[str, ...]] | None = None
    """A name for the latest time as a column of its own, and the time of each input."""
    origin: str = ""
    routing: str = FIXED
    indexed: bool = True
    feedback: bool = False
    """Whether tuples that have no partner at another input sleep until one comes (paper 003, section V)."""

    @cached_property
    def owner(self) -> dict[str, int]:
        """The input that each column is of."""
        return {name: port for port, schema in enumerate(self.inputs) for name in schema.names}

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([self._field(name) for name in self.output])

    def _field(self, name: str) -> pa.Field:
        if self.stamp is not None and name == self.stamp[0]:
            return pa.field(name, self.inputs[0].field(self.stamp[1][0]).type)
        return self.inputs[self.owner[name]].field(name)

    # -- time -----------------------------------------------------------------------------------------------------

    @cached_property
    def reach(self) -> dict[tuple[str, str], int]:
        """How far the second of two times lies behind the first at most, in every result."""
        return reach(self.bands)

    @cached_property
    def axes(self) -> tuple[str | None, ...]:
        """The time of each input by which its tuples are found and let go: the one that most bands speak of."""
        counts: list[dict[str, int]] = [{} for _ in self.inputs]
        for band in self.bands:
            for name in (band.left, band.right):
                port = counts[self.owner[name]]
                port[name] = port.get(name, 0) + 1
        return tuple(max(count, key=lambda name: count[name]) if count else None for count in counts)

    def ends(self, name: str, port: int) -> list[tuple[str, int]]:
        """Times of another input, and how far behind this one they lie at most."""
        return [(other, end) for (one, other), end in self.reach.items() if one == name and self.owner[other] == port]

    @property
    def bounded(self) -> bool:
        """Whether time lets go of every tuple."""
        others = [(axis, other) for port, axis in enumerate(self.axes) for other in range(len(self.inputs)) if other != port]
        return all(axis is not None and self.ends(axis, other) for axis, other in others)

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        """The inverse of `RunningManyJoin._marks`."""
        if self.stamp is not None and attribute == self.stamp[0]:
            return (tuple(Due(port, time, mark) for port, time in enumerate(self.stamp[1])),)
        axis = next((axis for axis in self.axes if axis is not None and attribute == gone(axis)), None)
        name = axis or attribute
        port = self.owner.get(name)
        if port is None:
            return ()
        needed = [] if axis is not None else [Due(port, name, mark)]
        for other in range(len(self.inputs)):
            if other != port:
                ends = self.ends(name, other)
                if not ends:
                    return ()
                ending, end = min(ends, key=lambda pair: pair[1])
                needed.append(Due(other, ending, mark + end))
        return (tuple(needed),)

    # -- what it is -----------------------------------------------------------------------------------------------

    @property
    def needs(self) -> Needs:
        common = next((found for found in self.same if len({port for port, _ in found}) == len(self.inputs)), None)
        keys = [() if common is None else (next(name for port, name in common if port == each),) for each in range(len(self.inputs))]
        return Needs(keys=tuple(keys), linear="purge", value="drop", same=self.same, together=True)

    @property
    def choices(self) -> dict[str, str]:
        return {"join.feedback": str(self.feedback).lower(), "join.index": "hash" if self.indexed else "none"}

    @property
    def label(self) -> str:
        keys = [" = ".join(name for _, name in columns) for columns in self.same]
        rest = [part.sql("spark") for part in self.conditions]
        return f"{self.routing} of {len(self.inputs)} on " + " and ".join([*keys, *map(str, self.bands), *rest])

    def path(self, start: int) -> tuple[int, ...]:
        """The other inputs, in the order in which a tuple of one visits them: those first that most columns connect."""
        path = [start]
        while len(path) < len(self.inputs):
            rest = [port for port in range(len(self.inputs)) if port not in path]
            path.append(max(rest, key=lambda port: (len(self.pairs(frozenset(path), port)), -port)))
        return tuple(path[1:])

    def connected(self, start: int) -> bool:
        """Whether every step of a path has columns to go by."""
        path = (start, *self.path(start))
        return all(self.pairs(frozenset(path[:place]), port) for place, port in enumerate(path) if place)

    def pairs(self, joined: frozenset[int], port: int) -> tuple[tuple[str, str], ...]:
        """Columns of inputs that are joined already, and those of one more that have to be equal to them."""
        found = []
        for columns in self.same:
            known = next((name for owner, name in columns if owner in joined), None)
            found += [(known, name) for owner, name in columns if owner == port and known is not None]
        return tuple(found)

    def build(self, journal: bool = False) -> Operator:
        from millstream.operators.running_many_join import RunningManyJoin

        return RunningManyJoin(self, journal)
