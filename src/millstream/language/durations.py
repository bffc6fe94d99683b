"""Lengths of time as users write them, such as `5 MINUTES`, in microseconds."""

from __future__ import annotations

from decimal import Decimal
from difflib import get_close_matches

from millstream.errors import Place, SyntaxProblem

_NAMES: dict[int, tuple[str, ...]] = {
    1: ("MICROSECOND", "US", "USEC", "MICRO"),
    1_000: ("MILLISECOND", "MS", "MSEC", "MILLI"),
    1_000_000: ("SECOND", "SEC", "S"),
    60_000_000: ("MINUTE", "MIN", "M"),
    3_600_000_000: ("HOUR", "HR", "H"),
    86_400_000_000: ("DAY", "D"),
    604_800_000_000: ("WEEK", "W"),
}

UNITS: dict[str, int] = {
    spelling: size for size, names in _NAMES.items() for name in names for spelling in ((name, f"{name}S") if len(name) > 1 else (name,))
}
"""Every accepted spelling of a unit, upper case, with its length in microseconds."""

LONGEST = 2**62
"""Longer than any stream, and short enough that adding it to a timestamp stays an int64 problem of nobody's."""

NO_LIMIT = LONGEST
"""The length that AHEAD NONE stands for."""

UNIT_HINT = "write a number and a unit: MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS or WEEKS"


def microseconds(number: str, unit: str, place: Place | None = None) -> int:
    """The length in microseconds: `microseconds("1.5", "seconds") == 1_500_000`."""
    size = UNITS.get(unit.upper())
    if size is None:
        close = get_close_matches(unit.upper(), UNITS, n=1)
        said = f"`{unit}` is no unit of time" if unit else f"`{number}` has no unit of time"
        raise SyntaxProblem(said, place=place, hint=f"did you mean {close[0]}?" if close else UNIT_HINT)
    try:
        length = Decimal(number) * size
    except ArithmeticError:
        raise SyntaxProblem(f"`{number}` is no number of {unit.upper()}", place=place, hint=UNIT_HINT) from None
    if length > LONGEST:
        raise SyntaxProblem(f"{number} {unit.upper()} is longer than time itself", place=place, hint="take a smaller number")
    if length != int(length):
        raise SyntaxProblem(
            f"{number} {unit.upper()} is not a whole number of microseconds", place=place, hint="a microsecond is the smallest step of time"
        )
    return int(length)


def length(text: str) -> int:
    """The length that a text such as `10 seconds` says, in microseconds."""
    number, _, unit = text.strip().partition(" ")
    return microseconds(number, unit.strip())


def spell(length: int) -> str:
    """The shortest exact spelling: `spell(90_000_000) == "90 SECONDS"`."""
    for size in sorted(_NAMES, reverse=True):
        if length % size == 0 and length >= size:
            count = length // size
            return f"{count} {_NAMES[size][0]}{'' if count == 1 else 'S'}"
    return "0 SECONDS"
