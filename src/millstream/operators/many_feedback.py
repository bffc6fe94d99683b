"""Demand at a many-join: a tuple that has no partner at one of the other inputs sleeps until one comes there.

Nothing but tuples of the inputs is kept, so sleeping tuples count as being there: whoever needs one wakes it before it looks for
results. A result is made when its last tuple comes, and that has woken all others that waited for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from millstream.core.types import MIN_TIME, to_axis
from millstream.feedback.nodes import Node
from millstream.feedback.sleepers import Sleepers
from millstream.feedback.watch import SLEEPING, SOME, Watch
from millstream.feedback.work import Work
from millstream.kernels.compiled import Int64s, UInt64s
from millstream.operators.contract import Container
from millstream.operators.many_join import ManyJoin
from millstream.state.keys import hash_rows
from millstream.state.row_window import RowWindow

Columns = tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """Tuples of one input look for partners at another, by these columns of theirs."""

    watch: Watch
    columns: Columns


class ManyFeedback:
    """For each input the watches over its tuples, the questions that they ask at others, and those of them that sleep."""

    def __init__(self, config: ManyJoin, rows: tuple[RowWindow, ...], journal: bool) -> None:
        self.config = config
        self.rows = rows
        self.asleep = tuple(Sleepers(schema, journal) for schema in config.inputs)
        self.asks: tuple[list[Question], ...] = tuple([] for _ in config.inputs)
        self.owned: tuple[list[Watch], ...] = tuple([] for _ in config.inputs)
        self.watches: list[Watch] = []
        self.coming: list[Watch] = []
        """Watches over tuples that are about to be stored: counted now, they would miss them."""
        self.bounds = [MIN_TIME for _ in config.inputs]
        """Of the times of their tuples: who is older counts no longer."""
        self.work = Work()
        known: dict[tuple[int, Columns], Watch] = {}
        for port in range(len(config.inputs)):
            for other in range(len(config.inputs)):
                pairs = config.pairs(frozenset([port]), other)
                if other == port or not pairs:
                    continue
                columns, partners = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
                watch = known.get((other, partners))
                if watch is None:
                    watch = known[other, partners] = Watch(Node(columns, partners), len(known), 0)
                    self.owned[other].append(watch)
                    self.watches.append(watch)
                self.asks[port].append(Question(watch, columns))

    @property
    def state(self) -> tuple[Container, ...]:
        return (*(sleepers.rows for sleepers in self.asleep), *self.watches)

    # -- tuples ---------------------------------------------------------------------------------------------------

    def come(self, port: int, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Tuples that come in, behind those that have waited for them; without those that are to wait themselves."""
        self.count()
        found, times = [], self._times(port, batch)
        if len(times):
            self._move(port, min(self.bounds[port], int(times.min())))  # those who are woken meet them, though nobody who comes later may
        for watch in self._awake(port):
            woken = watch.wanted.come(*watch.partners(batch), times)
            if watch.poor():
                woken = np.unique(self._under(watch))
                watch.rest(len(self.rows[port]))
            found.append((watch, woken))
        self.coming = self.owned[port]
        for watch, woken in found:
            for other, sleepers in enumerate(self.asleep) if len(woken) else ():
                tuples = sleepers.take(watch, woken)
                if tuples is not None:
                    watch.wake(tuples.num_rows, self._makes)
                    yield other, self._screen(other, tuples)
        self.coming = []
        self._move(port, self.bounds[port])
        yield port, self._screen(port, batch)

    def _screen(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The tuples that have partners everywhere, as far as is known; the others sleep from now on."""
        for ask in self.asks[port]:
            if not batch.num_rows:
                break
            if ask.watch.resting:
                ask.watch.left -= batch.num_rows
                if ask.watch in self.coming or not ask.watch.rested(self._makes):
                    continue
                self._ready([ask.watch])
                if not ask.watch.worth(hash_rows(batch.slice(0, SOME), ask.columns)[0], self._makes, batch.num_rows):
                    continue
            batch = ask.watch.sift(batch, partial(self._asked, port, ask))
        return batch

    def _asked(self, port: int, ask: Question, batch: pa.RecordBatch) -> pa.RecordBatch:
        hashes, _, _ = hash_rows(batch, ask.columns)
        wanted = ask.watch.ask(hashes, self._makes)
        if wanted.all():
            return batch
        self._sleep(port, batch.filter(pa.array(~wanted)), hashes[~wanted], ask.watch)
        return batch.filter(pa.array(wanted))

    @property
    def _makes(self) -> float:
        """Partial results of a tuple."""
        return self.work.each(unknown=1.5 * SLEEPING)

    def _sleep(self, port: int, batch: pa.RecordBatch, hashes: UInt64s, watch: Watch) -> None:
        times = self._times(port, batch)
        young = times >= self.bounds[port]  # nobody comes for the others, and perhaps no mark that lets them go
        if young.any():
            self.asleep[port].add(batch.filter(pa.array(young)), hashes[young], watch, times[young])

    def _times(self, port: int, batch: pa.RecordBatch) -> Int64s:
        """A tuple expires by its own time."""
        return to_axis(batch.column(str(self.config.axes[port])))

    # -- counting -------------------------------------------------------------------------------------------------

    def count(self) -> None:
        """After a restart, before anything comes or goes."""
        self._ready([watch for watch in self.watches if not (watch.resting or watch.counted)])

    def _awake(self, port: int) -> list[Watch]:
        return [watch for watch in self.owned[port] if not watch.resting]

    def _ready(self, watches: list[Watch]) -> None:
        """See who is there, and who sleeps for want of whom."""
        for watch in watches:
            port = next(port for port, owned in enumerate(self.owned) if watch in owned)
            watch.counted, watch.resting = True, False
            watch.wanted.clear()
            for rows in (self.rows[port], self.asleep[port].rows):
                if len(rows):
                    alive = rows.alive_rows()
                    watch.wanted.come(*watch.partners(rows.take(alive)), rows.expiries(alive))
            asleep = self._under(watch)
            watch.sleepers = len(asleep)
            watch.wanted.ask(np.unique(asleep))

    def _under(self, watch: Watch) -> UInt64s:
        found = [sleepers.under(watch) for sleepers in self.asleep if len(sleepers)]
        return np.concatenate(found) if found else np.empty(0, dtype=np.uint64)

    def _move(self, port: int, bound: int) -> None:
        for watch in self.owned[port]:
            watch.wanted.move(bound)

    def expire(self, port: int, bound: int) -> None:
        """Time has moved on: let go who sleeps and is too old."""
        self.asleep[port].expired(bound)
        self.bounds[port] = bound
        self._move(port, bound)
        self._ready([watch for watch in self._awake(port) if watch.wanted.asleep > 1024 + 4 * watch.sleepers])
