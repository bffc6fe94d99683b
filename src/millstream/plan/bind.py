"""Binding turns a parsed query into a logical plan: names become columns, clauses become nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from millstream.core.types import HIDDEN, SEQUENCE, Order, is_hidden
from millstream.errors import MillstreamError, NameProblem, Place, PlanProblem, UnsupportedProblem
from millstream.language import place_of, text_of
from millstream.language.statements import CreateView
from millstream.language.window import StreamWindow
from millstream.plan.aggregates import bind_aggregation, has_aggregate, with_known_aggregates
from millstream.plan.catalog import STAMP, BoundView, Catalog, SinkEntry, Stream, Table
from millstream.plan.clauses import refuse_others
from millstream.plan.nodes import Distinct, Filter, Insert, Join, Node, Project, Scan, Sort, TableScan, Windowed
from millstream.plan.rules.recognise_windows import recognise_windows
from millstream.plan.scope import Relation, Scope, column
from millstream.plan.select_list import expand_stars, fresh, output_name, unique_names
from millstream.plan.subqueries import refuse_subquery
from millstream.plan.unions import make_union
from millstream.plan.window import WINDOW_END, WINDOW_START, Window


def bind_insert(sink: str, query: exp.Expr, catalog: Catalog, place: Place | None = None) -> Insert:
    """The plan of `INSERT INTO sink query`."""
    return bind_answer(query, _sink(sink, catalog, place), catalog)


def bind_answer(query: exp.Expr, entry: SinkEntry, catalog: Catalog) -> Insert:
    """The plan of a query and where its results go."""
    plan = bind_query(query, catalog)
    if not plan.streaming:
        raise PlanProblem(
            "a query must read FROM a stream", place=place_of(query), hint="a table alone has no progress, join it with a stream"
        )
    return Insert(plan, entry, query)


def _sink(name: str, catalog: Catalog, place: Place | None) -> SinkEntry:
    """The sink of that name; streams, tables and views take no answers."""
    found = catalog.relations.get(name)
    if catalog.sinks.get(name) is None and found is not None:
        kind = "stream" if isinstance(found, Stream) else "table" if isinstance(found, Table) else "view"
        hint = f"answers go into a sink: write CREATE SINK {name}Out WITH (...) and INSERT INTO {name}Out"
        raise NameProblem(f"`{name}` is a {kind}, no sink", place=place, hint=hint)
    return catalog.sinks.need(name, place)


def bind_view(view: CreateView, catalog: Catalog) -> Node:
    """The plan of a view, which is kept while all that the view reads stays declared as it is."""
    known = catalog.bound.get(view.name.lower())
    if known is not None and known.view is view and known.holds(catalog):
        return known.plan  # type: ignore[no-any-return]
    plan = bind_query(view.query, catalog)
    catalog.bound[view.name.lower()] = BoundView.of(view, plan, catalog)
    return plan


def bind_query(query: exp.Expr, catalog: Catalog) -> Node:
    """The plan of a SELECT, a UNION ALL of them, or a parenthesised one."""
    try:
        if isinstance(query, exp.Subquery):
            refuse_others(query)
            return _ordered(_with_window(bind_query(query.this, catalog), query.args.get("stream_window")), query)
        if isinstance(query, exp.Union):
            return _bind_union(query, catalog)
        if isinstance(query, exp.Select):
            return _bind_select(query, catalog)
    except MillstreamError as problem:
        raise problem.at(place_of(query)) from None
    raise UnsupportedProblem(f"{query.key.upper()} is not a query that can run on streams", place=place_of(query))


def _bind_union(query: exp.Union, catalog: Catalog) -> Node:
    if query.args.get("distinct"):
        raise PlanProblem("UNION removes duplicates for ever", place=place_of(query), hint="write UNION ALL")
    refuse_others(query)
    return _ordered(make_union([bind_query(query.left, catalog), bind_query(query.right, catalog)], query), query)


def _ordered(node: Node, query: exp.Query) -> Node:
    order = query.args.get("order")
    if order is None:
        return node
    try:
        return Sort(node, tuple(_order_key(item, node) for item in order.expressions), place_of(order))
    except MillstreamError as problem:
        raise problem.at(place_of(order)) from None


def _bind_select(query: exp.Select, catalog: Catalog) -> Node:
    refuse_others(query)
    query = with_known_aggregates(query)
    if query.args.get("from_") is None:
        raise PlanProblem("a query must read FROM a stream", place=place_of(query))
    for nested in query.find_all(exp.Select):
        if nested is not query and not _in_from(nested, query):
            raise refuse_subquery(nested, query)
    for over in query.find_all(exp.Window):
        if over.find_ancestor(exp.Select) is query:
            hint = "aggregate in a window of the stream, such as FROM Bid [RANGE 1 MINUTE], and join"
            raise UnsupportedProblem("window functions (OVER) are not supported", place=place_of(over), hint=hint)
    scope = Scope()
    node = _bind_from(query, catalog, scope)
    if where := query.args.get("where"):
        if has_aggregate(where.this):
            raise PlanProblem("an aggregate can not stand in WHERE", place=place_of(where.this), hint="use HAVING")
        node = filtered(node, scope.resolve(where.this))
    # Lifted here already, because a window's ends are columns that the select list may name.
    node = recognise_windows(_with_window(node, query.args.get("stream_window"), scope))
    items = expand_stars(query.expressions, scope)
    having, group = query.args.get("having"), query.args.get("group")
    outputs = [(output_name(item), item.unalias() if isinstance(item, exp.Alias) else item) for item in items]
    if group is not None or having is not None or any(has_aggregate(e) for _, e in outputs):
        node, outputs, condition = bind_aggregation(node, scope, outputs, group, having)
        if condition is not None:
            node = filtered(node, condition)
    else:
        outputs = [(name, scope.resolve(e)) for name, e in outputs]
    node = _project(node, unique_names(outputs), scope)
    if distinct := query.args.get("distinct"):
        refuse_others(distinct)
        node = recognise_windows(Distinct(node))
    return _ordered(node, query)


def _in_from(nested: exp.Expr, query: exp.Select) -> bool:
    """True when a nested SELECT stands in FROM, or belongs to another SELECT that does."""
    if nested.find_ancestor(exp.Select) is not query:
        return True
    step: exp.Expr = nested
    while step.parent is not None and step.parent is not query:
        if isinstance(step, (exp.In, exp.Exists, exp.Binary)):
            return False
        step = step.parent
    return step.arg_key in ("from_", "joins")


def filtered(node: Node, condition: exp.Expr) -> Node:
    for conjunct in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        node = Filter(node, conjunct.unnest())
    return node


def _bind_from(query: exp.Select, catalog: Catalog, scope: Scope) -> Node:
    node = _relation(query.args["from_"].this, catalog, scope)
    for join in query.args.get("joins") or ():
        node = _bind_join(node, join, catalog, scope)
    return node


def _bind_join(left: Node, join: exp.Join, catalog: Catalog, scope: Scope) -> Node:
    refuse_others(join)
    kind = _join_kind(join)
    before = list(scope.relations)
    right = _relation(join.this, catalog, scope, left.schema.names)
    node: Node
    conditions: list[exp.Expr] = []
    if join.args.get("using"):
        for name in join.args["using"]:
            lefts = Scope(before).column(exp.column(name.copy()))
            rights = Scope(scope.relations[len(before) :]).column(exp.column(name.copy()))
            conditions.append(exp.EQ(this=lefts, expression=rights))
        for relation in scope.relations[len(before) :]:
            for name in join.args["using"]:
                relation.columns = {k: v for k, v in relation.columns.items() if k.lower() != name.name.lower()}
    if join.args.get("on") is not None:
        condition = scope.resolve(join.args["on"])
        conditions += [c.unnest() for c in (condition.flatten() if isinstance(condition, exp.And) else [condition])]
    if not left.streaming and right.streaming:
        if kind != "inner":
            raise PlanProblem("a table can not be the left side of this join", place=place_of(join.this), hint="put the stream first")
        left, right = right, left
    stamp = fresh(STAMP, {*left.schema.names, *right.schema.names})
    node = Join(left, right, kind, tuple(conditions), stamp=stamp)
    if kind in ("semi", "anti"):
        scope.unseen += [relation.alias.lower() for relation in scope.relations[len(before) :]]
        scope.relations[:] = before
    return node


def _join_kind(join: exp.Join) -> str:
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    if join.args.get("method"):
        method, hint = str(join.args["method"]), "write ON or USING"
        if method.upper() == "ASOF":
            hint = "join in a window, such as A [RANGE 1 MINUTE], and take the latest match"
        raise UnsupportedProblem(f"{method} JOIN is not supported yet", place=place_of(join.this), hint=hint)
    if kind in ("SEMI", "ANTI") and side != "RIGHT":
        return kind.lower()
    if side == "LEFT":
        return "left"
    if side in ("RIGHT", "FULL"):
        raise UnsupportedProblem(
            f"{side} JOIN is not supported",
            place=place_of(join.this),
            hint="swap the sides and write LEFT JOIN"
            if side == "RIGHT"
            else "write a LEFT JOIN, and UNION ALL with a LEFT ANTI JOIN of the swapped sides",
        )
    return "inner"


def _relation(source: exp.Expr, catalog: Catalog, scope: Scope, others: Iterable[str] = ()) -> Node:
    """Bind one FROM entry, rename its columns apart from those already there, add it to the scope."""
    if isinstance(source, (exp.Table, exp.Subquery)):
        refuse_others(source)
        refuse_others(source.args.get("alias"))
    if isinstance(source, exp.Table):
        unknown = catalog.relations.get(source.name) is None
        if not isinstance(source.this, exp.Identifier) or (unknown and "/" in source.name):
            hint = "declare it before: CREATE STREAM Name (columns) WITH (path = '...')"
            text = text_of(source)
            raise UnsupportedProblem(f"{text} can not be read FROM", place=place_of(source), hint=hint)
        entry = catalog.relations.need(source.name, place_of(source))
        node: Node
        if isinstance(entry, Stream):
            node = Scan(entry)
        elif isinstance(entry, Table):
            node = TableScan(entry)
        else:
            assert isinstance(entry, CreateView)
            node = bind_view(entry, catalog)
        alias = source.alias or source.name
    elif isinstance(source, exp.Subquery):
        node = bind_query(source.this, catalog)
        alias = source.alias or f"{HIDDEN}{len(scope.relations)}"
    else:
        raise UnsupportedProblem(
            f"{source.key.upper()} can not be read FROM",
            place=place_of(source),
            hint="read FROM a stream, a view or a sub-query; lists are unfolded before they enter a stream",
        )
    if any(r.alias.lower() == alias.lower() for r in scope.relations):
        raise PlanProblem(f"`{alias}` stands in FROM twice", place=place_of(source), hint="give one of them another name with AS")
    shown = {name for name in node.schema.names if not is_hidden(name)}
    times = {n.stream.time for n in node.walk() if isinstance(n, Scan) and not is_hidden(n.stream.time)}
    lacks = () if shown & (times | node.progressing) else tuple(sorted(times))
    taken = {*scope.names(), *others}
    names = {}
    for name in node.schema.names:
        names[name] = inner = fresh(name, taken)
        taken.add(inner)
    if any(k != v for k, v in names.items()):
        time = names[node.time] if node.time is not None else None
        node = Project(node, tuple((inner, column(name)) for name, inner in names.items()), time)
    scope.relations.append(Relation(alias, names, lacks))
    return _with_window(node, source.args.get("stream_window"), scope, alias)


def _with_window(node: Node, spec: StreamWindow | None, scope: Scope | None = None, alias: str | None = None) -> Node:
    if spec is None:
        return node
    if not node.streaming:
        raise PlanProblem("a window can not stand on a table", place=place_of(spec), hint="tables are read whole")
    kind, attribute = spec.args["kind"], spec.args.get("attribute")
    if kind == "rows":
        sequence = next((n for n in node.schema.names if n == SEQUENCE or n.startswith(SEQUENCE + "_")), None)
        if sequence is None:
            raise PlanProblem(
                "a ROWS window counts the arrival numbers of one stream", place=place_of(spec), hint="put it right behind the stream's name"
            )
        name = sequence
    elif attribute is not None:
        relations = scope.relations if scope is not None else [Relation("", {n: n for n in node.schema.names})]
        if alias is not None:
            relations = [r for r in relations if r.alias == alias]
        name = _window_column(attribute, relations, node)
    elif node.time is None:
        raise PlanProblem("this input has no time to put a window on", place=place_of(spec), hint="name it with WA column")
    else:
        name = node.time
    span = int(spec.args.get("range") or 0)
    slide = spec.args.get("slide")
    window = Window(name, span, int(slide) if slide else max(span, 1), kind == "rows", slide is not None)
    try:
        return Windowed(node, replace(window, place=place_of(spec)))
    except MillstreamError as problem:
        raise problem.at(place_of(spec)) from None


def _window_column(attribute: exp.Column, relations: list[Relation], node: Node) -> str:
    """The column of the plan that WA names."""
    try:
        return Scope(list(relations)).column(attribute).name
    except NameProblem as problem:
        if node.time is not None and is_hidden(node.time):
            problem.hint = f"{problem.hint}, or leave WA out: the time of the streams goes along unseen"
        raise


def _project(node: Node, outputs: list[tuple[str, exp.Expr]], scope: Scope) -> Node:
    """The select list, with the times that later windows may need kept as hidden columns, and a window's ends shown."""
    names = {name for name, _ in outputs}
    selected = {e.name for _, e in outputs if isinstance(e, exp.Column)}
    for end in (WINDOW_START, WINDOW_END):
        if end in node.schema.names and end not in selected and end in scope.extra:
            name = fresh(end, names)
            outputs = [*outputs, (name, column(end))]
            names.add(name)
    time = None
    if node.time is not None:
        time = next((name for name, e in outputs if isinstance(e, exp.Column) and e.name == node.time), None)
        if time is None:
            time = fresh(STAMP, names)
            outputs = [*outputs, (time, column(node.time))]
    if SEQUENCE in node.schema.names:
        outputs = [*outputs, (SEQUENCE, column(SEQUENCE))]
    return Project(node, tuple(outputs), time)


def _order_key(item: exp.Expr, node: Node) -> Order:
    target = item.this if isinstance(item, exp.Ordered) else item
    if isinstance(target, exp.Literal) and target.name.isdigit():
        names = [name for name in node.schema.names if not is_hidden(name)]
        if not 1 <= int(target.name) <= len(names):
            said = f"ORDER BY {target.name}: the answer has {len(names)} columns"
            raise PlanProblem(said, place=place_of(target))
        target = exp.column(names[int(target.name) - 1], quoted=True)
    if not isinstance(target, exp.Column):
        hint = "add it to the select list under a name of its own, and order by that"
        raise UnsupportedProblem("ORDER BY takes columns of the select list", place=place_of(target), hint=hint)
    relation = Relation("", {n: n for n in node.schema.names})
    try:
        name = Scope([relation]).column(exp.Column(this=target.this.copy())).name
    except NameProblem as problem:
        problem.hint = f"{problem.hint}, or add `{target.name}` to the select list"
        raise problem.at(place_of(target)) from None
    descending, nulls_first = bool(item.args.get("desc")), item.args.get("nulls_first")
    return Order(name, descending, not descending if nulls_first is None else bool(nulls_first))
