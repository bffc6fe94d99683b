"""The executor runs the operators of one part of a graph by the rules of a state table, until nothing can move."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from millstream.core.block import Block
from millstream.core.letters import DeadLetter
from millstream.graph.graph import Vertex
from millstream.graph.rules import EXIT, Next, Rule, Strategy, select, strategy_of
from millstream.graph.table import Arc, State, plan_states
from millstream.operators.buffers import Book, Head
from millstream.operators.contract import Container, Due, Operator, Output
from millstream.operators.edges import Deliver, Enter
from millstream.runtime.execution import Execution
from millstream.runtime.gauges import Gauge
from millstream.runtime.network import Network, Outlet
from millstream.state.registers import Registers


class Executor:
    """The cycle of paper 001, Figure 4: run the current operator, then let its rules select the next one.

    Where a cycle leads to nothing more, the next one begins at the operator that has waited longest.
    """

    def __init__(
        self,
        vertices: Sequence[Vertex],
        outlet: Outlet,
        outlets: set[int],
        *,
        execution: Execution = Execution(),  # noqa: B008 (it is frozen)
        journal: bool = False,
    ) -> None:
        self.limit = execution.limit
        self.book = Book()
        self.network = Network(vertices, outlet, outlets, self.book, arcs=execution.arcs)
        self.operators: dict[int, Operator] = {
            v.number: v.config.build(journal) for v in vertices if not isinstance(v.config, (Enter, Deliver))
        }
        self.gauges = {number: Gauge() for number in self.operators}
        self.letters: list[DeadLetter] = []
        self.on_step: Callable[[int, int, int], None] | None = None
        """Told of each step before its results are seen: the operator, the tuples and the punctuations that it took."""
        self.on_wait: Callable[[], None] | None = None
        """Asked, once execution is back, when tuples have begun to wait for another input: an enabling timestamp may help."""
        self.waits = False
        self.strategies: dict[int, Strategy] = {}
        self.breaks: set[Arc] = set()
        self.plan(execution.strategy)

    def put(self, vertex: int, port: int, block: Block) -> None:
        """A block from outside for one port of an operator."""
        self.network.put(vertex, port, block)

    def emit(self, vertex: int, block: Block) -> None:
        """A block from outside in the name of a vertex: a source."""
        self.network.emit(vertex, block)

    # -- the state table ------------------------------------------------------------------------------------------

    def plan(self, strategy: str | None = None, operators: Collection[int] | None = None, breaks: Collection[Arc] | None = None) -> None:
        """Give operators (all of them by default) a strategy, and set the break points; between any two steps."""
        if strategy is not None:
            chosen = strategy_of(strategy, self.limit)
            self.strategies.update(dict.fromkeys(self.operators if operators is None else operators, chosen))
        if breaks is not None:
            self.breaks = set(breaks)
        self.table: dict[int, State] = plan_states(list(self.network.vertices.values()), self.strategies, self.breaks)
        self.rules: dict[int, tuple[Rule, ...]] = {}
        self.branches: dict[int, list[tuple[int, int, Head]]] = {}
        """To the successors by the table; those behind a break point are not among them."""
        self.turns = dict.fromkeys(self.table, 0)
        for number, state in self.table.items():
            self.rules[number] = self.strategies[number].at(source=state.source, sink=state.sink)
            succs = set(state.succs)
            self.branches[number] = [branch for branch in self.network.branches[number] if branch[0] in succs]

    # -- the execution cycle --------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until nothing can move."""
        pending = self.network.pending
        while pending:
            self._cycle(next(iter(pending)))
            if self.waits:
                self.waits = False
                if self.on_wait is not None:
                    self.on_wait()

    def _cycle(self, start: int) -> None:
        view = _View(self)
        choice = Next(start, True)
        while choice is not EXIT:
            view.turn_to(choice.operator)
            if choice.runs:
                view.taken += self._step(choice.operator, view.taken)
            choice = select(self.rules[choice.operator], view)

    def _step(self, number: int, taken: int) -> int:
        """One step of an operator; tells how many tuples it took."""
        operator, inputs, gauge = self.operators[number], self.network.inputs[number], self.gauges[number]
        if not operator.more(inputs):
            self.network.pending.pop(number, None)
            return 0
        began, tuples, punctuations, waiting = self.book.now(), inputs.passed, inputs.punctuations, operator.waiting
        out = Output()
        operator.step(inputs, out, None if self.limit is None else max(self.limit - taken, 1))
        if not operator.more(inputs):
            self.network.pending.pop(number, None)
        tuples, punctuations = inputs.passed - tuples, inputs.punctuations - punctuations
        if self.on_step is not None:
            self.on_step(number, tuples, punctuations)
        now = self.book.now()
        gauge.steps += 1
        gauge.busy += now - began
        gauge.tuples_in += tuples
        gauge.punctuations_in += punctuations
        if operator.needs.idle_waiting_prone:
            self.book.add(operator.waiting - waiting)
            self.waits |= not waiting and operator.waiting > 0
            gauge.note_waiting(operator.waiting > 0, began, now)
        self.letters += out.letters
        for block in out.blocks:
            gauge.tuples_out += len(block)
            gauge.punctuations_out += len(block.punctuations)
            self.network.emit(number, block)
        return tuples

    # -- what it holds --------------------------------------------------------------------------------------------

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


class _View:
    """The current operator as the rules see it; what they do not ask is not computed."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.network = executor.network
        self.current = -1
        self.taken = 0

    def turn_to(self, operator: int) -> None:
        if operator != self.current:
            self.current, self.taken = operator, 0

    @property
    def yields(self) -> bool:
        return self._puts_out or bool(self.network.woken.get(self.current))

    @property
    def _puts_out(self) -> bool:
        """Tuples, or promises that go as tuples do; not where only those behind a break point have something to take."""
        if not len(self.network.buffers[self.current]):
            return False
        branches = self.executor.branches[self.current]
        return len(branches) == len(self.network.branches[self.current]) or any(len(head) for _, _, head in branches)

    @property
    def more(self) -> bool:
        return self.current in self.network.pending

    @property
    def succ(self) -> int:
        """A fork serves its branches in turn; where nothing was put out, a promise has gone ahead over an arc."""
        if not self._puts_out:
            return self.network.woken[self.current].pop(0)
        branches = self.executor.branches[self.current]
        at = self.executor.turns[self.current]
        while not len(branches[at % len(branches)][2]):
            at += 1
        self.executor.turns[self.current] = at % len(branches)
        return branches[at % len(branches)][0]

    @property
    def pred(self) -> int:
        """Of the producers of empty inputs, first one that has something to do itself; where tuples wait, of those they wait for."""
        state, heads = self.executor.table[self.current], self.network.inputs[self.current].heads
        behind = self.executor.operators[self.current].behind() or range(len(heads))
        before = [(p, head) for p, head in zip(state.preds, heads, strict=True) if p is not None]
        empty = [p for port in behind if (p := state.preds[port]) is not None and not len(heads[port])]
        found = next((p for p in empty if p in self.network.pending), None)
        return found if found is not None else (empty or [p for p, _ in before])[0]

    @property
    def full(self) -> bool:
        return self.taken >= (self.executor.limit or 1)
