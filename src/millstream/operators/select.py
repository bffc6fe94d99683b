"""Select keeps the tuples for which a predicate is true; punctuations pass as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from millstream.core.block import Block
from millstream.core.punctuation import Punctuation
from millstream.expressions import compile_expression, evaluate_guarded
from millstream.operators.contract import Config, Due, Output, UnaryOperator
from millstream.operators.failures import failure_letters, take


@dataclass(frozen=True)
class Select(Config):
    """Paper 004, section 5.4: pipelined selection works in any order."""

    input: pa.Schema
    predicate: exp.Expr
    origin: str = ""

    @property
    def schema(self) -> pa.Schema:
        return self.input

    @property
    def label(self) -> str:
        return f"select {self.predicate.sql('spark')}"

    def translate(self, punctuation: Punctuation) -> tuple[Punctuation, ...]:
        return (punctuation,)

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        return ((Due(0, attribute, mark),),)

    def carrying(self, input: pa.Schema, columns: tuple[str, ...]) -> Select:
        return replace(self, input=input)

    def source_columns(self, columns: Iterable[str]) -> dict[str, str] | None:
        return {name: name for name in columns}

    def build(self, journal: bool = False) -> RunningSelect:
        return RunningSelect(self)


class RunningSelect(UnaryOperator):
    def __init__(self, config: Select) -> None:
        self.needs = config.needs
        self.origin = config.origin
        self.predicate = compile_expression(config.predicate, config.input)

    def handle(self, block: Block, out: Output) -> None:
        batch = block.batch
        if batch.num_rows:
            (mask,), kept, failures = evaluate_guarded([self.predicate], batch)
            if failures:
                out.letters += failure_letters(self.origin, batch, failures)
                batch = take(batch, kept)
            batch = _filtered(batch, mask)
        out.put(batch, block.punctuations)


def _filtered(batch: pa.RecordBatch, mask: pa.Array) -> pa.RecordBatch:
    """All or nothing, as of a single tuple, needs no copy."""
    chosen = 0 if pa.types.is_null(mask.type) else mask.true_count
    if chosen == batch.num_rows:
        return batch
    return batch.filter(mask) if chosen else batch.slice(0, 0)
