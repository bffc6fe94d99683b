"""Connect joins for demand feedback: who makes whose input, which sub-tuples are asked about where, and who may keep whom waiting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.feedback.nodes import Node, lattice
from millstream.feedback.watch import Watch
from millstream.kernels.compiled import UInt64s
from millstream.operators.contract import Operator, UnaryOperator
from millstream.operators.join import WINDOW
from millstream.operators.join_again import Again
from millstream.operators.join_feedback import LEFT, RIGHT, JoinFeedback
from millstream.operators.join_links import Ask, Downstream, Epoch, Link
from millstream.operators.join_marks import Marks, Pattern
from millstream.runtime.network import Network

LEVELS = 2
"""Components that a sub-tuple has at most. A join of five streams by nested loops makes 40 M probes with one, 5 M with two or three."""


def connect(network: Network, operators: Mapping[int, Operator], fresh: Sequence[int], trial: int) -> None:
    """The joins among operators that have come together; those that were there before keep to themselves.

    After `trial` tuples it is judged whether it was worth asking about them; 0 asks always.
    """
    epoch = Epoch()
    joins = {number: join for number in fresh if (join := operators[number].feedback) is not None}
    for number, join in joins.items():
        join.number, join.epoch = number, epoch
        join.links = [_link(network, operators, vertex) for vertex in network.vertices[number].inputs]
    for number, join in joins.items():
        _own(join, number, trial)
    for number in sorted(joins):  # producers first
        if not operators[number].needs.ordered:
            _lend(network, joins[number], trial)
    for number in fresh:
        for watch in operators[number].watches:
            watch.begin(trial)
        if operators[number].known:
            _refuse(network, operators, number, operators[number].known)


def _link(network: Network, operators: Mapping[int, Operator], start: int) -> Link | None:
    """The way from an input to the join that makes it, if nobody else reads what is on it, and all on it pass tuples one by one."""
    passing: list[UnaryOperator] = []
    number = start
    names: dict[str, str] | None = None
    while True:
        if number not in operators or number in network.outlets or len(network.readers(number)) != 1:
            return None
        vertex, operator = network.vertices[number], operators[number]
        names = {name: name for name in vertex.config.schema.names} if names is None else names
        if operator.feedback is not None:
            return Link(operator.feedback, tuple(reversed(passing)), names, _waker(network, number))
        if not (vertex.config.stateless and isinstance(operator, UnaryOperator)):
            return None
        passing.append(operator)
        names = {mine: above[name] for mine, name in names.items() if (above := vertex.config.source_columns([name])) is not None}
        number = vertex.inputs[0]


def _waker(network: Network, number: int) -> Callable[[], None]:
    def wake() -> None:
        network.pending[number] = None

    return wake


def _own(join: JoinFeedback, number: int, trial: int) -> None:
    """Let an input of a join sleep for want of partners in the other, where how long they may sleep is bounded."""
    for fed in (LEFT, RIGHT):
        link = join.links[fed]
        if link is None:
            continue
        pairs = zip(join.config.left_keys, join.config.right_keys, strict=True)
        keys = {(a, b) if fed == LEFT else (b, a): _component(join, fed, a if fed == LEFT else b) for a, b in pairs}
        join.fed = fed
        _behind(join, link, join)
        if _bounded(join):
            join.waits.learn()
            known = {pair: component for pair, component in keys.items() if component is not None}
            for place, node in enumerate(lattice(known, LEVELS)):
                watch = Watch(node, watch_number(number, place), trial)
                if _ask(join, watch, link, node.columns):
                    join.watches.append(watch)
                    join.epoch.watches.append(watch)
            return
        for holder in link.producer.self_and_above():
            holder.downstream = [each for each in holder.downstream if each.owner is not join]
        join.fed = None


def watch_number(operator: int, place: int) -> int:
    """A number that no other watch of a run has. The nodes of a lattice grow with the square of its components."""
    return operator << 32 | place


def _lend(network: Network, join: JoinFeedback, trial: int) -> None:
    """Let the join that makes its right input keep what it would have to keep itself, where nobody holds back any of that."""
    link = join.links[RIGHT]
    if join.fed != LEFT or link is None or join.marks is not None:
        return
    lender = link.producer
    if lender.again is not None or lender.marks is not None or any(ask.owner is not None for ask in join.asks[RIGHT]):
        return
    if any((each.config.kind, each.config.algorithm) != ("inner", WINDOW) for each in (join, lender)):
        return
    equal = zip(join.config.left_keys, join.config.right_keys, strict=True)
    pairs = [(mine, link.names[theirs]) for mine, theirs in equal if theirs in link.names]
    sides = [[pair for pair in pairs if _side(lender, pair[1]) == side] for side in (LEFT, RIGHT)]
    side = max((LEFT, RIGHT), key=lambda each: len(sides[each]))
    offsets = lender.reach.expiries({link.names[name]: -reach for name, reach in join.config.right_reach if name in link.names})
    if not sides[side] or min(offsets) == MIN_TIME:
        return
    columns, parts = (tuple(names) for names in zip(*sides[side], strict=True))
    join.again = lender.lends = Again(join, link, columns, side, parts, offsets, _waker(network, join.number), trial)


def _refuse(network: Network, operators: Mapping[int, Operator], number: int, known: tuple[tuple[tuple[str, ...], UInt64s], ...]) -> None:
    """An operator that knows for good which values it can use: the joins before it make nothing of others."""
    link = _link(network, operators, network.vertices[number].inputs[0])
    if link is None:
        return
    for place, (columns, hashes) in enumerate(known):
        if all(name in link.names for name in columns):
            watch = Watch(Node(columns, ()), watch_number(number, place), 0)
            watch.wanted.come(hashes, np.ones(len(hashes), dtype=np.bool_), np.full(len(hashes), MAX_TIME))
            _ask(None, watch, link, columns)


def _component(join: JoinFeedback, port: int, column: str) -> tuple[int, int] | None:
    """The input, of all joins before, that a column comes from as it is; None where it is computed on the way."""
    link = join.links[port]
    if link is None:
        return id(join), port
    name = link.names.get(column)
    side = None if name is None else _side(link.producer, name)
    return None if name is None or side is None else _component(link.producer, side, name)


def _side(join: JoinFeedback, column: str) -> int | None:
    """The input that a column comes from; None for the later of both times, which the join makes itself."""
    return next((side for side, schema in enumerate((join.config.left, join.config.right)) if column in schema.names), None)


def _behind(owner: JoinFeedback, link: Link, consumer: JoinFeedback) -> None:
    """Tell the joins before that an owner is behind them, and by which names."""
    names: dict[str, str] = {}
    for mine, theirs in link.names.items():
        names.setdefault(theirs, mine)
    producer = link.producer
    producer.downstream.append(Downstream(owner, consumer, names))
    for above in producer.links:
        if above is not None:
            _behind(owner, above, producer)


def _bounded(owner: JoinFeedback) -> bool:
    """Whether the time of the input that is not fed lets go of everything that may sleep, and of all that is kept for it."""
    real, owner.progress = owner.progress, lambda side, attribute: 0
    try:
        holders = [(holder, each) for holder in owner.holders() for each in holder.downstream if each.owner is owner]
        return all(min(holder.reach.needed(each)) > MIN_TIME for holder, each in holders)
    finally:
        owner.progress = real


def _ask(owner: JoinFeedback | None, watch: Watch, link: Link, columns: tuple[str, ...]) -> bool:
    """Where all columns of a sub-tuple come in by one input of a join, that input is asked; so are those before it.

    Where they come in by both, it is asked about their pairs. False if nobody is asked.
    """
    producer = link.producer
    names = tuple(link.names[name] for name in columns)
    inputs = _inputs(producer, names)
    if not inputs:
        return _mark(owner, watch, producer, names)
    for port, wanted in inputs:
        above = producer.links[port]
        if above is not None and all(name in above.names for name in wanted):
            _ask(owner, watch, above, wanted)
        seen = above is not None and (above.producer.marks is not None and above.producer.marks.watch is watch)
        producer.asks[port].insert(len(producer.asks[port]) if owner is not None else 0, Ask(owner, watch, wanted, seen))
    return True


def _mark(owner: JoinFeedback | None, watch: Watch, producer: JoinFeedback, names: tuple[str, ...]) -> bool:
    """A join is asked about pairs by one consumer at most, and only where it keeps both tuples as long as time needs them."""
    sides = [(_side(producer, name), name) for name in names]
    columns = tuple((side, name) for side, name in sides if side is not None)
    if len(columns) < len(names):
        return False
    pattern = Pattern(watch, columns)
    if owner is None:
        producer.refused.append(pattern)
        return True
    if producer.marks is not None or producer.config.algorithm != WINDOW:
        return False
    for window in producer.rows:
        window.number()
    producer.marks = Marks(pattern, producer, owner)
    return True


def _inputs(join: JoinFeedback, names: tuple[str, ...]) -> list[tuple[int, tuple[str, ...]]]:
    """The inputs that have all these columns, or others that are equal to them in every result."""
    sides = (join.config.left_keys, join.config.right_keys)
    found = []
    for port in (LEFT, RIGHT):
        same = dict(zip(sides[1 - port], sides[port], strict=True))
        own = [name if _side(join, name) == port else same.get(name) for name in names]
        if None not in own:
            found.append((port, tuple(name for name in own if name is not None)))
    return found
