"""Union passes tuples through at once; its promises are those that all inputs have made."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from millstream.core.block import empty_batch
from millstream.core.punctuation import Constant, OneOf, Part, Punctuation, Range, is_below, plain_values
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.operators.buffers import Inputs
from millstream.operators.contract import ANYWHERE, Config, Container, Due, Needs, Operator, Output
from millstream.state.registers import Registers

OPEN = "any time"


@dataclass(frozen=True)
class Union(Config):
    """Paper 004, Figure A-1, for any number of inputs: the minimum of their low-water marks, and only when it improves."""

    input: pa.Schema
    count: int

    @property
    def schema(self) -> pa.Schema:
        return self.input

    @property
    def needs(self) -> Needs:
        return Needs(keys=(ANYWHERE,) * self.count, linear="propagate", value="propagate")

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        return (tuple(Due(port, attribute, mark) for port in range(self.count)),)

    def build(self, journal: bool = False) -> RunningUnion:
        return RunningUnion(self, journal)


class RunningUnion(Operator):
    def __init__(self, config: Union, journal: bool) -> None:
        self.needs = config.needs
        self.count = config.count
        self.empty = empty_batch(config.input)
        self.promises = Promises(config.count, journal)

    @property
    def state(self) -> tuple[Container, ...]:
        return (self.promises.registers,)

    def step(self, inputs: Inputs, out: Output, limit: int | None) -> None:
        port = inputs.any()
        if port is None:
            return
        block = inputs.heads[port].take(limit)
        assert block is not None
        out.put(block.batch, [new for old in block.punctuations for new in self.promises.take(port, old)])


class Promises:
    """What several arcs that flow together have promised each, and so all of them together.

    Used by the union of inputs, and by a stage for the buckets of the stage before it.
    """

    def __init__(self, count: int, journal: bool = False) -> None:
        self.count = count
        self.registers = Registers(journal=journal)

    def take(self, port: int, punctuation: Punctuation) -> list[Punctuation]:
        """The promises of the whole that this punctuation on one arc completes."""
        ended: frozenset[int] = self.registers.get("ended", frozenset())
        if punctuation.is_end:
            ended |= {port}
            self.registers["ended"] = ended
            if len(ended) == self.count:
                return [punctuation]
            return self._after_end(ended)
        if punctuation.is_linear:
            ((attribute, pattern),) = punctuation.patterns
            self.registers.raise_to(f"{attribute}@{port}", pattern.high)  # type: ignore[attr-defined]
            attributes = self.registers.get("attributes", frozenset())
            if attribute not in attributes:
                self.registers["attributes"] = attributes | {attribute}
            return self._improved(attribute, ended)
        done = []
        waiting: dict[Punctuation, dict[int, int]] = dict(self.registers.get("values", {}))
        for single in _singles(punctuation):
            key, bound = _unbounded(single)
            known = waiting.pop(key, {})
            ports = {**known, port: max(bound, known.get(port, MIN_TIME))}
            found = self._complete(key, ports, ended)
            if found is not None and found != self._complete(key, known, ended):
                done.append(found)
            if found is None or bound < MAX_TIME:
                waiting[key] = ports
        self.registers["values"] = waiting
        return done

    def _complete(self, key: Punctuation, ports: dict[int, int], ended: frozenset[int]) -> Punctuation | None:
        """What all arcs have promised of these values: up to the lowest of their times, where they have one."""
        if not ports or len(ports.keys() | ended) < self.count:
            return None
        return _bounded(key, min((bound for port, bound in ports.items() if port not in ended), default=max(ports.values())))

    def _improved(self, attribute: str, ended: frozenset[int]) -> list[Punctuation]:
        marks = [MAX_TIME if p in ended else self.registers.get(f"{attribute}@{p}", MIN_TIME) for p in range(self.count)]
        low = min(marks)
        if low > self.registers.get(attribute, MIN_TIME) and low < MAX_TIME:
            self.registers[attribute] = low
            return [Punctuation.linear(attribute, low)]
        return []

    def _after_end(self, ended: frozenset[int]) -> list[Punctuation]:
        """An arc that is over holds nothing back any more."""
        found = [new for attribute in sorted(self.registers.get("attributes", frozenset())) for new in self._improved(attribute, ended)]
        waiting: dict[Punctuation, dict[int, int]] = self.registers.get("values", {})
        done = {key: new for key, ports in waiting.items() if (new := self._complete(key, ports, ended)) is not None}
        if done:
            self.registers["values"] = {k: v for k, v in waiting.items() if k not in done or max(v.values()) < MAX_TIME}
        return found + list(done.values())


def _unbounded(punctuation: Punctuation) -> tuple[Punctuation, int]:
    """A group-wise punctuation as its group, the time open, and the time; others as they are."""
    for name, pattern in punctuation.patterns:
        if is_below(pattern):
            patterns = {**dict(punctuation.patterns), name: Range(high=OPEN)}
            return Punctuation.of(patterns), pattern.high  # type: ignore[attr-defined]
    return punctuation, MAX_TIME


def _bounded(key: Punctuation, bound: int) -> Punctuation:
    """The inverse of `_unbounded`."""
    return Punctuation.of({n: Range(high=bound) if p == Range(high=OPEN) else p for n, p in key.patterns})


def _singles(punctuation: Punctuation) -> list[Punctuation]:
    """A list pattern split into constants, so that lists cut differently on two inputs still meet."""
    parts = {name: pattern for name, pattern in punctuation.patterns if isinstance(pattern, Part)}
    if parts:
        others = {n: p for n, p in punctuation.patterns if n not in parts}
        rows = zip(*(plain_values(part.rows.column(part.index)) for part in parts.values()), strict=True)
        singles = [{name: Constant(value) for name, value in zip(parts, row, strict=True)} for row in rows]
        return [s for single in singles for s in _singles(Punctuation.of({**others, **single}))]
    for name, pattern in punctuation.patterns:
        if isinstance(pattern, OneOf):
            others = {n: p for n, p in punctuation.patterns if n != name}
            return [s for value in pattern.values for s in _singles(Punctuation.of({**others, name: Constant(value)}))]
    return [punctuation]
