"""The running join: two windows of rows, low-water marks in registers, and what each punctuation lets go."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.block import empty_batch
from millstream.core.punctuation import Punctuation, Range
from millstream.core.types import LAST_TIME, MAX_TIME, MIN_TIME, to_axis
from millstream.operators.buffers import Inputs
from millstream.operators.contract import Container, Due, Operator, Output
from millstream.operators.join import PUNCTUATED, WINDOW, Join
from millstream.operators.join_feedback import JoinFeedback
from millstream.operators.join_marks import Candidates
from millstream.operators.join_pairs import PairMaker
from millstream.operators.join_promises import JoinPromises
from millstream.state.keys import hash_rows
from millstream.state.registers import Registers
from millstream.state.row_window import RowWindow

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LEFT, RIGHT = 0, 1


class RunningJoin(Operator):
    def __init__(self, config: Join, journal: bool) -> None:
        self.config = config
        self.needs = config.needs
        self.pairs = PairMaker(config)
        self.empty = empty_batch(config.schema)
        self.registers = Registers(journal=journal)
        self.rows = (
            RowWindow(config.left, keys=config.left_keys or None, journal=journal, indexed=config.indexed),
            RowWindow(config.right, keys=config.right_keys or None, journal=journal, indexed=config.indexed),
        )
        self.promises = JoinPromises(config, self.registers, self.rows)
        # Tuples without a partner are results, which time must let go.
        self.timed = config.algorithm != PUNCTUATED or config.kind in ("left", "anti")
        self.valued = config.algorithm != WINDOW
        if config.feedback:
            self.feedback = JoinFeedback(
                config,
                self.rows,
                self.registers,
                progress=self.promises.mark,
                arrive=self._arrive,
                remake=self._remake,
                expire=self._let_go_old,
                expiry=self._expiry,
                bound=self._bound,
                journal=journal,
            )
            self.asleep = self.feedback.sleeping

    @property
    def state(self) -> tuple[Container, ...]:
        return (*self.rows, self.registers, *(() if self.feedback is None else self.feedback.state))

    def step(self, inputs: Inputs, out: Output, limit: int | None) -> None:
        if self.feedback is not None:
            if self.feedback.again is not None:
                self.feedback.again.flush(inputs, out)
            if self.feedback.lends is not None:
                self.feedback.lends.consider()
            if self.feedback.held:
                for port, punctuation in self.feedback.held.released():
                    self._punctuate(port, punctuation, out)
        next_port = self._next_port(inputs)
        if next_port is not None:
            block = inputs.heads[next_port].take(limit)
            assert block is not None
            if len(block):
                self._arrive(next_port, block.batch, out)
            for punctuation in block.punctuations:
                self._punctuate(next_port, punctuation, out)
        if self.feedback is not None and self.feedback.lends is not None:
            self.feedback.lends.hand_over(out)
        if self.promises.moved:
            out.put(self.empty, self.promises.output())

    def _next_port(self, inputs: Inputs) -> int | None:
        """The input that is behind goes first, so that less has to be kept."""
        if inputs.heads[LEFT] and inputs.heads[RIGHT]:
            return LEFT if self.registers.get("left progress", MIN_TIME) <= self.registers.get("right progress", MIN_TIME) else RIGHT
        return inputs.any()

    # -- tuples ---------------------------------------------------------------------------------------------------

    def _arrive(self, port: int, batch: pa.RecordBatch, out: Output, keep: bool = True) -> None:
        """Tuples that somebody may need, as far as is known; right ones that are made again need not be kept."""
        if self.feedback is not None:
            batch = self.feedback.screen(port, batch)
            if not batch.num_rows:
                return
            self.feedback.came(port, batch, out)
        before = len(out.blocks)
        if port == LEFT:
            self._left(batch, out)
        else:
            self._right(batch, out, keep)
        if self.feedback is not None:
            self.feedback.work.add(batch.num_rows, sum([len(block) for block in out.blocks[before:]]))
        out.letters += self.pairs.take_letters()

    def _expiry(self, port: int, batch: pa.RecordBatch) -> Int64s:
        if port == RIGHT:
            return self._right_expiry(batch)
        _, high, timed = self._interval(batch)
        return np.where(timed, high, MIN_TIME)

    def _left(self, batch: pa.RecordBatch, out: Output) -> None:
        """A left tuple meets the right tuples whose time lies in its interval; it stays while more may come."""
        hashes, valid, exact = hash_rows(batch, self.config.left_keys)
        low, high, timed = self._interval(batch)
        valid &= timed
        kind = self.config.kind
        stays = valid & self._left_may_meet(high)
        if self.valued:
            stays &= ~self.promises.closed(RIGHT, batch)
        matched = np.zeros(batch.num_rows, dtype=np.bool_)
        spares = self.feedback is not None and self.feedback.begins(batch.num_rows)
        for window in self._rights(batch):
            for probes, rows in window.probe(hashes, valid, low, high):
                if spares:
                    probes, rows = self._needed(Candidates(LEFT, batch, window, probes, rows), stays, high)
                probes, rows, pairs = self.pairs.check(batch.take(pa.array(probes)), window.take(rows), probes, rows, exact)
                matched[probes] = True
                if kind in ("inner", "left"):
                    out.put(self.pairs.output(pairs))
        if kind == "semi":
            self._put_left(batch, matched, out)
            stays &= ~matched
        elif kind == "anti":
            stays &= ~matched
        if kind in ("left", "anti"):
            self._put_left(batch, ~matched & ~stays, out)
        if stays.any():
            keep = None if stays.all() else np.flatnonzero(stays)
            chosen = (batch, hashes, low, high, high, matched)
            if keep is not None:
                chosen = (batch.take(pa.array(keep)), *(a[keep] for a in (hashes, low, high, high, matched)))
            self.rows[LEFT].count_from(self.rows[RIGHT].next_number)
            self.rows[LEFT].insert(*chosen)

    def _rights(self, batch: pa.RecordBatch) -> Iterator[RowWindow]:
        """What left tuples may meet: what is kept, and what is made again for them."""
        yield self.rows[RIGHT]
        made = self.feedback.again.find(batch) if self.feedback is not None and self.feedback.again is not None else None
        if made is not None:
            window = RowWindow(self.config.right, keys=self.config.right_keys)
            hashes, valid, _ = hash_rows(made, self.config.right_keys)
            time, timed = self._right_time(made)
            keep = np.flatnonzero(valid & timed)
            window.insert(made.take(pa.array(keep)), hashes[keep], time[keep], time[keep])
            yield window

    def _right(self, batch: pa.RecordBatch, out: Output, keep: bool) -> None:
        """A right tuple meets the left tuples whose interval holds its time; it stays while more may come."""
        hashes, valid, exact = hash_rows(batch, self.config.right_keys)
        time, timed = self._right_time(batch)
        expiry = self._right_expiry(batch)
        valid &= timed
        kind, lefts = self.config.kind, self.rows[LEFT]
        stays = valid & (expiry >= self._right_bound())
        if self.valued:
            stays &= ~self.promises.closed(LEFT, batch)
        if self.registers.get("left ended", 0) and not self._lends:
            stays[:] = False
        spares = self.feedback is not None and self.feedback.begins(batch.num_rows)
        for probes, rows in lefts.probe(hashes, valid, time, time):
            if spares:
                probes, rows = self._needed(Candidates(RIGHT, batch, lefts, probes, rows), stays, expiry)
            probes, rows, pairs = self.pairs.check(lefts.take(rows), batch.take(pa.array(probes)), probes, rows, exact)
            if kind in ("inner", "left"):
                out.put(self.pairs.output(pairs))
            if kind == "left":
                lefts.mark_matched(rows)
            elif kind in ("semi", "anti"):
                first = np.unique(rows)
                if kind == "semi":
                    out.put(lefts.take(first).select(list(self.config.output)))
                self._discard(LEFT, first)
        if keep and stays.any():
            kept = np.flatnonzero(stays)
            chosen = batch if stays.all() else batch.take(pa.array(kept))
            self.rows[RIGHT].count_from(lefts.next_number)
            self.rows[RIGHT].insert(chosen, hashes[kept], time[kept], time[kept], expiry[kept])

    def _needed(self, pairs: Candidates, stays: Mask, until: Int64s) -> tuple[Int64s, Int64s]:
        assert self.feedback is not None
        needed = self.feedback.needs(pairs, stays, until)
        return pairs.probes[needed], pairs.rows[needed]

    def _remake(self, left: Int64s, right: Int64s, out: Output) -> int:
        """Pairs of stored tuples that were not made before."""
        _, _, pairs = self.pairs.check(self.rows[LEFT].take(left), self.rows[RIGHT].take(right), left, right, False)
        out.put(self.pairs.output(pairs))
        out.letters += self.pairs.take_letters()
        return int(pairs.num_rows)

    def _interval(self, batch: pa.RecordBatch) -> tuple[Int64s, Int64s, Mask]:
        """The stretch of the right side's time that each left tuple can meet."""
        low = np.full(batch.num_rows, MIN_TIME, dtype=np.int64)
        high = np.full(batch.num_rows, MAX_TIME, dtype=np.int64)
        timed = np.ones(batch.num_rows, dtype=np.bool_)
        for band in self.config.bands:
            column = batch.column(band.left)
            if column.null_count:
                timed &= np.asarray(column.is_valid())
            axis = to_axis(column)
            if band.low is not None:
                np.maximum(low, axis + band.low, out=low)
            if band.high is not None:
                np.minimum(high, axis + band.high, out=high)
        return low, high, timed

    def _right_time(self, batch: pa.RecordBatch) -> tuple[Int64s, Mask]:
        if self.config.axis is None:
            return np.zeros(batch.num_rows, dtype=np.int64), np.ones(batch.num_rows, dtype=np.bool_)
        column = batch.column(self.config.axis)
        timed = np.asarray(column.is_valid()) if column.null_count else np.ones(batch.num_rows, dtype=np.bool_)
        return to_axis(column), timed

    def _right_expiry(self, batch: pa.RecordBatch) -> Int64s:
        """The latest left time that each right tuple can meet."""
        expiry = np.full(batch.num_rows, MAX_TIME, dtype=np.int64)
        for name, reach in self.config.right_reach:
            column = batch.column(name)
            np.minimum(expiry, to_axis(column) + reach, out=expiry)
            if column.null_count:
                expiry[np.asarray(column.is_null())] = MIN_TIME
        return expiry

    def _left_may_meet(self, high: Int64s) -> Mask:
        if self.registers.get("right ended", 0) and not self._lends:
            return np.zeros(len(high), dtype=np.bool_)
        mask: Mask = high >= (self._left_bound() if self.timed else MIN_TIME)
        return mask

    @property
    def _lends(self) -> bool:
        """Whether its tuples may be needed when none come any more."""
        return self.feedback is not None and self.feedback.lends is not None and self.feedback.lends.span is not None

    def _bound(self, side: int) -> int:
        return self._left_bound() if side == LEFT else self._right_bound()

    def _left_bound(self) -> int:
        """Left tuples whose intervals end before this time meet no later right tuple."""
        mark = self.promises.mark(RIGHT, self.config.axis)
        return mark if self.feedback is None else min(mark, self.feedback.reach.bounds()[LEFT])

    def _right_bound(self) -> int:
        """Right tuples that expire before this left time meet no later left tuple."""
        mark = self.promises.mark(LEFT, self.config.left_time) if self.timed else MIN_TIME
        return mark if self.feedback is None else min(mark, self.feedback.reach.bounds()[RIGHT])

    def _put_left(self, batch: pa.RecordBatch, mask: Mask, out: Output) -> None:
        """Left tuples without a partner; a left join fills the other side with nulls."""
        if mask.any():
            out.put(self.pairs.alone(batch if mask.all() else batch.filter(pa.array(mask))))

    # -- progress -------------------------------------------------------------------------------------------------

    def due(self) -> Iterator[Due]:
        """Unmatched tuples of a left or anti join wait for the other side's mark; all others wait only to be forgotten."""
        if not self.timed:
            return
        left = self._until(LEFT, self.config.kind in ("left", "anti"))
        if self.config.axis is not None and left < MAX_TIME:
            yield Due(RIGHT, self.config.axis, left + 1)
        right = self._until(RIGHT, False)
        if self.config.left_time is not None and right < MAX_TIME:
            yield Due(LEFT, self.config.left_time, right + 1)
        if self.feedback is not None:
            yield from self.feedback.waits.due()
            if self.feedback.again is not None:
                yield from self.feedback.again.due()

    def _until(self, side: int, results_wait: bool) -> int:
        """The expiry that matters on one side; a closed value may wait to be promised until its last tuple is gone."""
        waits = results_wait or self.rows[side].tied or self.registers.get(f"waiting {side}")
        return self.rows[side].earliest if waits else self.rows[side].latest

    # -- punctuations ---------------------------------------------------------------------------------------------

    def _punctuate(self, port: int, punctuation: Punctuation, out: Output) -> None:
        if self.feedback is not None and not self.feedback.epoch.quiet and self.feedback.held.speaks_of(port, punctuation):
            self.feedback.held.add(port, punctuation)
            for attribute in self.promises.times(port) if punctuation.is_end else ():
                self._punctuate(port, Punctuation.linear(attribute, LAST_TIME), out)  # what sleeps is not waited for
            return
        if punctuation.is_end:
            self.registers[f"{'left' if port == LEFT else 'right'} ended"] = 1
            other = self.rows[1 - port]
            self._let_go(1 - port, other.expire(self._bound(1 - port)) if self._lends else other.alive_rows(), out)
        elif punctuation.is_linear:
            ((attribute, pattern),) = punctuation.patterns
            assert isinstance(pattern, Range)
            self.promises.raise_mark(port, attribute, pattern.high)
            self._expire(port, attribute, out)
        elif self.valued:
            self.promises.close(port, punctuation, lambda side, rows: self._let_go(side, rows, out))
        self.promises.moved = True
        if self.feedback is not None and (punctuation.is_end or punctuation.is_linear):
            self.feedback.tell(port)

    def _expire(self, port: int, attribute: str, out: Output) -> None:
        """A mark of one side lets go what the other side keeps for it (paper 004, Figure 4, corrected)."""
        if port == RIGHT and attribute == self.config.axis:
            if self.timed:
                self._let_go(LEFT, self.rows[LEFT].expire(self._left_bound()), out)
            self.registers.raise_to("right progress", self.promises.mark(RIGHT, attribute))
        elif port == LEFT and attribute == self.config.left_time:
            if self.timed:
                self._let_go(RIGHT, self.rows[RIGHT].expire(self._right_bound()), out)
            self.registers.raise_to("left progress", self.promises.mark(LEFT, attribute))

    def _let_go_old(self) -> bool:
        """What was kept only for tuples that sleep, and need not be any more. Tells whether a promise may follow."""
        for side in (LEFT, RIGHT):
            rows = self.rows[side].expire(self._bound(side))
            if len(rows):
                self._discard(side, rows)
        return self.promises.moved

    def _let_go(self, side: int, rows: Int64s, out: Output) -> None:
        if not len(rows):
            return
        window = self.rows[side]
        if side == LEFT and self.config.kind in ("left", "anti"):
            lonely = rows[~window.is_matched(rows)]
            if len(lonely):
                out.put(self.pairs.alone(window.take(lonely)))
        self._discard(side, rows)

    def _discard(self, side: int, rows: Int64s) -> None:
        self.promises.prepare(side)
        self.promises.went(side, self.rows[side].discard(rows))
