"""Registers: named numbers (low-water marks, running maxima, counters) and other small values of an operator."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, Protocol

from millstream.state.journal import Segment, Segments


class Growing(Protocol):
    """A value that is added to, and from which something may be taken away; it begins empty."""

    def grow(self, more: Any) -> None: ...

    def shrink(self, less: Any) -> None: ...

    @property
    def nbytes(self) -> int: ...


class Registers:
    """Values by name. A value is replaced, never changed in place: the journal only sees what is set.

    A value that can `grow` is told what more there is of it, or less: then the journal sees only that, however large it has become.
    """

    def __init__(self, *, journal: bool = False) -> None:
        self._journal = journal
        self._values: dict[str, Any] = {}
        self._touched: set[str] = set()
        self._grown: dict[str, list[tuple[str, Any]]] = {}  # what was done to values since the last segment, and with what
        self._sizes: dict[str, int] = {}  # bytes that the journal must keep of each value that does not grow

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if self._journal:
            before = self._values.get(name)
            if type(value) is int and type(before) is int and value == before:
                return  # the common case: a mark that has not moved
            self._touched.add(name)
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        del self._values[name]
        if self._journal:
            self._touched.add(name)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def nbytes(self) -> int:
        """With a journal: as of its last segment, but for values that grow."""
        large: int = sum(value.nbytes for value in self._values.values() if _grows(value))
        if self._journal:
            return large + sum(self._sizes.values())
        return large + len(_pickled({name: value for name, value in self._values.items() if not _grows(value)}))

    def get(self, name: str, default: Any = None) -> Any:
        return self._values.get(name, default)

    def grow(self, name: str, kind: type[Growing], more: Any) -> None:
        """Add to a value of a kind that grows; it begins empty."""
        if name not in self._values:
            self[name] = kind()
        self.alter(name, "grow", more)

    def alter(self, name: str, how: str, what: Any) -> None:
        """Call a method of a value that grows; the journal sees the call."""
        getattr(self._values[name], how)(what)
        if self._journal and name not in self._touched:
            self._grown.setdefault(name, []).append((how, what))

    def raise_to(self, name: str, value: int) -> bool:
        """Set a mark that only rises; True when it did."""
        if name in self._values and self._values[name] >= value:
            return False
        self[name] = value
        return True

    def add(self, name: str, amount: int = 1) -> int:
        """Add to a counter that begins at 0; returns what it was before."""
        before = int(self._values.get(name, 0))
        self[name] = before + amount
        return before

    # -- journal --------------------------------------------------------------------------------------------------

    def changes(self, number: int = 0, since: int = 0) -> Segment | None:
        """What was set or deleted since the last segment, or all there is when older ones are to be dropped; None for nothing."""
        if not self._journal:
            raise RuntimeError("these registers keep no journal")
        touched, self._touched = self._touched, set()
        grown, self._grown = self._grown, {}
        names = sorted(self._values) if since else sorted(touched)
        if not (since or names or grown):
            return None
        deleted = [name for name in names if name not in self._values]
        whole = {name: _pickled(self._values[name]) for name in names if name in self._values}
        more = {name: _pickled(pieces) for name, pieces in sorted(grown.items()) if name not in names}
        self._heed(bool(since), deleted, whole)
        return Segment(_pickled((bool(since), deleted, whole, more)), 0)

    def _heed(self, afresh: bool, deleted: list[str], whole: dict[str, bytes]) -> None:
        """Sizes after such a segment."""
        if afresh:
            self._sizes = {}
        for name in deleted:
            self._sizes.pop(name, None)
        self._sizes.update({name: len(name) + len(value) for name, value in whole.items() if not _grows(self._values[name])})

    def restore(self, segments: Segments) -> None:
        """Become what the segments say, of which the oldest may have been dropped."""
        self._values, self._touched, self._grown, self._sizes = {}, set(), {}, {}
        for _, segment in segments:
            afresh, deleted, whole, more = pickle.loads(segment)
            if afresh:
                self._values.clear()
            for name in deleted:
                self._values.pop(name, None)
            self._values.update({name: pickle.loads(value) for name, value in whole.items()})
            for name, pieces in more.items():
                if name in self._values:  # otherwise its beginning was dropped, because a later segment has all of it
                    for how, what in pickle.loads(pieces):
                        getattr(self._values[name], how)(what)
            self._heed(afresh, deleted, whole)


def _grows(value: Any) -> bool:
    return hasattr(value, "grow")


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)
