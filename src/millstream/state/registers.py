"""Registers: named numbers (low-water marks, running maxima, counters) and other small values of an operator."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any

from millstream.state.journal import Segment, Segments


class Registers:
    """Values by name. A value is replaced, never changed in place: the journal only sees what is set.

    A value that is a dictionary may grow by `put`: then the journal sees only what came in, however large it has become.
    """

    def __init__(self, *, journal: bool = False) -> None:
        self._journal = journal
        self._values: dict[str, Any] = {}
        self._touched: set[str] = set()
        self._grown: dict[str, dict[Any, Any]] = {}
        self._sizes: dict[str, int] = {}  # bytes of what the journal must keep of each value

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
        """With a journal: as of its last segment."""
        return sum(self._sizes.values()) if self._journal else len(_pickled(self._values))

    def get(self, name: str, default: Any = None) -> Any:
        return self._values.get(name, default)

    def put(self, name: str, entries: Mapping[Any, Any]) -> None:
        """Add entries to a dictionary, or replace them."""
        self._values.setdefault(name, {}).update(entries)
        if self._journal:
            self._grown.setdefault(name, {}).update(entries)

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
        more = {name: _pickled(entries) for name, entries in sorted(grown.items()) if name not in names}
        self._heed(bool(since), deleted, whole, more)
        return Segment(_pickled((bool(since), deleted, whole, more)), 0)

    def _heed(self, afresh: bool, deleted: list[str], whole: dict[str, bytes], more: dict[str, bytes]) -> None:
        """Sizes after such a segment."""
        if afresh:
            self._sizes = {}
        for name in deleted:
            self._sizes.pop(name, None)
        self._sizes.update({name: len(name) + len(value) for name, value in whole.items()})
        for name, entries in more.items():
            self._sizes[name] = self._sizes.get(name, len(name)) + len(entries)

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
            for name, entries in more.items():
                self._values.setdefault(name, {}).update(pickle.loads(entries))
            self._heed(afresh, deleted, whole, more)


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)
