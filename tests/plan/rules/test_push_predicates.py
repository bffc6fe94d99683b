"""Conditions go as near to their source as they may."""

from __future__ import annotations

from millstream.plan.rules.push_predicates import push_predicates
from tests.plan.kit import after, lines


def test_through_a_projection() -> None:
    found = lines(after("SELECT x.g FROM (SELECT k, upper(g) AS g, v FROM A) AS x WHERE g = 'A'", push_predicates))
    assert found[-2:] == ["filter UPPER(g) = 'A'", "scan A"]


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
