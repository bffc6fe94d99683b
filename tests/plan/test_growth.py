"""Long statements and chains of views: planning costs what they say and not more, and deep ones work."""

from __future__ import annotations

import datetime as dt
import pickle
import random
from collections.abc import Callable
from functools import cached_property
from typing import Any
from unittest.mock import patch

import pytest

from millstream.bench.plan import KINDS, text
from millstream.errors import PlanProblem, SyntaxProblem
from millstream.expressions.registry import Scope
from millstream.pipeline import Pipeline
from millstream.plan.nodes.join import Join
from millstream.testing import run
from tests.oracle.buckets import run_hosted
from tests.oracle.watch import watched


def work(kind: str, views: int) -> int:
    """The parts of expressions that are compiled, from the text to the graph."""
    pipeline, compile_ = Pipeline(), Scope.compile
    count = 0

    def counted(self: Scope, expression: Any) -> Any:
        nonlocal count
        count += 1
        return compile_(self, expression)

    with patch.object(Scope, "compile", counted):
        pipeline.add_text(text(kind, views))
        pipeline.graph()
    return count


@pytest.mark.parametrize("kind", KINDS)
def test_planning_grows_with_the_number_of_views(kind: str) -> None:
    assert work(kind, 60) <= 12 * work(kind, 6)


def times_found(inputs: int) -> int:
    """How often the plan of a join of so many inputs is asked for its time, and finds it."""
    pipeline, find = Pipeline(), Join.time.func
    count = 0

    def counted(self: Join) -> str | None:
        nonlocal count
        count += 1
        return find(self)

    streams = "".join(f"CREATE STREAM S{i} (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED; " for i in range(inputs))
    joins = "".join(f" JOIN S{i} [NOW] ON S{i}.k = S0.k" for i in range(1, inputs))
    time = cached_property(counted)
    time.__set_name__(Join, "time")
    with patch.object(Join, "time", time):
        pipeline.add_text(f"{streams} CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out SELECT S0.k FROM S0 [NOW]{joins};")
        pipeline.graph()
    return count


def test_planning_a_join_grows_with_the_square_of_its_inputs_at_most() -> None:
    assert times_found(16) <= 20 * times_found(4)


def test_a_condition_over_a_computed_column_is_not_computed_again_below() -> None:
    pipeline = Pipeline()
    pipeline.add_text(text("case", 3))
    plan = pipeline.explain("logical")
    assert plan.count("CASE") == 3
    assert plan.splitlines()[1].strip() == "filter k > 0"


STREAMS = """
CREATE STREAM A (k INT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED;
CREATE SINK Out WITH (connector = 'memory');
"""
TIME = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
ROWS = [(1, TIME), (2, TIME)]


def chained(views: int) -> str:
    """The first view reads A; each adds one."""
    made = "CREATE VIEW V0 AS SELECT k, ts FROM A; "
    made += "".join(f"CREATE VIEW V{i} AS SELECT k + 1 AS k, ts FROM V{i - 1}; " for i in range(1, views + 1))
    return made + f"INSERT INTO Out SELECT k FROM V{views} WHERE k > 0;"


DEEP: dict[str, tuple[str, list[int]]] = {
    "390 AND": ("INSERT INTO Out SELECT k FROM A WHERE " + " AND ".join(f"k <> {i}" for i in range(2, 392)), [1]),
    "1,000 OR": ("INSERT INTO Out SELECT k FROM A WHERE " + " OR ".join(f"k = {i}" for i in range(2, 1002)), [2]),
    "400 additions": ("INSERT INTO Out SELECT " + " + ".join(["k"] * 400) + " AS k FROM A", [400, 800]),
    "300 members": ("INSERT INTO Out " + " UNION ALL ".join(["SELECT k FROM A"] * 300), [1] * 300 + [2] * 300),
    "200 views": (chained(200), [201, 202]),
    "100 sub-queries": (
        "INSERT INTO Out SELECT k FROM " + "(SELECT k + 1 AS k, ts FROM " * 100 + "A" + ")" * 100,
        [101, 102],
    ),
}


@pytest.mark.parametrize("name", DEEP)
def test_long_statements_work(name: str) -> None:
    query, answer = DEEP[name]
    pipeline = Pipeline()
    pipeline.add_text(STREAMS + query)
    pickle.loads(pickle.dumps(pipeline.graph()))
    assert pipeline.explain("graph")
    assert sorted(row["k"] for row in run(pipeline, {"A": ROWS})) == answer


def test_deep_expressions_reach_the_stages_behind_a_shuffle() -> None:
    pipeline = Pipeline()
    sums, many = " + ".join(["k"] * 400), " OR ".join(f"t = {i}" for i in range(1000))
    query = f"SELECT t + 0 AS t FROM (SELECT max({sums}) AS t FROM A [RANGE 1 SECOND] GROUP BY k) WHERE {many}"
    pipeline.add_text(STREAMS + f"INSERT INTO Out {query};")
    with watched() as watch:
        options = {"buckets": 2, "chance": random.Random(1), "watch": watch}
        result = run_hosted(pipeline, {"A": ROWS}, **options)
    assert sorted(row["t"] for row in result) == [400, 800]


@pytest.mark.parametrize(
    "condition",
    [lambda n: " AND ".join(f"k <> {i}" for i in range(n)), lambda n: "(" * n + "k = 1" + ")" * n, lambda n: "NOT " * n + "k = 1"],
)
def test_what_is_deeper_still_is_refused_in_one_line(condition: Callable[[int], str]) -> None:
    with pytest.raises((PlanProblem, SyntaxProblem), match="nested too deeply; ") as caught:
        Pipeline().add_text(STREAMS + f"INSERT INTO Out SELECT k FROM A WHERE {condition(5_000)};")
    assert caught.value.place is not None and "\n" not in str(caught.value)
