"""What sqlglot says when it can not read something, in the words of the language."""

from __future__ import annotations

import re
from difflib import get_close_matches

from sqlglot.errors import ParseError

from millstream.errors import Place, SyntaxProblem

CREATED = ("STREAM", "TABLE", "SINK", "VIEW", "AGGREGATE")
STATEMENTS = (*(f"CREATE {kind}" for kind in CREATED), "INSERT INTO", "DROP QUERY", "EXPLAIN", "SET")
OPENERS = ("CREATE", "INSERT", "DROP", "EXPLAIN", "SET", "SELECT")
_INSTEAD = {
    "ALTER": "CREATE OR REPLACE declares a thing anew",
    "DROP": "DROP QUERY <sink> ends queries, and CREATE OR REPLACE declares a thing anew",
    "CREATE TEMPORARY": "write CREATE VIEW",
    "CREATE TEMP": "write CREATE VIEW",
    "CREATE MATERIALIZED": "write CREATE VIEW",
}
_WORDS = {
    "OVERWRITE": "write INSERT INTO, and mode = 'overwrite' in CREATE SINK",
    "EMIT": "leave EMIT out: an answer comes out once, when it is certain",
}
WINDOW_HINT = "a window stands after a stream, a subquery or the select list and begins with RANGE, ROWS or NOW"


def from_sqlglot(error: ParseError, place: Place, token: str | None) -> SyntaxProblem:
    """The same complaint in one short line; `token` is what stands at the place, None at the end of the statement."""
    description = str(error.errors[0].get("description") if error.errors else error)
    return SyntaxProblem(_message(description, token), place=place, hint=_hint(token))


def unexpected(token: str | None, place: Place, expected: str | None = None) -> SyntaxProblem:
    """Something else should stand here; `expected` says what."""
    hint = f"expected {expected}" if expected and _word(token) is None else _hint(token)
    return SyntaxProblem(f"unexpected {_named(token)}", place=place, hint=hint)


def unknown_statement(words: list[str], place: Place) -> SyntaxProblem:
    """The statement begins with no known words; the nearest known beginning is the hint."""
    first = words[0].upper()
    spoken = " ".join(words[:2]).upper() if first in ("CREATE", "INSERT") or len(words) > 1 else first
    close = get_close_matches(spoken, STATEMENTS, n=1, cutoff=0.75) or get_close_matches(first, STATEMENTS, n=1, cutoff=0.75)
    if not close and get_close_matches(first, ["SELECT"], cutoff=0.75):
        close = ["INSERT INTO <sink> SELECT"]
    hint = f"did you mean {close[0]}?" if close else "a statement begins with " + ", ".join(STATEMENTS[:-1]) + " or SET"
    hint = _INSTEAD.get(first) or _INSTEAD.get(" ".join(words[:2]).upper()) or hint
    shown = " ".join(words[:2]) if first in ("CREATE", "INSERT") else words[0]
    return SyntaxProblem(f"no statement begins with `{shown}`", place=place, hint=hint)


def _named(token: str | None) -> str:
    if token is None:
        return "end of the statement"
    shown = " ".join(token.split())
    return f"`{shown[:40]}...`" if len(shown) > 40 else f"`{shown}`"


def _word(token: str | None) -> str | None:
    return None if token is None else _WORDS.get(token.upper())


def _hint(token: str | None) -> str | None:
    if (way := _word(token)) is not None:
        return way
    if token is not None and token.upper() in OPENERS:
        return f"is a `;` missing before {token.upper()}?"
    if token == "[":
        return WINDOW_HINT
    return None


def _message(description: str, token: str | None) -> str:
    where = f"before {_named(token)}" if token is not None else "at the end of the statement"
    if description.startswith(("Invalid expression", "unexpected")):
        return f"unexpected {_named(token)}"
    if match := re.match(r"Expect(?:ing|ed) ([()\[\]{}])", description):
        return f"`{match[1]}` is missing {where}"
    if description.startswith("Expected table name"):
        return f"the name of a stream or table is missing {where}"
    if description.startswith("Required "):
        return f"something is missing {where}"
    plain = re.sub(r"<[^>]*>|\x1b\[\d*m", "", description.split("\n")[0]).strip(" .")
    return f"{plain[:1].lower()}{plain[1:160]}, {where}" if plain else f"can not read this, {where}"
