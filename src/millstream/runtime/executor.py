"""The executor owns the buffers of a graph and runs its operators until nothing can move."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millstream.core.block import Block
from millstream.core.letters import DeadLetter
from millstream.graph.graph import Vertex
from millstream.operators.contract import Buffer, Container, Due, Inputs, Operator, Output
from millstream.operators.edges import Deliver, Enter
from millstream.state.registers import Registers

OUT = -1

Outlet = Callable[[int, Block], None]
"""Called with a vertex and a block it has put out, for arcs that leave this executor."""


class Executor:
    """Runs the operators of one part of a graph, in one process.

    `outlets` are the vertices whose output leaves this part (a sink, or an arc to a later stage). The operator
    furthest down the graph that has something to take goes first, so that buffers stay short.
    """

    def __init__(
        self, vertices: Sequence[Vertex], outlet: Outlet, outlets: set[int], *, limit: int | None = None, journal: bool = False
    ) -> None:
        self.limit = limit
        self.outlet = outlet
        self.outlets = outlets
        self.letters: list[DeadLetter] = []
        self.numbers = [v.number for v in vertices]
        inside = set(self.numbers)
        self.operators: dict[int, Operator] = {}
        self.inputs: dict[int, Inputs] = {}
        self.targets: dict[int, list[Buffer]] = {}
        for v in vertices:
            if isinstance(v.config, (Enter, Deliver)):
                continue
            self.operators[v.number] = v.config.build(journal)
            self.inputs[v.number] = Inputs([Buffer() for _ in v.inputs])
        for v in vertices:
            if v.number not in self.operators:
                continue
            for port, producer in enumerate(v.inputs):
                if producer in inside:
                    self.targets.setdefault(producer, []).append(self.inputs[v.number].buffers[port])
        self.order = sorted(self.operators, reverse=True)
        self.marks: dict[tuple[int, int], dict[str, int]] = {}

    def put(self, vertex: int, port: int, block: Block) -> None:
        """A block from outside for one port of an operator."""
        if (news := self._news((vertex, port), block)) is not None:
            self.inputs[vertex].buffers[port].put(news)

    def emit(self, vertex: int, block: Block) -> None:
        """A block that a vertex has put out: to every consumer inside, and outside where it has one."""
        news = self._news((vertex, OUT), block)
        if news is None:
            return
        for buffer in self.targets.get(vertex, ()):
            buffer.put(news)
        if vertex in self.outlets:
            self.outlet(vertex, news)

    def _news(self, arc: tuple[int, int], block: Block) -> Block | None:
        """The block without linear punctuations that say no more than earlier ones on this arc; None when nothing is left."""
        if not block.punctuations:
            return block
        marks = self.marks.setdefault(arc, {})
        kept = []
        for punctuation in block.punctuations:
            if punctuation.is_linear:
                ((attribute, pattern),) = punctuation.patterns
                mark: int = pattern.high  # type: ignore[attr-defined]
                if attribute in marks and mark <= marks[attribute]:
                    continue
                marks[attribute] = mark
            kept.append(punctuation)
        return Block(block.batch, tuple(kept)) if kept or len(block) else None

    def run(self) -> None:
        """Step until nothing can move."""
        moved = True
        while moved:
            moved = False
            for number in self.order:
                operator, inputs = self.operators[number], self.inputs[number]
                if operator.more(inputs):
                    self._step(number, operator, inputs)
                    moved = True
                    break

    def _step(self, number: int, operator: Operator, inputs: Inputs) -> None:
        out = Output()
        operator.step(inputs, out, self.limit)
        self.letters += out.letters
        for block in out.blocks:
            self.emit(number, block)

    def take_letters(self) -> list[DeadLetter]:
        letters, self.letters = self.letters, []
        return letters

    def due(self) -> list[tuple[int, Due]]:
        """What the operators wait for."""
        return [(number, due) for number in sorted(self.operators) for due in self.operators[number].due()]

    @property
    def held(self) -> int:
        """Tuples and groups that wait for progress; registers are not among them."""
        return sum(len(container) for container in self.state if not isinstance(container, Registers))

    @property
    def nbytes(self) -> int:
        return sum(container.nbytes for container in self.state)

    @property
    def state(self) -> list[Container]:
        return [container for number in sorted(self.operators) for container in self.operators[number].state]
