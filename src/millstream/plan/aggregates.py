"""Aggregation in a select list: which calls there are, and what is computed from their results."""

from __future__ import annotations

from sqlglot import exp

from millstream.core.types import HIDDEN, is_hidden
from millstream.errors import NameProblem, PlanProblem, UnsupportedProblem
from millstream.expressions.registry import FUNCTIONS as SCALARS
from millstream.language import place_of, text_of, written
from millstream.language.places import WRITTEN
from millstream.plan.nodes import Aggregate, Call, Node, Windowed
from millstream.plan.rules.recognise_windows import consumed
from millstream.plan.scope import Scope, column
from millstream.plan.window import WINDOW_END, WINDOW_START

Outputs = list[tuple[str, exp.Expr]]

FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
    exp.Avg: "avg",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.CountIf: "count",
}


OTHER_NAMES: dict[str, type[exp.Expr]] = {
    "mean": exp.Avg,
    "every": exp.LogicalAnd,
    "some": exp.LogicalOr,
    "std": exp.Stddev,
}
"""Names that Spark knows and the parser takes for functions of the user's own."""


def with_known_aggregates(query: exp.Select) -> exp.Select:
    """The query with aggregates under other names spelled as the parser would have read them."""

    def visit(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Any) and isinstance(node.this, exp.Paren) and not isinstance(node.parent, exp.Binary):
            return exp.LogicalOr(this=node.this.this)
        if isinstance(node, exp.Anonymous) and node.name.lower() in OTHER_NAMES and len(node.expressions) == 1:
            return OTHER_NAMES[node.name.lower()](this=node.expressions[0])
        if isinstance(node, exp.Anonymous) and node.name.lower() not in SCALARS:
            aggregates = dict.fromkeys([*FUNCTIONS.values(), *OTHER_NAMES, "stddev", "variance", "count_if"])
            known = [*aggregates, *SCALARS]
            raise NameProblem.unknown("function", node.name, known, place=place_of(node))
        return node

    if query.find(exp.Any, exp.Anonymous) is None:  # a copy costs most of the planning of deep sub-queries
        return query
    changed = query.transform(visit, copy=True)
    assert isinstance(changed, exp.Select)
    return changed


def has_aggregate(expression: exp.Expr) -> bool:
    return expression.find(exp.AggFunc) is not None


def bind_aggregation(
    node: Node, scope: Scope, outputs: Outputs, group: exp.Group | None, having: exp.Having | None
) -> tuple[Node, Outputs, exp.Expr | None]:
    """Put an Aggregate on top of `node`; give the select list and the HAVING condition over its columns."""
    keys = _group_keys(scope, outputs, group)
    calls: dict[exp.Expr, Call] = {}
    names = {key: name for name, key in keys}
    kinds = {type(key) for key in names}
    """To look up only what can be a key: a look-up reads all of an expression."""
    window = None
    if isinstance(node, Windowed):
        window = consumed(node)
        node = node.input
        scope.extra = {WINDOW_START: WINDOW_START, WINDOW_END: WINDOW_END}

    def rewrite(expression: exp.Expr) -> exp.Expr:
        resolved = scope.resolve(expression)

        def visit(part: exp.Expr) -> exp.Expr:
            if type(part) in kinds and part in names:
                return _named(names[part], part)
            if isinstance(part, (exp.AggFunc, exp.Filter)):
                call = calls.get(part)
                if call is None:
                    call = calls[part] = _call(part, f"{HIDDEN}a{len(calls)}")
                return _named(call.name, part)
            if isinstance(part, exp.Column) and part.name not in scope.extra:
                raise PlanProblem(
                    f"column `{part.name}` is neither grouped nor aggregated", place=place_of(expression), hint="add it to GROUP BY"
                )
            return part

        return resolved.transform(visit)  # never looks inside what it replaced

    selected = [(name, rewrite(e)) for name, e in outputs]
    condition = rewrite(_without_aliases(having.this, outputs, scope)) if having is not None else None
    lacks = tuple((relation.title, time) for relation in scope.relations for time in relation.lacks)
    return Aggregate(node, tuple(keys), tuple(calls.values()), window, lacks), selected, condition


def _named(name: str, part: exp.Expr) -> exp.Expr:
    """The column of an aggregate that holds a part of the query, with the place and the text of that part."""
    found = column(name)
    if is_hidden(name):
        found.meta[WRITTEN] = text_of(part).replace("`", "")
    place = place_of(part)
    if place is not None:
        found.meta.update(line=place.line, col=place.column, statement=place.statement, file=place.file)
    return found


def _without_aliases(expression: exp.Expr, outputs: Outputs, scope: Scope) -> exp.Expr:
    """HAVING may name columns of the select list, as in Spark."""
    aliases = {name.lower(): e for name, e in outputs}

    def visit(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and not _known(scope, node) and node.name.lower() in aliases:
            return exp.paren(aliases[node.name.lower()].copy())
        return node

    return expression.transform(visit)


def _group_keys(scope: Scope, outputs: Outputs, group: exp.Group | None) -> list[tuple[str, exp.Expr]]:
    """The grouping expressions with a column name each: positions and aliases are looked up in the select list."""
    if group is None:
        return []
    several = (exp.GroupingSets, exp.Cube, exp.Rollup)
    if any(group.args.get(k) for k in ("grouping_sets", "cube", "rollup", "all", "totals")) or any(
        isinstance(item, several) for item in group.expressions
    ):
        hint = "write the group columns themselves, and a query for each grouping"
        raise UnsupportedProblem("only plain GROUP BY is supported", place=place_of(group), hint=hint)
    keys: list[tuple[str, exp.Expr]] = []
    taken: set[str] = set()
    aliases = {name.lower(): e for name, e in outputs}
    for item in group.expressions:
        if isinstance(item, exp.Literal) and not item.is_string:
            if not item.name.isdigit():
                hint = "a number in GROUP BY is the place of a column in the select list, such as GROUP BY 1"
                raise PlanProblem(
                    f"GROUP BY {item.name}: there is no such place", place=place_of(item), hint=hint
                )
            position = int(item.name)
            if not 1 <= position <= len(outputs):
                raise PlanProblem(f"GROUP BY {position}: the select list has {len(outputs)} columns", place=place_of(item))
            item = outputs[position - 1][1]
        elif isinstance(item, exp.Column) and not item.table and not _known(scope, item) and item.name.lower() in aliases:
            item = aliases[item.name.lower()]
        if isinstance(item, exp.Column) and item.name.lower() in (WINDOW_START, WINDOW_END) and not _known(scope, item):
            continue  # a window's ends are part of every group already
        if has_aggregate(item):
            raise PlanProblem("an aggregate can not stand in GROUP BY", place=place_of(item))
        expression = scope.resolve(item)
        if expression in [e for _, e in keys]:
            continue
        plain = isinstance(expression, exp.Column) and expression.name not in (WINDOW_START, WINDOW_END)
        name = expression.name if plain else f"{HIDDEN}g{len(keys)}"
        keys.append((name, expression))
        taken.add(name)
    return keys


def _known(scope: Scope, item: exp.Column) -> bool:
    return any(r.find(item.name) is not None for r in scope.relations)


def _call(part: exp.Expr, name: str) -> Call:
    """One aggregate call; FILTER (WHERE p) and count_if(p) become an argument that is null where p is not true."""
    condition = None
    if isinstance(part, exp.Filter):
        condition = part.expression.this
        part = part.this
    function = FUNCTIONS.get(type(part))
    if function is None:
        hint = "there is " + ", ".join(sorted({*FUNCTIONS.values(), "count_if"}))
        said = f"aggregate `{written(part)}` is not supported"
        raise UnsupportedProblem(said, place=place_of(part), hint=hint)
    argument = part.this
    distinct = isinstance(argument, exp.Distinct)
    if distinct:
        if len(argument.expressions) != 1 or isinstance(argument.expressions[0], exp.Star):
            raise UnsupportedProblem(f"{function}(DISTINCT ...) takes one column", place=place_of(part))
        argument = argument.expressions[0]
        distinct = function not in ("min", "max", "bool_and", "bool_or")
    if isinstance(part, exp.CountIf):
        condition, argument = (argument if condition is None else exp.and_(argument, condition)), exp.Star()
    if part.args.get("expressions"):
        raise UnsupportedProblem(f"{function} takes one argument", place=place_of(part))
    if isinstance(argument, exp.Star) or (
        function == "count" and isinstance(argument, exp.Literal) and not distinct
    ):
        argument = None
    if argument is not None and has_aggregate(argument):
        raise PlanProblem("an aggregate can not stand inside another", place=place_of(part))
    if condition is not None:
        argument = exp.If(this=condition.copy(), true=argument.copy() if argument is not None else exp.Literal.number(1), false=exp.Null())
    return Call(name, function, argument, distinct)
