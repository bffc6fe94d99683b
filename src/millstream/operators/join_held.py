"""Promises that a join keeps back, until they are true of what sleeps before it, too."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.core.punctuation import Punctuation
from millstream.feedback.sleepers import Sleepers
from millstream.state.registers import Registers

_NAMES = ("held 0", "held 1")


class Held:
    """By the inputs they came in; their place is in registers."""

    def __init__(self, registers: Registers, asleep: tuple[Sleepers, Sleepers], patterns: Sleepers) -> None:
        self.registers, self.asleep, self.patterns = registers, asleep, patterns

    def __bool__(self) -> bool:
        return bool(self.registers.get(_NAMES[0]) or self.registers.get(_NAMES[1]))

    def speaks_of(self, port: int, punctuation: Punctuation) -> bool:
        """Whether a tuple that sleeps is one of those that are promised not to come; linear promises are known not to speak of them."""
        if punctuation.is_linear or punctuation.is_end:
            return punctuation.is_end and bool(len(self.asleep[port]) or len(self.patterns))
        return len(self.asleep[port]) > 0 and bool(punctuation.matches(self.asleep[port].all()).any())

    def add(self, port: int, punctuation: Punctuation) -> None:
        self.registers[_NAMES[port]] = (*self.registers.get(_NAMES[port], ()), punctuation)

    def released(self) -> Iterator[tuple[int, Punctuation]]:
        """Promises that are true by now."""
        for port, name in enumerate(_NAMES):
            kept: tuple[Punctuation, ...] = self.registers.get(name, ())
            ready = [p for p in kept if not self.speaks_of(port, p)]
            if ready:
                self.registers[name] = tuple(p for p in kept if p not in ready)
            yield from ((port, p) for p in ready)
