"""State that goes from one worker to another and back, with tuples that sleep and pairs that are not made in it."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import pytest

from millstream.operators.join_feedback import JoinFeedback
from millstream.pipeline import Pipeline
from millstream.runtime.launch import Launch
from millstream.runtime.status import Status
from millstream.testing import run
from tests.oracle.buckets import Host

START, SECOND = 1_767_225_600_000_000, 1_000_000
MOVE = ("move",)
Pushes = list[tuple[Any, ...]]


class Never(random.Random):
    """Nothing happens by chance."""

    def random(self) -> float:
        return 1.0

    def randint(self, a: int, b: int) -> int:
        return b


def play(where: str, reach: int, pushes: Pushes) -> tuple[int, list[JoinFeedback]]:
    """Tuples (stream, time, two columns), one at a time: how many results there are, and the joins at the end."""
    pipeline = Pipeline()
    pipeline.add_text("SET feedback.trial = 0; SET join.tree = '((A B) C)'; CREATE SINK Out WITH (connector = 'memory');")
    for name, columns in {"A": "kx", "B": "ky", "C": "xy"}.items():
        shown = ", ".join(f"{column} BIGINT" for column in columns)
        pipeline.add_text(f"CREATE STREAM {name} (ts TIMESTAMP, {shown}) TIMESTAMP BY ts ORDERED ETS NONE WITH (connector = 'list');")
    windows = f"A [RANGE 80 SECONDS], B [RANGE 80 SECONDS], C [RANGE {reach} SECONDS]"
    pipeline.add_text(f"INSERT INTO Out SELECT A.ts AS a, B.ts AS b, C.ts AS c FROM {windows} WHERE A.k = B.k AND {where}")
    rows = {name: [(START + SECOND * each[1], *each[2:]) for each in pushes if each[0] == name] for name in "ABC"}
    joins: list[JoinFeedback] = []

    def hosted(launch: Launch, **session: object) -> Status:
        host = Host(launch, 1, Never())
        for each in pushes:
            if each == MOVE:
                for place, stage in list(host.stages.items()):
                    host._moved(place, stage)
                continue
            units, taken = host._units(each[0]), host.taken[each[0]]
            host.taken[each[0]] += 1
            host.micro_batch(list(host.program.ingest(host._stream(each[0]), units[taken], 0)))
        operators = [o for stage in host.stages.values() for o in stage.running.executor.operators.values()]
        joins.extend(o.feedback for o in operators if o.feedback is not None)
        for writer in host.writers.values():
            writer.close()
        return Status()

    with patch("millstream.testing.run.run_spark", hosted):
        result = run(pipeline, rows, runtime="spark", batch=1, files={name: len(rows[name]) for name in "ABC"})
    return result.to_arrow("Out").num_rows, joins


@pytest.mark.parametrize("moves", [False, True])
def test_what_was_noted_is_not_known_to_a_worker_that_did_not_have_it_since(moves: bool) -> None:
    """The pair of values (1, 1) is left out by one worker, made by another, and left out again by the first."""
    pushes: Pushes = [("C", 0, 1, 9), ("C", 0, 9, 1), ("A", 1, 1, 1), ("B", 1, 1, 1), MOVE, ("C", 2, 1, 1)]
    pushes += [("A", 5, None, 1), ("B", 5, None, 1), ("C", 5, 1, 9), ("C", 5, 9, 1), MOVE, ("A", 6, 1, 1), ("C", 6, 1, 1)]
    pushes = [each for each in pushes if moves or each != MOVE]
    assert play("A.x = C.x AND B.y = C.y", 1, pushes)[0] == 3


def test_who_sleeps_is_counted_where_the_state_has_gone() -> None:
    """Or the tuples that it might have met are kept, though it has been woken."""
    pushes: Pushes = [("C", 0, 7, 7), ("B", 1, 1, 1), ("A", 1, 1, 5), MOVE, ("C", 2, 5, 5), ("B", 3, 2, 2), ("A", 3, 2, 7)]
    pushes += [("A", 300, 9, 7), ("B", 300, 8, 7)]
    results, joins = play("A.x = C.x", 80, pushes)
    assert results == 2
    assert [watch.sleepers for join in joins for watch in join.watches] == [0, 0]
    assert [len(window) for window in joins[0].rows] == [1, 1]
