"""The running many-join: a window of rows for each input, low-water marks in registers, and partial results as row numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.core.block import empty_batch
from millstream.core.letters import DeadLetter
from millstream.core.punctuation import Punctuation, Range
from millstream.core.types import MAX_TIME, MIN_TIME, from_axis, to_axis
from millstream.expressions import guarded_mask
from millstream.kernels.compiled import Bools, Int64s
from millstream.operators.buffers import Inputs
from millstream.operators.contract import Container, Due, Operator, Output
from millstream.operators.failures import failure_letters
from millstream.operators.join_pairs import same_keys
from millstream.operators.join_promises import shift
from millstream.operators.many_feedback import ManyFeedback
from millstream.operators.many_join import ManyJoin, gone
from millstream.operators.many_routes import Check, Routes, Step
from millstream.state.keys import hash_rows
from millstream.state.registers import Registers
from millstream.state.row_window import RowWindow

TOLD = 4096
"""Letters that are remembered, not to be written twice."""


@dataclass(frozen=True)
class Partial:
    """Partial results: for each input that has been joined, rows of its window, or of the block that has just come."""

    start: int
    batch: pa.RecordBatch
    rows: dict[int, Int64s]

    def chosen(self, places: Int64s | Bools) -> dict[int, Int64s]:
        return {port: rows[places] for port, rows in self.rows.items()}

    def __len__(self) -> int:
        return len(self.rows[self.start])


class RunningManyJoin(Operator):
    def __init__(self, config: ManyJoin, journal: bool) -> None:
        self.config = config
        self.needs = config.needs
        self.routes = Routes(config)
        self.schema = config.schema
        self.empty = empty_batch(config.schema)
        self.registers = Registers(journal=journal)
        self.rows = tuple(
            RowWindow(schema, keys=indexes[0] or None, also=indexes[1:], journal=journal, indexed=config.indexed)
            for schema, indexes in zip(config.inputs, self.routes.indexes, strict=True)
        )
        self.many = range(len(config.inputs))
        self.own = [self._own_checks(port) for port in self.many]
        self.letters: list[DeadLetter] = []
        self.told: dict[DeadLetter, None] = {}
        self.halves = ManyFeedback(config, self.rows, journal) if config.feedback else None
        if self.halves is not None:
            self.watches, self.asleep = self.halves.watches, self.halves.asleep

    def _own_checks(self, port: int) -> tuple[list[tuple[str, str]], list[str], list[Check]]:
        """What a tuple of one input has to be like by itself: columns that are equal, columns that are not null, and conditions."""
        equal, present = [], []
        for columns in self.config.same:
            own = [name for owner, name in columns if owner == port]
            equal += [(own[0], name) for name in own[1:]]
            present += own
        present += [name for band in self.config.bands for name in (band.left, band.right) if self.config.owner[name] == port]
        checks = [Check.of(part, self.config) for part in self.config.conditions]
        return equal, list(dict.fromkeys(present)), [c for c in checks if {self.config.owner[name] for name in c.columns} == {port}]

    @property
    def state(self) -> tuple[Container, ...]:
        return (*self.rows, self.registers, *(() if self.halves is None else self.halves.state))

    def step(self, inputs: Inputs, out: Output, limit: int | None) -> None:
        ready = [port for port, head in enumerate(inputs.heads) if head.ready]
        if not ready:
            return
        # The input that is behind goes first, so that less has to be kept.
        port = min(ready, key=lambda each: self.mark(each, self.config.axes[each]))
        block = inputs.heads[port].take(limit)
        assert block is not None
        if len(block):
            self._arrive(port, block.batch, out)
        moved = [self._punctuate(port, punctuation) for punctuation in block.punctuations]
        if any(moved):
            self._expire()
            out.put(self.empty, self._promises())

    # -- tuples ---------------------------------------------------------------------------------------------------

    def _arrive(self, port: int, batch: pa.RecordBatch, out: Output) -> None:
        batch = self._possible(port, batch)
        if self.halves is None:
            self._join(port, batch, out)
        else:
            for woken, tuples in self.halves.come(port, batch):
                self._join(woken, tuples, out)
        out.letters += self.letters
        self.letters = []

    def _possible(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The tuples that any results can have, by themselves."""
        equal, present, checks = self.own[port]
        mask = np.ones(batch.num_rows, dtype=np.bool_)
        for name in present:
            if batch.column(name).null_count:
                mask &= np.asarray(batch.column(name).is_valid())
        for a, b in equal:
            mask &= same_keys(batch.column(a), batch.column(b))
        for check in checks:
            found, failures = guarded_mask(check.compiled, batch.select(list(check.columns)))
            self.letters += failure_letters(self.config.origin, batch, failures)
            mask &= found
        return batch if mask.all() else batch.filter(pa.array(mask))

    def _join(self, port: int, batch: pa.RecordBatch, out: Output) -> None:
        """Tuples visit the other windows, and are kept in their own while more may come for them."""
        if not batch.num_rows:
            return
        made = 0
        if all(len(self.rows[other]) for other in self.many if other != port):
            made = self._visit(Partial(port, batch, {port: np.arange(batch.num_rows)}), out)
        if self.halves is not None:
            self.halves.work.add(batch.num_rows, made)
        axis = self.config.axes[port]
        assert axis is not None
        time = to_axis(batch.column(axis))
        stays = time >= self._bound(port)
        if not stays.all():
            batch, time = batch.filter(pa.array(stays)), time[stays]
        if len(time):
            hashes, _, _ = hash_rows(batch, self.routes.indexes[port][0])
            self.rows[port].insert(batch, hashes, time, time)

    def _visit(self, partial: Partial, out: Output) -> int:
        """Partial results go from window to window until they are whole. Tells how many were made on the way."""
        joined = frozenset(partial.rows)
        port = self.routes.next(joined, partial.start)
        step, count, further = self.routes.step(joined, port), 0, 0
        for found in self._partners(partial, step):
            count += len(found)
            if len(found.rows) == len(self.many):
                out.put(self._result(found))
            else:
                further += self._visit(found, out)
        self.routes.took(joined, port, len(partial), count)
        return count + further

    def _partners(self, partial: Partial, step: Step) -> Iterator[Partial]:
        window = self.rows[step.port]
        hashes, valid, exact = hash_rows(self._batch(partial, tuple(dict.fromkeys(step.probe))), step.probe)
        low, high = np.full(len(partial), MIN_TIME), np.full(len(partial), MAX_TIME)
        for name, by in step.starts:
            np.maximum(low, to_axis(self._column(partial, name)) + by, out=low)
        for name, by in step.ends:
            np.minimum(high, to_axis(self._column(partial, name)) + by, out=high)
        for probes, rows in window.probe(hashes, valid, low, high, index=step.index):
            found = Partial(partial.start, partial.batch, {**partial.chosen(probes), step.port: rows})
            found = self._kept(found, self._equal(found, step.sure if exact else step.equal))
            for check in step.checks:
                found = self._kept(found, self._checked(found, check)) if len(found) else found
            if len(found):
                yield found

    def _equal(self, partial: Partial, pairs: tuple[tuple[str, str], ...]) -> Bools | None:
        mask = None
        for a, b in pairs:
            same = same_keys(self._column(partial, a), self._column(partial, b))
            mask = same if mask is None else mask & same
        return mask

    def _checked(self, partial: Partial, check: Check) -> Bools:
        mask, failures = guarded_mask(check.compiled, self._batch(partial, check.columns))
        if failures:
            owners = sorted({self.config.owner[name] for name in check.columns})
            names = tuple(name for port in owners for name in self.config.inputs[port].names)
            self._tell(failure_letters(self.config.origin, self._batch(partial, names), failures))
        return mask

    def _tell(self, letters: list[DeadLetter]) -> None:
        """Once: the same tuples meet again with every further one, and fail again."""
        for letter in letters:
            if letter not in self.told:
                self.letters.append(letter)
                self.told[letter] = None
        while len(self.told) > TOLD:
            del self.told[next(iter(self.told))]

    def _kept(self, partial: Partial, mask: Bools | None) -> Partial:
        return partial if mask is None or mask.all() else Partial(partial.start, partial.batch, partial.chosen(mask))

    def _column(self, partial: Partial, name: str) -> pa.Array:
        port = self.config.owner[name]
        rows = partial.rows[port]
        if port == partial.start:
            return partial.batch.column(name).take(pa.array(rows))
        return self.rows[port].take_column(name, rows)

    def _batch(self, partial: Partial, names: Sequence[str]) -> pa.RecordBatch:
        if not names:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(partial), type=pa.struct([])))
        return pa.RecordBatch.from_arrays([self._column(partial, name) for name in names], names=list(names))

    def _result(self, partial: Partial) -> pa.RecordBatch:
        stamp = self.config.stamp
        arrays = []
        for name in self.config.output:
            if stamp is not None and name == stamp[0]:
                latest = np.max([to_axis(self._column(partial, time)) for time in stamp[1]], axis=0)
                arrays.append(from_axis(latest, self.schema.field(name).type))
            else:
                arrays.append(self._column(partial, name))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    # -- progress -------------------------------------------------------------------------------------------------

    def mark(self, port: int, attribute: str | None) -> int:
        return MAX_TIME if self.registers.get(f"{port} ended", 0) else int(self.registers.get(f"{port}:{attribute}", MIN_TIME))

    def _bound(self, port: int) -> int:
        """Tuples of an input before this time meet nobody who is still to come."""
        axis = self.config.axes[port]
        assert axis is not None
        return min(self._later(axis, other) for other in self.many if other != port)

    def _later(self, name: str, port: int) -> int:
        """The least time that a result can have there, if a tuple that is still to come from another input is in it."""
        return max((shift(self.mark(port, other), -end) for other, end in self.config.ends(name, port)), default=self.mark(port, None))

    def due(self) -> Iterator[Due]:
        for port, axis in enumerate(self.config.axes):
            latest = [rows.latest for rows in (self.rows[port], *(() if self.halves is None else [self.halves.asleep[port].rows]))]
            last = max((time for time in latest if time < MAX_TIME), default=MAX_TIME)
            if axis is not None and last < MAX_TIME:
                yield Due(-1, gone(axis), last + 1)

    def _punctuate(self, port: int, punctuation: Punctuation) -> bool:
        """Time moves on at an input. Tells whether it has; values that are finished say nothing here."""
        if punctuation.is_end:
            self.registers[f"{port} ended"] = 1
            return True
        if not punctuation.is_linear:
            return False
        ((attribute, pattern),) = punctuation.patterns
        assert isinstance(pattern, Range)
        return self.registers.raise_to(f"{port}:{attribute}", pattern.high)

    def _expire(self) -> None:
        if self.halves is not None:
            self.halves.count()
        for port, window in enumerate(self.rows):
            bound = self._bound(port)
            if bound > MIN_TIME:
                window.discard(window.expire(bound))
                if self.halves is not None:
                    self.halves.expire(port, bound)

    def _promises(self) -> list[Punctuation]:
        """Every promise about results that holds now and was not made before."""
        if all(self.mark(port, None) == MAX_TIME for port in self.many):
            return [Punctuation.end()] if self.registers.raise_to("ended", 1) else []
        marks = [(name, mark) for name, mark in self._marks() if MIN_TIME < mark < MAX_TIME]
        return [Punctuation.linear(name, mark) for name, mark in marks if self.registers.raise_to(f"out:{name}", mark)]

    def _marks(self) -> Iterator[tuple[str, int]]:
        """A result needs one new tuple: a time of an input moves on as far as it does itself, and as the others let it."""
        for name in self.config.output:
            port = self.config.owner.get(name)
            if port is not None:
                yield name, min(self.mark(port, name), *(self._later(name, other) for other in self.many if other != port))
            elif self.config.stamp is not None:
                yield name, min(self.mark(each, time) for each, time in enumerate(self.config.stamp[1]))
