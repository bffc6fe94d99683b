"""What a paper claims beside what we measured, and the curves that show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Options:
    """What a user may choose; None leaves it to the figure."""

    seconds: float | None = None
    """Simulated seconds of the longest run."""
    seed: int = 1
    real: float = 0.0
    """Seconds that each run by the machine's clock lasts; 0 leaves them out."""
    tell: Callable[[str], None] = lambda text: None


@dataclass(frozen=True)
class Claim:
    """One thing that a paper says, or that we want to reach."""

    figure: str
    says: str
    measured: str
    holds: bool
    reason: str = ""
    """Why it does not hold, or on what it depends."""


@dataclass(frozen=True)
class Curve:
    """One line of a figure. A single point without an x is drawn as a level line, or as a bar."""

    name: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    colour: int | None = None
    """Its place among the colours, where it has another one in an earlier picture."""


@dataclass(frozen=True)
class Picture:
    """One figure: its curves, its axes."""

    name: str
    title: str
    curves: tuple[Curve, ...]
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    bars: bool = False
    """One bar for each curve, which has one point."""
    unit: str = "ms"
    """What is written on a bar behind its value."""


@dataclass
class Report:
    """All figures of one paper."""

    name: str
    title: str
    claims: list[Claim] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    runs: dict[str, Any] = field(default_factory=dict)
    """What each run showed, by its name."""


def level(name: str, y: float, colour: int | None = None) -> Curve:
    return Curve(name, (), (y,), colour)
