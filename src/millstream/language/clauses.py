"""Reads what CREATE statements are made of: names, columns, options and the clauses of a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from millstream.core.types import TIMESTAMP, type_name
from millstream.errors import NameProblem, Place, SyntaxProblem, TypeProblem
from millstream.language.durations import NO_LIMIT
from millstream.language.problems import unexpected
from millstream.language.promises import Promise, PromiseParser, find, spelled
from millstream.language.statements import Column, Ets, Timestamp, Written
from millstream.language.types import arrow_type, unknown_type

_CLAUSES = "a clause of the stream: TIMESTAMP, PUNCTUATE ON, UNIQUE, CLUSTERED BY, CHECK, ETS or WITH"


class ClauseParser(PromiseParser):
    """The parts that statements share."""

    def dotted_name(self) -> str:
        """`execution.batch`, in lower case."""
        parts = []
        while True:
            if not self.at_word() and self._curr.token_type != TokenType.STRING:
                raise unexpected(self.found(), self.place(), "the name of an option")
            parts.append(self._curr.text.lower())
            self._advance()
            if not self._match(TokenType.DOT):
                return ".".join(parts)

    def value(self) -> tuple[str, Token]:
        """A string, number, true, false or bare word, as text and as the token that tells which."""
        start = self._curr
        minus = "-" if self._match(TokenType.DASH) else ""
        token = self._curr
        if token.token_type == TokenType.NUMBER or (not minus and token.token_type in (TokenType.STRING, TokenType.RAW_STRING)):
            self._advance()
            return minus + token.text, token
        if minus or not self.at_word():
            raise unexpected(self.found(), self.place(), "a value: 'text', a number, true or false")
        self._advance()
        if self._curr.token_type in (TokenType.DASH, TokenType.DOT, TokenType.SLASH, TokenType.COLON):
            shown = f"'{self._spelled(start)}{self._spelled(self._curr)}...'"
            raise unexpected(self.found(), self.place(), f"the value in quotes, such as {shown}")
        return token.text.lower() if token.token_type in (TokenType.TRUE, TokenType.FALSE) else token.text, token

    def type(self) -> pa.DataType:
        place, found = self.place(), self.found()
        if not self.at_word():
            raise unexpected(found, place, "a type")
        begin = self._index
        kind = self._parse_types(schema=True)
        if any(token.text.upper() == "WITHOUT" for token in self._tokens[begin : self._index]):
            kind = exp.DataType(this=exp.DType.TIMESTAMPNTZ)  # sqlglot passes over WITHOUT TIME ZONE
        if not isinstance(kind, exp.DataType):
            raise unknown_type(found or "", place)
        return arrow_type(kind, place)

    def columns(self) -> tuple[Column, ...]:
        """`(auction BIGINT, ts TIMESTAMP)`; names differ in more than their case."""
        self.need_token(TokenType.L_PAREN, "( and the columns")
        columns: list[Column] = []
        while True:
            place = self.place()
            if self._next.token_type == TokenType.L_PAREN:
                self._refuse_constraint("")
            name = self.name("column")
            if any(name.lower() == column.name.lower() for column in columns):
                raise NameProblem(f"two columns are called `{name}`", place=place, hint="rename one; case makes no difference")
            columns.append(Column(name, self.type(), place))
            if self._match(TokenType.R_PAREN):
                return tuple(columns)
            self._refuse_constraint(name)
            self.need_token(TokenType.COMMA, ", or ) after the type")

    def _refuse_constraint(self, column: str) -> None:
        """Raise for constraints of other dialects, behind the type of a column or in place of a column."""
        word = " ".join(self._curr.text.upper().split())
        if word in ("NOT", "NULL"):
            raise SyntaxProblem("each column may be null", place=self.place(), hint="leave NOT NULL out")
        if word in ("PRIMARY KEY", "UNIQUE"):
            hint = f"write UNIQUE ({column or '...'}) there, if no value comes twice"
            raise SyntaxProblem("a key stands behind the columns", place=self.place(), hint=hint)

    def with_options(self, required: bool = False) -> dict[str, str]:
        """`WITH (connector = 'file', port = 9009)`: lower-case keys, values as text."""
        if not self._match(TokenType.WITH):
            if required:
                raise unexpected(self.found(), self.place(), "WITH (name = value, ...)")
            return {}
        self.need_token(TokenType.L_PAREN, "( and the options")
        options: dict[str, str] = {}
        while True:
            place = self.place()
            name = self.dotted_name()
            if name in options:
                raise SyntaxProblem(f"the option `{name}` is set twice", place=place, hint="leave one out")
            self.need_token(TokenType.EQ, "= and a value")
            start = self._curr.start
            value, token = self.value()
            options[name] = Written.at(value, start, token.end + 1)
            if self._match(TokenType.R_PAREN):
                return options
            self.need_token(TokenType.COMMA, ", or ) after the value")

    def stream_clauses(self, columns: tuple[Column, ...]) -> dict[str, Any]:
        """The clauses after the columns, in any order; each at most once, but those that promise something of values."""
        seen: dict[str, Any] = {}
        promises: list[tuple[str, Promise, list[Place]]] = []
        while self._curr:
            start, word = self._curr, self._curr.text.upper()
            if word in seen:
                raise SyntaxProblem(f"a stream has one {word} clause", place=self.place(), hint="leave one out")
            if word == "WITH":
                seen[word] = self.with_options()
            elif self._match_text_seq("TIMESTAMP"):
                seen[word], columns = self._timestamp(columns, self.place(start))
            elif (promise := self.promise(self.place(start))) is not None:
                promises.append((word, *promise))
            elif self._match_text_seq("ETS"):
                seen[word] = self._ets()
            else:
                raise unexpected(self.found(), self.place(), None if word in ("CREATE", "INSERT", "SET", "EXPLAIN") else _CLAUSES)
        timestamp = seen.get("TIMESTAMP", Timestamp("latent"))
        found = [(word, spelled(word, promise, places, columns, timestamp.column)) for word, promise, places in promises]
        return {
            "columns": columns,
            "timestamp": timestamp,
            "punctuate": tuple(p for word, p in found if word == "PUNCTUATE"),
            "unique": tuple(p for word, p in found if word == "UNIQUE"),
            "clustered": tuple(p for word, p in found if word == "CLUSTERED"),
            "checks": tuple(p for word, p in found if word == "CHECK"),
            "ets": seen.get("ETS", Ets()),
            "options": seen.get("WITH", {}),
        }

    def _timestamp(self, columns: tuple[Column, ...], start: Place) -> tuple[Timestamp, tuple[Column, ...]]:
        if self._match_text_seq("LATENT"):
            return Timestamp("latent"), columns
        if self._match_text_seq("INTERNAL"):
            self.need("AS")
            place = self.place()
            name = self.name("column")
            column = find(name, columns)
            if column is None:
                column = Column(name, TIMESTAMP, place)
                columns = (*columns, column)
            return Timestamp("internal", _typed(column, place).name), columns
        if not self._match_text_seq("BY"):
            raise unexpected(self.found(), self.place(), "TIMESTAMP BY <column>, TIMESTAMP INTERNAL AS <column> or TIMESTAMP LATENT")
        place = self.place()
        name = self.name("column")
        column = find(name, columns)
        if column is None:
            raise NameProblem.unknown("column", name, [column.name for column in columns], place=place)
        name = _typed(column, place).name
        made = Timestamp("external", name, "punctuated")
        if self._match_text_seq("ORDERED"):
            made = Timestamp("external", name, "ordered")
        elif self._match_text_seq("SLACK"):
            made = Timestamp("external", name, "slack", self.duration())
        return replace(made, ahead=self._ahead()), columns

    def _ahead(self) -> int | None:
        if not self._match_text_seq("AHEAD"):
            return None
        return NO_LIMIT if self._match_text_seq("NONE") else self.duration()

    def _ets(self) -> Ets:
        if self._match_text_seq("NONE"):
            return Ets("none")
        if self._match_text_seq("ON", "DEMAND"):
            return Ets("on-demand", None, self._skew())
        if self._match_text_seq("EVERY"):
            place = self.place()
            period = self.duration()
            if period == 0:
                raise SyntaxProblem("ETS EVERY needs a period above 0", place=place, hint="or write ETS ON DEMAND")
            return Ets("every", period, self._skew())
        raise unexpected(self.found(), self.place(), "ETS ON DEMAND, ETS EVERY <duration> or ETS NONE")

    def _skew(self) -> int | None:
        return self.duration() if self._match_text_seq("SKEW") else None


def _typed(column: Column, place: Place) -> Column:
    if column.type != TIMESTAMP:
        said = f"`{column.name}` is no TIMESTAMP but {type_name(column.type)}"
        raise TypeProblem(said, place=place, hint=f"declare `{column.name} TIMESTAMP`, in Python by schema=")
    return column
