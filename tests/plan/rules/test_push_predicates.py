"""Conditions go as near to their source as they may."""

from __future__ import annotations

from millstream.plan.rules.push_predicates import push_predicates
from tests.plan.kit import after, lines


def test_through_a_projection() -> None:
    found = lines(
        after("SELECT x.g FROM (SELECT k, g, upper(g) AS u FROM A) AS x WHERE g = 'A'", push_predicates)
    )
    assert found[-2:] == ["filter g = 'A'", "scan A"]


def test_through_a_computed_column_only_where_an_operator_has_less_to_do() -> None:
    """Below the projection the column is computed once more."""
    joined = "SELECT x.u FROM (SELECT upper(A.g) AS u FROM A [NOW], B [NOW] WHERE A.k = B.k) AS x WHERE {}"
    assert "filter UPPER(g) = 'A'" in lines(after(joined.format("u = 'A'"), push_predicates))
    assert "filter u = 'A' OR u = 'B'" in lines(after(joined.format("u = 'A' OR u = 'B'"), push_predicates))
    found = lines(
        after("SELECT x.u FROM (SELECT upper(g) AS u, v FROM A) AS x WHERE u = 'A'", push_predicates)
    )
    assert found[-3:] == ["filter u = 'A'", "project UPPER(g) as u, v", "scan A"]


def test_into_every_member_of_a_union() -> None:
    found = lines(after("SELECT x.v FROM (SELECT v, ts FROM A UNION ALL SELECT v, ts FROM B) AS x WHERE v > 1", push_predicates))
    assert found.count("filter v > 1") == 2


def test_below_an_aggregate_only_over_its_groups() -> None:
    query = "SELECT x.k, n FROM (SELECT k, count(*) AS n FROM A [RANGE 1 MINUTE] GROUP BY k) AS x WHERE k > 1 AND n > 2"
    found = lines(after(query, push_predicates))
    assert found[-4:] == ["filter count(*) > 2", "aggregate count(*) by k, window 1 min tumbling on ts", "filter k > 1", "scan A"]


def test_where_on_the_right_of_a_left_join_stays_above_it() -> None:
    query = "SELECT a.k FROM A [NOW] AS a LEFT JOIN B [NOW] AS b ON a.k = b.k AND a.v > 0 AND b.v > 0 WHERE a.i > 1 AND b.g IS NULL"
    found = lines(after(query, push_predicates))
    assert found[2] == "filter g_1 IS NULL"
    assert found[3].startswith("left join") and "v > 0" in found[3]  # ON over the left side decides who is unmatched
    assert found[4:] == ["filter i > 1", "scan A", "project k as k_1, g as g_1, v as v_1, d, ts as ts_1", "filter v > 0", "scan B"]


def test_what_needs_both_sides_becomes_the_condition_of_the_join() -> None:
    found = lines(after("SELECT a.k FROM A [NOW] AS a, B [NOW] AS b WHERE a.k = b.k AND a.v < b.v AND a.v > 1", push_predicates))
    assert "k = k_1 and v < v_1" in found[2]
    assert found[3] == "filter v > 1"
