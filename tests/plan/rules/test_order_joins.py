"""The order in which streams are joined."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.errors import NameProblem, TypeProblem
from millstream.plan.nodes import Join, Node, Scan

LIST = "WITH (connector = 'list')"
STREAM = "CREATE STREAM {name} (x BIGINT, y BIGINT, z BIGINT, ts TIMESTAMP) TIMESTAMP BY ts {source};"
GENERATED = """CREATE STREAM {name} (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED
    WITH (connector = 'generator', pattern = '{pattern}', every = '{every}', tuples = '10');"""


def planned(query: str, setting: str = "") -> Node:
    session = ms.Session("local")
    text = setting + "".join(STREAM.format(name=name, source=LIST) for name in "ABCD")
    session.sql(f"{text} CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out SELECT A.x FROM {query}")
    (plan,) = session.pipeline.plans()
    return plan


def tree(query: str, setting: str = "") -> str:
    """The shape of the joins in the plan, by the streams they read."""
    return shape(planned(query, setting))


def shape(node: Node) -> str:
    if isinstance(node, Join):
        return f"({shape(node.left)} {shape(node.right)})"
    return node.stream.name if isinstance(node, Scan) else shape(node.inputs[0])


CHAIN = "A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND], D [RANGE 1 SECOND] WHERE A.x = B.x AND B.y = C.y AND C.z = D.z"
STAR = "A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND], D [RANGE 1 SECOND] WHERE A.x = D.x AND B.y = D.y AND C.z = D.z"


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [
        ("", "(((A B) C) D)"),
        ("SET join.tree = 'written';", "(((A B) C) D)"),
        ("SET join.tree = 'left-deep';", "(((A B) C) D)"),
        ("SET join.tree = 'right-deep';", "(A (B (C D)))"),
        ("SET join.tree = 'bushy';", "((A B) (C D))"),
        ("SET join.tree = '((D A) (C B))';", "((D A) (C B))"),
        ("SET join.tree = '((A B) C)';", "(((A B) C) D)"),  # of three streams: not this one
    ],
)
def test_a_setting_chooses_the_shape(setting: str, wanted: str) -> None:
    assert tree(CHAIN, setting) == wanted


def test_streams_without_a_condition_are_not_joined_first() -> None:
    assert tree(STAR) == "(((A D) B) C)"
    assert tree(STAR, "SET join.tree = 'written';") == "(((A B) C) D)"


def test_a_wrong_tree_is_told_with_the_streams() -> None:
    with pytest.raises(TypeProblem, match=r"join.tree = '\(\(A B\) \(C E\)\)' does not fit .* `E` is none"):
        tree(CHAIN, "SET join.tree = '((A B) (C E))';")


def test_outer_joins_stay_where_they_are() -> None:
    window = "[RANGE 1 SECOND]"
    outer = f"A {window} LEFT JOIN B {window} ON A.x = B.x JOIN C {window} ON A.y = C.y JOIN D {window} ON A.z = D.z"
    assert tree(outer, "SET join.tree = 'right-deep';") == "((A B) (C D))"


def test_known_rates_decide() -> None:
    """A is fast and has few values, B and C are slow: they are joined first."""
    rates = {"A": ("cluster-asc-100", "1 ms"), "B": ("cluster-asc-1", "1 s"), "C": ("cluster-asc-1", "1 s")}
    session = ms.Session("local")
    for name, (pattern, every) in rates.items():
        session.sql(GENERATED.format(name=name, pattern=pattern, every=every))
    query = "SELECT A.v FROM A [RANGE 1 MINUTE], B [RANGE 1 MINUTE], C [RANGE 1 MINUTE] WHERE A.k = B.k AND B.k = C.k AND A.k = C.k"
    session.sql(f"CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out {query}")
    (plan,) = session.pipeline.plans()
    assert shape(plan) == "(A (B C))"


def test_what_is_equal_to_the_same_is_equal() -> None:
    """B and C have no condition of their own; both are equal to A."""
    window = "[RANGE 1 SECOND]"
    plan = planned(f"A {window}, B {window}, C {window} WHERE A.x = B.x AND A.x = C.x", "SET join.tree = 'right-deep';")
    assert shape(plan) == "(A (B C))"
    assert all(len(node.keys) == 1 for node in plan.walk() if isinstance(node, Join))


def test_an_order_that_could_never_let_go_is_not_taken() -> None:
    """B and C have nothing in common: joined first, they would be kept for ever."""
    near = "A.ts BETWEEN {0}.ts - INTERVAL 1 SECOND AND {0}.ts + INTERVAL 1 SECOND"
    query = f"A, B, C WHERE A.x = B.x AND {near.format('B')} AND A.y = C.y AND {near.format('C')}"
    assert tree(query, "SET join.tree = 'right-deep';") == "((A B) C)"


def test_a_misspelt_shape_is_told() -> None:
    with pytest.raises(NameProblem, match=r"no join.tree `left-dep`; did you mean `left-deep`"):
        tree(CHAIN, "SET join.tree = 'left-dep';")
