"""Registers: named numbers (low-water marks, running maxima, counters) and other small values of an operator."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

from millstream.state.journal import Segment, Segments

_FORGET = "forget everything before"


class Registers:
    """Values by name. A value is replaced, never changed in place: the journal only sees what is set."""

    def __init__(self, *, journal: bool = False) -> None:
        self._journal = journal
        self._values: dict[str, Any] = {}
        self._touched: set[str] = set()

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
        return len(pickle.dumps(self._values, protocol=5))

    def get(self, name: str, default: Any = None) -> Any:
        return self._values.get(name, default)

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
        names, self._touched = sorted(self._touched), set()
        if since:
            return Segment(pickle.dumps((_FORGET, self._values), protocol=5), 0) if self._values else None
        if not names:
            return None
        kept = {name: self._values[name] for name in names if name in self._values}
        return Segment(pickle.dumps(([name for name in names if name not in self._values], kept), protocol=5), 0)

    def restore(self, segments: Segments) -> None:
        """Become what the segments say, of which the oldest may have been dropped."""
        self._values, self._touched = {}, set()
        for _, segment in segments:
            deleted, kept = pickle.loads(segment)
            if deleted == _FORGET:
                self._values.clear()
            else:
                for name in deleted:
                    self._values.pop(name, None)
            self._values.update(kept)
