"""Which rule compiles which syntax node or function name: plain dictionaries that the families fill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from millstream.errors import MillstreamError, NameProblem, PlanProblem, TypeProblem, UnsupportedProblem
from millstream.expressions.node import Node, place_of
from millstream.language.places import written

Rule = Callable[[Any, "Scope"], Node]
Function = Callable[[Sequence[Node], "Call"], Node]

RULES: dict[type[exp.Expr], Rule] = {}
"""Rules by syntax node class."""

FUNCTIONS: dict[str, Function] = {}
"""Functions by lower-case name, with their arguments compiled; aliases share the function."""


@dataclass(frozen=True)
class Scope:
    """What names mean inside an expression: the schema it is compiled against."""

    schema: pa.Schema

    def compile(self, expression: exp.Expr) -> Node:
        rule = RULES.get(type(expression))
        if rule is None:
            rule = _rule_of_last_resort(expression)
        try:
            return rule(expression, self)
        except MillstreamError as error:
            error.at(place_of(expression))
            raise

    def optional(self, expression: exp.Expr | None) -> Node | None:
        return None if expression is None else self.compile(expression)


@dataclass(frozen=True)
class Call:
    """The name of the function being compiled, for its messages."""

    name: str

    def wrong(self, types: str, hint: str) -> TypeProblem:
        return TypeProblem(f"{self.name} does not take {types}", hint=hint)


def rule(*classes: type[exp.Expr]) -> Callable[[Rule], Rule]:
    """Register a rule for syntax nodes."""

    def register(function: Rule) -> Rule:
        for kind in classes:
            RULES[kind] = function
        return function

    return register


def function(
    *names: str, at_least: int = 1, at_most: int | None = None, node: type[exp.Expr] | None = None, args: tuple[str, ...] = ("this",)
) -> Callable[[Function], Function]:
    """Register a function by its SQL names and, when the parser has a class for it, by class and the order of its fields."""
    most = at_least if at_most is None else at_most

    def register(body: Function) -> Function:
        def checked(nodes: Sequence[Node], call: Call) -> Node:
            if not at_least <= len(nodes) <= most:
                wanted = str(at_least) if most == at_least else f"{at_least} to {most}" if most < MANY else f"at least {at_least}"
                raise TypeProblem(f"{call.name} takes {wanted} argument{'s' if most != 1 else ''}, not {len(nodes)}")
            return body(nodes, call)

        for name in names:
            FUNCTIONS[name] = checked
        if node is not None:
            RULES[node] = lambda expression, scope: checked(_fields(expression, scope, args), Call(names[0]))
        return body

    return register


MANY = 1 << 30


def _fields(expression: exp.Expr, scope: Scope, args: tuple[str, ...]) -> list[Node]:
    """The compiled arguments of a parsed function: its fields in order, lists spliced in."""
    nodes: list[Node] = []
    for name in args:
        value = expression.args.get(name)
        if isinstance(value, list):
            nodes.extend(scope.compile(v) for v in value)
        elif value is not None:
            nodes.append(scope.compile(value))
    return nodes


@rule(exp.Anonymous)
def _anonymous(expression: exp.Anonymous, scope: Scope) -> Node:
    name = str(expression.this).lower()
    body = FUNCTIONS.get(name)
    if body is None:
        raise NameProblem.unknown("function", name, sorted(FUNCTIONS))
    return body([scope.compile(e) for e in expression.expressions], Call(name))


ONE_ROW = "a tuple makes one tuple at most: unfold lists before they enter the stream"
ZONES = "times are in UTC; add the distance yourself, such as ts + INTERVAL 2 HOURS"
INSTEAD: dict[type[exp.Expr], str] = {
    exp.AtTimeZone: ZONES,
    exp.FromTimeZone: ZONES,
    exp.SimilarTo: "write name RLIKE 'pattern'",
    exp.BitwiseLeftShift: "write k * 2 for each place",
    exp.BitwiseRightShift: "write k DIV 2 for each place",
    exp.Tuple: "compare its members one by one, with AND between them",
    exp.Bracket: "substr(name, 1, 1) takes the first character of a text; there are no lists",
    exp.Explode: ONE_ROW,
    exp.Posexplode: ONE_ROW,
    exp.Unnest: ONE_ROW,
}
"""The way out for syntax that is not supported."""


def _rule_of_last_resort(expression: exp.Expr | None) -> Rule:
    """Syntax no family handles: say what it is and why it has no place in a scalar expression."""
    if expression is None:
        raise TypeProblem("a function lacks an argument", hint="write it between the parentheses")
    if isinstance(expression, exp.AggFunc):
        name = written(expression)
        problem: MillstreamError = PlanProblem(
            f"the aggregate {name} stands where a value of one tuple is needed",
            hint="put aggregates in the SELECT list or HAVING of a GROUP BY",
        )
    elif isinstance(expression, exp.Window):
        problem = UnsupportedProblem("window functions (OVER) are not supported", hint="use a window in brackets, such as [RANGE 1 MINUTE]")
    elif isinstance(expression, (exp.Query, exp.Subquery, exp.Exists, exp.Any, exp.All)):
        problem = UnsupportedProblem(
            "subqueries inside an expression are not supported", hint="write a join, a LEFT SEMI JOIN or a LEFT ANTI JOIN"
        )
    elif isinstance(expression, exp.Func):
        hint = INSTEAD.get(type(expression)) or f"there is {', '.join(sorted(FUNCTIONS)[:12])}, ..."
        problem = UnsupportedProblem(f"the function {written(expression)} is not supported", hint=hint)
    else:
        said = f"`{expression.sql('spark')}` ({expression.key}) is not supported in an expression"
        problem = UnsupportedProblem(said, hint=INSTEAD.get(type(expression)))
    raise problem.at(place_of(expression))
