"""In-order execution: tuples wait at a union or join until no other input can bring an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from millstream.core.block import Block, empty_batch
from millstream.core.punctuation import Punctuation, Range
from millstream.core.types import MAX_TIME, MIN_TIME, to_axis
from millstream.operators.buffers import Buffer, Inputs
from millstream.operators.contract import OUTPUT, Config, Container, Due, Needs, Operator, Output
from millstream.state.registers import Registers
from millstream.state.row_window import RowWindow


@dataclass(frozen=True)
class InOrder(Config):
    """An operator whose inputs are merged by time before it sees them (papers 000, Figure 6, and 001, Figure 11).

    It is idle-waiting prone: a time-stamp memory (TSM) register for each input holds the time below which nothing more comes from
    it, and a tuple goes on when no register is behind it. The operator inside is the same as out of order, and driven by progress:
    waiting changes when it sees a tuple, never what it answers.
    """

    inner: Config
    schemas: tuple[pa.Schema, ...]
    times: tuple[str, ...]
    """The time column of each input."""
    time: str | None = None
    """The time of the output, where it has one; results leave in its order."""
    ordered: bool = True
    """False for a sort: the input is out of order, so that only its promises move its register, not its tuples."""

    @property
    def schema(self) -> pa.Schema:
        return self.inner.schema

    @property
    def needs(self) -> Needs:
        return replace(self.inner.needs, idle_waiting_prone=True, ordered=True)

    @property
    def label(self) -> str:
        return f"in-order {self.inner.label}" if len(self.schemas) > 1 else f"sort {self.times[0]}"

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        """What waits goes when all inputs are there; what that leads to further on is the inner operator's to say."""
        if attribute == OUTPUT:
            return (tuple(Due(port, time, mark) for port, time in enumerate(self.times)),)
        return self.inner.ways(attribute, mark)

    def build(self, journal: bool = False) -> RunningInOrder:
        return RunningInOrder(self, journal)


class RunningInOrder(Operator):
    def __init__(self, config: InOrder, journal: bool) -> None:
        self.config = config
        self.needs = config.needs
        self.inner = config.inner.build(journal)
        self.registers = Registers(journal=journal)
        self.rows = [RowWindow(schema, journal=journal) for schema in config.schemas]
        self.empty = [empty_batch(schema) for schema in config.schemas]
        self.buffers = [Buffer() for _ in config.schemas]
        self.inputs = Inputs([buffer.head() for buffer in self.buffers])

    @property
    def state(self) -> tuple[Container, ...]:
        return (*self.rows, self.registers, *self.inner.state)

    @property
    def waiting(self) -> int:
        return sum(len(rows) for rows in self.rows)

    def behind(self) -> Sequence[int]:
        times = [rows.earliest for rows in self.rows if len(rows)]
        return [port for port in range(len(self.rows)) if self._register("tsm", port) < min(times)] if times else ()

    def step(self, inputs: Inputs, out: Output, limit: int | None) -> None:
        # What waits inside may go by what has come for it: more of those that wait would only wait, too.
        port = next((port for port in self.behind() if len(inputs.heads[port])), None)
        port = inputs.any() if port is None else port
        if port is None:
            return
        block = inputs.heads[port].take(limit)
        assert block is not None
        self._arrive(port, block)
        self._release()
        self._promise()
        made = Output()
        while self.inner.more(self.inputs):
            self.inner.step(self.inputs, made, None)
        self._emit(made, out)

    # -- tuples ---------------------------------------------------------------------------------------------------

    def _arrive(self, port: int, block: Block) -> None:
        if len(block):
            axis = to_axis(block.batch.column(self.config.times[port]), MIN_TIME)
            self.rows[port].insert(block.batch, np.zeros(len(block), dtype=np.uint64), axis, axis)
            if self.config.ordered:
                self.registers.raise_to(f"tsm {port}", int(axis.max()))
        for punctuation in block.punctuations:
            if punctuation.is_end:
                self.registers[f"tsm {port}"] = MAX_TIME
                self.registers[f"mark {port}"] = MAX_TIME
            elif punctuation.is_linear and punctuation.patterns[0][0] == self.config.times[port]:
                pattern = punctuation.patterns[0][1]
                assert isinstance(pattern, Range)
                self.registers.raise_to(f"tsm {port}", pattern.high)
                self.registers.raise_to(f"mark {port}", pattern.high)
            else:
                kept: tuple[Punctuation, ...] = self.registers.get(f"promised {port}", ())
                self.registers[f"promised {port}"] = (*kept, punctuation)

    def _release(self) -> None:
        """Tuples whose time no register is behind go on; simultaneous ones do not wait for each other."""
        bound = min(self._register("tsm", port) for port in range(len(self.rows)))
        for port, rows in enumerate(self.rows):
            found = rows.alive_rows() if bound == MAX_TIME else rows.expire(bound + 1)
            if len(found):
                self.buffers[port].put(Block(rows.take(found)))
                rows.discard(found)

    def _register(self, kind: str, port: int) -> int:
        return int(self.registers.get(f"{kind} {port}", MIN_TIME))

    # -- promises -------------------------------------------------------------------------------------------------

    def _promise(self) -> None:
        """What an input has promised holds inside as far as no tuple of it waits out here."""
        for port, rows in enumerate(self.rows):
            mark, found = self._register("mark", port), []
            if len(rows):
                mark = min(mark, rows.earliest)
            if mark > self._register("passed", port):
                self.registers[f"passed {port}"] = mark
                found.append(Punctuation.end() if mark == MAX_TIME else Punctuation.linear(self.config.times[port], mark))
            kept: tuple[Punctuation, ...] = self.registers.get(f"promised {port}", ())
            if kept:
                held = rows.take(rows.alive_rows()) if len(rows) else None
                ready = [p for p in kept if held is None or not p.matches(held).any()]
                found = [*ready, *found]
                if ready:
                    self.registers[f"promised {port}"] = tuple(p for p in kept if p not in ready)
            if found:
                self.buffers[port].put(Block(self.empty[port], tuple(found)))

    def _emit(self, made: Output, out: Output) -> None:
        """In the order of time, and the promises behind."""
        out.letters += made.letters
        batches = [block.batch for block in made.blocks if len(block)]
        if batches:
            batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
            out.put(batch if self.config.time is None else batch.sort_by(self.config.time))
        promises = [punctuation for block in made.blocks for punctuation in block.punctuations]
        if promises:
            out.put(empty_batch(self.config.schema), promises)

    def due(self) -> Iterator[Due]:
        times = [rows.earliest for rows in self.rows if len(rows)]
        if times and min(times) < MAX_TIME:
            yield Due(-1, OUTPUT, min(times))
        yield from self.inner.due()
