"""Projections on top of each other become one."""

from __future__ import annotations

from millstream.plan.rules.merge_projections import merge_projections
from tests.plan.kit import after, lines


def test_two_become_one() -> None:
    found = lines(after("SELECT x.s + 1 AS t FROM (SELECT k + i AS s, g FROM A) AS x", merge_projections))
    assert found[1:] == ["project k + i + 1 as t", "scan A"]


def test_nothing_is_computed_twice() -> None:
    found = lines(after("SELECT x.s + x.s AS t FROM (SELECT k + i AS s, g FROM A) AS x", merge_projections))
    assert found[1:] == ["project s + s as t", "project k + i as s, g", "scan A"]
