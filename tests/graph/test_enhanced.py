"""The enhanced query graph: which arcs time stamps take, as EXPLAIN shows them and as the executor uses them."""

from __future__ import annotations

import pytest

from millstream.core.block import Block, empty_batch
from millstream.core.punctuation import Punctuation
from millstream.graph.enhanced import enhanced
from millstream.graph.graph import Graph
from millstream.operators.buffers import Book
from millstream.operators.edges import Deliver
from millstream.pipeline import Pipeline
from millstream.runtime.network import Network

STREAMS = "".join(f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts {order};" for name, order in (
    ("A", "ORDERED"), ("B", "ORDERED"), ("C", "SLACK 5 SECONDS"),
))  # fmt: skip
SINK = "CREATE SINK {0} WITH (connector = 'memory'); INSERT INTO {0} {1};"
UNION = "SELECT k, ts FROM A WHERE v > 1 UNION ALL SELECT k, ts FROM B WHERE v > 2"
JOINS = "SELECT A.k, A.ts FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS], C [RANGE 5 SECONDS] WHERE A.k = B.k AND B.v = C.v"
COUNT = f"SELECT k, count(*) AS n FROM ({UNION}) AS u [RANGE 1 MINUTE] GROUP BY k"


def graph(order: str, *queries: str) -> Graph:
    pipeline = Pipeline()
    pipeline.add_text(f"SET execution.order = '{order}';" + STREAMS)
    pipeline.add_text("".join(SINK.format(f"Out{number}", query) for number, query in enumerate(queries)))
    return pipeline.sketched()


def arcs(of: Graph) -> list[tuple[str, list[str], str, int]]:
    """From where, past what, to where."""
    name = {v.number: v.config.label.split()[0] if v.inputs else v.config.stream.name for v in of.vertices}  # type: ignore[attr-defined]
    return [(name[start], [name[v.number] for v in arc.passed], name[arc.consumer], arc.port) for start, arc in enhanced(of)]


def test_past_all_that_keeps_no_state() -> None:
    assert arcs(graph("in-order", UNION)) == [
        ("A", ["project", "select", "project"], "in-order", 0),
        ("B", ["project", "select", "project"], "in-order", 1),
    ]


def test_from_one_waiting_operator_to_the_next() -> None:
    shown = arcs(graph("in-order", JOINS))
    assert [(start, end) for start, _, end, _ in shown] == [
        ("A", "in-order"), ("B", "in-order"), ("in-order", "in-order"), ("C", "sort"), ("sort", "in-order"),
    ]  # fmt: skip
    assert sorted(port for start, _, end, port in shown if end == "in-order") == [0, 0, 1, 1]


def test_each_branch_of_a_fork_has_its_own() -> None:
    shown = arcs(graph("out-of-order", UNION, COUNT))
    assert shown.count(("A", ["project", "select", "project"], "union", 0)) == 1  # shared by both queries
    assert ("union", [], "aggregate", 0) in shown or ("union", ["project"], "aggregate", 0) in shown


@pytest.mark.parametrize("order", ["in-order", "out-of-order"])
def test_they_are_those_that_promises_take(order: str) -> None:
    of = graph(order, UNION, COUNT, JOINS)
    inside = [v for v in of.vertices if not isinstance(v.config, Deliver)]
    network = Network(lambda vertex, block: None, set(), Book(), arcs=True)
    for v in inside:
        network.connect(v)
    shown: dict[int, list[object]] = {}
    for start, arc in enhanced(of):
        shown.setdefault(start, []).append(arc)
    for start, found in shown.items():
        assert network._arcs(start) == found


def test_a_vertex_that_goes_forgets_the_marks_of_its_own_arcs_alone() -> None:
    of = graph("out-of-order", UNION)
    union = next(v for v in of.vertices if len(v.inputs) == 2)
    network = Network(lambda vertex, block: None, set(), Book(), arcs=False)
    network.connect(union)
    mark = Block(empty_batch(union.config.schema), (Punctuation.linear("ts", 7),))
    network.put(union.number, 0, mark)
    network.connect(of.by_number[0])
    network.disconnect(0)
    network.put(union.number, 0, mark)
    assert len(network.doors[union.number, 0]) == 1
    network.disconnect(union.number)
    assert not network.marks
