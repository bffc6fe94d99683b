"""Split a join's condition into equal keys, bands between times, and the rest."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import INTERVAL, is_axis
from millstream.errors import MillstreamError
from millstream.expressions import compile_expression, fold_constant, monotone
from millstream.expressions.intervals import MICROS
from millstream.plan.bands import implied_bands
from millstream.plan.nodes import Band, Join, Node
from millstream.plan.rules.transform import bottom_up, columns_of, with_column

# op, mirrored: `left op right` seen from the other side
MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}


def recognise_joins(plan: Node, *, implied: bool = False) -> Node:
    """With `implied` bands that follow from others are there as well: times further apart move on by them."""
    return bottom_up(plan, partial(_change, implied=implied))


def _change(node: Node, *, implied: bool) -> Node:
    if not isinstance(node, Join):
        return node
    keys, bands, rest = list(node.keys), list(node.bands), []
    for part in _split(node.condition):
        band = _band(part, node)
        key = _key(part, node)
        if key is not None:
            keys.append(key)
        if band is not None:
            bands.append(band)
        if key is None and band is None:
            rest.append(part)
    left, right = node.left, node.right
    for a, b in list(keys):
        if _progress_together(a, left, b, right):
            taken = {*left.schema.names, *right.schema.names}
            left, first = with_column(left, a, taken)
            right, second = with_column(right, b, taken)
            bands.append(Band(first, second, 0, 0))
    bands = _merged(bands)
    if implied and node.kind == "inner":
        bands += implied_bands(left, right, bands)
    return replace(node, left=left, right=right, condition=tuple(rest), keys=tuple(keys), bands=(*bands, *_latest(node, bands)))


def _split(condition: tuple[exp.Expr, ...]) -> list[exp.Expr]:
    parts: list[exp.Expr] = []
    for part in condition:
        if isinstance(part, exp.Between) and not part.args.get("symmetric"):
            parts.append(exp.GTE(this=part.this.copy(), expression=part.args["low"].copy()))
            parts.append(exp.LTE(this=part.this.copy(), expression=part.args["high"].copy()))
        else:
            parts.append(part)
    return parts


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
    one, other = _shifted(part.this, node.pair_schema), _shifted(part.args["expression"], node.pair_schema)
    if one is None or other is None:
        return None
    (x, a), (y, b) = one, other
    op: type[exp.Expr] = type(part)
    if x in node.right.schema.names and y in node.left.schema.names:
        (x, a), (y, b), op = (y, b), (x, a), MIRRORED[op]
    if x not in node.left.progressing or y not in node.right.progressing:
        return None
    if node.left.schema.field(x).type != node.right.schema.field(y).type or not is_axis(node.left.schema.field(x).type):
        return None
    # x + a op y + b, hence y - x compared with a - b.
    gap = a - b
    if op is exp.EQ:
        return Band(x, y, gap, gap)
    if op is exp.LTE:
        return Band(x, y, gap, None)
    if op is exp.LT:
        return Band(x, y, gap + 1, None)
    if op is exp.GTE:
        return Band(x, y, None, gap)
    return Band(x, y, None, gap - 1)


def _shifted(expression: exp.Expr, schema: pa.Schema) -> tuple[str, int] | None:
    """A column plus or minus a constant, in the units of the column's axis."""
    expression = expression.unnest()
    if isinstance(expression, exp.Column):
        return expression.name, 0
    if not isinstance(expression, (exp.Add, exp.Sub)):
        return None
    inner = _shifted(expression.this, schema)
    if inner is None or compile_expression(expression, schema).type != schema.field(inner[0]).type:
        return None
    try:
        amount = fold_constant(expression.expression)
    except MillstreamError:
        return None
    if not isinstance(amount, int) or isinstance(amount, bool):
        return None
    if pa.types.is_date(schema.field(inner[0]).type) and compile_expression(expression.expression, schema).type == INTERVAL:
        amount //= MICROS["day"]
    return inner[0], inner[1] + (amount if isinstance(expression, exp.Add) else -amount)


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


def _merged(bands: list[Band]) -> list[Band]:
    """One band per pair of columns: all of them must hold."""
    merged: dict[tuple[str, str], Band] = {}
    for band in bands:
        known = merged.get((band.left, band.right))
        if known is not None:
            lows = [b.low for b in (known, band) if b.low is not None]
            highs = [b.high for b in (known, band) if b.high is not None]
            band = Band(band.left, band.right, max(lows) if lows else None, min(highs) if highs else None)
        merged[band.left, band.right] = band
    return list(merged.values())
