"""Shapes of join trees, and the cheapest of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import TypeProblem
from millstream.plan import trees
from millstream.plan.trees import Tree
from tests.plan.kit import pipeline

NAMES = "ABCDEFGH"


@pytest.mark.parametrize(
    ("count", "shape"),
    [
        (3, "((A B) C)"),
        (4, "((A B) (C D))"),
        (5, "(((A B) (C D)) E)"),
        (6, "(((A B) (C D)) (E F))"),
        (7, "(((A B) (C D)) ((E F) G))"),
        (8, "(((A B) (C D)) ((E F) (G H)))"),
    ],
)
def test_bushy_trees_are_those_of_table_ii(count: int, shape: str) -> None:
    assert trees.shown(trees.bushy(range(count)), NAMES) == shape


def test_deep_trees() -> None:
    assert trees.shown(trees.left_deep(range(4)), NAMES) == "(((A B) C) D)"
    assert trees.shown(trees.right_deep(range(4)), NAMES) == "(A (B (C D)))"


any_tree = st.recursive(st.just("x"), lambda inner: st.tuples(inner, inner), max_leaves=8)


@given(drawn=any_tree)
def test_property_a_tree_that_is_written_is_read_as_it_was(drawn: object) -> None:
    number = iter(range(8))

    def placed(shape: object) -> Tree:
        return next(number) if shape == "x" else (placed(shape[0]), placed(shape[1]))  # type: ignore[index]

    tree = placed(drawn)
    names = NAMES[: len(trees.leaves(tree))]
    assert trees.parse_tree(trees.shown(tree, names), names) == tree
    assert trees.parse_tree(trees.shown(tree, "12345678"), names) == tree
    assert trees.count(trees.shown(tree, names)) == len(names)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("((A B) X)", "`X` is none of its streams"),
        ("((A B) B)", "each stream once"),
        ("((A B C))", "two inputs"),
        ("(A (B C)", r"a `\)` is missing"),
        ("((A B) C", r"a `\)` is missing"),
        ("(A B (C))", "two inputs, in parentheses"),
        ("((A B) C) (", "more behind"),
        ("(A (B )) C", "two inputs"),
        ("((A B)", "ends too early"),
    ],
)
def test_wrong_trees_are_told(text: str, why: str) -> None:
    with pytest.raises(TypeProblem, match=why) as told:
        trees.parse_tree(text, "ABC")
    assert "1 A, 2 B, 3 C" in str(told.value)


@pytest.mark.parametrize(("text", "why"), [("()", "two inputs"), ("((1 2) (3 4)) 5", "more behind"), ("((A B) C", r"a `\)` is missing")])
def test_what_is_no_tree_is_told_though_no_join_has_so_many_streams(text: str, why: str) -> None:
    query = f"SET join.tree = '{text}'; INSERT INTO Out SELECT k FROM A"
    with pytest.raises(TypeProblem, match=f"is not a tree: .*{why}"):
        pipeline().add_text(query)


def test_of_two_streams_of_one_name_the_place_tells_which() -> None:
    with pytest.raises(TypeProblem, match="`A` is more than one"):
        trees.parse_tree("((A B) A)", "ABA")
    assert trees.parse_tree("((3 B) 1)", "ABA") == ((2, 1), 0)


def test_the_cheapest_tree_makes_the_fewest_partial_results() -> None:
    sizes = {frozenset({1, 2}): 1.0, frozenset({0, 3}): 2.0}
    tree = trees.cheapest(4, lambda chosen: sizes.get(chosen, 100.0))
    assert trees.shown(tree, NAMES) == "((A D) (B C))"


def test_of_equal_ones_it_is_the_one_in_the_order_of_from() -> None:
    for count in range(2, 9):
        assert trees.cheapest(count, lambda chosen: 1.0) == trees.left_deep(range(count))


def test_of_many_streams_it_is_found_step_by_step() -> None:
    assert trees.cheapest(20, lambda chosen: 1.0) == trees.left_deep(range(20))
