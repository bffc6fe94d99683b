"""Arrival patterns as paper 002 writes them (sections 5.1 and 6.1), such as `punct-asc-100-40`."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.errors import NameProblem, SourceProblem

ORDERS = ("asc", "desc", "random")
KINDS = {
    "cluster": ("cluster-[order]-[clustersize]", ("cluster size",)),
    "punct": ("punct-[order]-[segmentsize]-[matchpercentage]", ("segment size", "match percentage")),
    "unique": ("unique-[order]", ()),
    "none": ("none-[domain]", ("domain",)),
}
SHORT = {"punctuation": "punct"}
BOUNDS = {"cluster size": (1, 1_000_000), "segment size": (1, 1_000_000), "match percentage": (0, 100), "domain": (1, 2**62)}


@dataclass(frozen=True)
class ArrivalPattern:
    """In which order join values come, and when they are punctuated.

    `cluster`: tuples of a value come in succession, then its punctuation. `punct`: of the tuples between two punctuations some match the
    second. `unique` is `cluster` with clusters of one. `none`: no punctuations, values uniform in [0, domain); beyond the paper's notation.
    """

    order: str = "asc"
    size: int = 1
    """Tuples of a cluster or a segment, on average."""
    match: int | None = None
    """Percent of a segment's tuples that match its punctuation, on average; None: all of them, as in a cluster."""
    domain: int | None = None
    """Only of `none`."""

    @classmethod
    def parse(cls, text: str) -> ArrivalPattern:
        word, *parts = text.strip().lower().split("-")
        kind = SHORT.get(word, word)
        if kind not in KINDS:
            known = [form for form, _ in KINDS.values()]
            raise SourceProblem(f"`{text}` is no arrival pattern", hint="write " + ", ".join(known[:-1]) + f" or {known[-1]}")
        form, names = KINDS[kind]
        if len(parts) != len(names) + (kind != "none"):
            raise SourceProblem(f"the pattern `{text}` has {len(parts)} parts after `{word}`", hint=f"write {form}")
        order = "asc" if kind == "none" else parts.pop(0)
        if order not in ORDERS:
            raise NameProblem.unknown("order", order, ORDERS, within=f"the pattern `{text}`")
        numbers = [_number(text, name, part) for name, part in zip(names, parts, strict=True)]
        if kind == "none":
            return cls(domain=numbers[0])
        return cls(order, *numbers)


def _number(text: str, name: str, part: str) -> int:
    least, most = BOUNDS[name]
    if not (part.isascii() and part.isdigit() and least <= int(part) <= most):
        raise SourceProblem(f"the {name} of the pattern `{text}` is `{part}`", hint=f"write a whole number from {least} to {most}")
    return int(part)
