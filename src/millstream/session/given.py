"""Objects and names that users give a session are checked where they are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar, cast

from millstream.errors import MillstreamError, NameProblem, SinkProblem, SourceProblem, SyntaxProblem
from millstream.io.contract import Sink, Source, lacking
from millstream.language import parse
from millstream.session.rows import exports_arrow, kind_of, need_text

T = TypeVar("T", covariant=True)


class Entry(Protocol[T]):
    """A class of the catalog."""

    def of(self, statement: Any, /) -> T: ...


def owner_of(kind: str, name: str) -> str:
    """The words for something declared, such as `stream Bid`."""
    what = f"the name of a {kind}"
    if not need_text(what, name):
        raise NameProblem(f"{what} is empty", hint="give it a name")
    return f"{kind} {name}"


def declared(owner: str, entry: Entry[T], text: str) -> T:
    """The entry of one CREATE statement that was put together here: a place in it would mislead."""
    try:
        first, *others = parse(text)
        if others:
            raise SyntaxProblem("its text goes on behind a `;`", hint="leave the `;` out")
        return entry.of(first)
    except MillstreamError as problem:
        raise type(problem)(f"{owner}: {problem.message}", hint=problem.hint) from None


def given_source(owner: str, given: Any) -> Source | None:
    """A source, checked against the contract; None for tuples."""
    if (
        exports_arrow(given)
        or isinstance(given, Mapping)
        or not (hasattr(given, "units") or hasattr(given, "latest"))
    ):
        return None
    if missing := lacking(given, Source):
        raise SourceProblem(
            f"{owner}: {_short(given, missing, 'source')}",
            hint="give tuples, or a source such as ms.ListSource(...)",
        )
    return cast(Source, given)


def given_sink(owner: str, given: Any) -> Sink:
    """A sink, checked against the contract."""
    if missing := lacking(given, Sink):
        hint = "leave it out to keep the answer in memory, or write CREATE SINK for the console or files"
        raise SinkProblem(f"{owner}: {_short(given, missing, 'sink')}", hint=hint)
    if owner.lower() != f"sink {given.name}".lower():
        raise SinkProblem(f"{owner}: the name of its object is {given.name}", hint="name both alike")
    return cast(Sink, given)


def _short(given: object, missing: list[str], wanted: str) -> str:
    lack = "" if isinstance(given, type) else f": it has no {', '.join(f'`{name}`' for name in missing)}"
    return f"{kind_of(given)} is no {wanted}{lack}"
