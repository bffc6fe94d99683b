"""From the text of a pipeline file to a list of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Token, TokenType

from millstream.errors import Place, SyntaxProblem
from millstream.language.dialect import Millstream
from millstream.language.foreign import refuse_foreign
from millstream.language.places import place_of, text_of, written
from millstream.language.problems import from_sqlglot
from millstream.language.statement_parser import StatementParser
from millstream.language.statements import (
    Column,
    CreateAggregate,
    CreateSink,
    CreateStream,
    CreateTable,
    CreateView,
    Ets,
    Explain,
    Insert,
    Punctuate,
    SetOption,
    Statement,
    Timestamp,
    Written,
)
from millstream.language.text import Text, fill, variables_of
from millstream.language.window import StreamWindow, window_of

__all__ = [
    "Column",
    "CreateAggregate",
    "CreateSink",
    "CreateStream",
    "CreateTable",
    "CreateView",
    "Ets",
    "Explain",
    "Insert",
    "Millstream",
    "Punctuate",
    "SetOption",
    "Statement",
    "StreamWindow",
    "Timestamp",
    "parse",
    "parse_expression",
    "parse_query",
    "place_of",
    "settled",
    "text_of",
    "variables_of",
    "window_of",
    "written",
]

_Read = TypeVar("_Read")


def parse(text: str, *, variables: Mapping[str, str] | None = None, file: str | None = None) -> list[Statement]:
    """The statements of a pipeline file, `${name}` filled in; any mistake is a MillstreamError with its place."""
    source = fill(text, variables, file)
    return [_read(StatementParser.read_statement, tokens, source, number) for number, tokens in enumerate(_split(_tokens(source)), start=1)]


def settled(
    text: str,
    variables: Mapping[str, str],
    file: str | None,
    secrets: Callable[[Mapping[str, str]], Set[str]],
) -> tuple[str, tuple[str, ...]]:
    """The text with variables filled in, but for those in the options that `secrets` names; and their names.

    A secret option whose value is written out is refused.
    """
    source = fill(text, variables, file)
    kept: list[tuple[int, int]] = []
    for statement in parse(text, variables=variables, file=file):
        options: Mapping[str, str] = getattr(statement, "options", {})
        for name in sorted(secrets(options) & options.keys()):
            value = options[name]
            assert isinstance(value, Written)
            if not variables_of(source.spelled(value.start, value.end)):
                hint = f"write {name} = '${{NAME}}' and set NAME in the environment"
                raise SyntaxProblem(
                    f"the option `{name}` is secret and written out",
                    place=source.place(value.start),
                    hint=hint,
                )
            kept.append((value.start, value.end))
    parts: list[str] = []
    names: list[str] = []
    done = 0
    for start, end in sorted(kept):
        spelled = source.spelled(start, end)
        parts += [source.filled[done:start], spelled]
        names += variables_of(spelled)
        done = end
    return "".join([*parts, source.filled[done:]]), tuple(names)


def parse_query(text: str) -> exp.Query:
    """One SELECT, or a union of them, without INSERT INTO."""
    return _single(StatementParser.read_query, text)


def parse_expression(text: str) -> exp.Expr:
    """One scalar expression, such as `price > 100` or `price * 2 AS double_price`."""
    return _single(StatementParser.read_expression, text)


def _single(read: Callable[[StatementParser], _Read], text: str) -> _Read:
    source = fill(text)
    chunks = list(_split(_tokens(source)))
    if len(chunks) != 1:
        place = source.place(chunks[1][0].start) if chunks else Place(1, 1)
        raise SyntaxProblem("one query or expression is expected, not " + ("more" if chunks else "none"), place=place)
    return _read(read, chunks[0], source, None)


def _tokens(source: Text) -> list[Token]:
    """All tokens, with line and column of their first character in the original text (sqlglot has those of the last)."""
    try:
        tokens = Millstream().tokenize(source.filled)
    except (SqlglotError, ValueError, IndexError) as error:
        start = getattr(error, "end", None) or 0
        raise SyntaxProblem("these characters can not be read", place=source.place(max(0, start - 1))) from None
    for token in tokens:
        place = source.place(token.start)
        token.line, token.col = place.line, place.column
    return tokens


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


def _read(read: Callable[[StatementParser], _Read], tokens: list[Token], source: Text, number: int | None) -> _Read:
    parser = StatementParser(dialect=Millstream())
    parser.begin(tokens, source.filled, number, source.file)
    parser.spelled = source.spelled
    try:
        refuse_foreign(tokens, parser.place)
        return read(parser)
    except ParseError as error:
        details = error.errors[0] if error.errors else {}
        place = Place(details["line"], details["col"], number, source.file) if details.get("line") else parser.place()
        raise from_sqlglot(error, place, details.get("highlight")) from None
    except RecursionError:
        raise SyntaxProblem("the statement is nested too deeply", place=parser.place(tokens[0]), hint="split it with CREATE VIEW") from None
    except (SqlglotError, AttributeError, TypeError, ValueError, LookupError, AssertionError) as error:
        # sqlglot trips over some malformed text instead of refusing it; the user still gets a place.
        raise SyntaxProblem("this statement can not be read", place=parser.place()) from error
