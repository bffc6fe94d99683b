"""How a graph is executed: physical choices that never change an answer."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.settings import Settings


@dataclass(frozen=True)
class Execution:
    """What SET execution.* chooses for every executor of a run."""

    strategy: str = "depth-first"
    limit: int | None = None
    """Tuples that an operator takes before another may run; None for whole blocks."""
    arcs: bool = False
    """Whether promises go over arcs of their own, past the operators that do not need them, or through every operator."""

    @classmethod
    def of(cls, settings: Settings) -> Execution:
        limit, arcs = settings.get("execution.limit") or None, settings.get("execution.promises") == "arcs"
        return cls(settings.get("execution.strategy"), limit, arcs)
