"""Functions of strings; positions count characters from 1, and from the end when negative."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from millstream.errors import TypeProblem
from millstream.expressions.casts import cast
from millstream.expressions.coercion import text, whole
from millstream.expressions.node import Datum, Node, RowFailure, call, constant, rowwise
from millstream.expressions.registry import MANY, Call, Scope, function, rule

STRING = pa.string()

LONGEST = 1 << 26
"""How long a string repeat, lpad, rpad and space may make, so that one tuple can not take the memory of all."""


def as_text(node: Node, what: str) -> Node:
    """Any scalar as a string, for || and concat."""
    if pa.types.is_nested(node.type):
        return text(node, what)
    return cast(node, STRING)


@rule(exp.DPipe)
def _pipe(expression: exp.DPipe, scope: Scope) -> Node:
    return _joined([as_text(scope.compile(e), "||") for e in (expression.this, expression.expression)])


@function("concat", at_least=1, at_most=MANY, node=exp.Concat, args=("expressions",))
def _concat(nodes: Sequence[Node], name: Call) -> Node:
    """NULL when a part is (Spark; DuckDB's concat passes NULLs over, its || does not)."""
    return _joined([as_text(n, name.name) for n in nodes])


def _joined(nodes: Sequence[Node]) -> Node:
    return call(lambda *parts: pc.binary_join_element_wise(*parts, "", null_handling="emit_null"), STRING, nodes)


@function("concat_ws", at_least=1, at_most=MANY, node=exp.ConcatWs, args=("expressions",))
def _concat_ws(nodes: Sequence[Node], name: Call) -> Node:
    """NULLs are passed over. (Arrow's join with `skip` returns no rows where all parts are NULL.)"""
    separator, *parts = [as_text(n, name.name) for n in nodes]
    joined = parts[0] if parts else constant("", STRING)
    for part in parts[1:]:
        both = call(lambda *all_: pc.binary_join_element_wise(*all_, null_handling="emit_null"), STRING, [joined, part, separator])
        joined = call(pc.coalesce, STRING, [both, joined, part], strict=False)
    nothing = pa.scalar(None, STRING)
    return call(lambda a, by: pc.if_else(pc.is_valid(by), pc.fill_null(a, ""), nothing), STRING, [joined, separator], strict=False)


def _plain(name: str, node: type[exp.Expr], kernel: Any, kind: pa.DataType, *aliases: str) -> None:
    function(name, *aliases, node=node)(lambda nodes, call_: call(kernel, kind, [text(nodes[0], call_.name)]))


_plain("upper", exp.Upper, pc.utf8_upper, STRING, "ucase")
_plain("lower", exp.Lower, pc.utf8_lower, STRING, "lcase")
_plain("reverse", exp.Reverse, pc.utf8_reverse, STRING)
_plain("initcap", exp.Initcap, rowwise(lambda s: " ".join(w[:1].upper() + w[1:].lower() for w in s.split(" ")), STRING), STRING)
_plain("ascii", exp.Ascii, rowwise(lambda s: ord(s[0]) if s else 0, pa.int32()), pa.int32())


@function("length", "char_length", "character_length", "len", node=exp.Length)
def _length(nodes: Sequence[Node], name: Call) -> Node:
    kernel = pc.binary_length if pa.types.is_binary(nodes[0].type) else pc.utf8_length
    return call(kernel, pa.int32(), [nodes[0] if pa.types.is_binary(nodes[0].type) else text(nodes[0], name.name)])


@function("octet_length")
def _octet_length(nodes: Sequence[Node], name: Call) -> Node:
    return call(pc.binary_length, pa.int32(), [text(nodes[0], name.name)])


@rule(exp.Trim)
def _trim(expression: exp.Trim, scope: Scope) -> Node:
    characters = expression.args.get("expression")
    nodes = [scope.compile(expression.this)] + ([scope.compile(characters)] if characters is not None else [])
    return _trimmed(nodes, str(expression.args.get("position") or "BOTH").upper())


@function("btrim", at_least=1, at_most=2)
def _btrim(nodes: Sequence[Node], name: Call) -> Node:
    return _trimmed(nodes, "BOTH")


_TRIMS: dict[str, tuple[str, Any, Callable[[str, str], str]]] = {
    "BOTH": ("trim", pc.utf8_trim, str.strip),
    "LEADING": ("ltrim", pc.utf8_ltrim, str.lstrip),
    "TRAILING": ("rtrim", pc.utf8_rtrim, str.rstrip),
}


def _trimmed(nodes: Sequence[Node], position: str) -> Node:
    name, arrow, python = _TRIMS[position]
    subject = text(nodes[0], name)
    characters = text(nodes[1], name) if len(nodes) > 1 else constant(" ", STRING)
    if not characters.is_constant:
        return call(rowwise(python, STRING), STRING, [subject, characters])
    return call(lambda a, c: arrow(a, _text_of(c)), STRING, [subject, characters])


def _text_of(datum: Datum) -> str:
    """The string of a constant argument, which folding hands over as an array of one."""
    return str((datum[0] if isinstance(datum, pa.Array) else datum).as_py())


@function("substring", "substr", at_least=2, at_most=3, node=exp.Substring, args=("this", "start", "length"))
def _substring(nodes: Sequence[Node], name: Call) -> Node:
    """Spark's: position 0 is position 1, negative positions count from the end."""
    subject, rest = text(nodes[0], name.name), [whole(n, name.name) for n in nodes[1:]]
    if not all(n.is_constant and n.value is not None for n in rest):
        return call(rowwise(substring, STRING), STRING, [subject, *rest])
    start, size = rest[0].value, rest[1].value if len(rest) > 1 else None
    begin = start - 1 if start > 0 else start
    end = None if size is None else begin + max(0, size)
    if size is not None and size <= 0:
        return call(lambda a: pc.utf8_slice_codeunits(a, 0, 0), STRING, [subject])
    if begin < 0 and end is not None and end >= 0:
        end = None
    return call(lambda a: pc.utf8_slice_codeunits(a, begin, end), STRING, [subject])


def substring(subject: str, start: int, size: int | None = None) -> str:
    begin = start - 1 if start > 0 else len(subject) + start if start < 0 else 0
    end = len(subject) if size is None else begin + max(0, size)
    return subject[max(0, begin) : max(0, end)]


@function("left", at_least=2, node=exp.Left, args=("this", "expression"))
def _left(nodes: Sequence[Node], name: Call) -> Node:
    return call(rowwise(lambda s, n: s[: max(0, n)], STRING), STRING, [text(nodes[0], name.name), whole(nodes[1], name.name)])


@function("right", at_least=2, node=exp.Right, args=("this", "expression"))
def _right(nodes: Sequence[Node], name: Call) -> Node:
    return call(rowwise(lambda s, n: s[-n:] if n > 0 else "", STRING), STRING, [text(nodes[0], name.name), whole(nodes[1], name.name)])


@function("replace", at_least=2, at_most=3, node=exp.Replace, args=("this", "expression", "replacement"))
def _replace(nodes: Sequence[Node], name: Call) -> Node:
    subject, old, new = [text(n, name.name) for n in [*nodes, constant("", STRING)][:3]]
    if not (old.is_constant and new.is_constant and old.value):
        return call(rowwise(lambda s, a, b: s.replace(a, b) if a else s, STRING), STRING, [subject, old, new])
    return call(lambda a, _: pc.replace_substring(a, old.value, new.value), STRING, [subject, new])


def _padded(subject: str, size: int, fill: str, left: bool) -> str:
    if size <= len(subject) or not fill:
        return subject[: max(0, size)]
    if size > LONGEST:
        raise RowFailure(f"lpad and rpad make no string of more than {LONGEST} characters")
    missing = size - len(subject)
    padding = (fill * (missing // len(fill) + 1))[:missing]
    return padding + subject if left else subject + padding


@rule(exp.Pad)
def _pad(expression: exp.Pad, scope: Scope) -> Node:
    left = bool(expression.args.get("is_left"))
    name = "lpad" if left else "rpad"
    fill = expression.args.get("fill_pattern")
    filler = text(scope.compile(fill), name) if fill is not None else constant(" ", STRING)
    args = [text(scope.compile(expression.this), name), whole(scope.compile(expression.expression), name), filler]
    return call(rowwise(lambda s, n, f: _padded(s, n, f, left), STRING), STRING, args, fallible=not args[1].is_constant)


@function("instr", at_least=2, at_most=3, node=exp.StrPosition, args=("this", "substr", "position"))
def _instr(nodes: Sequence[Node], name: Call) -> Node:
    """The position of the first occurrence, 0 when there is none."""
    subject, part = text(nodes[0], name.name), text(nodes[1], name.name)
    if len(nodes) == 3:
        find = rowwise(lambda s, p, at: s.find(p, at - 1) + 1 if at > 0 else 0, pa.int32())
        return call(find, pa.int32(), [subject, part, whole(nodes[2], name.name)])
    return call(rowwise(lambda s, p: s.find(p) + 1, pa.int32()), pa.int32(), [subject, part])


def _test(name: str, node: type[exp.Expr], arrow: Any, python: Callable[[str, str], bool], *aliases: str) -> None:
    def body(nodes: Sequence[Node], call_: Call) -> Node:
        subject, part = text(nodes[0], call_.name), text(nodes[1], call_.name)
        if part.is_constant and part.value is not None:
            return call(lambda a: arrow(a, part.value), pa.bool_(), [subject])
        return call(rowwise(python, pa.bool_()), pa.bool_(), [subject, part])

    function(name, *aliases, at_least=2, node=node, args=("this", "expression"))(body)


_test("startswith", exp.StartsWith, pc.starts_with, str.startswith, "starts_with")
_test("endswith", exp.EndsWith, pc.ends_with, str.endswith, "ends_with")
_test("contains", exp.Contains, pc.match_substring, str.__contains__)


def _repeated(subject: str, times: int) -> str:
    if len(subject) * times > LONGEST:
        raise RowFailure(f"repeat makes no string of more than {LONGEST} characters")
    return subject * max(0, times)


@function("repeat", at_least=2, node=exp.Repeat, args=("this", "times"))
def _repeat(nodes: Sequence[Node], name: Call) -> Node:
    return call(rowwise(_repeated, STRING), STRING, [text(nodes[0], name.name), whole(nodes[1], name.name)], fallible=True)


@function("space", node=exp.Space)
def _space(nodes: Sequence[Node], name: Call) -> Node:
    return call(rowwise(lambda n: _repeated(" ", n), STRING), STRING, [whole(nodes[0], name.name)], fallible=True)


def _split_part(subject: str, delimiter: str, index: int) -> str:
    if index == 0:
        raise RowFailure("split_part counts parts from 1, or from the end with negative numbers")
    parts = subject.split(delimiter) if delimiter else [subject]
    at = index - 1 if index > 0 else len(parts) + index
    return parts[at] if 0 <= at < len(parts) else ""


@function("split_part", at_least=3, node=exp.SplitPart, args=("this", "delimiter", "part_index"))
def _split(nodes: Sequence[Node], name: Call) -> Node:
    args = [text(nodes[0], name.name), text(nodes[1], name.name), whole(nodes[2], name.name)]
    return call(rowwise(_split_part, STRING), STRING, args, fallible=not args[2].is_constant or args[2].value == 0)


@function("substring_index", at_least=3, node=exp.SubstringIndex, args=("this", "delimiter", "count"))
def _substring_index(nodes: Sequence[Node], name: Call) -> Node:
    def cut(s: str, d: str, n: int) -> str:
        parts = s.split(d) if d and n else []
        return d.join(parts[:n] if n > 0 else parts[n:])

    return call(rowwise(cut, STRING), STRING, [text(nodes[0], name.name), text(nodes[1], name.name), whole(nodes[2], name.name)])


@function("translate", at_least=3, node=exp.Translate, args=("this", "from_", "to"))
def _translate(nodes: Sequence[Node], name: Call) -> Node:
    def change(s: str, old: str, new: str) -> str:
        table: dict[int, str | None] = {}
        for at, letter in enumerate(old):
            table.setdefault(ord(letter), new[at] if at < len(new) else None)
        return s.translate(table)

    return call(rowwise(change, STRING), STRING, [text(n, name.name) for n in nodes])


@rule(exp.Chr)
def _chr(expression: exp.Chr, scope: Scope) -> Node:
    return call(rowwise(lambda n: chr(n % 256) if n >= 0 else "", STRING), STRING, [whole(scope.compile(expression.expressions[0]), "chr")])


def _digest(name: str, node: type[exp.Expr], algorithm: Callable[[bytes], Any], *aliases: str) -> None:
    kernel = rowwise(lambda v: algorithm(v if isinstance(v, bytes) else v.encode()).hexdigest(), STRING)
    function(name, *aliases, node=node)(
        lambda nodes, call_: call(kernel, STRING, [nodes[0] if pa.types.is_binary(nodes[0].type) else text(nodes[0], call_.name)])
    )


_digest("md5", exp.MD5, hashlib.md5)
_digest("sha1", exp.SHA, hashlib.sha1, "sha")


@function("sha2", at_least=2, node=exp.SHA2, args=("this", "length"))
def _sha2(nodes: Sequence[Node], name: Call) -> Node:
    sizes = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}
    bits = nodes[1].value if nodes[1].is_constant else None
    if bits not in sizes:
        raise TypeProblem("sha2 takes a constant length of 0, 224, 256, 384 or 512 bits")
    digest = rowwise(lambda v: sizes[bits](v if isinstance(v, bytes) else v.encode()).hexdigest(), STRING)
    node = nodes[0] if pa.types.is_binary(nodes[0].type) else text(nodes[0], name.name)
    return call(digest, STRING, [node])
