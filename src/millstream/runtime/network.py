"""The network of one part of a graph: buffers on its arcs, who reads which, and how blocks and promises get from one to the next."""

from __future__ import annotations

from collections.abc import Callable

from millstream.core.block import Block
from millstream.graph.enhanced import TsmArc, tsm_arcs
from millstream.graph.graph import Vertex
from millstream.operators.buffers import Book, Buffer, Head, Inputs
from millstream.operators.edges import Deliver, Enter

OUT = -1

Outlet = Callable[[int, Block], None]
"""Called with a vertex and a block it has put out, for arcs that leave this part."""

Place = int | tuple[int, int]
"""A vertex that puts out, or a (vertex, port) that is fed from outside."""


class Network:
    """Between the operators of one part of a graph; `outlets` are the vertices whose output leaves it."""

    def __init__(self, outlet: Outlet, outlets: set[int], book: Book, *, arcs: bool) -> None:
        self.outlet = outlet
        self.outlets = outlets
        self.book = book
        self.vertices: dict[int, Vertex] = {}
        self.inputs: dict[int, Inputs] = {}
        self.buffers: dict[int, Buffer] = {}
        """What each vertex has put out."""
        self.branches: dict[int, list[tuple[int, int, Head]]] = {}
        """Who reads what a vertex has put out, at which port; several make a fork."""
        self.doors: dict[tuple[int, int], Buffer] = {}
        """Before the ports that are fed from outside."""
        self.pending: dict[int, None] = {}
        """The operators that have something to take, in the order in which it came."""
        self.marks: dict[tuple[int, int], dict[str, int]] = {}
        """Marks by arc. The last two parts of an arc are the vertex and its port."""
        self.arcs: dict[Place, list[TsmArc]] | None = {} if arcs else None
        """Those of the enhanced query graph, as far as they were asked for. None: promises go as tuples do."""
        self.woken: dict[int, list[int]] = {}
        """Operators to which a vertex has sent a promise over an arc, and which have not run since."""

    def connect(self, v: Vertex) -> None:
        """One more vertex, behind those that are there."""
        self._forget_arcs()
        self.vertices[v.number] = v
        self.buffers[v.number] = Buffer(self.book)
        self.branches[v.number] = []
        if isinstance(v.config, (Enter, Deliver)):
            return
        heads = []
        for port, producer in enumerate(v.inputs):
            if producer in self.buffers:
                heads.append(self.buffers[producer].head())
                self.branches[producer].append((v.number, port, heads[-1]))
            else:
                self.doors[v.number, port] = Buffer(self.book)
                heads.append(self.doors[v.number, port].head())
        self.inputs[v.number] = Inputs(heads)

    def disconnect(self, number: int) -> None:
        """One vertex less, which nobody reads any more; what it has not taken is not held for it any longer."""
        self._forget_arcs()
        v = self.vertices.pop(number)
        if number in self.inputs:
            for port, head in enumerate(self.inputs.pop(number).heads):
                head.leave()
                self.doors.pop((number, port), None)
                if v.inputs[port] in self.branches:
                    self.branches[v.inputs[port]] = [b for b in self.branches[v.inputs[port]] if b[2] is not head]
        del self.buffers[number], self.branches[number]
        self.pending.pop(number, None)
        self.woken.pop(number, None)
        for woken in self.woken.values():
            woken[:] = [other for other in woken if other != number]
        self.marks = {arc: marks for arc, marks in self.marks.items() if arc[-2] != number}

    def use_arcs(self, arcs: bool) -> None:
        """Whether promises go over arcs of their own from now on."""
        if arcs != (self.arcs is not None):
            self.arcs = {} if arcs else None

    def _forget_arcs(self) -> None:
        if self.arcs:
            self.arcs = {}

    def tell(self, vertex: int, port: int, promises: Block) -> None:
        """Promises for one input alone: what its producer has promised before there was somebody to hear it."""
        if promises.punctuations:
            self.inputs[vertex].heads[port].activate(promises)
            self.pending[vertex] = None

    # -- blocks ---------------------------------------------------------------------------------------------------

    def put(self, vertex: int, port: int, block: Block) -> None:
        """A block from outside for one port of an operator."""
        news = self._news((vertex, port), block)
        if news is None or self._bypassed((vertex, port), news):
            return
        self.doors[vertex, port].put(news)
        self.pending[vertex] = None

    def emit(self, vertex: int, block: Block) -> None:
        """A block that a vertex has put out: to every consumer inside, and outside where it has one."""
        news = self._news((vertex, OUT), block)
        if news is None:
            return
        if vertex in self.outlets:
            self.outlet(vertex, news)
        if self._bypassed(vertex, news):
            return
        self.buffers[vertex].put(news)
        for consumer, _, _ in self.branches[vertex]:
            self.pending[consumer] = None

    def _news(self, arc: tuple[int, int], block: Block) -> Block | None:
        """The block without linear punctuations that say no more than earlier ones on this arc; None when nothing is left."""
        if not block.punctuations:
            return block if len(block) else None
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

    # -- promises over arcs ---------------------------------------------------------------------------------------

    def _bypassed(self, place: Place, block: Block) -> bool:
        """Send promises over the arcs of the enhanced query graph; not while tuples are under way, which they must not overtake."""
        if self.arcs is None or len(block) or not all(p.is_linear for p in block.punctuations):
            return False
        first = self.doors[place] if isinstance(place, tuple) else self.buffers[place]
        arcs = self._arcs(place)
        if len(first) or any(len(self.buffers[v.number]) for arc in arcs for v in arc.passed):
            return False
        for arc in arcs:
            promises = Block(block.batch if arc.empty is None else arc.empty, arc.translate(block.punctuations))
            end = (arc.consumer, OUT) if arc.port < 0 else (arc.consumer, arc.port)
            news = self._news(("arc", *end), promises)  # type: ignore[arg-type]
            if news is None:
                continue
            if arc.port < 0:
                self.outlet(arc.consumer, news)
                continue
            self.inputs[arc.consumer].heads[arc.port].activate(news)
            self.pending[arc.consumer] = None
            if isinstance(place, int):
                self.woken.setdefault(place, []).append(arc.consumer)
        return True

    def _arcs(self, place: Place) -> list[TsmArc]:
        assert self.arcs is not None
        if place not in self.arcs:
            start = [place] if isinstance(place, tuple) else self.readers(place)
            self.arcs[place] = tsm_arcs(start, self.vertices, self.readers, self.outlets)
        return self.arcs[place]

    def readers(self, vertex: int) -> list[tuple[int, int]]:
        return [(consumer, port) for consumer, port, _ in self.branches[vertex]]
