"""The tuples and punctuations of an arrival pattern, in chunks that can be made again one by one, in any process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from millstream.core.types import Int64s
from millstream.io.generate.notation import ArrivalPattern

CHUNK = 32_768
"""Tuples of a chunk, about: whole segments, at least one."""
IRRELEVANT = -1_000_000_000
"""Values that no tuple has count down from here."""
OUTLINE, TUPLES, ORDER, COLUMNS = range(4)
"""What a random generator is for: each purpose has its own, so that none disturbs another."""


class Begin(NamedTuple):
    """Where a chunk begins: its number, the tuples before it, and when its first comes (microseconds)."""

    chunk: int
    tuples: int
    time: int


class Outline(NamedTuple):
    """What the chunks behind one must know of it."""

    ends: Int64s
    """Of each segment: tuples up to its end."""
    tuples: int
    duration: int


class Made(NamedTuple):
    """The rows of a chunk; a punctuation is a row of its own, behind its segment."""

    of: Int64s
    """The tuple, by its number in the chunk, that a row shows; a punctuation shows the one before it, with another key."""
    keys: Int64s
    closing: npt.NDArray[np.bool_]
    arrivals: Int64s
    """When a row comes, in order."""
    times: Int64s
    """Its timestamp: before its arrival, where there is disorder."""


@dataclass(frozen=True)
class Recipe:
    """Everything that the tuples depend on. How they are cut into units is not in it.

    Punctuated segment `s` ends with the punctuation of value number `s`. A chunk has a fixed number of segments, so the values that one
    punctuates are known without those before it; its tuples and its duration are drawn first (`outline`), so that whoever goes on
    behind it need not make it. Gaps given their sum are exponential numbers scaled to it, so this is still a Poisson process.
    """

    pattern: ArrivalPattern
    seed: int = 0
    every: int = 10_000
    """Microseconds between two tuples, on average."""
    start: int = 0
    tuples: int | None = None
    """In all; punctuations do not count."""
    marked: bool = True
    """Punctuations are shown."""
    first: int = 0
    """The value with number 0."""
    ahead: int = 10
    """Tuples that do not match their segment's punctuation have one of so many values that are punctuated next."""
    block: int = 1000
    """Values are permuted within blocks of so many (order `random`)."""
    irrelevant: bool = False
    disorder: int = 0

    def random(self, number: int, purpose: int, column: int = 0) -> np.random.Generator:
        return np.random.default_rng((self.seed, number, purpose, column))

    @property
    def begin(self) -> Begin:
        return Begin(0, 0, self.start)

    @property
    def segments(self) -> int:
        """Of each chunk."""
        return 0 if self.pattern.domain is not None else max(1, round(CHUNK / self.pattern.size))

    def after(self, begin: Begin) -> Begin:
        """Where the next chunk begins."""
        outline = _outline(self, begin.chunk)
        return Begin(begin.chunk + 1, self._capped(begin.tuples + outline.tuples), begin.time + outline.duration)

    def _capped(self, tuples: int) -> int:
        return tuples if self.tuples is None else min(tuples, self.tuples)

    def over(self, begin: Begin) -> bool:
        return self.tuples is not None and begin.tuples >= self.tuples

    def rows(self, begin: Begin) -> int:
        """Of a chunk: tuples, and the punctuations of segments that are whole."""
        outline = _outline(self, begin.chunk)
        tuples = self._capped(begin.tuples + outline.tuples) - begin.tuples
        return tuples + (int(np.searchsorted(outline.ends, tuples, "right")) if self.marked else 0)

    def rows_before(self, begin: Begin) -> int:
        return begin.tuples + (begin.chunk * self.segments if self.marked else 0)

    def values(self, numbers: Int64s) -> Int64s:
        """Value number n of those that are punctuated one after the other."""
        if self.pattern.order == "asc" or not len(numbers):
            return self.first + numbers
        if self.pattern.order == "desc":
            return self.first - numbers
        low, high = int(numbers.min()) // self.block, int(numbers.max()) // self.block
        table = np.concatenate([_permuted(self.seed, self.block, b) for b in range(low, high + 1)])
        return self.first + table[numbers - low * self.block]

    def make(self, begin: Begin) -> Made:
        return _made(self, begin)


@lru_cache(maxsize=64)
def _outline(recipe: Recipe, chunk: int) -> Outline:
    """Sizes are 1 + Poisson(size - 1): at least one, `size` on average, and exactly one where the cluster size is one (section 5.1)."""
    random = recipe.random(chunk, OUTLINE)
    if recipe.pattern.domain is not None:
        ends, tuples = np.zeros(0, np.int64), CHUNK
    else:
        ends = np.cumsum(1 + random.poisson(recipe.pattern.size - 1, recipe.segments))
        tuples = int(ends[-1])
    return Outline(ends, tuples, round(float(random.standard_gamma(tuples)) * recipe.every))


@lru_cache(maxsize=256)
def _permuted(seed: int, block: int, number: int) -> Int64s:
    order = np.random.default_rng((seed, number, ORDER, block)).permutation(block)
    return order.astype(np.int64) + number * block


@lru_cache(maxsize=8)
def _made(recipe: Recipe, begin: Begin) -> Made:
    outline = _outline(recipe, begin.chunk)
    random = recipe.random(begin.chunk, TUPLES)
    passed = np.cumsum(random.standard_exponential(outline.tuples))
    scale = outline.duration / passed[-1]
    arrivals = np.zeros(outline.tuples, np.int64)
    arrivals[1:] = passed[:-1] * scale
    arrivals += begin.time
    keys, closed = _keys(recipe, begin.chunk, outline, random)
    times = arrivals - random.integers(0, recipe.disorder, outline.tuples, endpoint=True) if recipe.disorder else arrivals
    of = np.arange(outline.tuples)
    closing = np.zeros(outline.tuples, np.bool_)
    if recipe.marked and recipe.segments:
        shown = np.ones(outline.tuples, np.int64)
        shown[outline.ends - 1] = 2
        of = np.repeat(of, shown)
        at = outline.ends + np.arange(recipe.segments)  # behind its segment, and behind the punctuations before it
        keys = keys[of]
        keys[at] = closed
        closing = np.zeros(len(of), np.bool_)
        closing[at] = True
    rows = slice(recipe.rows(begin))
    return Made(of[rows], keys[rows], closing[rows], arrivals[of[rows]], times[of[rows]])


def _keys(recipe: Recipe, chunk: int, outline: Outline, random: np.random.Generator) -> tuple[Int64s, Int64s]:
    """The values of a chunk's tuples, and those that its punctuations close."""
    pattern = recipe.pattern
    if pattern.domain is not None:
        return random.integers(0, pattern.domain, outline.tuples), outline.ends
    sizes = np.diff(outline.ends, prepend=0)
    numbers: Int64s = chunk * recipe.segments + np.arange(recipe.segments)
    segment = np.repeat(np.arange(recipe.segments), sizes)
    own = numbers[segment]
    if pattern.match is not None:
        ahead = random.integers(1, recipe.ahead, outline.tuples, endpoint=True)
        own = own + ahead * ~_matching(pattern.match, outline.ends, sizes, segment, random)
    return recipe.values(own), IRRELEVANT - numbers if recipe.irrelevant else recipe.values(numbers)


def _matching(percentage: int, ends: Int64s, sizes: Int64s, segment: Int64s, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Which tuples match the punctuation of their segment: as many as a Poisson percentage of it says, the last one before others.

    The last, because a punctuation stands "immediately after the tuple that contains the last occurrence" of its value (section 5.1).
    """
    share = np.minimum(random.poisson(percentage, len(sizes)), 100) * sizes / 100
    counts = np.floor(share + random.random(len(sizes)))
    places = random.random(len(segment))
    places[ends - 1] = 0.0
    shuffled = np.argsort(segment + places)
    rank = np.arange(len(segment)) - np.repeat(ends - sizes, sizes)
    found = np.empty(len(segment), np.bool_)
    found[shuffled] = rank < counts[segment]
    return found
