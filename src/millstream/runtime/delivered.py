"""The low-water marks that reach sinks, kept by bucket and taken together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from millstream.core.block import Block
from millstream.graph.graph import Graph
from millstream.operators.edges import Deliver
from millstream.state.registers import Registers

Marks = Mapping[str, int]
"""The registers of one bucket: by producer and column the mark, and by producer that it has ended."""


def _mark(producer: int, column: str) -> str:
    return f"{producer}@{column}"


def _end(producer: int) -> str:
    return f"{producer} ended"


def deliver(registers: Registers, producer: int, sink: Deliver, block: Block) -> None:
    """Note what a block promises to a sink."""
    for punctuation in block.punctuations:
        if punctuation.is_end:
            registers.raise_to(_end(producer), 1)
        elif punctuation.is_linear:
            ((column, pattern),) = punctuation.patterns
            if column in sink.progressing:
                registers.raise_to(_mark(producer, column), pattern.high)  # type: ignore[attr-defined]


def sink_marks(
    graph: Graph, number: int, buckets: Callable[[int], Sequence[Marks | None]]
) -> dict[str, int | None]:
    """The marks behind all that a sink has got, by its progressing columns; None where there is none yet.

    `buckets` has the registers of all buckets that send to a vertex at the end of the graph; None for one
    without news, which promises nothing. A producer that has ended holds nothing back.
    """
    delivers = [v for v in graph.sinks if v.config.number == number]  # type: ignore[attr-defined]
    columns = [set(v.config.progressing) for v in delivers]  # type: ignore[attr-defined]
    parts = [(v.inputs[0], part or {}) for v in delivers for part in buckets(v.number)]
    open_ = [(producer, part) for producer, part in parts if _end(producer) not in part] or parts
    found: dict[str, int | None] = {}
    for column in sorted(set.intersection(*columns)) if columns else ():
        marks = [part.get(_mark(producer, column)) for producer, part in open_]
        known = [mark for mark in marks if mark is not None]
        found[column] = min(known) if known and len(known) == len(marks) else None
    return found
