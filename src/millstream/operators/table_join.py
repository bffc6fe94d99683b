"""Table join pairs each tuple with the rows of a static table; it keeps nothing but the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from millstream.core.block import Block
from millstream.core.punctuation import Punctuation
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.operators.contract import Config, Due, Output, UnaryOperator
from millstream.operators.join import Join
from millstream.operators.join_pairs import PairMaker
from millstream.state.keys import hash_rows
from millstream.state.row_window import RowWindow


@dataclass(frozen=True)
class TableJoin(Config):
    """Kinds: inner, left, semi, anti. The answer is known at once, so punctuations of the stream pass as they are."""

    join: Join
    table: pa.Table = field(compare=False)
    name: str = ""

    @cached_property
    def schema(self) -> pa.Schema:
        return self.join.schema

    @property
    def label(self) -> str:
        return f"{self.join.label} (table {self.name})"

    def translate(self, punctuation: Punctuation) -> tuple[Punctuation, ...]:
        kept = all(name in self.join.output and name in self.join.left.names for name, _ in punctuation.patterns)
        return (punctuation,) if kept else ()

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        return ((Due(0, attribute, mark),),) if self.translate(Punctuation.linear(attribute, mark)) else ()

    def carrying(self, input: pa.Schema, columns: tuple[str, ...]) -> TableJoin:
        return replace(self, join=replace(self.join, left=input, output=(*self.join.output, *columns)))

    def source_columns(self, columns: Iterable[str]) -> dict[str, str] | None:
        return {name: name for name in columns} if all(name in self.join.left.names for name in columns) else None

    def build(self, journal: bool = False) -> RunningTableJoin:
        return RunningTableJoin(self)


class RunningTableJoin(UnaryOperator):
    def __init__(self, config: TableJoin) -> None:
        self.config = config
        self.needs = config.needs
        self.kind = config.join.kind
        self.pairs = PairMaker(config.join)
        self.exact = True
        self.rows = RowWindow(config.join.right)
        batch = pa.RecordBatch.from_arrays([c.combine_chunks() for c in config.table.columns], schema=config.join.right)
        if batch.num_rows:
            hashes, valid = self._hashes(batch, config.join.right_keys)
            keep = np.flatnonzero(valid)
            always = np.zeros(len(keep), dtype=np.int64)
            self.rows.insert(batch.take(pa.array(keep)), hashes[keep], always, always, np.full(len(keep), MAX_TIME))
        if self.kind in ("inner", "semi"):
            pairs = dict.fromkeys(zip(config.join.left_keys, config.join.right_keys, strict=True))
            for chosen in [*([pair] for pair in pairs), *([list(pairs)] if len(pairs) > 1 else [])]:  # each by itself, and all together
                hashes, valid = self._hashes(batch, tuple(b for _, b in chosen))
                self.known = (*self.known, (tuple(a for a, _ in chosen), hashes[valid]))

    def _hashes(self, batch: pa.RecordBatch, keys: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        hashes, valid, exact = hash_rows(batch, keys)
        self.exact &= exact
        return hashes, valid

    def handle(self, block: Block, out: Output) -> None:
        batch = block.batch
        if batch.num_rows:
            hashes, valid = self._hashes(batch, self.config.join.left_keys)
            matched = np.zeros(batch.num_rows, dtype=np.bool_)
            low, high = np.full(batch.num_rows, MIN_TIME), np.full(batch.num_rows, MAX_TIME)
            for probes, rows in self.rows.probe(hashes, valid, low, high):
                probes, rows, pairs = self.pairs.check(batch.take(pa.array(probes)), self.rows.take(rows), probes, rows, self.exact)
                matched[probes] = True
                if self.kind in ("inner", "left"):
                    out.put(self.pairs.output(pairs))
            if self.kind == "semi":
                out.put(self.pairs.alone(batch.filter(pa.array(matched))))
            elif self.kind in ("left", "anti"):
                out.put(self.pairs.alone(batch.filter(pa.array(~matched))))
        out.letters += self.pairs.take_letters()
        out.put(self.pairs.none, [new for old in block.punctuations for new in self.config.translate(old)])
