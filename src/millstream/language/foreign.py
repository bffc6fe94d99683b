"""Spellings of Spark SQL, Flink SQL and DuckDB that are refused with the spelling that works here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from sqlglot.tokens import Token, TokenType

from millstream.errors import MillstreamError, Place, SyntaxProblem, UnsupportedProblem
from millstream.language.durations import UNITS

_TEXTS = (TokenType.STRING, TokenType.RAW_STRING)
_NAMES_FOLLOW = ("STREAM", "TABLE", "SINK", "VIEW", "AGGREGATE", "INTO")
_LENGTH = re.compile(r"\s*(?:interval\s+)?(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
_CLOCK = "TIMESTAMP INTERNAL AS {name}"

# Functions that make windows: the places of the length and of the slide among their durations.
_WINDOWS = {"TUMBLE": (0, None), "WINDOW": (0, 1), "HOP": (1, 0), "TIME_BUCKET": (0, None)}
_NOT_YET = {
    "SESSION": ("session windows (SESSION) are", "CLUSTERED BY closes groups whose tuples come together"),
    "SESSION_WINDOW": (
        "session windows (session_window) are",
        "CLUSTERED BY closes groups whose tuples come together",
    ),
    "CUMULATE": (
        "cumulating windows (CUMULATE) are",
        "write a sliding window such as [RANGE 1 HOUR SLIDE 1 MINUTE]",
    ),
    "MATCH_RECOGNIZE": ("MATCH_RECOGNIZE is", "join the streams on a window and compare their timestamps"),
}

_ELSEWHERE = {
    **{f"{kind}_{end}": f"window_{end.lower()}" for kind in ("TUMBLE", "HOP") for end in ("START", "END")},
    "STRFTIME": "date_format(ts, 'yyyy-MM-dd')",
    "STRPTIME": "to_timestamp(text, 'yyyy-MM-dd')",
    "EPOCH": "unix_seconds(ts)",
    "EPOCH_MS": "unix_millis(ts)",
    "EPOCH_US": "unix_micros(ts)",
}
"""Functions of Flink SQL and DuckDB under their names here."""


def refuse_foreign(tokens: Sequence[Token], place: Callable[[Token], Place]) -> None:
    """Raise for the first spelling that belongs to another dialect."""
    for index, token in enumerate(tokens):
        if token.token_type in (*_TEXTS, TokenType.IDENTIFIER):
            continue
        word = token.text.upper()
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if word == "/" and after is not None and after.text == "/" and after.start == token.end + 1:
            problem: MillstreamError | None = SyntaxProblem("`//` is no operator here", hint="write a DIV b")
        elif word == "WATERMARK":
            problem = _watermark(tokens, index)
        elif _called(tokens, index):
            problem = _call(word, tokens, index)
        else:
            continue
        if problem is not None:
            raise problem.at(place(token))


def in_brackets(inside: Sequence[Token]) -> str | None:
    """`[RANGE 10 SECONDS SLIDE 5 SECONDS]` for parts of a window in another order, or None."""
    words = [token.text.upper() for token in inside]
    lengths = list(durations_in(inside))
    numbers = [token.text for token in inside if token.token_type == TokenType.NUMBER]
    if lengths and len(lengths) == len(numbers) <= 2 and "ROWS" not in words:
        return _window(lengths[0], lengths[1] if len(lengths) > 1 else None)
    if "ROWS" in words and len(numbers) == 1:
        return f"[ROWS {numbers[0]}]"
    return None


def _called(tokens: Sequence[Token], index: int) -> bool:
    """True before `(`, but not for the name of something that is declared or written into."""
    before = tokens[index - 1].text.upper() if index else ""
    return (
        index + 1 < len(tokens)
        and tokens[index + 1].token_type == TokenType.L_PAREN
        and before not in (*_NAMES_FOLLOW, ".")
    )


def _call(word: str, tokens: Sequence[Token], index: int) -> MillstreamError | None:
    if word in _NOT_YET:
        said, hint = _NOT_YET[word]
        return UnsupportedProblem(f"{said} not supported yet", hint=hint)
    if word == "PROCTIME":
        named = index > 1 and tokens[index - 1].text.upper() == "AS"
        clause = _CLOCK.format(name=tokens[index - 2].text if named else "ts")
        return SyntaxProblem(
            "PROCTIME() is no function here", hint=f"write {clause} behind the columns of CREATE STREAM"
        )
    if word in _ELSEWHERE:
        return SyntaxProblem(f"there is no function {word.lower()}", hint=f"write {_ELSEWHERE[word]}")
    if word in _WINDOWS:
        return _window_call(word, tokens, index)
    return None


def _window_call(word: str, tokens: Sequence[Token], index: int) -> MillstreamError:
    """The same window in brackets, behind the stream of the call, else the one behind FROM."""
    inside = _parenthesised(tokens, index + 1)
    lengths, (size, step) = list(durations_in(inside)), _WINDOWS[word]
    if len(lengths) == 1:
        size, step = 0, None
    window = "[RANGE <duration>]"
    if size < len(lengths):
        slide = lengths[step] if step is not None and step < len(lengths) else None
        window = _window(lengths[size], slide)
    bare = _bare(inside)
    stream = _behind(inside, "TABLE") or (bare[0] if len(bare) > 1 else None)
    column = _behind(inside, "DESCRIPTOR") or (bare[-1] if bare else "ts")
    source = stream or _behind(tokens, "FROM") or "A"
    hint = f"write FROM {source} {window}, with WA {column} in it if the time of {source} is another column"
    if stream is None:
        hint += (
            f", and leave {tokens[index].text}(...) out: its ends are the columns window_start and window_end"
        )
    return SyntaxProblem(
        f"{tokens[index].text}(...) makes no window, a window stands in brackets behind its stream", hint=hint
    )


def _behind(tokens: Sequence[Token], word: str) -> str | None:
    """The name that stands behind a word, in parentheses or not."""
    for index, token in enumerate(tokens[:-1]):
        if token.text.upper() == word:
            name = tokens[index + 1 + (tokens[index + 1].token_type == TokenType.L_PAREN) :][:1]
            return name[0].text if name and name[0].text.isidentifier() else None
    return None


def _bare(inside: Sequence[Token]) -> list[str]:
    """The arguments of a call that are a name and nothing else."""
    arguments: list[list[Token]] = [[]]
    for token in inside:
        if token.token_type == TokenType.COMMA:
            arguments.append([])
        else:
            arguments[-1].append(token)
    return [
        one[0].text
        for one in arguments
        if len(one) == 1 and one[0].text.isidentifier() and one[0].token_type not in _TEXTS
    ]


def _watermark(tokens: Sequence[Token], index: int) -> MillstreamError | None:
    """`WATERMARK FOR ts AS ts - INTERVAL '5' SECOND`, `WATERMARK ts DELAY OF INTERVAL 5 SECONDS`."""
    words = [token.text for token in tokens[index + 1 : index + 3]]
    flink = len(words) == 2 and words[0].upper() == "FOR"
    if not flink and (len(words) < 2 or words[1].upper() != "DELAY"):
        return None
    column = words[1] if flink else words[0]
    length = next(durations_in(tokens[index + 2 :]), None)
    hint = f"write TIMESTAMP BY {column} SLACK {length or '<duration>'}"
    if length is None:
        hint += f", or TIMESTAMP BY {column} ORDERED,"
    said = "WATERMARK FOR" if flink else "WATERMARK"
    return SyntaxProblem(f"{said} is no clause here", hint=f"{hint} behind the columns of CREATE STREAM")


def _parenthesised(tokens: Sequence[Token], opening: int) -> Sequence[Token]:
    depth = 0
    for index in range(opening, len(tokens)):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[index].token_type, 0)
        if depth == 0:
            return tokens[opening + 1 : index]
    return tokens[opening + 1 :]


def durations_in(tokens: Sequence[Token]) -> Iterator[str]:
    """`10 SECONDS` for `INTERVAL '10' SECOND`, `INTERVAL 10 SECONDS` and `'10 seconds'`."""
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        text = token.text
        if token.token_type == TokenType.NUMBER or (
            token.token_type == TokenType.STRING and text.strip().isdigit()
        ):
            text += f" {after.text}" if after else ""
        elif token.token_type != TokenType.STRING:
            continue
        match = _LENGTH.fullmatch(text)
        if match is not None and match[2].upper() in UNITS:
            yield _plural(match[1], match[2].upper())


def _plural(number: str, unit: str) -> str:
    return f"{number} {unit}S" if number != "1" and f"{unit}S" in UNITS else f"{number} {unit}"


def _window(length: str, slide: str | None) -> str:
    return f"[RANGE {length} SLIDE {slide}]" if slide is not None and slide != length else f"[RANGE {length}]"
