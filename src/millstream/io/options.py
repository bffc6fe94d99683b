"""The WITH options of a stream, a table or a sink: strings that are asked for by name and type, so that none is ignored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from millstream.errors import MillstreamError, NameProblem, Place, SourceProblem
from millstream.io.places import need_local


@dataclass(frozen=True)
class Secret:
    """The value of a secret option: no text that it is put into shows it."""

    value: str = field(repr=False)

    def __str__(self) -> str:
        return "***"


@dataclass
class Options:
    """Ask for each option, then call `done`: what nobody asked for is an unknown option."""

    owner: str  # "stream Bid", for messages
    values: Mapping[str, str]
    place: Place | None
    problem: type[MillstreamError] = SourceProblem
    asked: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    """The options that are not for users: no message lists them."""

    @classmethod
    def of(cls, owner: str, values: Mapping[str, object], place: Place | None, problem: type[MillstreamError]) -> Options:
        plain = {key if key.lower().startswith("column.") else key.lower(): str(value) for key, value in values.items()}
        return cls(owner, plain, place, problem)

    def wrong(self, message: str, hint: str | None = None) -> MillstreamError:
        return self.problem(f"{self.owner}: {message}", place=self.place, hint=hint)

    def has(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, default: str | None = None) -> str | None:
        self.asked.add(name)
        return self.values.get(name, default)

    def required(self, name: str) -> str:
        value = self.text(name)
        if value is None or not value.strip():
            raise self.wrong(f"the option `{name}` is {'missing' if value is None else 'empty'}", f"add {name} = '...' to WITH")
        return value

    def secret(self, name: str) -> Secret | None:
        """An option that the connector declares as secret."""
        value = self.text(name)
        return None if value is None else Secret(value)

    def path(self) -> str:
        """The local path that the option `path` names."""
        return need_local(self.required("path"), lambda said, hint: self.wrong(f"`path`: {said}", hint))

    def choice(self, name: str, known: Iterable[str], default: str | None = None) -> str | None:
        value = self.text(name, default)
        if value is None or value.lower() in known:
            return None if value is None else value.lower()
        raise NameProblem.unknown(name, value, known, within=self.owner, place=self.place)

    def flag(self, name: str, default: bool) -> bool:
        value = (self.text(name) or str(default)).lower()
        if value not in ("true", "false"):
            raise self.wrong(f"`{name}` is '{value}'", "write true or false")
        return value == "true"

    def integer(self, name: str, default: int | None, least: int = 0, most: int = 2**62) -> int | None:
        value = self.text(name)
        if value is None:
            return default
        try:
            number = int(value)
        except ValueError:
            raise self.wrong(f"`{name}` is '{value}', not a whole number") from None
        if not least <= number <= most:
            raise self.wrong(f"`{name}` is {number}", f"write a number from {least} to {most}")
        return number

    def number(self, name: str) -> float | None:
        """A number above zero."""
        value = self.text(name)
        if value is None:
            return None
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 < number < float("inf"):
            raise self.wrong(f"`{name}` is '{value}', not a number above 0")
        return number

    def moment(self, name: str) -> int | None:
        """A timestamp, as microseconds since the epoch."""
        value = self.text(name)
        if value is None:
            return None
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise self.wrong(f"`{name}` is '{value}', not a timestamp", "write it as 2020-01-01T00:00:00Z") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds

    def duration(self, name: str) -> int | None:
        """A length of time, in microseconds."""
        value = self.text(name)
        if value is None:
            return None
        from millstream.language.durations import UNIT_HINT, microseconds  # here: readers of files need not load the language

        parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", value, re.ASCII)
        if parts is None:
            raise self.wrong(f"`{name}` is '{value}', not a length of time", UNIT_HINT)
        try:
            return microseconds(parts[1], parts[2])
        except MillstreamError as problem:
            raise self.wrong(f"`{name}`: {problem.message}", problem.hint) from None

    def character(self, name: str, default: str, empty: bool = False) -> str:
        value = self.text(name, default) or ""
        value = {"\\t": "\t", "tab": "\t"}.get(value, value)
        if (len(value) == 1 and value.isascii() and value not in "\r\n") or (empty and not value):
            return value
        raise self.wrong(f"`{name}` is '{value}'", "write one character, such as ',' or '\\t'")

    def prefixed(self, prefix: str) -> dict[str, str]:
        found = {key: value for key, value in self.values.items() if key.lower().startswith(prefix)}
        self.asked.update(found)
        return {key[len(prefix) :]: value for key, value in found.items()}

    def done(self) -> None:
        for name in self.values:
            if name not in self.asked:
                known = sorted(self.asked - self.hidden)
                raise NameProblem.unknown("option", name, known, within=self.owner, place=self.place)
