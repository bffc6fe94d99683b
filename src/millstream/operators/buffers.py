"""Buffers between operators: one queue of blocks behind each producer, with a head of its own for each consumer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from millstream.core.block import Block


def microseconds() -> int:
    return time.perf_counter_ns() // 1000


class Book:
    """What the buffers of an executor hold together, and the clock by which they tell how long."""

    def __init__(self, now: Callable[[], int] = microseconds) -> None:
        self.now = now
        self.rows = 0
        self.peak = 0
        self.promises = 0
        """Blocks of punctuations alone; a tuple's own are a part of it."""
        self.most = 0
        """Tuples and such blocks together, at most."""

    def add(self, rows: int, promises: int = 0) -> None:
        self.rows += rows
        self.promises += promises
        if self.rows > self.peak:
            self.peak = self.rows
        if self.rows + self.promises > self.most:
            self.most = self.rows + self.promises


@dataclass(slots=True)
class _Held:
    """A block in a queue, how many of its tuples count as waiting, since when it is there, and how many heads have not passed it."""

    block: Block
    rows: int
    since: int
    left: int


class Buffer:
    """The blocks that a producer has put out and some consumer has not taken yet (paper 001, section 3: the fork).

    However many consumers there are, a block is held once, and freed when the last of them has passed it.
    """

    def __init__(self, book: Book | None = None) -> None:
        self.book = book or Book()
        self.rows = 0
        """Tuples that somebody waits for; behind a fork a block counts as a whole until everybody has passed it."""
        self.total = 0
        """Tuples put in so far."""
        self._held: dict[int, _Held] = {}
        self._next = 0
        self._heads = 0

    def head(self) -> Head:
        """For one more consumer: it sees what comes from now on."""
        self._heads += 1
        return Head(self, self._next, self.total)

    def put(self, block: Block) -> None:
        if not self._heads:
            return
        rows = len(block)
        self._held[self._next] = _Held(block, rows, self.book.now(), self._heads)
        self._next += 1
        self.rows += rows
        self.total += rows
        self.book.add(rows, not rows)

    def __len__(self) -> int:
        """Blocks that somebody waits for."""
        return len(self._held)

    def _pass(self, number: int) -> _Held:
        held = self._held[number]
        held.left -= 1
        if not held.left:
            del self._held[number]
            if len(held.block):
                self._count(held, held.rows)
            else:
                self.book.add(0, -1)
        return held

    def _count(self, held: _Held, taken: int) -> None:
        held.rows -= taken
        self.rows -= taken
        self.book.add(-taken)


class Taken:
    """What an operator has taken from its inputs so far."""

    __slots__ = ("punctuations", "tuples", "waited")

    def __init__(self) -> None:
        self.tuples = 0
        self.punctuations = 0
        self.waited = 0
        """How long all these tuples have been in the buffers, together."""


class Head:
    """How far one consumer is in a buffer."""

    __slots__ = ("_at", "_passed", "_register", "_taken", "buffer", "taken")

    def __init__(self, buffer: Buffer, at: int, passed: int) -> None:
        self.buffer = buffer
        self._at = at
        self._passed = passed  # tuples of the buffer that are not for this head any more
        self._taken = 0  # tuples of the block at hand
        self._register: Block | None = None
        self.taken = Taken()

    def __len__(self) -> int:
        """Blocks to take, an active register among them."""
        return self.buffer._next - self._at + (self._register is not None)

    @property
    def ready(self) -> bool:
        """There is something to take."""
        return self._at < self.buffer._next or self._register is not None

    @property
    def rows(self) -> int:
        """Tuples to take."""
        return self.buffer.total - self._passed

    def activate(self, promises: Block) -> None:
        """Set the time-stamp memory of this input (paper 001, section 4): it is read once, behind what is in the buffer."""
        if self._register is not None:
            promises = Block(promises.batch, (*self._register.punctuations, *promises.punctuations))
        self._register = promises

    def take(self, limit: int | None = None) -> Block | None:
        """The next block, at most `limit` tuples of it; its punctuations come with its last tuple."""
        if self._at == self.buffer._next:
            promises, self._register = self._register, None
            self.taken.punctuations += 0 if promises is None else len(promises.punctuations)
            return promises
        held = self.buffer._held[self._at]
        left = len(held.block) - self._taken
        if limit is not None and left > limit:
            self._taken += limit
            if self.buffer._heads == 1:
                self.buffer._count(held, limit)
            self._count(limit, held)
            return Block(held.block.batch.slice(self._taken - limit, limit))
        self.buffer._pass(self._at)
        self._at += 1
        self._count(left, held)
        self.taken.punctuations += len(held.block.punctuations)
        if not self._taken:
            return held.block
        block, self._taken = Block(held.block.batch.slice(self._taken), held.block.punctuations), 0
        return block

    def _count(self, rows: int, held: _Held) -> None:
        if not rows:
            return
        self._passed += rows
        self.taken.tuples += rows
        self.taken.waited += rows * (self.buffer.book.now() - held.since)

    def leave(self) -> None:
        """This consumer takes no more: nothing is held for it any longer."""
        for number in range(self._at, self.buffer._next):
            self.buffer._pass(number)
        self._at, self._passed, self._register = self.buffer._next, self.buffer.total, None
        self.buffer._heads -= 1


class Inputs:
    """What stands before an operator, one head a port."""

    def __init__(self, heads: list[Head]) -> None:
        self.heads = heads
        self.taken = Taken()
        for head in heads:
            head.taken = self.taken

    @property
    def rows(self) -> int:
        """Tuples to take."""
        rows = 0
        for head in self.heads:
            rows += head.buffer.total - head._passed
        return rows

    def any(self) -> int | None:
        """The first port with something to take."""
        for port, head in enumerate(self.heads):
            if head._at < head.buffer._next or head._register is not None:  # `ready`, which is asked here most
                return port
        return None
