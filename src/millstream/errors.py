"""Every error a user can meet: one root, a code, a place in the text and a way out."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


def counted(number: int, noun: str) -> str:
    """`1 stage`, `2 stages`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class Place:
    """Where in a pipeline file something stands: statement number, line and column, all from 1."""

    line: int
    column: int
    statement: int | None = None
    file: str | None = None

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}"
        if self.statement is not None:
            where = f"statement {self.statement}, {where}"
        return f"{self.file}: {where}" if self.file else where


class MillstreamError(Exception):
    """The root of all errors meant for users; `str()` is the one line a user reads.

    `passing` is True for a fault that may pass: the same run may succeed later, unchanged.
    """

    code = "error"

    def __init__(
        self, message: str, *, place: Place | None = None, hint: str | None = None, passing: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.passing = passing
        self.place = place
        self.hint = hint

    def at(self, place: Place | None) -> MillstreamError:
        """Add the place, when the raiser did not know it."""
        if self.place is None:
            self.place = place
        return self

    def __str__(self) -> str:
        text = self.message
        if self.place is not None:
            text = f"{self.place}: {text}"
        if self.hint:
            text = f"{text}; {self.hint}"
        return text

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.place, self.hint, self.passing)


def _rebuild(
    kind: type[MillstreamError], message: str, place: Place | None, hint: str | None, passing: bool
) -> MillstreamError:
    return kind(message, place=place, hint=hint, passing=passing)


def is_full(error: BaseException) -> bool:
    """True when there was no room left on a disk."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


class SyntaxProblem(MillstreamError):
    """The text cannot be read as statements of the language."""

    code = "syntax"


class NameProblem(MillstreamError):
    """A name stands for nothing, or for two things."""

    code = "name"

    @classmethod
    def unknown(cls, kind: str, name: str, known: Iterable[str], *, within: str = "", place: Place | None = None) -> NameProblem:
        """`no column pric in Bid; did you mean price?`"""
        known = list(known)
        close = get_close_matches(str(name).lower(), [k.lower() for k in known], n=1)
        hint = None
        if close:
            match = next(k for k in known if k.lower() == close[0])
            hint = f"did you mean `{match}`?"
        elif known:
            hint = "there is " + ", ".join(f"`{k}`" for k in known[:8]) + (", ..." if len(known) > 8 else "")
        else:
            hint = f"no {kind} is declared yet"
        inside = f" in {within}" if within else ""
        return cls(f"no {kind} `{name}`{inside}", place=place, hint=hint)


    @classmethod
    def reserved(cls, name: str, place: Place | None = None) -> NameProblem:
        """A name that a user gives and that begins as those of the engine do."""
        hint = "names that begin with __ are the engine's own"
        return cls(f"the name `{name}` is reserved", place=place, hint=hint)


class TypeProblem(MillstreamError):
    """An expression, a value or a punctuation has the wrong type."""

    code = "type"


class PlanProblem(MillstreamError):
    """The query is well formed but can not be run as a continuous query."""

    code = "plan"


class UnsupportedProblem(MillstreamError):
    """The language has this, this version does not."""

    code = "unsupported"


class SourceProblem(MillstreamError):
    """A source can not be read."""

    code = "source"


class SinkProblem(MillstreamError):
    """A sink can not be written."""

    code = "sink"


class DataProblem(MillstreamError):
    """A value met while running breaks a rule, and there is no tuple to send to dead letters."""

    code = "data"


class SetupProblem(MillstreamError):
    """The machine lacks something, such as Java."""

    code = "setup"


class SessionStopped(SetupProblem):
    """The Spark session was stopped under a running query. Its answers so far stay."""


class MillstreamWarning(UserWarning):
    """Something that changes no answer, and that a user should see."""


def warn(message: str) -> None:
    """Show a warning at the line of the user's code. The command prints it as `warning: ...`."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "millstream":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, MillstreamWarning, stacklevel=level)
