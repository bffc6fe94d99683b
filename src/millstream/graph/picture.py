"""Draws a query graph from left to right: sources, operators (stateful ones shaded), buffers, TSM arcs and sinks."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from millstream.graph.enhanced import enhanced
from millstream.graph.explain import label_all
from millstream.graph.graph import Graph, Vertex
from millstream.graph.table import Arc
from millstream.operators.edges import Deliver, Enter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches. Text is set in a font of fixed width, so that a box can be made to fit it without asking a renderer.
FONT = 8.5
LETTER = FONT * 0.602 / 72
LINE = FONT * 1.35 / 72
WRAP = 26
MOST = 8  # lines of a label
PAD = 0.12
GAP_X = 0.65
GAP_Y = 0.28
LANE = 0.12  # the height of an arc that passes a layer

APART = 0.14  # arcs that leave or reach a box side by side

HEAD = re.compile(r"((?:in-order )?(?:\w+ join|\w+)) ?(.*)", re.DOTALL)
NUMBER = re.compile(r"(\d+) (us|ms|s|min|h|d|tuples)\b")  # 10 s stays on one line

COLOURS = {
    "source": ("#e3f1e5", "#3c7a4b"),
    "stateless": ("#ffffff", "#7d8794"),
    "stateful": ("#c9d8ee", "#2f5a94"),
    "waiting": ("#e6daf1", "#6d4a9c"),
    "sink": ("#fdf0dc", "#a8731d"),
}
MEANING = {
    "source": "source",
    "stateless": "stateless operator",
    "stateful": "operator with state",
    "waiting": "idle-waiting prone",
    "sink": "sink",
}
BUFFER, TSM = "#5b6573", "#c2501e"
TSM_MEANING = "way of time stamps (TSM)"
BREAK: dict[str, Any] = dict(marker="|", markersize=11, markeredgewidth=3, color="#b3261e", zorder=5)


@dataclass
class Cell:
    """A box of the picture, or a lane where an arc passes a layer (`vertex` is None).

    Boxes are placed by their buffers: TSM arcs go round them, and know their neighbours without being known by them.
    """

    layer: int
    vertex: Vertex | None = None
    lines: list[str] = field(default_factory=list)
    kind: str = ""
    width: float = 0.0
    height: float = LANE
    x: float = 0.0
    y: float = 0.0
    column: float = 0.0
    """The width of its layer: arcs run level there, so that they cross no other box."""
    before: list[Cell] = field(default_factory=list)
    after: list[Cell] = field(default_factory=list)


@dataclass
class Line:
    """An arc: from one box to another, through the lanes between them."""

    cells: list[Cell]
    tsm: bool = False
    broken: bool = False
    """There is a break point."""


def picture(graph: Graph, title: str | None = None, breaks: Collection[Arc] = ()) -> Figure:
    """The graph as a matplotlib figure, as large as it needs to be."""
    layers, lines = layout(graph)
    for line in lines:
        start, end = line.cells[0].vertex, line.cells[-1].vertex
        line.broken = not line.tsm and start is not None and end is not None and (start.number, end.number) in breaks
    width, height = _place(layers)
    return _draw(layers, lines, width, height, title)


def layout(graph: Graph) -> tuple[list[list[Cell]], list[Line]]:
    """Boxes and lanes by layer, in order, and the arcs that join them."""
    layers, lines = _layers(graph)
    _order(layers)
    return layers, lines


def png(graph: Graph, title: str | None = None, breaks: Collection[Arc] = ()) -> bytes:
    """The picture as the bytes of a PNG file."""
    out = io.BytesIO()
    picture(graph, title, breaks).savefig(out, format="png", dpi=150)
    return out.getvalue()


def kind_of(vertex: Vertex) -> str:
    if isinstance(vertex.config, Enter):
        return "source"
    if isinstance(vertex.config, Deliver):
        return "sink"
    if vertex.config.needs.idle_waiting_prone:
        return "waiting"
    return "stateless" if vertex.config.stateless else "stateful"


def _layers(graph: Graph) -> tuple[list[list[Cell]], list[Line]]:
    """A layer per step from the sources; a source stands right before its first consumer, sinks stand last."""
    depth: dict[int, int] = {}
    for v in graph.vertices:
        depth[v.number] = 1 + max((depth[i] for i in v.inputs), default=-1)
    last = max(depth.values())
    for v in reversed(graph.vertices):
        if isinstance(v.config, Deliver):
            depth[v.number] = last
        elif isinstance(v.config, Enter):
            depth[v.number] = min(depth[c] for c, _ in graph.consumers[v.number]) - 1
    labels = label_all(graph)
    layers: list[list[Cell]] = [[] for _ in range(last + 1)]
    cells: dict[int, Cell] = {}
    for v in graph.vertices:
        cell = cells[v.number] = _box(v, depth[v.number], labels[v.number])
        layers[cell.layer].append(cell)
    lines = [_line(layers, cells[producer], cells[v.number]) for v in graph.vertices for producer in v.inputs]
    lines += [_line(layers, cells[start], cells[arc.consumer], tsm=True) for start, arc in enhanced(graph)]
    for cell in cells.values():
        arriving = sum(line.cells[-1] is cell for line in lines)
        cell.height = max(cell.height, 0.8 * APART * (arriving + 1))
    return layers, lines


def _line(layers: list[list[Cell]], start: Cell, end: Cell, *, tsm: bool = False) -> Line:
    """An arc with a lane in each layer that it passes."""
    lanes = [Cell(layer) for layer in range(start.layer + 1, end.layer)]
    for lane in lanes:
        layers[lane.layer].append(lane)
    cells = [start, *lanes, end]
    for producer, consumer in pairwise(cells):
        if not tsm or producer.vertex is None:
            producer.after.append(consumer)
        if not tsm or consumer.vertex is None:
            consumer.before.append(producer)
    return Line(cells, tsm)


def _box(v: Vertex, layer: int, label: str) -> Cell:
    head, rest = HEAD.fullmatch(label).groups()  # type: ignore[union-attr]
    rest = NUMBER.sub("\\1\N{NO-BREAK SPACE}\\2", rest)
    wrapped = textwrap.wrap(rest, WRAP, break_on_hyphens=False) or []
    if len(wrapped) > MOST:
        wrapped = [*wrapped[: MOST - 1], wrapped[MOST - 1][: WRAP - 4] + " ..."]
    lines = [f"#{v.number} {head}", *wrapped]
    longest = max(len(line) for line in lines)
    return Cell(layer, v, lines, kind_of(v), longest * LETTER + 2 * PAD, len(lines) * LINE + 2 * PAD * 0.8)


def _order(layers: list[list[Cell]]) -> None:
    """Put each cell near the middle of those it is joined with, to and fro: fewer arcs cross."""
    for sweep in range(8):
        forth = sweep % 2 == 0
        for layer in layers[1:] if forth else layers[-2::-1]:
            spots = {id(cell): at for other in layers for at, cell in enumerate(other)}

            def middle(cell: Cell, forth: bool = forth, spots: dict[int, int] = spots) -> float:
                near = cell.before if forth else cell.after
                return sum(spots[id(c)] for c in near) / len(near) if near else float(spots[id(cell)])

            layer.sort(key=middle)


def _place(layers: list[list[Cell]]) -> tuple[float, float]:
    """Columns as wide as their widest box; rows in order without touching, each as near to its neighbours as that allows."""
    x = 0.0
    for layer in layers:
        wide = max(cell.width for cell in layer)
        for cell in layer:
            cell.x = x + wide / 2
            cell.width, cell.column = cell.width or wide, wide
        x += wide + GAP_X
    for layer in layers:
        y = 0.0
        for cell in layer:
            cell.y = y + cell.height / 2
            y += cell.height + GAP_Y
    for sweep in range(12):
        for layer in layers[1:] if sweep % 2 == 0 else layers[-2::-1]:
            _settle(layer, forth=sweep % 2 == 0)
    low = min(cell.y - cell.height / 2 for layer in layers for cell in layer)
    for layer in layers:
        for cell in layer:
            cell.y -= low
    return x - GAP_X, max(cell.y + cell.height / 2 for layer in layers for cell in layer)


def _settle(layer: list[Cell], forth: bool) -> None:
    wanted = []
    for cell in layer:
        near = cell.before if forth else cell.after
        wanted.append(sum(c.y for c in near) / len(near) if near else cell.y)
    # Neighbours that want to overlap become a block around the mean of their wishes, as in isotonic regression.
    blocks: list[tuple[float, int]] = []  # (the wish for the first cell, members)
    offsets = [0.0]
    for a, b in pairwise(layer):
        offsets.append(offsets[-1] + a.height / 2 + GAP_Y + b.height / 2)
    for wish, offset in zip(wanted, offsets, strict=True):
        blocks.append((wish - offset, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (low, m), (high, n) = blocks[-2], blocks[-1]
            blocks[-2:] = [((low * m + high * n) / (m + n), m + n)]
    at = 0
    for start, count in blocks:
        for cell, offset in zip(layer[at : at + count], offsets[at : at + count], strict=True):
            cell.y = start + offset
        at += count


def _draw(layers: list[list[Cell]], lines: list[Line], width: float, height: float, title: str | None) -> Figure:
    from matplotlib.figure import Figure

    margin, foot, top = 0.25, 0.45, 0.35 if title else 0.0
    size = (max(width, 5.2) + 2 * margin, height + 2 * margin + foot + top)
    figure = Figure(figsize=size, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(-margin, size[0] - margin)
    axes.set_ylim(height + margin + foot, -margin - top)  # the first line on top
    cells = [cell for layer in layers for cell in layer]
    for cell in cells:
        if cell.vertex is not None:
            _paint(axes, cell)
    for line in lines:
        _arc(axes, line, lines)
    if title:
        axes.text(0, -top * 0.6, title, fontsize=FONT + 2, weight="bold", va="center")
    kinds = [k for k in COLOURS if any(c.kind == k for c in cells)]
    _legend(axes, height + margin + foot / 2, kinds, any(line.tsm for line in lines), any(line.broken for line in lines))
    return figure


def _paint(axes: Any, cell: Cell) -> None:
    from matplotlib.patches import FancyBboxPatch

    fill, edge = COLOURS[cell.kind]
    corner = (cell.x - cell.width / 2, cell.y - cell.height / 2)
    style = f"round,pad=0,rounding_size={0.16 if cell.kind in ('source', 'sink') else 0.05}"
    axes.add_patch(FancyBboxPatch(corner, cell.width, cell.height, style, facecolor=fill, edgecolor=edge, linewidth=1.3, zorder=3))
    y = cell.y - (len(cell.lines) - 1) * LINE / 2
    for number, line in enumerate(cell.lines):
        text = dict(fontsize=FONT, family="monospace", ha="center", va="center", zorder=4, color="#1c2430", parse_math=False)
        axes.text(cell.x, y + number * LINE, line, weight="bold" if number == 0 else "normal", **text)


def _arc(axes: Any, line: Line, lines: list[Line]) -> None:
    """A curve through the lanes to the next box, level where it leaves and where it arrives."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    start, *lanes, end = line.cells
    leaving, arriving = start.y + _leaving(line, lines), end.y + _arriving(line, lines)
    points = [(start.x + start.width / 2, leaving)]
    if start.width < start.column:
        points.append((start.x + start.column / 2, leaving))
    for lane in lanes:
        points += [(lane.x - lane.width / 2, lane.y), (lane.x + lane.width / 2, lane.y)]
    if end.width < end.column:
        points.append((end.x - end.column / 2, arriving))
    points.append((end.x - end.width / 2, arriving))
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(points):
        half = (x0 + x1) / 2
        vertices += [(half, y0), (half, y1), (x1, y1)]
        codes += [Path.CURVE4] * 3
    look: dict[str, Any] = dict(color=TSM, linestyle=(0, (4, 2.5)), linewidth=1.0) if line.tsm else dict(color=BUFFER, linewidth=1.1)
    style: dict[str, Any] = dict(arrowstyle="-|>", mutation_scale=9, zorder=2, shrinkA=0, shrinkB=0)
    axes.add_patch(FancyArrowPatch(path=Path(vertices, codes), **style, **look))
    if line.broken:
        axes.plot([points[-1][0] - 0.2], [arriving], **BREAK)


def _leaving(line: Line, lines: list[Line]) -> float:
    """Buffers leave from the middle of a box, TSM arcs beside it, on the side where they go."""
    if not line.tsm:
        return 0.0
    start, following = line.cells[:2]
    beside = [other for other in lines if other.tsm and other.cells[0] is start]
    side = 1 if following.y >= start.y else -1
    mine = sorted((other.cells[1].y for other in beside if (other.cells[1].y >= start.y) == (side > 0)), key=lambda y: side * y)
    return side * (1 + mine.index(following.y)) * min(APART, start.height / 2 / (len(mine) + 1))


def _arriving(line: Line, lines: list[Line]) -> float:
    """Side by side, in the order in which they come; a buffer that comes alone, or with its TSM arc, in the middle."""
    end = line.cells[-1]
    arriving = sorted((other for other in lines if other.cells[-1] is end), key=lambda other: _last(other, lines))
    buffers = [at for at, other in enumerate(arriving) if not other.tsm]
    middle = sum(buffers) / len(buffers)
    place = next(at for at, other in enumerate(arriving) if other is line)
    return (place - middle) * min(APART, end.height / (len(arriving) + 1))


def _last(line: Line, lines: list[Line]) -> float:
    """How low an arc runs before it comes to its end."""
    before = line.cells[-2]
    return before.y if before.vertex is None else before.y + _leaving(line, lines)


def _legend(axes: Any, y: float, kinds: list[str], tsm: bool, broken: bool) -> None:
    from matplotlib.patches import Rectangle

    x = 0.0
    for kind in kinds:
        fill, edge = COLOURS[kind]
        axes.add_patch(Rectangle((x, y - 0.06), 0.2, 0.12, facecolor=fill, edgecolor=edge, linewidth=1))
        axes.text(x + 0.27, y, MEANING[kind], fontsize=FONT - 1, va="center", color="#4a5360")
        x += 0.27 + len(MEANING[kind]) * LETTER * 0.9 + 0.2
    if tsm:
        axes.plot([x, x + 0.28], [y, y], color=TSM, linestyle=(0, (4, 2.5)), linewidth=1.0)
        axes.text(x + 0.35, y, TSM_MEANING, fontsize=FONT - 1, va="center", color="#4a5360")
        x += 0.35 + len(TSM_MEANING) * LETTER * 0.9 + 0.2
    if broken:
        axes.plot([x + 0.1], [y], **BREAK)
        axes.text(x + 0.27, y, "break point", fontsize=FONT - 1, va="center", color="#4a5360")
