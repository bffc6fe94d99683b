"""The executor runs the operators of one part of a graph by the rules of a state table, until nothing can move."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from millstream.core.block import Block
from millstream.core.letters import DeadLetter
from millstream.graph.breaks import break_points, fragments, paths
from millstream.graph.execution import Execution
from millstream.graph.graph import Vertex
from millstream.graph.rules import EXIT, Next, Rule, Strategy, encore_within_batch, select, strategy_of
from millstream.graph.table import Arc, StateTable
from millstream.operators.buffers import Book, Head
from millstream.operators.contract import Container, Due, Operator, Output
from millstream.operators.edges import Deliver, Enter
from millstream.runtime.feedback import connect
from millstream.runtime.gauges import Gauge, OperatorMetrics
from millstream.runtime.network import Network, Outlet
from millstream.state.registers import Registers

RECONSIDER = 256
"""Steps after which break points are chosen anew, by what was measured meanwhile."""


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
        strategies: Mapping[int, str] | None = None,
        journal: bool = False,
    ) -> None:
        self.book = Book()
        self.network = Network(outlet, outlets, self.book, arcs=execution.arcs)
        self.journal = journal
        self.operators: dict[int, Operator] = {}
        self.gauges: dict[int, Gauge] = {}
        self.letters: list[DeadLetter] = []
        self.on_step: Callable[[int, int, int], None] | None = None
        """Told of each step before its results are seen: the operator, the tuples and the punctuations that it took."""
        self.on_wait: Callable[[], None] | None = None
        """Asked, once execution is back, when tuples have begun to wait for another input: an enabling timestamp may help."""
        self.waits = False
        self.table = StateTable()
        self.rules: dict[int, tuple[Rule, ...]] = {}
        self.branches: dict[int, list[tuple[int, int, Head]]] = {}
        """To the successors by the table; those behind a break point are not among them."""
        self.turns: dict[int, int] = {}
        self.slopes: dict[int, float] = {}
        """Where break points are chosen, how fast the fragment of an operator frees memory: the fastest goes first."""
        self.steps = self.considered = 0
        self.execution, self.own = execution, dict(strategies or {})
        self.change((), vertices)

    def put(self, vertex: int, port: int, block: Block) -> None:
        """A block from outside for one port of an operator."""
        self.network.put(vertex, port, block)

    def emit(self, vertex: int, block: Block) -> None:
        """A block from outside in the name of a vertex: a source."""
        self.network.emit(vertex, block)

    # -- the graph and the state table ----------------------------------------------------------------------------

    def change(self, gone: Iterable[int], fresh: Sequence[Vertex]) -> None:
        """Operators that go and come, while nothing is in the buffers of those that go."""
        left = [self.network.vertices[number] for number in sorted(gone, reverse=True)]
        for v in left:
            self.network.disconnect(v.number)
            for known in (self.operators, self.gauges, self.rules, self.branches, self.turns, self.slopes):
                known.pop(v.number, None)
        for v in fresh:
            self.network.connect(v)
            if not isinstance(v.config, (Enter, Deliver)):
                self.operators[v.number] = v.config.build(self.journal)
                self.gauges[v.number] = Gauge()
        chosen = {v.number: self._strategy(v.number) for v in fresh if v.number in self.operators}
        connect(self.network, self.operators, list(chosen), self.execution.trial)
        self._assemble(self.table.change(left, fresh, chosen))

    def refresh(self) -> None:
        """State has become something else, all at once."""
        for operator in self.operators.values():
            for watch in (*operator.watches, *(() if operator.feedback is None else operator.feedback.watches)):
                watch.refresh()
            if operator.feedback is not None:
                operator.feedback.refresh()

    def plan(self, execution: Execution, strategies: Mapping[int, str] | None = None) -> None:
        """Other strategies and break points; between any two steps."""
        self.execution, self.own, self.slopes = execution, dict(strategies or {}), {}
        self.network.use_arcs(execution.arcs)
        self._plan(execution.breaks)

    def _plan(self, breaks: Iterable[Arc]) -> None:
        self.table.plan({number: self._strategy(number) for number in self.operators}, breaks)
        self._assemble(self.operators)

    def _strategy(self, operator: int) -> Strategy:
        return strategy_of(self.own.get(operator, self.execution.strategy), self.execution.limit)

    def _assemble(self, operators: Iterable[int]) -> None:
        """Give operators the rules for their lines of the table."""
        for number in operators:
            state = self.table[number]
            self.rules[number] = self.table.strategies[number].at(source=state.source, sink=state.sink)
            succs = set(state.succs)
            self.branches[number] = [branch for branch in self.network.branches[number] if branch[0] in succs]
            self.turns[number] = 0

    def _choose_breaks(self) -> None:
        """By what operators have cost and kept so far."""
        unbroken = StateTable(self.network.vertices.values(), self.table.strategies)
        self.slopes = {}
        for path in paths(unbroken.lines):
            parts = fragments(path, self._selectivity, self._cost, leaves=unbroken[path[-1]].sink)
            self.slopes.update({number: part.slope for part in parts for number in part.operators})
        breaks = break_points(unbroken.lines, self.slopes).union(self.execution.breaks)
        if breaks != self.table.breaks:
            self._plan(breaks)

    def _slope(self, operator: int) -> float:
        return self.slopes.get(operator, 0.0)  # one that has come since is not known yet

    def _selectivity(self, operator: int) -> float:
        return self.gauges[operator].selectivity

    def _cost(self, operator: int) -> float:
        return self.gauges[operator].cost

    # -- the execution cycle --------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until nothing can move."""
        pending = self.network.pending
        while pending:
            if self._ripe:
                self.considered = self.steps
                self._choose_breaks()
            self._cycle(max(pending, key=self._slope) if self.slopes else next(iter(pending)))
            if self.waits:
                self.waits = False
                if self.on_wait is not None:
                    self.on_wait()

    def _cycle(self, start: int) -> None:
        view = _View(self)
        choice = Next(start, True)
        while choice is not EXIT and not self._ripe:
            view.turn_to(choice.operator)
            if choice.runs:
                view.taken += self._step(choice.operator, view.taken)
                if not self.network.pending:
                    return  # to backtrack would be to find that nobody has anything to take
            choice = select(self.rules[choice.operator], view)

    @property
    def _ripe(self) -> bool:
        """Whether break points are to be chosen anew."""
        return self.execution.auto and self.steps >= self.considered + RECONSIDER

    def _step(self, number: int, taken: int) -> int:
        """One step of an operator; tells how many tuples it took."""
        operator, inputs, gauge = self.operators[number], self.network.inputs[number], self.gauges[number]
        limit = self.execution.limit
        if number not in self.network.pending:
            return 0
        counts, waiting, began = inputs.taken, operator.waiting, self.book.now()
        tuples, punctuations, queued = counts.tuples, counts.punctuations, counts.waited
        gauge.peak = max(gauge.peak, inputs.rows + waiting)  # a queue shrinks by steps only: it was longest right before one
        out = Output()
        operator.step(inputs, out, None if limit is None else limit - taken)
        if not operator.more(inputs):
            self.network.pending.pop(number, None)
        tuples, punctuations = counts.tuples - tuples, counts.punctuations - punctuations
        if self.on_step is not None:
            self.on_step(number, tuples, punctuations)
        now = self.book.now()
        self.steps += 1
        gauge.note_step(now - began, tuples, punctuations, counts.waited - queued)
        if operator.needs.idle_waiting_prone:
            waits = operator.waiting
            self.book.add(waits - waiting)
            self.waits |= not waiting and waits > 0
            gauge.note_waiting(waits, began, now)
        self.letters += out.letters
        gauge.tuples_out += out.handed
        for block in out.blocks:
            gauge.tuples_out += len(block)
            gauge.punctuations_out += len(block.punctuations)
            self.network.emit(number, block)
        return tuples

    # -- how the operators do -------------------------------------------------------------------------------------

    def metrics(self, names: Mapping[int, str], lifetime: int) -> list[OperatorMetrics]:
        """Of each operator, in a run that has lasted so many microseconds."""
        now = self.book.now()
        self._look(self.operators)
        found = {number: names.get(number) or self.network.vertices[number].config.label for number in sorted(self.operators)}
        return [self.gauges[number].metrics(number, name, lifetime, now) for number, name in found.items()]

    def take_gauges(self) -> tuple[tuple[int, Gauge], ...]:
        """Of the operators that have run since the last call; they begin anew."""
        found = tuple((number, self.gauges[number]) for number in self.operators if self.gauges[number].steps)
        self._look(number for number, _ in found)
        self.gauges.update((number, Gauge()) for number, _ in found)
        return found

    def _look(self, operators: Iterable[int]) -> None:
        for number in operators:
            gauge, operator = self.gauges[number], self.operators[number]
            gauge.queue = self.network.inputs[number].rows + operator.waiting
            for sleepers in operator.asleep:
                slept, woken = sleepers.look()
                gauge.slept, gauge.woken = gauge.slept + slept, gauge.woken + woken

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
        return sum(len(container) for container in self.state.values() if not isinstance(container, Registers))

    @property
    def nbytes(self) -> int:
        return sum(container.nbytes for container in self.state.values())

    @property
    def state(self) -> dict[str, Container]:
        """By operator and place: the names under which a journal keeps them, whatever comes and goes beside them."""
        return {f"#{n}.{at}": container for n in sorted(self.operators) for at, container in enumerate(self.operators[n].state)}


class _View:
    """The current operator as the rules see it; what they do not ask is not computed."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.network = executor.network
        self.current = -1
        self.taken = 0

    def turn_to(self, operator: int) -> None:
        if (
            operator != self.current or encore_within_batch not in self.executor.rules[operator]
        ):  # else its batch goes on
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
        return len(branches) == len(self.network.branches[self.current]) or any(head.ready for _, _, head in branches)

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
        while not branches[at % len(branches)][2].ready:
            at += 1
        self.executor.turns[self.current] = at % len(branches)
        return branches[at % len(branches)][0]

    @property
    def pred(self) -> int:
        """Of the producers of empty inputs, first one that has something to do itself; where tuples wait, of those they wait for."""
        state, heads = self.executor.table[self.current], self.network.inputs[self.current].heads
        behind = self.executor.operators[self.current].behind() or range(len(heads))
        before = [(p, head) for p, head in zip(state.preds, heads, strict=True) if p is not None]
        empty = [p for port in behind if (p := state.preds[port]) is not None and not heads[port].ready]
        found = next((p for p in empty if p in self.network.pending), None)
        return found if found is not None else (empty or [p for p, _ in before])[0]

    @property
    def behind(self) -> int | None:
        """The next one in the circle, if any; nobody is behind where break points say who goes first."""
        executor, network = self.executor, self.network
        for port, producer in enumerate(network.vertices[self.current].inputs):
            branches = network.branches.get(producer, ())
            if len(branches) < 2 or executor.slopes:
                continue
            left, last = network.inputs[self.current].heads[port].rows, executor.turns.get(producer, 0)
            for turn in range(last + 1, last + 1 + len(branches)):
                consumer, _, head = branches[turn % len(branches)]
                if head.rows <= left or consumer == self.current or consumer not in network.pending:
                    continue
                if not executor.table.broken(producer, consumer):
                    executor.turns[producer] = turn % len(branches)
                    return consumer
        return None

    @property
    def begun(self) -> bool:
        return self.taken > 0

    @property
    def full(self) -> bool:
        return self.taken >= (self.executor.execution.limit or 1)
