"""State tables as the paper prints them (001, Tables 1 to 3)."""

from __future__ import annotations

from millstream.graph.graph import Graph
from millstream.graph.rules import STRATEGIES
from millstream.graph.table import StateTable, table_text
from millstream.pipeline import Pipeline, sketch

STREAMS = """
CREATE STREAM A (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
CREATE STREAM B (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
CREATE SINK Out WITH (connector = 'memory'); CREATE SINK Other WITH (connector = 'memory');
"""
COUNTS = "SELECT k, count(*) AS n FROM A [RANGE 1 SECOND] WHERE k > 0 GROUP BY k"
PATH = f"SELECT DISTINCT n FROM ({COUNTS}) AS c [RANGE 5 SECONDS WA window_end]"


def graph(*queries: str) -> Graph:
    pipeline = Pipeline()
    pipeline.add_text(STREAMS + "".join(f"INSERT INTO {sink} {query};" for sink, query in zip(("Out", "Other"), queries, strict=False)))
    return sketch(pipeline.plans())


def table(of: Graph, strategy: str = "depth-first", breaks: tuple[tuple[int, int], ...] = ()) -> list[list[str]]:
    chosen = dict.fromkeys((v.number for v in of.vertices), STRATEGIES[strategy])
    return [line.split() for line in table_text(StateTable(of.vertices, chosen, breaks))]


def names(of: Graph) -> dict[int, str]:
    return {v.number: v.config.label.split()[0] for v in of.vertices}


def test_a_path_and_a_path_with_a_break_point() -> None:
    of = graph(PATH)
    chain = [v.number for v in of.vertices][1:-1]
    first, *inner, last = chain
    shown = table(of)
    assert shown[0] == ["state", "pred", "succ", "transition"]
    assert shown[1] == [f"#{first}", "-", f"#{chain[1]}", "DFS-Source"]
    assert [line[3] for line in shown[2:-1]] == ["DFS-NOS"] * len(inner)
    assert shown[-1] == [f"#{last}", f"#{chain[-2]}", "-", "DFS-Sink"]
    broken = table(of, breaks=((chain[-2], last),))
    assert broken[-2][2:] == ["-", "DFS-Sink"]
    assert broken[-1] == [f"#{last}", "-", "-", "DFS-Source-Sink"]


def test_a_fork_stands_between_a_producer_and_its_consumers() -> None:
    of = graph(
        "SELECT k, count(*) AS n FROM (SELECT k, ts FROM A WHERE k > 0) AS a [RANGE 1 SECOND] GROUP BY k",
        "SELECT k, sum(k) AS n FROM (SELECT k, ts FROM A WHERE k > 0) AS a [RANGE 5 SECONDS] GROUP BY k",
    )
    shown = [" ".join(line) for line in table(of)]
    producer = next(n for n, consumers in of.consumers.items() if len(consumers) == 2)
    branches = [consumer for consumer, _ in of.consumers[producer]]
    assert f"#{producer} #{producer - 1} fork #{producer} DFS-NOS" in shown
    for branch in branches:
        assert f"fork #{producer} #{producer} #{branch} DFS-Fork" in shown
        assert any(line.startswith(f"#{branch} fork #{producer}") for line in shown)


def test_round_robin_runs_paths_only() -> None:
    of = graph("SELECT k, ts FROM A WHERE k > 1 UNION ALL SELECT k, ts FROM B WHERE k > 2")
    union = next(n for n, name in names(of).items() if name == "union")
    shown = {line[0]: line for line in table(of, "round-robin")}
    assert shown[f"#{union}"][1:3] == ["-,", "-"]
    assert {line[-1] for line in shown.values()} <= {"transition", "RR-Source", "RR-Sink", "RR-NOS", "RR-Source-Sink"}
