"""Reads what a stream promises of values: PUNCTUATE ON, UNIQUE, CLUSTERED BY and CHECK."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from millstream.core.types import is_hidden
from millstream.errors import NameProblem, Place, SyntaxProblem
from millstream.language.places import mark, place_of
from millstream.language.problems import unexpected
from millstream.language.query_parser import QueryParser
from millstream.language.statements import Check, Column, Key, Members, Punctuate, Span

Promise = Punctuate | Key | Check
FORMS = "`k IN (...)`, `k BETWEEN a AND b`, `k = a`, or `k` with <, <=, > or >= and a value"


class PromiseParser(QueryParser):
    """The clauses that promise something of values, and the small parts that statements share."""

    def need(self, word: str) -> None:
        if not self._match_text_seq(word):
            raise unexpected(self.found(), self.place(), word)

    def need_token(self, kind: TokenType, shown: str) -> None:
        if not self._match(kind):
            raise unexpected(self.found(), self.place(), shown)

    def at_word(self) -> bool:
        """True before a name or keyword, quoted by backticks or not."""
        token = self._curr
        if token.token_type == TokenType.IDENTIFIER:
            return True
        return bool(token) and token.token_type != TokenType.STRING and token.text.isidentifier()

    def name(self, what: str) -> str:
        if not self.at_word():
            raise unexpected(self.found(), self.place(), f"the name of the {what}")
        place = self.place()
        self._advance()
        text = self._prev.text
        if is_hidden(text):
            raise NameProblem.reserved(text, place)
        if self._curr.token_type == TokenType.DOT:
            raise SyntaxProblem(f"the name of a {what} has one part", place=self.place(), hint="put it in backticks to have a dot in it")
        return text

    def promise(self, place: Place) -> tuple[Promise, list[Place]] | None:
        """One clause and the places of its columns, or None when another word stands here."""
        if self._match_text_seq("PUNCTUATE"):
            return self._punctuate(place)
        if self._match_text_seq("UNIQUE"):
            columns, places = self._listed("the columns of the key")
            return Key(columns, place, self._horizon()), places
        if self._match_text_seq("CLUSTERED"):
            self.need("BY")
            columns, places = self._listed("the columns of the clusters")
            return Key(columns, place, self._horizon()), places
        if self._match_text_seq("CHECK"):
            self.need_token(TokenType.L_PAREN, "( and a condition")
            condition = self._condition()
            column, values = _values(condition, "CHECK", place)
            self.need_token(TokenType.R_PAREN, ")")
            return Check(column, values, condition, place), [place_of(condition.this) or place]
        return None

    def _listed(self, what: str) -> tuple[tuple[str, ...], list[Place]]:
        """`(auction, bidder)`."""
        self.need_token(TokenType.L_PAREN, f"( and {what}")
        places, columns = [self.place()], [self.name("column")]
        while self._match(TokenType.COMMA):
            places.append(self.place())
            columns.append(self.name("column"))
            if columns[-1].lower() in [column.lower() for column in columns[:-1]]:
                raise SyntaxProblem(f"`{columns[-1]}` stands twice", place=places[-1], hint="leave one out")
        self.need_token(TokenType.R_PAREN, ", or )")
        return tuple(columns), places

    def _punctuate(self, place: Place) -> tuple[Punctuate, list[Place]]:
        self.need("ON")
        after = [token.token_type for token in self._tokens[self._index + 2 : self._index + 3]]
        on: exp.Expr | None = None
        columns: tuple[str, ...]
        values: Span | Members | None
        if after and after[0] not in (TokenType.COMMA, TokenType.R_PAREN) and self._match(TokenType.L_PAREN):
            on = self._condition()
            column, values = _values(on, "PUNCTUATE ON", place)
            columns, places = (column,), [place_of(on.this) or place]
            if self._match(TokenType.COMMA):
                raise SyntaxProblem("a condition stands alone in PUNCTUATE ON", place=self.place(self._prev), hint="write one for each")
            self.need_token(TokenType.R_PAREN, ")")
        else:
            (columns, places), values = self._listed("the columns of the promise"), None
        self.need("WHEN")
        return Punctuate(columns, self._condition(), place, values, on, self._horizon()), places

    def _horizon(self) -> int | None:
        """`FOR 7 DAYS`."""
        return self.duration() if self._match_text_seq("FOR") else None

    def _condition(self) -> exp.Expr:
        condition: Any = self._parse_disjunction()
        if condition is None:
            raise unexpected(self.found(), self.place(), "a condition")
        mark(condition, self.statement or 1, self.file)
        return condition  # type: ignore[no-any-return]


def _values(condition: exp.Expr, clause: str, place: Place) -> tuple[str, Span | Members]:
    """The column that a condition speaks of, and the values for which it holds."""
    column = condition.args.get("this")
    one: Any = condition.args.get("expression")
    values: Span | Members | None = None
    match condition:
        case exp.In() if condition.expressions:
            values = Members(tuple(condition.expressions))
        case exp.EQ():
            values = Members((one,))
        case exp.Between():
            values = Span(condition.args["low"], condition.args["high"])
        case exp.LT() | exp.LTE():
            values = Span(high=one, high_inclusive=isinstance(condition, exp.LTE))
        case exp.GT() | exp.GTE():
            values = Span(low=one, low_inclusive=isinstance(condition, exp.GTE))
    if values is None or not isinstance(column, exp.Column):
        text = condition.sql("spark").replace("`", "")
        where = place_of(condition) or place
        raise SyntaxProblem(f"{clause} can not promise `{text}`", place=where, hint=f"it takes one column, on the left: {FORMS}")
    return column.name, values


def find(name: str, columns: tuple[Column, ...]) -> Column | None:
    return next((column for column in columns if column.name.lower() == name.lower()), None)


def spelled(kind: str, clause: Promise, places: list[Place], columns: tuple[Column, ...], time: str | None) -> Promise:
    """The clause with its columns spelled as they are declared; unknown ones are refused, and time where it has promises of its own."""
    within = {"PUNCTUATE": "PUNCTUATE ON", "CLUSTERED": "CLUSTERED BY"}.get(kind, kind)
    names = (clause.column,) if isinstance(clause, Check) else clause.columns
    found = tuple(_known(name, columns, within, place) for name, place in zip(names, places, strict=True))
    if time in found and (kind in ("CLUSTERED", "CHECK") or (isinstance(clause, Punctuate) and clause.values is not None)):
        hint = f"write TIMESTAMP BY {time} with ORDERED or SLACK, or PUNCTUATE ON ({time})"
        raise SyntaxProblem(f"{within} says nothing of the timestamp `{time}`", place=clause.place, hint=hint)
    if isinstance(clause, Check):
        if others := _columns(clause.values):
            raise SyntaxProblem(
                "CHECK compares with values, not with columns", place=place_of(others[0]) or clause.place, hint=f"it takes {FORMS}"
            )
        return replace(clause, column=found[0])
    if clause.horizon is not None:
        _refuse_horizon(kind, clause, time, found)
    if isinstance(clause, Punctuate):
        for column in [*clause.when.find_all(exp.Column), *_columns(clause.values)]:
            _known(column.name, columns, within, place_of(column) or clause.place)
    return replace(clause, columns=found)


def _refuse_horizon(kind: str, clause: Punctuate | Key, time: str | None, columns: tuple[str, ...]) -> None:
    """FOR is about values that are remembered one by one, each with the time of its promise."""
    said = None
    if kind == "CLUSTERED":
        said = "of clusters only the last is checked by time"
    elif isinstance(clause, Punctuate) and isinstance(clause.values, Span):
        said = "ranges merge, and need no end"
    elif time in columns:
        said = f"a promise about `{time}` has its end in itself"
    if said is not None:
        raise SyntaxProblem(f"FOR has no meaning here: {said}", place=clause.place, hint="leave FOR out")


def _known(name: str, columns: tuple[Column, ...], within: str, place: Place) -> str:
    column = find(name, columns)
    if column is None:
        raise NameProblem.unknown("column", name, [column.name for column in columns], within=within, place=place)
    return column.name


def _columns(values: Span | Members | None) -> list[exp.Column]:
    parts = () if values is None else values.values if isinstance(values, Members) else (values.low, values.high)
    return [column for part in parts if part is not None for column in part.find_all(exp.Column)]
