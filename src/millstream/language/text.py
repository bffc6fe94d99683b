"""The text of a pipeline file: variables filled in, and every offset traced back to what the user wrote."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from millstream.errors import MillstreamError, NameProblem, Place, SyntaxProblem

_SPECIAL = re.compile(r"--[^\n]*|/\*|;|\$\{(?P<name>[^}\n]*)\}|\$\{|[rR]?['\"]|`")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True)
class Text:
    """The filled-in text beside the original; a stretch is (start here, start there, taken whole or filled in)."""

    filled: str
    original: str
    stretches: tuple[tuple[int, int, bool], ...]
    file: str | None = None

    def place(self, offset: int, statement: int | None = None) -> Place:
        """The line and column in the original text of an offset in the filled-in text."""
        here, there, verbatim = self.stretches[self._stretch(offset)]
        offset = there + (offset - here if verbatim else 0)
        line = bisect_right(self._lines, offset)
        return Place(line, offset - self._lines[line - 1] + 1, statement, self.file)

    def spelled(self, start: int, end: int) -> str:
        """The original of a stretch of the filled-in text: where a value was filled in, the variable."""
        first, last = self._stretch(start), self._stretch(max(start, end - 1))
        here, there, verbatim = self.stretches[first]
        begin = there + (start - here if verbatim else 0)
        here, there, verbatim = self.stretches[last]
        return self.original[begin : there + end - here if verbatim else self.stretches[last + 1][1]]

    def _stretch(self, offset: int) -> int:
        return bisect_right(self.stretches, (offset, len(self.original) + 1, True)) - 1

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.original))]


def variables_of(original: str) -> tuple[str, ...]:
    """The names of the variables in a text, in their order; in a wrong text, those before the mistake."""
    scan = _Scan(original, {}, None, default="")
    with suppress(MillstreamError):
        scan.run()
    return tuple(dict.fromkeys(scan.names))


def fill(original: str, variables: Mapping[str, str] | None = None, file: str | None = None) -> Text:
    """Fill `${name}` from the variables, then the environment; inside quotes the value is escaped, so it stays one string."""
    scan = _Scan(original, variables or {}, file)
    scan.run()
    return Text("".join(scan.parts), original, tuple(scan.stretches), file)


class _Scan:
    """One pass over the text that knows strings and comments from the rest."""

    def __init__(
        self, text: str, variables: Mapping[str, str], file: str | None, default: str | None = None
    ) -> None:
        self.text = text
        self.variables = variables
        self.default = default
        self.file = file
        self.parts: list[str] = []
        self.names: list[str] = []
        self.stretches: list[tuple[int, int, bool]] = [(0, 0, True)]
        self.length = 0
        self.copied = 0
        self.statement = 1
        self.bare = True

    def run(self) -> None:
        position = 0
        while match := _SPECIAL.search(self.text, position):
            found, start = match.group(), match.start()
            self.bare = self.bare and not self.text[position:start].strip()
            position = match.end()
            if found == ";":
                self.statement, self.bare = self.statement + (not self.bare), True
            elif found == "/*":
                position = self._after_comment(start)
            elif found.startswith("$"):
                self.bare = False
                self._variable(match, quote="")
            elif not found.startswith("--"):
                self.bare = False
                position = self._after_string(start, found)
        self._copy(len(self.text))

    def _after_comment(self, start: int) -> int:
        depth, position = 1, start + 2
        while depth:
            match = re.compile(r"/\*|\*/").search(self.text, position)
            if match is None:
                raise SyntaxProblem("a comment is never closed", place=self._place(start), hint="add */")
            depth, position = depth + (1 if match.group() == "/*" else -1), match.end()
        return position

    def _after_string(self, start: int, opening: str) -> int:
        quote, raw = opening[-1], len(opening) > 1 or opening == "`"
        inside = re.compile(r"\\.|" * (not raw) + r"\$\{(?P<name>[^}\n]*)\}|" + quote, re.DOTALL)
        position = start + len(opening)
        while match := inside.search(self.text, position):
            position = match.end()
            if match.group() == quote:
                return position
            if match.group().startswith("$") and _NAME.fullmatch(match["name"].strip()):
                self._variable(match, quote="" if raw else quote)
        kind = "a name in backticks" if quote == "`" else "a string"
        raise SyntaxProblem(f"{kind} is never closed", place=self._place(start), hint=f"add a closing {quote}")

    def _variable(self, match: re.Match[str], quote: str) -> None:
        name = (match["name"] or "").strip()
        place = self._place(match.start())
        if not _NAME.fullmatch(name):
            raise SyntaxProblem("`${` begins a variable but no name follows", place=place, hint="write ${name}")
        self.names.append(name)
        value = self.variables.get(name, os.environ.get(name, self.default))
        if value is None:
            raise NameProblem(
                f"no value for `${{{name}}}`",
                place=place,
                hint=f"add `--set {name}=value`, in Python {name}=value",
            )
        self._copy(match.start())
        if quote:
            value = value.replace("\\", "\\\\").replace(quote, f"\\{quote}")
        self.stretches.append((self.length, match.start(), False))
        self.parts.append(value)
        self.length += len(value)
        self.copied = match.end()
        self.stretches.append((self.length, self.copied, True))

    def _copy(self, end: int) -> None:
        self.parts.append(self.text[self.copied : end])
        self.length += end - self.copied
        self.copied = end

    def _place(self, offset: int) -> Place:
        return Text(self.text, self.text, ((0, 0, True),), self.file).place(offset, self.statement)
