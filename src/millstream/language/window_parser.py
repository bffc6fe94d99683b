"""Reads stream windows and durations inside sqlglot's Spark parser."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import Token, TokenType

from millstream.errors import Place, SyntaxProblem
from millstream.language.durations import LONGEST, UNIT_HINT, UNITS, microseconds
from millstream.language.foreign import durations_in, in_brackets
from millstream.language.problems import WINDOW_HINT
from millstream.language.window import StreamWindow

_NEVER_ALIASES = {TokenType.SET, TokenType.COMMAND, TokenType.DESCRIBE}
KINDS = ("range", "rows", "now")

_CLAUSES = ("WITH", "ETS", "UNIQUE", "CLUSTERED", "CHECK", "PUNCTUATE", "TIMESTAMP", "AHEAD", "SKEW")
_AFTER_A_DURATION = (*_CLAUSES, "SLIDE", "WA", "RANGE")

PARTS_HINT = "the parts are RANGE, ROWS, NOW, SLIDE and WA, then `]`"

OPENING = TokenType.DOTCARET
"""The type given to the `[` of a window: one that Spark SQL has no use for, so that sqlglot takes no window for an index."""


def mark_windows(tokens: list[Token]) -> None:
    """Tell `[RANGE`, `[ROWS`, `[NOW`, `[SLIDE` and `[WA column` from a bracket that is an index into an array."""
    ahead = [*tokens, Token(TokenType.SENTINEL, ""), Token(TokenType.SENTINEL, "")]
    for bracket, word, after in zip(tokens, ahead[1:], ahead[2:], strict=False):
        if bracket.token_type != TokenType.L_BRACKET or word.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        if word.text.upper() in ("RANGE", "ROWS", "NOW", "SLIDE"):
            windowed = after.token_type not in (TokenType.DOT, TokenType.L_PAREN)
        else:
            windowed = word.text.upper() == "WA" and after.token_type not in (TokenType.R_BRACKET, TokenType.DOT)
        if windowed:
            bracket.token_type = OPENING


class WindowParser(SparkParser):
    """sqlglot's Spark parser, which knows places in the text and leaves `[RANGE ...]` to us."""

    TABLE_ALIAS_TOKENS = SparkParser.TABLE_ALIAS_TOKENS - _NEVER_ALIASES
    ALIAS_TOKENS = SparkParser.ALIAS_TOKENS - _NEVER_ALIASES

    statement: int | None = None
    file: str | None = None
    spelled: Callable[[int, int], str] | None = None
    """The user's spelling of a stretch of the text, where variables were filled in."""

    def place(self, token: Token | None = None) -> Place:
        """The place of a token, by default of the next one, or just after the last one at the end."""
        token = token or self._curr
        if token:
            return Place(token.line, token.col, self.statement, self.file)
        last = self._prev or Token.string("")
        return Place(last.line, last.col + max(1, last.end - last.start + 1), self.statement, self.file)

    def found(self) -> str | None:
        """The next token as the user wrote it, None at the end."""
        return self._spelled(self._curr) if self._curr else None

    def _spelled(self, token: Token) -> str:
        """A variable stands for its value, which may be a secret."""
        return (
            self.spelled(token.start, token.end + 1)
            if self.spelled is not None
            else self._find_sql(token, token)
        )

    def raise_error(self, message: str, token: Any = None) -> None:
        token = token or self._curr
        place = self.place(token)
        found = self._spelled(token) if token else None
        raise ParseError.new(message, description=message, line=place.line, col=place.column, highlight=found)

    def _parse_command(self) -> NoReturn:
        self.raise_error("Invalid expression", self._prev)
        raise AssertionError

    def _parse_as_command(self, start: Token) -> NoReturn:
        self.raise_error("Invalid expression", start)
        raise AssertionError

    def _warn_unsupported(self) -> None:
        self.raise_error("Invalid expression")

    def _parse_stream(self) -> None:
        return None

    def _at_window(self) -> bool:
        return self._curr.token_type == OPENING

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if isinstance(this, exp.Table) and self._curr.token_type == TokenType.L_BRACKET:
            rest = self._tokens[self._index + 1 :]
            window = in_brackets(list(takewhile(lambda token: token.token_type != TokenType.R_BRACKET, rest)))
            hint = f"write {this.name} {window}: {WINDOW_HINT}" if window else WINDOW_HINT
            raise SyntaxProblem(f"`{self._next.text or '['}` begins no window", place=self.place(), hint=hint)
        return super()._parse_bracket(this)

    def _parse_stream_window(self) -> StreamWindow | None:
        """`[RANGE 1 MINUTE, SLIDE 30 SECONDS, WA ts]`: the parts in any order, commas optional."""
        if not self._at_window():
            return None
        opening = self._curr
        self._advance()
        parts: dict[str, Any] = {}
        while not self._match(TokenType.R_BRACKET):
            word = self._curr
            key, value = self._parse_window_part()
            if key in parts or (key in KINDS and parts.keys() & set(KINDS)):
                raise SyntaxProblem(
                    f"{word.text.upper()} is one too many",
                    place=self.place(word),
                    hint="a window has one length, RANGE, ROWS or NOW, and at most one SLIDE and WA",
                )
            parts[key] = (value, word)
            self._match(TokenType.COMMA)
        return self._build_window(opening, parts)

    def _window_place(self, window: StreamWindow) -> Place:
        return Place(window.meta["line"], window.meta["col"], self.statement, self.file)

    def _parse_window_part(self) -> tuple[str, Any]:
        if self._match_text_seq("RANGE"):
            return "range", self.duration()
        if self._match_text_seq("ROWS"):
            return "rows", self._parse_count()
        if self._match_text_seq("NOW"):
            return "now", 0
        if self._match_text_seq("SLIDE"):
            counted = self._curr.token_type == TokenType.NUMBER and self._next.text.upper() not in UNITS
            return "slide", (self._parse_count() if counted else self.duration(), counted)
        if self._match_text_seq("WA"):
            return "attribute", self._parse_attribute()
        found = f"`{self.found()}`" if self._curr else "the end of the statement"
        raise SyntaxProblem(f"{found} is no part of a window", place=self.place(), hint=PARTS_HINT)

    def _build_window(self, opening: Token, parts: dict[str, Any]) -> StreamWindow:
        kind = next((key for key in KINDS if key in parts), None)
        if kind is None:
            raise SyntaxProblem("the window has no length", place=self.place(opening), hint="add RANGE <duration>, ROWS <number> or NOW")
        length, word = parts[kind]
        if kind == "rows" and length == 0:
            raise SyntaxProblem("a window of 0 rows is always empty", place=self.place(word), hint="write ROWS 1 or more")
        slide = None
        if "slide" in parts:
            (slide, counted), word = parts["slide"]
            if kind == "now" or counted != (kind == "rows"):
                hint = "NOW does not slide" if kind == "now" else "with RANGE it is a duration, with ROWS a number"
                raise SyntaxProblem(f"SLIDE does not fit {kind.upper()}", place=self.place(word), hint=hint)
            if slide == 0:
                raise SyntaxProblem("a window can not slide by 0", place=self.place(word), hint="leave SLIDE out or make it longer")
        attribute = parts["attribute"][0] if "attribute" in parts else None
        window = StreamWindow(kind=kind, range=length, slide=slide, attribute=attribute)
        window.update_positions(opening)
        return window

    def _parse_attribute(self) -> exp.Column:
        names = [self._parse_id_var(any_token=True)]
        while self._match(TokenType.DOT):
            names.append(self._parse_id_var(any_token=True))
        if not all(names) or len(names) > 2 or not isinstance(names[-1], exp.Identifier):
            raise SyntaxProblem("WA needs the name of a column", place=self.place(), hint="write WA ts or WA stream.ts")
        return exp.Column(this=names[-1], table=names[0] if len(names) == 2 else None)

    def _parse_count(self) -> int:
        number = self._curr
        if self._match(TokenType.DASH) or not self._match(TokenType.NUMBER) or not number.text.isdigit():
            raise SyntaxProblem("a number of rows is missing", place=self.place(number), hint="write a whole number, such as ROWS 100")
        count = int(number.text)
        if count > LONGEST:
            hint = "take a smaller number"
            raise SyntaxProblem(
                f"{count} rows are more than any stream has", place=self.place(number), hint=hint
            )
        return count

    def duration(self) -> int:
        """A number and a unit of time, in microseconds."""
        first = self._curr
        if self._match(TokenType.DASH):
            raise SyntaxProblem("a duration can not be negative", place=self.place(first), hint=UNIT_HINT)
        if not self._match(TokenType.NUMBER):
            if first.text.upper() == "INTERVAL" or first.token_type == TokenType.STRING:
                length = next(durations_in(self._tokens[self._index : self._index + 3]), None)
                hint = f"write {length}" if length else UNIT_HINT
                said = "a duration stands here without INTERVAL and quotes"
                raise SyntaxProblem(said, place=self.place(), hint=hint)
            digits = first.text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
            if first.token_type == TokenType.VAR and digits and first.text[len(digits) :].upper() in UNITS:
                self._advance()
                return microseconds(digits, first.text[len(digits) :], self.place(first))
            raise SyntaxProblem("a duration is missing here", place=self.place(), hint=UNIT_HINT)
        written = self._find_sql(first, first)
        if written[-1:].isalpha():  # sqlglot reads Spark's 5s, a SMALLINT, as the three tokens 5 :: SMALLINT
            self._advance(2)
            return microseconds(first.text, written[len(first.text) :], self.place(first))
        unit = self._curr
        named = unit and (unit.text[:1].isalpha() or unit.text.isidentifier())
        if not named or unit.token_type == TokenType.STRING or unit.text.upper() in _AFTER_A_DURATION:
            raise SyntaxProblem(f"`{first.text}` has no unit of time", place=self.place(first), hint=UNIT_HINT)
        self._advance()
        return microseconds(first.text, unit.text, self.place(unit))
