"""Split a join's condition into equal keys, bands between times, and the rest."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import INTERVAL, TIMESTAMP, is_axis
from millstream.errors import MillstreamError
from millstream.expressions import compile_expression, fold_constant, monotone
from millstream.expressions.intervals import MICROS
from millstream.plan.bands import FAR, implied_bands, merged_bands
from millstream.plan.nodes import Band, Join, Node
from millstream.plan.rules.transform import bottom_up, columns_of, with_column
from millstream.plan.scope import column

# op, mirrored: `left op right` seen from the other side
MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}


def recognise_joins(plan: Node, *, implied: bool = False, windowed: bool = False) -> Node:
    """With `implied` bands that follow from others are there as well: times further apart move on by them."""
    return bottom_up(plan, partial(_change, implied=implied, windowed=windowed))


def _change(node: Node, *, implied: bool, windowed: bool) -> Node:
    if not isinstance(node, Join):
        return node
    keys, bands, rest = list(node.keys), list(node.bands), []
    derived: dict[exp.Expr, str] = {}
    for part in _split(node.condition, node.pair_schema):
        part = _at_midnight(part, node.pair_schema)
        band = _band(part, node)
        if band is None and implied:
            node, band = _derived(part, node, derived)
        key = _key(part, node)
        if key is not None:
            keys.append(key)
        if band is not None:
            bands.append(band)
        if key is None and band is None:
            compile_expression(part, node.pair_schema)  # refuses what a run would refuse
            rest.append(part)
    left, right = node.left, node.right
    for a, b in list(keys):
        if _progress_together(a, left, b, right):
            taken = {*left.schema.names, *right.schema.names}
            left, first = with_column(left, a, taken)
            right, second = with_column(right, b, taken)
            bands.append(Band(first, second, 0, 0))
    bands = merged_bands(bands)
    if implied and node.kind == "inner":
        bands += implied_bands(left, right, bands)
    bands += _latest(node, bands)
    return replace(
        node,
        left=left,
        right=right,
        condition=tuple(rest),
        keys=tuple(keys),
        bands=tuple(bands),
        windowed=windowed,
    )


def _split(condition: tuple[exp.Expr, ...], schema: pa.Schema) -> list[exp.Expr]:
    parts: list[exp.Expr] = []
    for part in condition:
        ends = _ends(part, schema) if isinstance(part, exp.Between) else None
        if ends is None:
            parts.append(part)
        else:
            parts.append(exp.GTE(this=part.this.copy(), expression=ends[0].copy()))
            parts.append(exp.LTE(this=part.this.copy(), expression=ends[1].copy()))
    return parts


def _at_midnight(part: exp.Expr, schema: pa.Schema) -> exp.Expr:
    """A comparison of timestamps, in which each date beside them is cast to its midnight."""
    dates = {name for name in columns_of(part) if pa.types.is_date(schema.field(name).type)}
    if not dates or type(part) not in MIRRORED:
        return part
    sides = [part.this, part.expression]
    kinds = [compile_expression(side, schema).type for side in sides]
    if TIMESTAMP not in kinds:
        return part
    made = part.copy()
    for found in list(made.find_all(exp.Column)):
        if found.name in dates and _is_operand(found, made):
            found.replace(_midnight(found.copy()))
    try:
        compile_expression(made, schema)
    except MillstreamError:  # a date may have been moved by a number of days
        made = part.copy()
    moved = [
        _midnight(side) if compile_expression(side, schema).type == pa.date32() else side
        for side in (made.this.copy(), made.expression.copy())
    ]
    return type(part)(this=moved[0], expression=moved[1])


def _is_operand(found: exp.Expr, part: exp.Expr) -> bool:
    """True when a column is compared as it is, or within sums and differences alone."""
    above = found.parent
    while isinstance(above, (exp.Add, exp.Sub, exp.Paren)):
        above = above.parent
    return above is part


def _midnight(date: exp.Expr) -> exp.Expr:
    return exp.cast(date, "timestamp", dialect="spark")


def _ends(part: exp.Between, schema: pa.Schema) -> tuple[exp.Expr, exp.Expr] | None:
    """The lower and the upper end; None for ends of BETWEEN SYMMETRIC whose order depends on the tuple."""
    low, high = part.args["low"], part.args["high"]
    if not part.args.get("symmetric"):
        return low, high
    places = [_shifted(end, schema) or (None, _constant(end)) for end in (low, high)]
    (one, first), (other, second) = places
    if one != other or first is None or second is None:
        return None
    return (low, high) if first <= second else (high, low)


def _key(part: exp.Expr, node: Join) -> tuple[exp.Expr, exp.Expr] | None:
    """`f(left columns) = g(right columns)`, whichever way round it is written."""
    if not isinstance(part, exp.EQ):
        return None
    for a, b in ((part.this, part.expression), (part.expression, part.this)):
        x, y = columns_of(a), columns_of(b)
        if x and y and x <= set(node.left.schema.names) and y <= set(node.right.schema.names):
            return a.unnest(), b.unnest()
    return None


def _band(part: exp.Expr, node: Join) -> Band | None:
    """`left.ts + a <op> right.ts + b` over progressing times of both sides."""
    if type(part) not in MIRRORED:
        return None
    schema, op = node.pair_schema, type(part)
    one, other = _shifted(part.this, schema), _shifted(part.expression, schema)
    if one is None or other is None:
        apart = _difference(part.this, part.expression, schema)
        reverse = _difference(part.expression, part.this, schema)
        if apart is None and reverse is not None:
            op = MIRRORED[op]
        pair = apart or reverse
        if pair is None:
            return None
        one, other = pair
    (x, a), (y, b) = one, other
    if x in node.right.schema.names and y in node.left.schema.names:
        (x, a), (y, b), op = (y, b), (x, a), MIRRORED[op]
    if x not in node.left.progressing or y not in node.right.progressing:
        return None
    if node.left.schema.field(x).type != node.right.schema.field(y).type or not is_axis(node.left.schema.field(x).type):
        return None
    # x + a op y + b, hence y - x compared with a - b.
    gap = a - b
    if abs(gap) >= FAR:  # it bounds nothing, and a time moved so far would not fit 64 bits
        return None
    if op is exp.EQ:
        return Band(x, y, gap, gap)
    if op is exp.LTE:
        return Band(x, y, gap, None)
    if op is exp.LT:
        return Band(x, y, gap + 1, None)
    if op is exp.GTE:
        return Band(x, y, None, gap)
    return Band(x, y, None, gap - 1)


Shifted: TypeAlias = tuple[str, int]
"""A column, and what is added to it in the units of its axis."""


def _shifted(expression: exp.Expr, schema: pa.Schema) -> Shifted | None:
    """A column plus or minus a constant."""
    expression = expression.unnest()
    if isinstance(expression, exp.Column):
        return expression.name, 0
    if not isinstance(expression, (exp.Add, exp.Sub)):
        return None
    inner, amount = _shifted(expression.this, schema), _constant(expression.expression)
    if inner is None or amount is None:
        return None
    kind = schema.field(inner[0]).type
    if compile_expression(expression, schema).type != kind:
        return None
    if pa.types.is_date(kind) and compile_expression(expression.expression, schema).type == INTERVAL:
        amount //= MICROS["day"]
    return inner[0], inner[1] + (amount if isinstance(expression, exp.Add) else -amount)


def _difference(expression: exp.Expr, limit: exp.Expr, schema: pa.Schema) -> tuple[Shifted, Shifted] | None:
    """`b.ts - a.ts` beside a constant as `b.ts` beside `a.ts` plus the constant."""
    expression = expression.unnest()
    amount = _constant(limit)
    if amount is None or not isinstance(expression, exp.Sub):
        return None
    one, other = _shifted(expression.this, schema), _shifted(expression.expression, schema)
    if one is None or other is None:
        return None
    kind, unit = schema.field(other[0]).type, compile_expression(limit, schema).type
    if pa.types.is_integer(kind) != pa.types.is_integer(unit):
        return None
    if pa.types.is_date(kind):
        amount, rest = divmod(amount, MICROS["day"])
        if rest:
            return None
    return one, (other[0], other[1] + amount)


def _constant(expression: exp.Expr) -> int | None:
    """A whole number, or an interval in microseconds."""
    try:
        amount = fold_constant(expression)
    except MillstreamError:
        return None
    return amount if isinstance(amount, int) and not isinstance(amount, bool) else None


def _bases(operand: exp.Expr) -> list[exp.Expr]:
    """The expressions, other than columns, that are moved by constants or taken from one another."""
    operand = operand.unnest()
    if isinstance(operand, (exp.Add, exp.Sub)) and _constant(operand.expression) is not None:
        return _bases(operand.this)
    if isinstance(operand, exp.Sub):
        return [*_bases(operand.this), *_bases(operand.expression)]
    return [] if isinstance(operand, exp.Column) else [operand]


def _derived(part: exp.Expr, node: Join, known: dict[exp.Expr, str]) -> tuple[Join, Band | None]:
    """A band between expressions that progress, such as `CAST(b.ts AS DATE) >= a.d`, as hidden columns."""
    if type(part) not in MIRRORED or isinstance(part, exp.EQ):
        return node, None
    part, sides = part.copy(), [node.left, node.right]
    taken, found = set(node.pair_schema.names), dict(known)
    for base in (*_bases(part.this), *_bases(part.expression)):
        for number, side in enumerate(sides):
            if base not in found and columns_of(base) <= set(side.schema.names) and _moves(base, side):
                sides[number], found[base.copy()] = with_column(side, base.copy(), taken)
        if base in found:
            base.replace(column(found[base]))
    made = replace(node, left=sides[0], right=sides[1])
    band = _band(part, made)
    if band is None:
        return node, None
    known.update(found)
    return made, band


def _progress_together(a: exp.Expr, left: Node, b: exp.Expr, right: Node) -> bool:
    """Equal keys that move on with times of both sides, such as `date_trunc('hour', ts)`; plain columns are bands already."""
    if isinstance(a, exp.Column) and isinstance(b, exp.Column):
        return False
    return _moves(a, left) and _moves(b, right) and compile_expression(a, left.schema).type == compile_expression(b, right.schema).type


def _moves(expression: exp.Expr, side: Node) -> bool:
    rule = monotone(expression, side.schema)
    return rule is not None and rule.column in side.progressing and is_axis(compile_expression(expression, side.schema).type)


def _latest(node: Join, bands: list[Band]) -> list[Band]:
    """Bands of the latest of several times, where those of all of them are known: it is what moves on first.

    From `-5 <= c - a <= 5` and `-5 <= c - b <= 5` follows the same for the later of a and b, so that c can go when that has gone by:
    a alone, in results of a join, may be as old as its window allows.
    """
    found: dict[tuple[str, str], Band] = {(band.left, band.right): band for band in bands}
    left, right = node.left.time, node.right.time
    new: list[Band] = []
    if left is not None and left not in node.left.times:
        for name in dict.fromkeys(band.right for band in bands):
            parts = [found.get((time, name)) for time in sorted(node.left.times)]
            if all(part is not None for part in parts):
                new.append(_of_later_left(left, name, [part for part in parts if part is not None]))
    found |= {(band.left, band.right): band for band in new}
    if right is not None and right not in node.right.times:
        for name in dict.fromkeys(one for one, _ in found):
            parts = [found.get((name, time)) for time in sorted(node.right.times)]
            if all(part is not None for part in parts):
                new.append(_of_later_right(name, right, [part for part in parts if part is not None]))
    return [band for band in new if band.low is not None or band.high is not None]


def _of_later_left(left: str, right: str, bands: list[Band]) -> Band:
    """The distance to the later of several is the least of theirs."""
    lows, highs = [band.low for band in bands], [band.high for band in bands if band.high is not None]
    return Band(left, right, None if None in lows else min(low for low in lows if low is not None), min(highs, default=None))


def _of_later_right(left: str, right: str, bands: list[Band]) -> Band:
    """The distance of the later of several is the greatest of theirs."""
    lows, highs = [band.low for band in bands if band.low is not None], [band.high for band in bands]
    return Band(left, right, max(lows, default=None), None if None in highs else max(high for high in highs if high is not None))
