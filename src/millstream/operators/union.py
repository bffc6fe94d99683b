"""Union passes tuples through at once; its promises are those that all inputs have made."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from millstream.core.block import empty_batch
from millstream.operators.buffers import Inputs
from millstream.operators.contract import ANYWHERE, Config, Container, Due, Needs, Operator, Output
from millstream.operators.promises import Promises


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
        self.promises = Promises(config.count, config.input, journal)

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
