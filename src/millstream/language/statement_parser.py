"""Reads the statements of a pipeline file: their heads here, their clauses in `clauses`, their queries in `query_parser`."""

from __future__ import annotations

from typing import Any, Literal, cast

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from millstream.errors import Place, SyntaxProblem, UnsupportedProblem
from millstream.language.clauses import ClauseParser
from millstream.language.places import mark
from millstream.language.problems import unexpected, unknown_statement
from millstream.language.statements import (
    CreateAggregate,
    CreateSink,
    CreateStream,
    CreateTable,
    CreateView,
    DropQuery,
    Explain,
    Insert,
    SetOption,
    Statement,
)
from millstream.language.window_parser import mark_windows

_QUERY_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN, TokenType.VALUES)
_HOLDERS = (TokenType.PLACEHOLDER, TokenType.PARAMETER, TokenType.COLON, TokenType.L_BRACE)
_FORMS = ("LOGICAL", "GRAPH", "SPARK")


class StatementParser(ClauseParser):
    """One statement at a time: `begin`, then `read_statement`, `read_query` or `read_expression`, which must use up the tokens."""

    def begin(self, tokens: list[Token], sql: str, statement: int | None, file: str | None) -> None:
        self.reset()
        mark_windows(tokens)
        self.sql = sql
        self.statement, self.file = statement, file
        self._chunks = [tokens]
        self._advance_chunk()

    def read_statement(self) -> Statement:
        place = self.place()
        first = self._curr.text.upper()
        if self._match(TokenType.CREATE):
            statement = self._create()
        elif self._match_text_seq("INSERT"):
            statement = self._insert()
        elif self._match_text_seq("DROP", "QUERY"):
            statement = DropQuery(self.name("sink"), place)
        elif self._match_text_seq("EXPLAIN"):
            statement = self._explain()
        elif self._match_text_seq("SET"):
            statement = SetOption(self.dotted_name(), self._set_value(), place)
        elif first == "WITH" and any(token.text.upper() == "INSERT" for token in self._tokens):
            raise self._with_before_insert(place)
        elif first in ("SELECT", "WITH", "FROM", "("):
            raise SyntaxProblem("the answer of this query goes nowhere", place=place, hint="put INSERT INTO <sink> before it")
        else:
            raise unknown_statement([token.text for token in self._tokens[:2]], place)
        self.finish()
        return statement

    def read_query(self) -> exp.Query:
        query = self.query()
        self.finish()
        return query

    def read_expression(self) -> exp.Expr:
        expression = self._parse_expression()
        if expression is None:
            raise unexpected(self.found(), self.place(), "an expression")
        self.finish()
        return cast(exp.Expr, self._checked(expression))

    def finish(self) -> None:
        if self._curr:
            raise unexpected(self.found(), self.place())

    def query(self) -> exp.Query:
        """A SELECT or a union of them, to the end of the statement."""
        place = self.place()
        query: Any = self._parse_query_modifiers(self._parse_set_operations(self._parse_select(nested=True)))
        if not isinstance(query, exp.Query):
            raise SyntaxProblem("a query is missing", place=place, hint="write SELECT ... FROM ...")
        return cast(exp.Query, self._checked(query))

    def _checked(self, tree: Any) -> Any:
        mark(tree, self.statement or 1, self.file)
        if holder := tree.find(exp.Placeholder, exp.Parameter):
            token = next((token for token in self._tokens if token.token_type in _HOLDERS), self._tokens[0])
            raise SyntaxProblem(
                f"`{holder.sql(dialect='spark')}` is a placeholder",
                place=self.place(token),
                hint="write ${name} and `--set name=value`",
            )
        return tree

    def _with_before_insert(self, place: Place) -> SyntaxProblem:
        """`WITH x AS (SELECT ...) INSERT INTO Out SELECT ... FROM x`."""
        name = self._next.text if self._next.text.isidentifier() else "x"
        hint = f"write CREATE VIEW {name} AS SELECT ...; and INSERT INTO <sink> SELECT ... FROM {name}"
        return SyntaxProblem("WITH is not supported, use CREATE VIEW", place=place, hint=hint)

    def _create(self) -> Statement:
        start = self._prev
        place = self.place(start)
        replace = bool(self._match_text_seq("OR", "REPLACE"))
        kind = self._curr.text.upper() if self._curr else ""
        if [token.text.upper() for token in self._tokens[self._index + 1 : self._index + 3]] == ["IF", "NOT"]:
            hint = f"write CREATE OR REPLACE {kind}"
            raise SyntaxProblem("IF NOT EXISTS is no clause here", place=self.place(self._next), hint=hint)
        if self._match_text_seq("STREAM"):
            name = self.name("stream")
            self._refuse_query(name)
            columns = self.columns()
            clauses = self.stream_clauses(columns)
            return CreateStream(name, place=place, replace=replace, **clauses)
        if self._match_text_seq("TABLE"):
            name = self.name("table")
            self._refuse_query(name)
            return CreateTable(name, self.columns(), self.with_options(required=True), place, replace)
        if self._match_text_seq("SINK"):
            name = self.name("sink")
            if self._curr and self._curr.token_type == TokenType.L_PAREN:
                hint = "leave them out; the query names and orders them in its select list"
                raise SyntaxProblem("a sink takes the columns of its query", place=self.place(), hint=hint)
            return CreateSink(name, self.with_options(required=True), place, replace)
        if self._match_text_seq("VIEW"):
            name = self.name("view")
            self.need("AS")
            return CreateView(name, self.query(), place, replace)
        if self._match_text_seq("AGGREGATE"):
            return self._create_aggregate(place)
        if self._match_text_seq("FUNCTION") or self._match_text_seq("TEMPORARY", "FUNCTION"):
            hint = "write the expression in a view"
            raise UnsupportedProblem("CREATE FUNCTION is not supported yet", place=place, hint=hint)
        raise unknown_statement([start.text, *([self._curr.text] if self._curr else [])], place)

    def _refuse_query(self, name: str) -> None:
        """`CREATE STREAM x AS SELECT`."""
        if self._curr and self._curr.text.upper() == "AS":
            hint = f"write CREATE VIEW {name} AS SELECT ..."
            raise SyntaxProblem("a query makes a view", place=self.place(), hint=hint)

    def _create_aggregate(self, place: Any) -> CreateAggregate:
        name = self.name("aggregate")
        parameters = self.columns()
        self.need("RETURNS")
        returns = self.type()
        self.need("LANGUAGE")
        language = self.name("language").lower()
        self.need("AS")
        body = self._curr
        if not self._match(TokenType.STRING):
            raise unexpected(self.found(), self.place(), "the aggregate in quotes, such as 'my_module:MyClass'")
        return CreateAggregate(name, parameters, returns, language, body.text, place)

    def _insert(self) -> Insert:
        place = self.place(self._prev)
        self.need("INTO")
        named = self.place()
        sink = self.name("sink")
        if self._curr.token_type == TokenType.L_PAREN and self._next.token_type not in _QUERY_STARTS:
            raise SyntaxProblem("a sink takes the columns of the query", place=self.place(), hint="name and order them in the select list")
        return Insert(sink, self.query(), place, named)

    def _explain(self) -> Explain:
        place = self.place(self._prev)
        form = "logical"
        if self._match_texts(_FORMS):
            form = self._prev.text.lower()
        typed = cast(Literal["logical", "graph", "spark"], form)
        if self._match_text_seq("INSERT"):
            return Explain(typed, self._insert(), place)
        if self._curr.token_type not in _QUERY_STARTS:
            raise unexpected(self.found(), self.place(), f"one of {', '.join(_FORMS)}, or a query")
        return Explain(typed, self.query(), place)

    def _set_value(self) -> str | int | float | bool:
        if not self._match(TokenType.EQ):
            raise unexpected(self.found(), self.place(), "= and a value")
        value, token = self.value()
        if token.token_type in (TokenType.TRUE, TokenType.FALSE):
            return value == "true"
        if token.token_type == TokenType.NUMBER:
            return int(value) if value.lstrip("-").isdigit() else float(value)
        return value
