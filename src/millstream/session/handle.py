"""A handle builds a query step by step; it ends up as the syntax tree that the same SQL would give, and is bound like it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from sqlglot import exp

from millstream.errors import MillstreamError, PlanProblem, TypeProblem, UnsupportedProblem
from millstream.language import parse_expression, parse_query
from millstream.language.window import KEY, StreamWindow
from millstream.plan import nodes
from millstream.plan.bind import bind_answer, bind_insert, bind_query
from millstream.plan.catalog import SinkEntry, Table
from millstream.runtime.visible import visible
from millstream.session.query import Pictured, Plan, Query
from millstream.session.rows import kind_of, need_text

if TYPE_CHECKING:
    from millstream.graph.graph import Graph
    from millstream.session.session import Session

HOW = {"inner": (None, "CROSS"), "left": ("LEFT", None), "semi": ("LEFT", "SEMI"), "anti": ("LEFT", "ANTI")}


@dataclass(frozen=True, eq=False)
class StreamHandle(Pictured):
    """A stream, or a query over some. Every method gives a new handle; mistakes are told where they are made.

    >>> bids = session.stream("Bid")
    >>> bids.where("price > 100").window("1 minute").group_by("auction").agg(n="count(*)").start()
    """

    session: Session
    source: exp.Expr
    """What stands in FROM: a table or a subquery, with its alias and its window."""
    joins: tuple[exp.Join, ...] = ()
    conditions: tuple[exp.Expr, ...] = ()
    whole: StreamWindow | None = None
    """A window over the result of the joins."""
    finished: exp.Expr | None = None
    """A query with its select list; the next step reads it as a subquery."""

    @classmethod
    def of_query(cls, session: Session, query: exp.Expr, alias: str | None = None) -> StreamHandle:
        return cls(session, _subquery(query, alias), finished=query)._checked()

    # What it is

    def query(self) -> exp.Expr:
        """The query as a syntax tree."""
        return self._select([exp.Star()]) if self.finished is None else self.finished.copy()

    @property
    def schema(self) -> pa.Schema:
        """The columns that a sink would get."""
        return visible(bind_query(self.query(), self.session.pipeline.catalog).schema)

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    @property
    def name(self) -> str:
        """The name under which other parts of a query know it."""
        return str(self.source.alias_or_name)

    def __repr__(self) -> str:
        from millstream.language.types import sql_type

        columns = ", ".join(f"{f.name} {sql_type(f.type).sql('spark')}" for f in self.schema)
        read = None if self.finished or self.joins else self.session.pipeline.catalog.relations.get(self.source.name)
        return f"<{'Table' if isinstance(read, Table) else 'Stream'} {self.name or 'of a query'}: {columns}>"

    # Steps

    def alias(self, name: str) -> StreamHandle:
        """The same under another name, for joins."""
        if not need_text("an alias", name):
            raise PlanProblem("an alias is empty", hint="give it a name")
        handle = self._open()
        source = handle._source()
        source.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        return replace(handle, source=source)

    def where(self, condition: str) -> StreamHandle:
        """Only the tuples for which the condition is true."""
        handle = self._open()
        return replace(handle, conditions=(*handle.conditions, _expression(condition)))._checked()

    def window(self, length: str | int, slide: str | int | None = None, *, on: str | None = None) -> StreamHandle:
        """A window for what follows: a length of time ("1 minute"), a number of tuples, or "now"; `on` names another time column."""
        spec = _window(length, slide, on)
        handle = self._open()
        if handle.joins:
            return replace(handle, whole=spec)._checked()
        if handle.source.args.get(KEY):
            raise PlanProblem(f"`{self.name}` has a window already")
        source = handle._source()
        source.set(KEY, spec)
        return replace(handle, source=source)._checked()

    def join(self, other: StreamHandle, on: str | None = None, how: str = "inner") -> StreamHandle:
        """Pairs with the tuples of another handle; `how` is inner, left, semi or anti. Columns of either side go by its name."""
        how = need_text("how", how).lower()
        if how not in HOW:
            raise UnsupportedProblem(f"there is no {how} join", hint="how is one of " + ", ".join(HOW))
        left, right = self._open(), self._beside(other)._open()
        if right.joins or right.whole or (right.conditions and how != "inner"):
            inner = _subquery(_bare(right)._select([exp.Star()]), right.name, right._source().args.get(KEY))
            right = StreamHandle(right.session, inner)
        side, kind = HOW[how]
        join = exp.Join(this=right._source())
        for key, value in (("side", side), ("kind", kind)):
            if value is not None:
                join.set(key, value)
        conditions = (*left._qualified(), *right._qualified())
        if isinstance(on, str) and {on} <= {*self.columns} & {*other.columns}:
            hint = f"write on='{left.name}.{on} = {right.name}.{on}'"
            raise PlanProblem(f"on takes a condition, and `{on}` is a column of both sides", hint=hint)
        if on is not None and how == "inner":
            conditions = (*conditions, _expression(on))
        elif on is not None:
            join.set("on", _expression(on))
        return replace(left, joins=(*left.joins, join), conditions=conditions)._checked()

    def select(self, *columns: str, **named: str) -> StreamHandle:
        """Columns and expressions: `select("auction", "price * 2 AS double", cents="price * 100")`."""
        return self._made(self._open()._select([*map(_item, columns), *(_alias(text, name) for name, text in named.items())]))

    def distinct(self, *columns: str) -> StreamHandle:
        """Each different tuple (of these columns) once per window."""
        select = self._open()._select([*map(_item, columns)] or [exp.Star()])
        select.set("distinct", exp.Distinct())
        return self._made(select)

    def group_by(self, *columns: str) -> Grouped:
        """Groups for `agg`; a window, or a punctuated or progressing column, must close them."""
        return Grouped(self, columns)

    def agg(self, *unnamed: object, **calls: str) -> StreamHandle:
        """Aggregates over everything in a window: `agg(n="count(*)")`."""
        return Grouped(self, ()).agg(*unnamed, **calls)

    def union(self, *others: StreamHandle) -> StreamHandle:
        """All tuples of several handles with the same columns; duplicates stay."""
        union = self.query()
        for other in others:
            union = exp.Union(this=union, expression=self._beside(other).query(), distinct=False)
        return StreamHandle.of_query(self.session, union)

    def order_by(self, *columns: str) -> StreamHandle:
        """In the order of a progressing time (and further columns)."""
        if not columns:
            raise PlanProblem("order_by has no column", hint="name a progressing time, as in order_by('ts')")
        select = cast(exp.Select, self.query())
        items = [item for column in columns for item in _order(column)]
        select.set("order", exp.Order(expressions=items))
        return self._made(select)

    def seq(self, *others: StreamHandle, **options: object) -> StreamHandle:
        """Patterns of tuples in sequence: part of the language, refused by this version."""
        raise UnsupportedProblem("SEQ patterns are not supported yet", hint="join the streams on a window and compare their timestamps")

    # Ends

    def insert_into(self, sink: str) -> StreamHandle:
        """Add the query to the session; `session.run()` runs it."""
        pipeline = self.session.pipeline
        name = need_text("the name of a sink", sink, "insert_into('Out') takes the name that add_sink('Out') declares")
        pipeline.insert(bind_insert(name, self.query(), pipeline.catalog))
        return self

    def start(self, checkpoint: str | None = None, limit: int | None = None) -> Query:
        """Run the query in the background, with its answer in memory.

        `limit` is the number of rows to keep, the last ones; 0 keeps all. Without it all rows of streams that
        end are kept, and the last 1,000,000 of others.
        """
        return self.session.start(self.query(), checkpoint, limit)

    def explain(self, form: str = "logical") -> Plan:
        """The plan as `logical`, `graph` or `spark`."""
        return Plan(self.session.pipeline.explain(form, [self._bound()]))

    def _bound(self) -> nodes.Insert:
        return bind_answer(self.query(), SinkEntry("answer", {}), self.session.pipeline.catalog)

    def _graph(self) -> Graph:
        return self.session.pipeline.sketched([self._bound()])

    # Parts

    def _beside(self, other: StreamHandle) -> StreamHandle:
        """The other handle, if one query can read both."""
        if not isinstance(other, StreamHandle):
            raise TypeProblem(
                f"a handle is needed, not {kind_of(other)}", hint="write session.stream('Name')"
            )
        if other.session is not self.session:
            said = f"`{self.name}` and `{other.name}` are of two sessions"
            raise PlanProblem(said, hint="declare both streams in one")
        return other

    def _open(self) -> StreamHandle:
        """A handle whose FROM and WHERE can still grow."""
        return self if self.finished is None else StreamHandle(self.session, self.source)

    def _source(self) -> exp.Expr:
        return self.source.copy()

    def _select(self, columns: list[exp.Expr]) -> exp.Select:
        if not columns:
            raise PlanProblem("a query without columns", hint='name one, such as "k" or n="count(*)"')
        select = exp.Select(expressions=columns, from_=exp.From(this=self._source()))
        for join in self.joins:
            select.append("joins", join.copy())
        if self.conditions:
            select.set("where", exp.Where(this=exp.and_(*(c.copy() for c in self.conditions), copy=False)))
        if self.whole is not None:
            select.set(KEY, self.whole.copy())
        return select

    def _qualified(self) -> tuple[exp.Expr, ...]:
        """The conditions with their columns said to be of this handle, because a join brings others of the same name."""
        if self.joins or not self.name:
            return self.conditions

        def visit(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and not node.table:
                return exp.Column(this=node.this.copy(), table=exp.to_identifier(self.name, quoted=True))
            return node

        return tuple(condition.transform(visit) for condition in self.conditions)

    def _made(self, query: exp.Expr) -> StreamHandle:
        return StreamHandle.of_query(self.session, query, self.name or None)

    def _checked(self) -> StreamHandle:
        bind_query(self.query(), self.session.pipeline.catalog)
        return self


@dataclass(frozen=True)
class Grouped:
    """A handle and the columns to group it by."""

    handle: StreamHandle
    columns: tuple[str, ...]

    def agg(self, *unnamed: object, **calls: str) -> StreamHandle:
        """One tuple per group and window: the group columns and these aggregates."""
        if unnamed:
            raise TypeProblem("each aggregate needs a name", hint="write agg(n='count(*)')")
        items = [_item(column) for column in self.columns]
        select = self.handle._open()._select([*items, *(_alias(text, name) for name, text in calls.items())])
        if items:
            groups: list[exp.Expr] = [(item.this if isinstance(item, exp.Alias) else item).copy() for item in items]
            select.set("group", exp.Group(expressions=groups))
        return self.handle._made(select)


def plain(tree: Any) -> Any:
    """The tree without places: those of a fragment would mislead."""
    for node in tree.walk():
        for key in ("line", "col", "start", "end", "statement", "file"):
            node.meta.pop(key, None)
    return tree


def _read(parse: Callable[[str], exp.Expr], text: str, given: str) -> Any:
    """Parse a fragment; a mistake is told beside what was given, because its line and column would be those of no file."""
    need_text("a condition, column or window", given)
    try:
        return plain(parse(text))
    except MillstreamError as problem:
        raise type(problem)(f"in `{given}`: {problem.message}", hint=problem.hint) from None


def _expression(text: str) -> exp.Expr:
    return cast(exp.Expr, _read(parse_expression, text, text))


def _item(text: str) -> exp.Expr:
    """One member of a select list, as SQL reads it there."""
    select = _read(parse_query, f"SELECT {text} FROM x", text)
    if len(select.expressions) != 1:
        raise PlanProblem(f"`{text}` is more than one column", hint="give each as a text of its own")
    return cast(exp.Expr, select.expressions[0].pop())


def _order(text: str) -> list[exp.Expr]:
    """Members of ORDER BY, such as `price DESC`."""
    select = _read(parse_query, f"SELECT * FROM x ORDER BY {text}", text)
    if any(value for name, value in select.args.items() if name not in ("expressions", "from_", "order")):
        raise PlanProblem(
            f"`{text}` is more than a column and its direction", hint="give each column as a text of its own"
        )
    return [item.pop() for item in list(select.args["order"].expressions)]


def _alias(text: str, name: str) -> exp.Expr:
    return exp.alias_(_expression(text), name, quoted=True)


def _window(length: str | int, slide: str | int | None, on: str | None) -> StreamWindow:
    """Read by the parser of the language, so that it knows what SQL knows."""
    if isinstance(length, int) and not isinstance(length, bool):
        parts = [f"ROWS {length}"]
    else:
        text = need_text("the length of a window", length, "write a number and a unit: 1 minute")
        parts = ["NOW" if text.strip().upper() == "NOW" else f"RANGE {text}"]
    if slide is not None:
        parts.append(
            f"SLIDE {slide if isinstance(slide, int) else need_text('the slide of a window', slide)}"
        )
    if on is not None:
        parts.append(f"WA {need_text('the column of a window', on)}")
    spelled = f"[{' '.join(parts)}]"
    table = _read(parse_query, f"SELECT * FROM x {spelled}", spelled).args["from_"].this
    return cast(StreamWindow, table.args[KEY].copy())


def _subquery(query: exp.Expr, alias: str | None = None, window: StreamWindow | None = None) -> exp.Subquery:
    subquery = exp.Subquery(this=query.copy())
    if alias:
        subquery.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    if window is not None:
        subquery.set(KEY, window)
    return subquery


def _bare(handle: StreamHandle) -> StreamHandle:
    """Without the window of its source, which goes to the subquery around it."""
    source = handle._source()
    source.set(KEY, None)
    return replace(handle, source=source)
