"""Build the query graph of logical plans; equal sub-plans of different queries become one operator with a fork."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatchmethod

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import TIMESTAMP, columns_text
from millstream.errors import NameProblem, PlanProblem
from millstream.expressions import compile_expression
from millstream.graph.graph import Graph, Vertex
from millstream.graph.joins import Joins, neighbours, one_axis, twins_of
from millstream.graph.many import leaves_of
from millstream.operators.aggregate import Aggregate, Call
from millstream.operators.contract import Config
from millstream.operators.distinct import Distinct
from millstream.operators.edges import Deliver, Enter
from millstream.operators.in_order import InOrder
from millstream.operators.join import PUNCTUATED, PUNCTUATED_WINDOW, WINDOW, Join
from millstream.operators.many_join import ADAPTIVE, FIXED, ManyJoin
from millstream.operators.project import Project
from millstream.operators.select import Select
from millstream.operators.sort import Sort
from millstream.operators.table_join import TableJoin
from millstream.operators.union import Union
from millstream.plan import nodes
from millstream.plan.explain import sql_text
from millstream.plan.nodes import Node
from millstream.plan.rules.transform import conjunction
from millstream.plan.scope import column
from millstream.plan.trees import EDDY, MANY


def build_graph(
    plans: Sequence[nodes.Insert],
    rows_of: Callable[[nodes.Node], pa.Table],
    *,
    in_order: bool = False,
    joins: Joins = Joins(),  # noqa: B008 (it is frozen)
) -> Graph:
    """`rows_of` gives the rows of a static sub-plan; `in_order` lets operators wait for order."""
    builder = GraphBuilder(rows_of, in_order, joins)
    builder.insert(plans)
    return builder.graph


class GraphBuilder:
    """Builds a graph, and changes it while it runs: what is there keeps its numbers."""

    def __init__(self, rows_of: Callable[[nodes.Node], pa.Table], in_order: bool, joins: Joins = Joins()) -> None:  # noqa: B008 (it is frozen)
        self.rows_of = rows_of
        self.in_order = in_order
        self.joins = joins
        self.joined: set[Node] = set()
        """Joins before or behind another one, with nothing but stateless operators between."""
        self.sinks: dict[str, tuple[int, pa.Schema]] = {}
        self.sorts: dict[int, int] = {}
        self.vertices: dict[int, Vertex] = {}
        self._enters: dict[int, Vertex] = {}
        self._delivers: dict[int, Vertex] = {}
        self._unread: list[int] = []
        self.next = 0
        self.known: dict[Node, int] = {}
        self.shared: dict[Node, int] = {}
        """What queries that come later may share: nothing is kept from a source to there."""

    def copy(self) -> GraphBuilder:
        """For a change that may turn out to be wrong."""
        made = copy.copy(self)
        made.sinks, made.vertices, made.shared = dict(self.sinks), dict(self.vertices), dict(self.shared)
        made._enters, made._delivers, made._unread = dict(self._enters), dict(self._delivers), []
        return made

    @property
    def graph(self) -> Graph:
        """What it would find out about itself by looking at every vertex it is told: a change is to cost the same in a large graph."""
        made = Graph(tuple(self.vertices.values()))
        vars(made).update(by_number=dict(self.vertices), sources=list(self._enters.values()), sinks=list(self._delivers.values()))
        return made

    def insert(self, plans: Sequence[nodes.Insert]) -> None:
        """More queries. What keeps no state is shared with those that were there; what does, only among these: it begins with them."""
        self.known, self.sorts = {}, {}
        self.joined = {join for plan in plans for join in neighbours(plan)}
        for plan in plans:
            number, schema = self.sinks.setdefault(plan.sink.name.lower(), (len(self.sinks), plan.input.schema))
            if plan.input.schema != schema:
                both = f"({columns_text(schema)}) and ({columns_text(plan.input.schema)})"
                raise PlanProblem(
                    f"two queries write different columns into sink `{plan.sink.name}`: {both}",
                    hint="declare a sink for each, or CAST and name the columns alike",
                )
            progressing = tuple(
                f.name for f in schema if f.type == TIMESTAMP and f.name in plan.input.progressing
            )
            self.add(Deliver(schema, plan.sink, number, progressing), self.visit(plan.input))
        self.shared.update({node: number for node, number in self.known.items() if self._passing(number)})

    def _passing(self, number: int) -> bool:
        """True where nothing is kept from a source to here."""
        v = self.vertices[number]
        return isinstance(v.config, Enter) or (v.config.stateless and all(map(self._passing, v.inputs)))

    def drop(self, sink: str) -> None:
        """The queries that write into a sink. Their operators are there until `settle`: another query may read them by then."""
        number, _ = self.sinks.get(sink.lower(), (-1, None))
        gone = [v for v in self._delivers.values() if v.config.number == number]  # type: ignore[attr-defined]
        if not gone:
            names = {v.config.sink.name for v in self._delivers.values()}  # type: ignore[attr-defined]
            raise NameProblem.unknown("query into a sink", sink, sorted(names))
        for v in gone:
            del self.vertices[v.number], self._delivers[v.number]
            self._unread += v.inputs

    def settle(self, opened: int) -> None:
        """At the end of a change: operators that nobody reads go, and sinks that nobody has written to yet get numbers in a row."""
        if not self._unread:
            return
        read = Counter(producer for v in self.vertices.values() for producer in v.inputs)
        while self._unread:
            number = self._unread.pop()
            if number in self.vertices and not read[number]:
                v = self.vertices.pop(number)
                self._enters.pop(number, None)
                read.subtract(v.inputs)
                self._unread += v.inputs
        used = sorted({v.config.number for v in self._delivers.values()} - set(range(opened)))  # type: ignore[attr-defined]
        numbers = {old: opened + place for place, old in enumerate(used)}
        self.sinks = {name: (numbers.get(n, n), schema) for name, (n, schema) in self.sinks.items() if n < opened or n in numbers}
        for v in list(self._delivers.values()):
            assert isinstance(v.config, Deliver)
            if numbers.get(v.config.number, v.config.number) != v.config.number:
                moved = Vertex(v.number, replace(v.config, number=numbers[v.config.number]), v.inputs)
                self.vertices[v.number] = self._delivers[v.number] = moved

    def add(self, config: Config, *inputs: int) -> int:
        self.vertices[self.next] = v = Vertex(self.next, config, inputs)
        if isinstance(config, Enter):
            self._enters[v.number] = v
        elif isinstance(config, Deliver):
            self._delivers[v.number] = v
        self.next += 1
        return self.next - 1

    def schema(self, vertex: int) -> pa.Schema:
        return self.vertices[vertex].config.schema

    def visit(self, node: Node) -> int:
        found = self.known.get(node, self.shared.get(node))
        if found is None or found not in self.vertices:
            found = self.known[node] = self._build(node)
        return found

    @singledispatchmethod
    def _build(self, node: Node) -> int:
        raise TypeError(f"no operator for {type(node).__name__}")

    @_build.register
    def _(self, node: nodes.Scan) -> int:
        return self.add(Enter(node.stream))

    @_build.register
    def _(self, node: nodes.Filter) -> int:
        source = self.visit(node.input)
        return self.add(Select(self.schema(source), node.predicate, origin(node)), source)

    @_build.register
    def _(self, node: nodes.Project) -> int:
        source = self.visit(node.input)
        return self.add(Project(self.schema(source), node.columns, origin(node)), source)

    @_build.register
    def _(self, node: nodes.Union) -> int:
        members = _members(node)
        union = self._waiting(Union(node.schema, len(members)), members, node.time)
        return self.add(union, *[self.visit_in_order(member) for member in members])

    @_build.register
    def _(self, node: nodes.Sort) -> int:
        source = self.visit(node.input)
        return self.add(Sort(self.schema(source), node.keys), source)

    @_build.register
    def _(self, node: nodes.Distinct) -> int:
        source = self.visit_in_order(node.input)
        axis = None
        if node.window is None:
            axis = next((c for c in node.keys if c in node.input.closing), None)
        return self.add(Distinct(self.schema(source), node.keys, node.window, axis, origin(node)), source)

    @_build.register
    def _(self, node: nodes.Aggregate) -> int:
        """Groups and arguments are computed by a projection, so that the aggregate sees plain columns."""
        source = self.visit_in_order(node.input)
        columns = dict(node.groups)
        calls = []
        for call in node.calls:
            name = None
            if call.argument is not None:
                same = next((n for n, e in columns.items() if e == call.argument), None)
                name = same or _free(call.argument.name if isinstance(call.argument, exp.Column) else f"__x{len(columns)}", columns)
                columns[name] = call.argument
            calls.append(Call(call.name, call.function, name, call.distinct))
        window = node.window
        if window is not None and columns.get(window.attribute) != column(window.attribute):
            name = _free(window.attribute, columns)
            columns[name] = column(window.attribute)
            window = replace(window, attribute=name)
        source = self._project(source, tuple(columns.items()), node)
        groups = tuple(name for name, _ in node.groups)
        titles = tuple(sql_text(e) for _, e in node.groups)
        own = {node.axis, None if window is None else window.attribute}
        moving = tuple(name for name in node.moving if name not in own)
        schema = self.schema(source)
        config = Aggregate(schema, groups, tuple(calls), window, node.axis, moving, origin(node), titles)
        return self.add(config, source)

    @_build.register
    def _(self, node: nodes.Join) -> int:
        if self.joins.tree in (MANY, EDDY) and (many := self._many(node)) is not None:
            return many
        keys = node.typed_keys
        left, left_keys = self._with_keys(self.visit_in_order(node.left), [a for a, _ in keys], "l", node)
        bands, others, rest = one_axis(node)
        conditions = [*node.condition, *rest]
        condition = conjunction(conditions) if conditions else None
        stamp = None
        if node.time == node.stamp and node.kind in ("inner", "left") and not node.static:
            stamp = (node.stamp, str(node.left.time), str(node.right.time))
        output = tuple(node.schema.names)
        if node.static:
            table, right_keys = self._table_with_keys(node, [b for _, b in keys])
            join = Join(self.schema(left), table.schema, node.kind, left_keys, right_keys, (), condition, output, None, origin(node))
            return self.add(TableJoin(join, table, _table_name(node.right)), left)
        right, right_keys = self._with_keys(self.visit_in_order(node.right), [b for _, b in keys], "r", node)
        schemas, algorithm = (self.schema(left), self.schema(right)), self._algorithm(node)
        heard, (lefts, rights) = node.heard, ([a for a, _ in node.keys], [b for _, b in node.keys])
        twins = (twins_of(lefts, left_keys, heard[0]), twins_of(rights, right_keys, heard[1]))
        feedback = self.joins.feedback and algorithm != PUNCTUATED and node.kind == "inner" and node in self.joined
        join = Join(*schemas, node.kind, left_keys, right_keys, bands, condition, output, stamp, origin(node), algorithm, twins)
        reach, left_time = node.right_reach
        latest = node.left.time if node.left.time not in node.left.times else None
        others = tuple(band for band in others if band in node.moving)
        join = replace(join, right_reach=reach, left_time=left_time, latest=latest, others=others)
        join = replace(join, indexed=self.joins.indexed, feedback=feedback)
        return self.add(self._waiting(join, (node.left, node.right), node.time, schemas), left, right)

    def _many(self, node: nodes.Join) -> int | None:
        """All inner joins from here down as one operator, if time alone lets go of their tuples."""
        found = leaves_of(node)
        if found is None or any(self._algorithm(join) != WINDOW or join.closes for join in found.joins):
            return None
        moving = frozenset().union(*(leaf.progressing for leaf in found.nodes))
        if not all({band.left, band.right} <= moving for band in found.bands):
            return None
        routing = FIXED if self.joins.tree == MANY else ADAPTIVE
        schemas = tuple(leaf.schema for leaf in found.nodes)
        many = ManyJoin(schemas, (), tuple(found.bands), tuple(found.conditions), found.output, found.stamp, origin(node), routing)
        if not many.bounded:
            return None
        inputs, columns = [], []
        for place, leaf in enumerate(found.nodes):
            keys = found.keys_of(place)
            vertex, names = self._with_keys(self.visit_in_order(leaf), keys, f"{place}_", node)
            inputs.append(vertex)
            columns.append(dict(zip(keys, names, strict=True)))
        schemas = tuple(self.schema(vertex) for vertex in inputs)
        many = replace(many, inputs=schemas, same=found.same(columns), indexed=self.joins.indexed, feedback=self.joins.feedback)
        return self.add(self._waiting(many, found.nodes, node.time, schemas), *inputs)

    def _algorithm(self, node: nodes.Join) -> str:
        """What the streams declare decides, unless somebody has chosen something that lets both sides go."""
        chosen = self.joins.algorithm
        if chosen == PUNCTUATED_WINDOW or (chosen == PUNCTUATED and all(node.by_value)):
            return chosen
        if not any(node.by_value):
            return WINDOW
        return PUNCTUATED_WINDOW if node.bands else PUNCTUATED

    def visit_in_order(self, node: Node) -> int:
        """The vertex of an input; in-order execution sorts it by time where it may be out of order."""
        found = self.visit(node)
        if not self.in_order or node.time not in node.schema.names or _ordered(node, str(node.time)):
            return found
        if node.time not in node.progressing:
            raise PlanProblem(
                "in-order execution can not sort behind this LEFT, SEMI or ANTI JOIN: "
                "no mark comes for its default time",
                hint="compare the default times of both sides in ON, or SET execution.order = 'out-of-order'",
            )
        if found not in self.sorts:
            config = InOrder(Union(node.schema, 1), (node.schema,), (str(node.time),), node.time, ordered=False)
            self.sorts[found] = self.add(config, found)
        return self.sorts[found]

    def _waiting(self, config: Config, inputs: Sequence[Node], time: str | None, schemas: Sequence[pa.Schema] = ()) -> Config:
        """The operator as in-order execution has it, where its inputs have a time to wait for; nothing waits for latent time."""
        known = all(node.time in node.schema.names for node in inputs)
        latent = tuple(port for port, node in enumerate(inputs) if _latent(node))
        comparable = known and len({node.schema.field(str(node.time)).type for node in inputs}) == 1
        if not self.in_order or not comparable or len(latent) == len(inputs):
            return config
        times = tuple(str(node.time) for node in inputs)
        seen = tuple(schemas) or tuple(node.schema for node in inputs)
        return InOrder(config, seen, times, time if time in config.schema.names else None, latent=latent)

    def _project(self, source: int, columns: tuple[tuple[str, exp.Expr], ...], node: Node) -> int:
        schema = self.schema(source)
        columns = columns or ((schema.names[0], column(schema.names[0])),)
        if len(columns) == len(schema.names) and all(e == column(name) for name, e in columns) and [n for n, _ in columns] == schema.names:
            return source
        return self.add(Project(schema, columns, origin(node)), source)

    def _with_keys(self, source: int, keys: Sequence[exp.Expr], side: str, node: Node) -> tuple[int, tuple[str, ...]]:
        """Keys as plain columns of the input; computed ones are added under hidden names."""
        schema = self.schema(source)
        columns = {name: column(name) for name in schema.names}
        names = []
        for number, key in enumerate(keys):
            if isinstance(key, exp.Column):
                names.append(key.name)
            else:
                name = f"__key_{side}{number}"
                columns[name] = key  # type: ignore[assignment]
                names.append(name)
        return self._project(source, tuple(columns.items()), node), tuple(names)

    def _table_with_keys(self, node: nodes.Join, keys: Sequence[exp.Expr]) -> tuple[pa.Table, tuple[str, ...]]:
        table = self.rows_of(node.right)
        names = []
        for number, key in enumerate(keys):
            if isinstance(key, exp.Column):
                names.append(key.name)
                continue
            compiled = compile_expression(key, table.schema)
            batch = table.combine_chunks().to_batches()
            array = compiled.evaluate(batch[0]) if batch else pa.array([], type=compiled.type)
            table = table.append_column(f"__key_r{number}", array)
            names.append(f"__key_r{number}")
        return table, tuple(names)


def _ordered(node: Node, time: str) -> bool:
    """True when its tuples come in the order of one of its columns, given that what waits for order is below."""
    if isinstance(node, nodes.Filter):
        return _ordered(node.input, time)
    if isinstance(node, nodes.Project):
        meaning = dict(node.columns)[time]
        return isinstance(meaning, exp.Column) and _ordered(node.input, meaning.name)
    if isinstance(node, nodes.Join) and node.static:
        return _ordered(node.left, time)
    if time != node.time:
        return False
    if isinstance(node, nodes.Scan):
        return node.stream.timestamp.kind != "external" or node.stream.timestamp.order == "ordered"
    if isinstance(node, nodes.Union) and len({_latent(member) for member in node.members}) > 1:
        return False  # latent tuples wait for nobody
    # Left tuples come out late: without a partner when none can come any more, in a semi join with the first.
    return not (isinstance(node, nodes.Join) and node.kind != "inner")


def _members(union: nodes.Union) -> list[Node]:
    """What it unites, and what unions among that do: one operator does it all."""
    return [m for member in union.members for m in (_members(member) if isinstance(member, nodes.Union) else [member])]


def _latent(node: Node) -> bool:
    """True when all that it reads has latent time."""
    return all(n.stream.timestamp.kind == "latent" for n in node.walk() if isinstance(n, nodes.Scan))


def origin(node: Node) -> str:
    """The streams a node reads: the name under which its dead letters go."""
    return "+".join(sorted({n.stream.name for n in node.walk() if isinstance(n, nodes.Scan)}))


def _table_name(node: Node) -> str:
    return next((n.table.name for n in node.walk() if isinstance(n, nodes.TableScan)), "")


def _free(name: str, taken: dict[str, exp.Expr]) -> str:
    number, found = 0, name
    while found in taken:
        number += 1
        found = f"{name}_{number}" if name.startswith("__") else f"__{name}_{number}"
    return found
