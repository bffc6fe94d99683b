"""The steps that operators make: how many tuples each takes, and how a fork serves its branches."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.graph.rules import STRATEGIES

STREAM = (
    "CREATE STREAM A (k BIGINT, v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (connector = 'list');"
)
COUNT = "SELECT k, count(*) AS n FROM {} [RANGE 1 HOUR] GROUP BY k"
LARGEST = "SELECT max(k) AS m FROM {} [RANGE 1 HOUR]"
ALL = "SELECT count(*) AS n, v FROM {} [RANGE 1 HOUR] GROUP BY v"
MADE = "(SELECT max(k) AS k, v, window_start AS ts FROM A [RANGE 40 SECONDS SLIDE 1 SECOND] GROUP BY v)"


class Steps:
    """A run over tuples that come in one block, and every step that its operators make."""

    def __init__(self, tuples: int, strategy: str, limit: int, *queries: str) -> None:
        session = ms.Session("local")
        session.sql(f"SET execution.strategy = '{strategy}'; SET execution.limit = {limit}; {STREAM}")
        for number, query in enumerate(queries):
            session.sql(
                f"CREATE SINK Out{number} WITH (connector = 'memory'); INSERT INTO Out{number} {query};"
            )
        live = ms.testing.Live(session)
        self.executor = live._run.stage.executor
        self.taken: list[tuple[int, int]] = []
        """The operator, and how many tuples it took."""
        self.executor.on_step = lambda operator, tuples, punctuations: self.taken.append((operator, tuples))
        live.push("A", [(n, n % 3, f"2026-01-01 12:{n // 60 % 60:02d}:{n % 60:02d}") for n in range(tuples)])

    @property
    def forks(self) -> list[list[int]]:
        """The first operators of the branches of each fork."""
        found = self.executor.network.branches.values()
        return [[operator for operator, _, _ in branches] for branches in found if len(branches) > 1]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("limit", [7, 100, 1000])
def test_every_step_but_the_last_takes_as_many_tuples_as_the_limit_says(strategy: str, limit: int) -> None:
    steps = Steps(2000, strategy, limit, "SELECT k + 1 AS k FROM A")
    by_operator: dict[int, list[int]] = {}
    for operator, tuples in steps.taken:
        by_operator.setdefault(operator, []).append(tuples)
    for taken in by_operator.values():
        assert (len(taken), set(taken[:-1]), sum(taken)) == (-(-2000 // limit), {limit}, 2000)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_blocks_of_other_sizes_than_the_limit_cost_no_more_steps_than_there_are_blocks(strategy: str) -> None:
    """The selection takes 100 tuples a step and puts out 99 or 100."""
    steps = Steps(2000, strategy, 100, "SELECT k + 1 AS k FROM (SELECT k, ts FROM A WHERE k % 150 <> 7) AS r")
    assert all(
        count <= 28
        for count in (sum(each == operator for each, _ in steps.taken) for operator, _ in steps.taken)
    )
    assert max(tuples for _, tuples in steps.taken) == 100


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_an_operator_that_reads_a_fork_twice_takes_turns_with_nobody(limit: int) -> None:
    steps = Steps(30, "depth-first", limit, "SELECT k, ts FROM A UNION ALL SELECT k, ts FROM A")
    assert [len(set(branches)) for branches in steps.forks] == [1]
    assert not steps.executor.network.pending


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize(
    "queries",
    [
        (COUNT.format("A"), LARGEST.format("A")),
        (COUNT.format("A"), LARGEST.format("A"), ALL.format("A")),
        (COUNT.format(MADE), LARGEST.format(MADE)),  # many tuples come in one block
        (
            COUNT.format(MADE),
            LARGEST.format(MADE),
            ALL.format(MADE),
            f"SELECT k FROM {MADE} AS r WHERE k > 20",
        ),
        (
            f"SELECT a.k FROM {MADE} [NOW] AS a JOIN (SELECT v, ts FROM {MADE} WHERE k > 5) [NOW] AS b ON a.v = b.v",
        ),  # they meet again
    ],
)
def test_depth_first_a_fork_serves_its_branches_in_turn(limit: int, queries: tuple[str, ...]) -> None:
    steps = Steps(60, "depth-first", limit, *queries)
    assert steps.forks
    for branches in steps.forks:
        taken = dict.fromkeys(branches, 0)
        for operator, tuples in steps.taken:
            if operator in taken:
                taken[operator] += tuples
                assert max(taken.values()) - min(taken.values()) <= limit, (branches, steps.taken)
        assert min(taken.values()) > 10 * limit
