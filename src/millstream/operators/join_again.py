"""Partial results that are not kept, because the join that made them makes them again for who asks.

A consumer lets only one of its inputs sleep (see `join_feedback`), so of the other one all partial results are made. They need not be
stored: their parts are, in the windows of the join before. So each partial result meets who is there when it is made; who comes later
looks for the parts, by columns that they must be equal to, and has their results made once more. Partial results are handed over
without a buffer between, so that it is plain which of them have been there before: those of earlier arrivals.

It is the demand-driven operator execution of paper 003, section II, and it is what leaves room for nothing but the streams themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millstream.core.types import MAX_TIME
from millstream.feedback.watch import CALL
from millstream.kernels.compiled import Int64s
from millstream.operators.buffers import Inputs
from millstream.operators.contract import Due, Output
from millstream.operators.join_links import Link
from millstream.operators.join_promises import shift
from millstream.state.keys import hash_rows

if TYPE_CHECKING:
    from millstream.operators.join_feedback import JoinFeedback

LEFT, RIGHT = 0, 1
LOOKING = 2.0
"""What it costs to look for the parts of what a tuple meets, measured by what it costs to store a partial result."""
SPAN = "made again"


@dataclass
class Again:
    """The right input of a join, `owner`, if it is made by another one, the lender, and nobody further on lets any of it sleep."""

    owner: JoinFeedback
    link: Link
    columns: tuple[str, ...]
    """Of left tuples: what they are equal to on one side of the lender."""
    side: int
    parts: tuple[str, ...]
    """The lender's names for that."""
    offsets: tuple[int, int]
    """How much earlier than its results the lender's tuples of each side may expire."""
    wake: Callable[[], None]
    """Have the owner take a step."""
    trial: int
    out: Output = field(default_factory=Output)
    """Results that wait for the owner's next step."""
    met: int = 0
    """Tuples that were handed over since then."""
    fence: int = MAX_TIME
    """The first arrival whose results have not been handed over."""
    looked = 0
    """Tuples that have been looked at for those that asked."""

    def __post_init__(self) -> None:
        self._settle()
        for window in self.lender.rows:
            window.number()

    def _settle(self) -> None:
        """Begin to count anew."""
        self.handed = self.asked = self.calls = 0
        """Results that the lender has made, tuples that look for some, and how often that was."""

    @property
    def lender(self) -> JoinFeedback:
        return self.link.producer

    # -- when -----------------------------------------------------------------------------------------------------

    @property
    def span(self) -> tuple[int, int] | None:
        """The arrivals at the lender whose results are not kept; those of later ones are, once there is an end to it."""
        found: tuple[int, int] | None = self.owner.registers.get(SPAN)
        return found

    @property
    def open(self) -> bool:
        span = self.span
        return span is not None and span[1] == MAX_TIME

    def consider(self) -> None:
        """Before the lender takes something: whether what it makes now is to be kept."""
        self.fence = self._next
        span, pays = self.span, self._pays()
        if span is None and pays:
            self.owner.registers[SPAN] = (self._next, MAX_TIME)
        elif span is not None and span[1] == MAX_TIME and pays is False:
            self.owner.registers[SPAN] = (span[0], self._next)

    def _pays(self) -> bool | None:
        """Whether it is cheaper to make again what is asked for than to keep all; None if that is not clear, or not known yet."""
        if not self.trial:
            return True
        if self.handed + self.asked < self.trial:
            return None
        cost, handed = LOOKING * self.asked + CALL * self.calls, self.handed
        self._settle()
        return True if handed > 2 * cost else False if handed < cost else None

    @property
    def _next(self) -> int:
        """The number of the lender's next arrival."""
        return max(window.next_number for window in self.lender.rows)

    def refresh(self) -> None:
        """After a restart numbers go on behind those that are known: the tuples that had them may have gone unwritten."""
        last = max((number for number in self.span or () if number < MAX_TIME), default=0)
        for window in self.lender.rows:
            window.count_from(last)

    # -- tuples ---------------------------------------------------------------------------------------------------

    def hand_over(self, made: Output) -> None:
        """What the lender has made in a step meets who is there, before anybody else looks for it."""
        tuples = [block for block in made.blocks if len(block)]
        self.handed += sum([len(block) for block in tuples])
        if not self.open:
            self.fence = MAX_TIME
            return
        batch = self.link.seen(tuples, made)
        made.blocks = [block for block in made.blocks if not len(block)]
        if batch is not None:
            made.handed += batch.num_rows
            self.met += batch.num_rows
            self.owner.arrive(RIGHT, batch, self.out, keep=False)
            self.wake()
        self.fence = MAX_TIME

    def flush(self, inputs: Inputs, out: Output) -> None:
        """In the owner's next step: what came of it."""
        inputs.taken.tuples += self.met
        out.blocks += self.out.blocks
        out.letters += self.out.letters
        out.handed += self.out.handed
        self.out, self.met = Output(), 0

    def find(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """What left tuples may meet of all that is not kept."""
        self.asked, self.calls = self.asked + batch.num_rows, self.calls + 1
        if self.span is None:
            return None
        hashes, valid, _ = hash_rows(batch, self.columns)
        _, rows = self.lender.rows[self.side].having(self.parts, np.unique(hashes[valid]))
        return self._seen(self._made(rows)) if len(rows) else None

    def all(self) -> pa.RecordBatch | None:
        """All that is not kept."""
        return None if self.span is None else self._seen(self._made(self.lender.rows[self.side].alive_rows()))

    def _made(self, rows: Int64s) -> Output:
        """The results of some rows of one side of the lender, made again."""
        assert self.span is not None
        (since, until), made = self.span, Output()
        until = min(until, self.fence)
        own, other = self.lender.rows[self.side], self.lender.rows[1 - self.side]
        for at, partners in other.probe(own.hashes(rows), np.ones(len(rows), dtype=np.bool_), *own.spans(rows)):
            mine = rows[at]
            born = np.maximum(own.numbers(mine), other.numbers(partners))
            chosen = (since <= born) & (born < until)
            pair = mine[chosen], partners[chosen]
            self.lender.remake(pair[self.side], pair[1 - self.side], made)
        return made

    def _seen(self, made: Output) -> pa.RecordBatch | None:
        """As the owner sees it; what fails on the way has been told when it was made first."""
        batch = self.link.seen(made.blocks, Output())
        self.looked += 0 if batch is None else batch.num_rows
        return batch

    # -- how long -------------------------------------------------------------------------------------------------

    def bounds(self) -> tuple[int, int]:
        """For each side of the lender: what expires before is of no use here."""
        if self.span is None:
            return MAX_TIME, MAX_TIME
        bound = self.owner.bound(RIGHT)
        return shift(bound, self.offsets[LEFT]), shift(bound, self.offsets[RIGHT])

    def release(self) -> None:
        """Time has moved on here: the lender lets go what it keeps for nobody else."""
        span = self.span
        if span is None:
            return
        moved = self.lender.expire()
        if any(self._first(side) >= span[1] for side in (LEFT, RIGHT)) and span[1] < MAX_TIME:
            self.owner.registers[SPAN] = None
            moved |= self.lender.expire()
        if moved:
            self.link.wake()

    def _first(self, side: int) -> int:
        """The number of the oldest tuple of the lender."""
        window = self.lender.rows[side]
        return int(window.numbers(window.alive_rows()[:1])[0]) if len(window) else MAX_TIME

    def due(self) -> Iterator[Due]:
        """How far the left input has to move on until the lender lets go."""
        column = self.owner.config.left_time
        if self.span is None or column is None:
            return
        ends = [window.latest for window in self.lender.rows]
        last = [shift(end, -offset) for end, offset in zip(ends, self.offsets, strict=True) if end < MAX_TIME]
        if last:
            yield Due(LEFT, column, max(last) + 1)
