"""Demand at a join: as a consumer it tells its producers which sub-tuples have no partner here, as a producer it lets those sleep.

A sleeping tuple is one that has not come yet. It lies before the join, is not stored, and meets nobody; when the consumer that did
not need it finds a partner for it, it comes in, as if it had been late. So no pair is lost and none is made twice, and all there is
to care for is what is let go meanwhile: a tuple that a sleeping one may still meet has to stay.

Of two inputs a consumer lets only one sleep. Were it to do so with both, `a` might sleep for want of `c d` while `c` sleeps for want
of `a b`, and their result would never be made (paper 003 does not say how it keeps clear of this).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from millstream.core.types import MAX_TIME
from millstream.feedback.messages import RESUME, SUSPEND, Message
from millstream.feedback.sleepers import Sleepers
from millstream.feedback.watch import SLEEPING, SOME, Watch
from millstream.feedback.work import Work
from millstream.kernels.compiled import Bools, Int64s, UInt64s
from millstream.operators.contract import Container, Output
from millstream.operators.join import Join
from millstream.operators.join_again import Again
from millstream.operators.join_held import Held
from millstream.operators.join_links import Ask, Downstream, Epoch, Link
from millstream.operators.join_marks import PATTERN, Candidates, Marks, Pattern
from millstream.operators.join_reach import Reach
from millstream.operators.join_waits import Waits
from millstream.state.keys import hash_rows
from millstream.state.registers import Registers
from millstream.state.row_window import RowWindow

LEFT, RIGHT = 0, 1
LOOKS = 300
"""Stored tuples that are looked at in the time in which a result is made."""


class Arrive(Protocol):
    def __call__(self, port: int, batch: pa.RecordBatch, out: Output, keep: bool = True) -> None:
        """Tuples come in; those that need not be kept are made again for who comes later."""


@dataclass
class JoinFeedback:
    """What a join knows of demand. The one who connects operators tells it who is before and behind it."""

    config: Join
    rows: tuple[RowWindow, RowWindow]
    registers: Registers
    progress: Callable[[int, str | None], int]
    """How far an input has moved on, by one of its columns."""
    arrive: Arrive
    remake: Callable[[Int64s, Int64s, Output], int]
    """The pairs of rows of both windows."""
    expire: Callable[[], bool]
    expiry: Callable[[int, pa.RecordBatch], Int64s]
    """When tuples of one input expire, and with them what they may meet."""
    bound: Callable[[int], int]
    """What expires before, of one side, is of no use."""
    journal: bool = False
    epoch: Epoch = field(default_factory=Epoch)
    """Shared by all that are connected."""
    number: int = -1
    """Of its vertex."""
    listener: Callable[[Message], None] | None = None
    """Told of each message that it gets."""
    fed: int | None = None
    """The input whose tuples may sleep for want of partners in the other one."""
    links: list[Link | None] = field(default_factory=lambda: [None, None])
    watches: list[Watch] = field(default_factory=list)
    asks: tuple[list[Ask], list[Ask]] = field(default_factory=lambda: ([], []))
    marks: Marks | None = None
    """The pairs that it does not make."""
    again: Again | None = None
    """Its input that need not be kept."""
    lends: Again | None = None
    """Its consumer that need not keep what it makes."""
    refused: list[Pattern] = field(default_factory=list)
    """Pairs that it will never make."""
    downstream: list[Downstream] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.asleep = (Sleepers(self.config.left, self.journal), Sleepers(self.config.right, self.journal))
        self.patterns = Sleepers(PATTERN, self.journal)
        self.waking, self.woke = False, True
        """Whether it is about to wake somebody, and whether it has since it was last told that time has moved on."""
        self._marking = False
        """Whether pairs of the tuples at hand are asked about."""
        self._arriving = MAX_TIME
        """When the first of those expires who are about to wake somebody: they may meet him, though nobody who comes later."""
        self.work = Work()
        self.reach = Reach(self)
        self.waits = Waits(self)
        self.held = Held(self.registers, self.asleep, self.patterns)

    @property
    def state(self) -> tuple[Container, ...]:
        return (*(sleepers.rows for sleepers in self.sleeping), *self.watches)

    @property
    def sleeping(self) -> tuple[Sleepers, ...]:
        """All that is held back here: tuples of both inputs, and the patterns of pairs."""
        return (*self.asleep, self.patterns)

    def refresh(self) -> None:
        """State has become something else: what was known of it is found out anew."""
        if self.marks is not None:
            self.marks.refresh()
        self.waits.refresh()
        self.woke = True
        if self.again is not None:
            self.again.refresh()
        self.epoch.stir()

    # -- as a consumer --------------------------------------------------------------------------------------------

    def ready(self) -> list[Watch]:
        """The watches that are at work, counted anew after a restart."""
        found = [watch for watch in self.watches if not (watch.resting or watch.dormant)]
        if found and not all([watch.counted for watch in found]):
            self.count(*[watch for watch in found if not watch.counted])
        return found

    def look(self, watch: Watch) -> None:
        """Before it is asked: who is still there."""
        assert self.fed is not None
        self.ready()
        if watch.dormant:
            self.count(watch)
        watch.wanted.move(min(self.bound(1 - self.fed), self._arriving))

    def count(self, *watches: Watch) -> None:
        """See who is there and who sleeps."""
        if not watches:
            return
        assert self.fed is not None
        free = self.rows[1 - self.fed]
        rows = free.alive_rows()
        stored, until = free.take(rows), free.expiries(rows)
        made = self.again.all() if self.again is not None else None
        for watch in watches:
            watch.counted, watch.resting, watch.dormant = True, False, False
            watch.wanted.clear()
            watch.wanted.move(self.bound(1 - self.fed))
            watch.come(stored, until)
            if made is not None:
                watch.come(made, self.expiry(1 - self.fed, made))
            watch.unasked = 0
            asleep = self._sleeping(watch)
            watch.sleepers = len(asleep)
            watch.wanted.ask(np.unique(asleep))
            for marks in self._marks(watch):
                marks.refresh()
        self.epoch.stir()

    def _sleeping(self, watch: Watch) -> UInt64s:
        """Their hashes, one for each."""
        found = [sleepers.under(watch) for holder in self.holders() for sleepers in holder.sleeping if len(sleepers)]
        return np.concatenate(found) if found else np.empty(0, dtype=np.uint64)

    def _marks(self, watch: Watch) -> Iterator[Marks]:
        """Where pairs are not made for want of it."""
        return (holder.marks for holder in self.holders() if holder.marks is not None and holder.marks.watch is watch)

    def holders(self) -> Iterator[JoinFeedback]:
        """The joins that make the input that is fed."""
        link = self.links[self.fed] if self.fed is not None else None
        return iter(()) if link is None else link.producer.self_and_above()

    def self_and_above(self) -> Iterator[JoinFeedback]:
        yield self
        for link in self.links:
            if link is not None:
                yield from link.producer.self_and_above()

    def came(self, port: int, batch: pa.RecordBatch, out: Output) -> None:
        """Tuples come in. Opposite of the fed input, those that sleep for want of them are woken and come in before."""
        if self.fed is None or port == self.fed:
            return
        link = self.links[self.fed]
        assert link is not None
        if all([watch.resting for watch in self.watches]):
            return
        until, bound = self.expiry(port, batch), self.bound(port)
        found = []
        for watch in self.ready():
            watch.wanted.move(min(bound, int(until.min())))
            woken = watch.come(batch, until)
            if not watch.stop():
                found.append((watch, woken))
        self.waking = True  # what one of them meets may be woken after it
        self._arriving = int(until.min())
        self.epoch.waking += 1
        self.epoch.turn()
        for place, (watch, _) in enumerate(found):
            if watch.poor():
                found[place] = watch, np.unique(self._sleeping(watch))  # who has a partner now is still among them
                watch.rest(len(self.rows[1 - self.fed]) + (0 if self.again is None else self.again.handed))
                self.epoch.stir()
        for watch, woken in found:
            for marks in self._marks(watch):
                marks.claim(woken)
        for watch, woken in found:
            self.woke |= len(woken) > 0
            for resumed in link.resume(watch, woken, out) if len(woken) else ():
                self.arrive(self.fed, resumed, out)
        self.waking, self._arriving = False, MAX_TIME
        self.epoch.waking -= 1
        self.epoch.turn()

    def makes(self, owner: JoinFeedback) -> float:
        """What is not made when a tuple sleeps: its results here, and theirs in turn on the way to a consumer."""
        return self.looks + self.work.each(unknown=1.5 * SLEEPING) * (1 + self.beyond(owner))

    def beyond(self, owner: JoinFeedback) -> float:
        """The same for a result of this join, on its way to a consumer."""
        behind = self.reach.behind(owner).consumer
        return behind.looks if behind is owner else behind.makes(owner)

    @property
    def looks(self) -> float:
        """What is looked at for a tuple that comes, by nested loops, measured by what it costs to make a result."""
        return 0 if self.config.indexed else max(len(window) for window in self.rows) / LOOKS

    def tell(self, port: int) -> None:
        """An input has moved on. What sleeps for the one opposite of the fed one may be too old now.

        When nothing sleeps any more, the joins before let go what they kept for it.
        """
        if self.again is not None:
            self.again.release()
        if self.epoch.quiet and not self.woke:
            return
        self.epoch.turn()
        if self.fed is None or (port == self.fed and not self.woke):
            return
        sleeping = any(len(sleepers) for holder in self.holders() for sleepers in holder.sleeping)
        if port == self.fed and sleeping:
            return
        link = self.links[self.fed]
        assert link is not None
        watches = self.ready()
        if sleeping or self.woke:  # also for others, which may hold this up
            self.woke = sleeping
            link.forget()
            self.count(*(watch for watch in watches if watch.wanted.asleep > 1024 + 4 * watch.sleepers))

    # -- as a producer --------------------------------------------------------------------------------------------

    def screen(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The tuples that somebody may need; the others sleep from now on."""
        for ask in self.asks[port]:
            if not batch.num_rows:
                break
            if ask.above:
                continue
            if ask.owner is None:
                hashes, valid, _ = hash_rows(batch, ask.columns)
                batch = batch.filter(pa.array(ask.watch.wanted.there(hashes) & valid))
                continue
            if ask.watch.resting:
                ask.watch.left -= batch.num_rows
                if ask.watch.left > 0 or ask.owner.waking or not ask.watch.rested(self.makes(ask.owner)):
                    continue  # while it wakes, the tuple whose coming does it is not stored yet, and would not be counted
                ask.owner.count(ask.watch)
                some, valid, _ = hash_rows(batch.slice(0, SOME), ask.columns)
                if not ask.watch.worth(some[valid], self.makes(ask.owner), batch.num_rows):
                    self.epoch.stir()
                    continue
            if ask.watch.dormant and ask.owner.waking:
                continue
            ask.owner.look(ask.watch)
            batch = ask.watch.sift(batch, partial(self._asked, port, ask))
        return batch

    def _asked(self, port: int, ask: Ask, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Those of some tuples for which a consumer has a partner."""
        assert ask.owner is not None
        hashes, valid, _ = hash_rows(batch, ask.columns)
        if not valid.all():  # null is equal to nothing
            batch, hashes = batch.filter(pa.array(valid)), hashes[valid]
        known = ask.watch.wanted.sleeping(hashes) if self.listener is not None else None
        wanted = ask.watch.ask(hashes, self.makes(ask.owner))
        if wanted.all():
            return batch
        self.epoch.turn()
        if known is not None:
            self.say(SUSPEND, ask.owner, batch.filter(pa.array(~wanted & ~known)), ask.columns)
        chosen = batch.filter(pa.array(~wanted))
        self._sleep(port, chosen, hashes[~wanted], ask, self.expiry(port, chosen))
        return batch.filter(pa.array(wanted))

    def begins(self, tuples: int) -> bool:
        """Tuples are about to meet others: whether there are pairs that are not to be made. It holds for all of them, or none."""
        self._marking = self.marks is not None and self.marks.begins(tuples)
        return self._marking or bool(self.refused)

    def needs(self, pairs: Candidates, stays: Bools, until: Int64s) -> Bools:
        """Which pairs are to be made; a tuple that is not going to stay could not be found again. `until` is when it expires."""
        needed = np.ones(len(pairs.rows), dtype=np.bool_)
        for pattern in self.refused:
            hashes, valid = pattern.hashes(pattern.values(pairs))
            needed &= valid & pattern.watch.wanted.there(hashes)
        if self.marks is not None and self._marking:
            self.marks.sift(pairs, stays, until, needed)
        return needed

    def say(self, command: str, consumer: JoinFeedback, batch: pa.RecordBatch, columns: Sequence[str] | Sequence[int]) -> None:
        assert self.listener is not None
        rows = batch.select(columns).to_pylist()
        if rows:
            self.listener(Message(command, consumer.number, self.number, tuple(dict.fromkeys(tuple(row.items()) for row in rows))))

    def _sleep(self, port: int, batch: pa.RecordBatch, hashes: UInt64s, ask: Ask, until: Int64s) -> None:
        assert ask.owner is not None
        young = until >= self.reach.needed(self.reach.behind(ask.owner))[port]
        if not young.all():
            batch, hashes, until = batch.filter(pa.array(young)), hashes[young], until[young]
        self.asleep[port].add(batch, hashes, ask.watch, until)

    def resume(self, watch: Watch, hashes: UInt64s, out: Output) -> None:
        """What sleeps under these hashes here and above comes in now."""
        for port, ask in [(port, ask) for port, asks in enumerate(self.asks) for ask in asks if ask.watch is watch]:
            link = self.links[port]
            if link is not None:
                for batch in link.resume(watch, hashes, out):
                    self.arrive(port, batch, out)
            woken = self.asleep[port].take(watch, hashes)
            if woken is not None:
                if self.listener is not None and ask.owner is not None:
                    self.say(RESUME, ask.owner, woken, ask.columns)
                if ask.owner is not None:
                    watch.wake(woken.num_rows, self.makes(ask.owner))
                self.arrive(port, woken, out)
        if self.marks is not None and self.marks.watch is watch:
            self.marks.unmark(out)

    # -- how long something may still be needed -------------------------------------------------------------------

    def forget(self) -> bool:
        """Consumers have moved on: let go what sleeps and is too old by now, here and above. Tells whether a promise may follow."""
        gone = False
        while self._forget_old():  # what has gone may have been all that sleeps for the consumer that is furthest behind
            gone = True
        for link in self.links:
            if link is not None:
                link.forget()
        moved = self.expire()
        if self.again is not None:
            self.again.release()
        gone |= self.marks is not None and self.marks.forget()
        return moved or (gone and bool(self.held))

    def _forget_old(self) -> bool:
        left, right = self.reach.sleepers()
        bounds = (left, right, left)  # patterns expire by the left one of both tuples
        gone = [sleepers.expired(bound) is not None for sleepers, bound in zip(self.sleeping, bounds, strict=True)]
        if any(gone):
            self.epoch.turn()  # what was kept for them need not be
        return any(gone)
