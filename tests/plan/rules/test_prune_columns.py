"""Only columns that someone reads are carried."""

from __future__ import annotations

from tests.plan.kit import lines, pipeline, planned


def test_columns_nobody_reads_are_dropped_at_the_source() -> None:
    found = lines(planned("SELECT g, count(*) AS n FROM A [RANGE 1 MINUTE] GROUP BY g"))
    assert found[-2:] == ["project g, ts", "scan A"]


def test_a_join_keeps_keys_bands_and_results() -> None:
    found = lines(planned("SELECT a.g FROM A [NOW] AS a JOIN B [NOW] AS b ON a.k = b.k AND a.v < b.v"))
    assert "project k, g, v, ts" in found
    assert "project k as k_1, v as v_1, ts as ts_1" in found


def test_aggregates_nobody_reads_are_not_computed() -> None:
    found = planned("SELECT x.k FROM (SELECT k, count(*) AS n, sum(v) AS s FROM A [RANGE 1 MINUTE] GROUP BY k) AS x WHERE n > 1")
    assert "sum" not in found
    assert "count(*)" in found


def test_a_query_without_columns_still_counts_tuples() -> None:
    found = lines(planned("SELECT 1 AS one FROM A"))
    assert found[-1] == "scan A"


def test_parts_that_queries_share_carry_what_any_of_them_reads() -> None:
    made = pipeline()
    made.add_text("CREATE VIEW Big AS SELECT * FROM A WHERE v > 100; CREATE SINK Other WITH (connector = 'memory');")
    made.add_text("INSERT INTO Out SELECT k FROM Big; INSERT INTO Other SELECT g FROM Big;")
    graph = made.graph()
    assert len(graph.sources) == 1
    assert sum("select" in v.config.label for v in graph.vertices) == 1
