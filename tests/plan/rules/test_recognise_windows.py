"""Windows go to the operators that work in them."""

from __future__ import annotations

from tests.plan.kit import bound, lines, shown


def test_an_aggregate_takes_the_window_of_its_input() -> None:
    found = lines(shown(bound("SELECT g, count(*) AS n FROM A [RANGE 1 MINUTE] WHERE v > 1 GROUP BY g")))
    assert found[2:] == ["aggregate count(*) by g, window 1 min tumbling on ts", "filter v > 1", "scan A"]


def test_a_window_is_lifted_over_a_projection_that_drops_its_column() -> None:
    found = shown(bound("SELECT DISTINCT g FROM (SELECT g, k FROM A) AS x [RANGE 1 MINUTE]"))
    assert "distinct" in found
    assert "1 min" in found


def test_every_pair_of_a_join_is_bounded() -> None:
    """C is [NOW]: nothing of C stays, so c may not come after the others' reach, nor before them."""
    found = lines(shown(bound("SELECT a.g FROM A [RANGE 5 SECONDS] AS a, B [RANGE 3 SECONDS] AS b, C [NOW] AS c WHERE a.k = c.k")))
    assert any("ts_2 within 5 s after ts and ts_2 within 3 s after ts_1" in line for line in found)
    assert any("ts_1 within 3 s before and 5 s after ts " in line for line in found)


def test_an_input_without_a_window_is_bounded_by_the_others() -> None:
    found = lines(shown(bound("SELECT a.g FROM A AS a, B AS b, C [RANGE 2 SECONDS] AS c WHERE a.ts = b.ts AND c.ts <= a.ts")))
    assert any("ts_2 from ts - 2 s on and ts_2 from ts_1 - 2 s on" in line for line in found), found


def test_a_table_leaves_the_window_to_whoever_reads_the_join() -> None:
    found = lines(
        shown(bound("SELECT T.label, count(*) AS n FROM A [RANGE 1 MINUTE SLIDE 10 SECONDS] JOIN T ON A.k = T.id GROUP BY T.label"))
    )
    assert found[2].startswith("aggregate count(*) by label, window 1 min")


def test_a_window_before_a_table_or_a_left_join_reaches_the_next_stream() -> None:
    for middle in (
        "JOIN T ON a.k = T.id",
        "LEFT JOIN B [RANGE 1 SECOND] AS b ON a.k = b.k",
        "LEFT ANTI JOIN B [RANGE 1 SECOND] AS b ON a.k = b.k",
    ):
        found = shown(bound(f"SELECT a.g FROM A [RANGE 5 SECONDS] AS a {middle} JOIN C [RANGE 2 SECONDS] AS c ON a.k = c.k"))
        assert "within 2 s before and 5 s after ts" in found, found
