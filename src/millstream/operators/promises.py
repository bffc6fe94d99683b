"""What several arcs that flow together have promised each, and so all of them together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.core.punctuation import Punctuation
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.state.closed import Closed, Place, listed, shape_of, values_of
from millstream.state.ranges import Ranges
from millstream.state.registers import Registers


class Promises:
    """Used by the union of inputs, and by a stage for the buckets of the stage before it.

    Low-water marks meet at the least, and so do the times up to which a value is closed; a value is closed when all have closed it.
    """

    def __init__(self, count: int, schema: pa.Schema, journal: bool = False) -> None:
        self.count = count
        self.registers = Registers(journal=journal)
        self.closed = [Closed(schema, self.registers, f"closed {port}") for port in range(count)]
        self.schema = schema

    def take(self, port: int, punctuation: Punctuation) -> list[Punctuation]:
        """The promises of the whole that this punctuation on one arc completes."""
        ended: frozenset[int] = self.registers.get("ended", frozenset())
        if punctuation.is_end:
            ended |= {port}
            self.registers["ended"] = ended
            return [punctuation] if len(ended) == self.count else self._after_end(ended)
        if punctuation.is_linear:
            ((attribute, pattern),) = punctuation.patterns
            self.registers.raise_to(f"{attribute}@{port}", pattern.high)  # type: ignore[attr-defined]
            attributes = self.registers.get("attributes", frozenset())
            if attribute not in attributes:
                self.registers["attributes"] = attributes | {attribute}
            return self._improved(attribute, ended)
        others = [self.closed[p] for p in range(self.count) if p != port and p not in ended]
        if shape_of(punctuation) is not None:
            return self._listed(self.closed[port], others, punctuation)
        if self.closed[port].is_range(punctuation):
            self.closed[port].add([punctuation])
            return self._common([Ranges.of(*punctuation.patterns[0][1].ends)], others, punctuation.patterns[0][0])  # type: ignore[attr-defined]
        return self._other(port, punctuation, ended)

    # -- marks ----------------------------------------------------------------------------------------------------

    def _improved(self, attribute: str, ended: frozenset[int]) -> list[Punctuation]:
        marks = [MAX_TIME if p in ended else self.registers.get(f"{attribute}@{p}", MIN_TIME) for p in range(self.count)]
        low = min(marks)
        if low > self.registers.get(attribute, MIN_TIME) and low < MAX_TIME:
            self.registers[attribute] = low
            return [Punctuation.linear(attribute, low)]
        return []

    # -- values ---------------------------------------------------------------------------------------------------

    def _listed(self, own: Closed, others: list[Closed], punctuation: Punctuation) -> list[Punctuation]:
        """Those of its values that the other arcs have closed as well, up to the lowest of their times where they have one."""
        shape = shape_of(punctuation)
        assert shape is not None
        columns, time, bound = shape
        keys = values_of(punctuation, columns, self.schema)
        before = own.bounds(columns, time, keys)
        own.add([punctuation])
        least = np.full(len(before), MAX_TIME)
        for other in others:
            np.minimum(least, other.bounds(columns, time, keys), out=least)
        now = np.minimum(np.maximum(before, bound), least)
        new = now > np.minimum(before, least)
        told, bounds = [key.filter(pa.array(new)) for key in keys], now[new]
        if time is None and len(bounds):
            for closed in (own, *others):  # all have said it, so nobody will ask whether one has
                closed.forget(columns, told)
        return listed(columns, time, told, bounds)

    def _common(self, given: list[Ranges], others: list[Closed], column: str) -> list[Punctuation]:
        for other in others:
            kept = other.ranges(column)
            given = [part for ranges in given for part in ([] if kept is None else [ranges.common(kept)])]
        return [told for ranges in given for told in ranges.told(column, self.schema.field(column).type)]

    def _other(self, port: int, punctuation: Punctuation, ended: frozenset[int]) -> list[Punctuation]:
        """Patterns of another form meet their like."""
        waiting: dict[Punctuation, frozenset[int]] = dict(self.registers.get("others", {}))
        ports = waiting.pop(punctuation, frozenset()) | {port}
        complete = len(ports | ended) == self.count
        if not complete:
            waiting[punctuation] = ports
        self.registers["others"] = waiting
        return [punctuation] if complete else []

    def _after_end(self, ended: frozenset[int]) -> list[Punctuation]:
        """An arc that is over holds nothing back any more."""
        found = [new for attribute in sorted(self.registers.get("attributes", frozenset())) for new in self._improved(attribute, ended)]
        first, *others = [self.closed[p] for p in range(self.count) if p not in ended]
        for place, kept in first.places():
            if isinstance(kept, Ranges):
                found += self._common([kept], others, place.columns[0])
            else:
                found += self._both(place, others, *kept.entries)
        waiting: dict[Punctuation, frozenset[int]] = self.registers.get("others", {})
        done = [punctuation for punctuation, ports in waiting.items() if len(ports | ended) == self.count]
        if done:
            self.registers["others"] = {p: ports for p, ports in waiting.items() if p not in done}
        return found + done

    def _both(self, place: Place, others: list[Closed], keys: pa.RecordBatch, bounds: np.ndarray) -> list[Punctuation]:
        for other in others:
            bounds = np.minimum(bounds, other.bounds(place.columns, place.time, keys.columns))
        known = bounds > MIN_TIME
        return listed(place.columns, place.time, keys.filter(pa.array(known)).columns, bounds[known])
