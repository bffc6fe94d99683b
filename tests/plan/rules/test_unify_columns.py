"""Columns that a join makes equal are read as one."""

from __future__ import annotations

from millstream.plan.rules.push_predicates import push_predicates
from millstream.plan.rules.recognise_joins import recognise_joins
from millstream.plan.rules.recognise_windows import recognise_windows
from millstream.plan.rules.unify_columns import unify_columns
from tests.plan.kit import after, lines, planned


def unified(query: str) -> list[str]:
    return lines(after(query, recognise_windows, push_predicates, recognise_joins, unify_columns))


def test_the_first_of_equal_columns_is_read() -> None:
    found = unified("SELECT c.k + 1 AS one, a.k AS two FROM A [NOW] AS a JOIN C [NOW] AS c ON a.k = c.k")
    assert found[1] == "project k + 1 as one, k as two"


def test_equal_columns_are_carried_once() -> None:
    found = lines(planned("SELECT c.k AS x FROM A [NOW] AS a JOIN C [NOW] AS c ON a.k = c.k JOIN C [NOW] AS d ON c.k = d.k"))
    assert any("k = k_2" in line for line in found)
    assert not any("k_1 = k_2" in line for line in found)


def test_a_chain_of_equal_columns_is_one() -> None:
    """Groups by any of them are closed, though the last join is on the second and the third."""
    joins = "Bid AS a JOIN Bid AS b ON a.auction = b.auction JOIN Bid AS c ON b.auction = c.auction"
    for name in "abc":
        found = lines(planned(f"SELECT count(*) AS n FROM {joins} GROUP BY {name}.auction"))
        assert any(line.startswith("aggregate count(*) by auction") and "closed by punctuations" in line for line in found)


def test_what_may_look_different_stays_apart() -> None:
    """0.0 and -0.0, an unmatched tuple's null, and types that only compare."""
    found = unified("SELECT b.v + 1 AS one FROM A [NOW] AS a JOIN B [NOW] AS b ON a.v = b.v")
    assert any("v_1 + 1" in line for line in found)
    found = unified("SELECT c.k + 1 AS one FROM A [NOW] AS a LEFT JOIN C [NOW] AS c ON a.k = c.k")
    assert any("k_1 + 1" in line for line in found)
    found = unified("SELECT b.k + 1 AS one FROM A [NOW] AS a JOIN B [NOW] AS b ON a.k = b.k")
    assert any("k_1 + 1" in line for line in found)


def test_two_ways_to_say_the_same_are_one_key() -> None:
    found = unified("SELECT a.v FROM A [NOW] AS a, C [NOW] AS c, C [NOW] AS d WHERE a.k = c.k AND a.k = d.k AND c.k = d.k")
    assert sum(line.count("k = k_2") for line in found) == 1
