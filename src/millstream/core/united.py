"""Sets that are united where they share something: columns that are equal to each other, streams that conditions connect."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def united(sets: list[set[T]], more: Iterable[T]) -> list[set[T]]:
    """The sets with one more, which takes in all that it shares something with."""
    new = set(more)
    touched = [each for each in sets if each & new]
    return [each for each in sets if not each & new] + [new.union(*touched)]
