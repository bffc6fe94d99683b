"""Registers: named numbers (low-water marks, running maxima, counters) and other small values of an operator."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

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
        return len(self.snapshot_of(self._values))

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

    @staticmethod
    def snapshot_of(values: dict[str, Any]) -> bytes:
        return pickle.dumps((_FORGET, values), protocol=5)

    def changes(self) -> bytes | None:
        """What was set or deleted since the last call; None when nothing was."""
        if not self._journal:
            raise RuntimeError("these registers keep no journal")
        if not self._touched:
            return None
        names = sorted(self._touched)
        self._touched.clear()
        kept = {name: self._values[name] for name in names if name in self._values}
        return pickle.dumps(([name for name in names if name not in self._values], kept), protocol=5)

    def snapshot(self) -> bytes:
        """All values; the journal goes on from here."""
        self._touched.clear()
        return self.snapshot_of(self._values)

    def restore(self, segments: Iterable[bytes]) -> None:
        """Become what the segments say: a snapshot (or nothing) and the changes that followed it."""
        self._values, self._touched = {}, set()
        for segment in segments:
            deleted, kept = pickle.loads(segment)
            if deleted == _FORGET:
                self._values.clear()
            else:
                for name in deleted:
                    self._values.pop(name, None)
            self._values.update(kept)
