"""Patterns: LIKE, ILIKE, RLIKE and the regexp functions; RE2 (as in DuckDB) where the pattern is constant."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.errors import TypeProblem
from millstream.expressions.coercion import text, whole
from millstream.expressions.node import Kernel, Node, RowFailure, call, constant, rowwise
from millstream.expressions.registry import Call, Scope, function, rule

STRING = pa.string()
_NAMES: dict[Any, str] = {exp.Like: "LIKE", exp.ILike: "ILIKE"}


@rule(exp.Like, exp.ILike)
def _like_rule(expression: exp.Binary, scope: Scope) -> Node:
    return _like(expression, scope, "\\")


@rule(exp.Escape)
def _escape(expression: exp.Escape, scope: Scope) -> Node:
    escape = expression.expression.name
    if type(expression.this) not in _NAMES or len(escape) != 1:
        raise TypeProblem("ESCAPE takes one character, after LIKE or ILIKE")
    return _like(expression.this, scope, escape)


def _like(expression: exp.Binary, scope: Scope, escape: str) -> Node:
    name = _NAMES[type(expression)]
    ignore_case = name == "ILIKE"
    subject = text(scope.compile(expression.this), name)
    if isinstance(expression.expression, (exp.Any, exp.All)):
        return _quantified(expression, scope, escape)
    pattern = text(scope.compile(expression.expression), name)
    if pattern.is_constant and pattern.value is not None:
        node = call(_matcher(pattern.value, escape, ignore_case), pa.bool_(), [subject])
    else:
        flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
        matches: Callable[[str, str], bool] = lambda s, p: _compiled(like_to_regex(p, escape), flags).fullmatch(s) is not None  # noqa: E731
        node = call(rowwise(matches, pa.bool_()), pa.bool_(), [subject, pattern])
    return call(pc.invert, pa.bool_(), [node]) if expression.args.get("negate") else node


def _matcher(pattern: str, escape: str, ignore_case: bool) -> Kernel:
    """Arrow's own LIKE for the usual escape, a regular expression of the whole string for any other."""
    if escape == "\\":
        return lambda a: pc.match_like(a, pattern, ignore_case=ignore_case)
    whole_string = rf"(?s)\A(?:{like_to_regex(pattern, escape)})\z"
    return lambda a: pc.match_substring_regex(a, whole_string, ignore_case=ignore_case)


def _quantified(expression: exp.Binary, scope: Scope, escape: str) -> Node:
    """LIKE ANY (...) and LIKE ALL (...)."""
    quantifier = expression.expression
    inner = quantifier.this
    patterns = inner.expressions if isinstance(inner, exp.Tuple) else [inner.this if isinstance(inner, exp.Paren) else inner]
    some = isinstance(quantifier, exp.Any)
    answer: Node | None = None
    for pattern in patterns:
        test = _like(type(expression)(this=expression.this, expression=pattern, negate=expression.args.get("negate")), scope, escape)
        answer = test if answer is None else call(pc.or_kleene if some else pc.and_kleene, pa.bool_(), [answer, test], strict=False)
    if answer is None:
        raise TypeProblem("LIKE ANY and LIKE ALL take a list of patterns")
    return answer


def like_to_regex(pattern: str, escape: str) -> str:
    """A LIKE pattern as a regular expression."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == escape and at + 1 < len(pattern):
            at += 1
            out.append(re.escape(pattern[at]))
        else:
            out.append({"%": ".*", "_": "."}.get(letter) or re.escape(letter))
        at += 1
    return "".join(out)


@lru_cache(maxsize=512)
def _compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    try:
        return re.compile(pattern, flags)
    except re.error as error:
        raise RowFailure(f"'{pattern}' is no regular expression: {error}") from None


def _checked(pattern: str, what: str) -> re.Pattern[str]:
    """A constant pattern, refused now rather than at the first tuple."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise TypeProblem(f"{what} does not take the pattern '{pattern}': {error}") from None


def _is_re2(pattern: str) -> bool:
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except ValueError:
        return False
    return True


@function("regexp_like", "rlike", "regexp", at_least=2, node=exp.RegexpLike, args=("this", "expression"))
def _rlike(nodes: Sequence[Node], name: Call) -> Node:
    subject, pattern = text(nodes[0], "RLIKE"), text(nodes[1], "RLIKE")
    if not pattern.is_constant or pattern.value is None:
        return call(rowwise(lambda s, p: _compiled(p).search(s) is not None, pa.bool_()), pa.bool_(), [subject, pattern], fallible=True)
    if _is_re2(pattern.value):
        return call(lambda a: pc.match_substring_regex(a, pattern.value), pa.bool_(), [subject])
    compiled = _checked(pattern.value, "RLIKE")
    return call(rowwise(lambda s: compiled.search(s) is not None, pa.bool_()), pa.bool_(), [subject])


def _references(replacement: str, mark: str) -> str:
    """Java's $1 and \\$ as the group references of another engine."""

    def change(found: re.Match[str]) -> str:
        if found[1] is None:
            return mark.format(found[2])
        return r"\\" if found[1] == "\\" else found[1]

    return re.sub(r"\\(.)|\$([0-9])", change, replacement)


@function("regexp_replace", at_least=3, node=exp.RegexpReplace, args=("this", "expression", "replacement"))
def _regexp_replace(nodes: Sequence[Node], name: Call) -> Node:
    """All occurrences; $1 stands for the first group."""
    subject, pattern, new = [text(n, name.name) for n in nodes]
    if pattern.is_constant and new.is_constant and pattern.value is not None and new.value is not None and _is_re2(pattern.value):
        replacement = _references(new.value, r"\{}")
        return call(lambda a: pc.replace_substring_regex(a, pattern.value, replacement), STRING, [subject])
    replace: Callable[[str, str, str], str] = lambda s, p, r: _compiled(p).sub(_references(r, r"\g<{}>"), s)  # noqa: E731
    return call(rowwise(replace, STRING), STRING, [subject, pattern, new], fallible=True)


@function("regexp_extract", at_least=2, at_most=3, node=exp.RegexpExtract, args=("this", "expression", "group"))
def _regexp_extract(nodes: Sequence[Node], name: Call) -> Node:
    """The group of the first match, '' when nothing matches."""
    group = whole(nodes[2], name.name) if len(nodes) > 2 else constant(1, pa.int64())
    pattern = text(nodes[1], name.name)
    if pattern.is_constant and pattern.value is not None:
        groups = _checked(pattern.value, name.name).groups
        if group.is_constant and group.value is not None and not 0 <= group.value <= groups:
            raise TypeProblem(f"regexp_extract asks for group {group.value} of a pattern with {groups}", hint="group 0 is the whole match")

    def extract(s: str, p: str, g: int) -> Any:
        match = _compiled(p).search(s)
        return (match[g] or "") if match else ""

    return call(
        rowwise(extract, STRING),
        STRING,
        [text(nodes[0], name.name), pattern, group],
        fallible=not (pattern.is_constant and group.is_constant),
    )
