"""Random queries on Spark give what DuckDB computes, however they are changed between its micro-batches."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from millstream.errors import PlanProblem
from millstream.runtime.control import Control, Request
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_spark
from millstream.runtime.spark import run as spark_run
from millstream.runtime.status import Status
from millstream.testing import run
from tests.changes.test_oracle import Story, set_at_random
from tests.oracle.cases import FAMILIES

SIZE = 8
"""Units of each stream, and as many micro-batches: there is time for everything to change."""
STAGES = 4
"""Each costs every micro-batch some time; a query that needs more of them is refused."""


class Chance(Control):
    """Asks for the next change of a story when a micro-batch has run under the one before; chance decides when."""

    def __init__(self, story: Story, launch: Launch) -> None:
        super().__init__()
        self.story, self.launch = story, launch
        self.steps = ["come", "go", "set", "set"]
        story.r.shuffle(self.steps)
        comes, goes = sorted([self.steps.index("come"), self.steps.index("go")])
        self.steps[comes], self.steps[goes] = "come", "go"
        self.steps.insert(story.r.randrange(2), "later")  # each step takes two micro-batches
        self.asked: Request | None = None
        self.edition = 0
        self.later = 0
        """The edition with which the later query came."""

    def serve(self, change: Callable[[Request], bool]) -> None:
        if not self.steps or (self.asked is not None and not self.asked.done.is_set()) or self.story.r.random() < 0.5:
            return
        step = self.steps.pop(0)
        self.asked = Request(self._text(step))
        self.story.log.append(self.asked.text)
        try:
            change(self.asked)
        except PlanProblem as problem:
            assert "stages" in str(problem)
            self.asked, self.steps = None, [other for other in self.steps if (step, other) != ("come", "go")]
            return
        self.edition += 1
        if step == "later":
            self.later = self.edition

    def _text(self, step: str) -> str:
        if step == "set":
            return set_at_random(self.story.r, self.launch.graph)
        if step == "go":
            return "DROP QUERY Guest"
        sink, query = ("Later", self.story.later) if step == "later" else ("Guest", self.story.guest)
        return f"CREATE SINK {sink} WITH (connector = 'memory'); INSERT INTO {sink} {query.ours};"


def play_on_spark(story: Story) -> bool:
    """Tells whether the later query came before the streams had ended."""
    story.case = replace(story.case, files=SIZE)
    began: dict[int, Mapping[str, Any]] = {}
    original = spark_run._offset

    def noted(report: Mapping[str, Any]) -> Any:
        """From which offset the first micro-batch of each edition began."""
        offset, start = original(report), report["sources"][0]["startOffset"]
        start = json.loads(start) if isinstance(start, str) else start
        began.setdefault(offset["edition"], (start or {"streams": {}})["streams"])
        return offset

    story.come = -1
    came = False

    def hosted(launch: Launch, **session: object) -> Status:
        nonlocal came
        launch.settings.set("source.max_files_per_batch", 1)
        launch.settings.set("execution.stages", STAGES)
        control = Chance(story, launch)
        status = run_spark(launch, control=control)
        editions = [edition for edition in began if edition >= control.later]
        came = bool(control.later and editions)
        if came:
            streams = began[min(editions)]
            for s in story.case.streams:
                size = -(-len(s.rows) // SIZE) or 1
                story.since[s.name] = min(len(s.rows), size * streams[s.name]["units"]) if s.name in streams else 0
            story.again |= {s.name for s in story.case.streams if s.name not in streams}
            story.log.append(f"it came after {story.since}")
            story.check(launch, launch.letters.letters)
        return status

    files = {s.name: SIZE for s in story.case.streams}
    with patch("millstream.testing.run.run_spark", hosted), patch.object(spark_run, "_offset", noted):
        run(story.pipeline(), story.case.inputs(), runtime="spark", batch=story.case.batch, files=files)
    return came


CAME: list[bool] = []


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_changes_on_spark(family: str, spark: object) -> None:
    CAME.append(play_on_spark(Story(random.Random(f"{family} {SIZE}"), family)))


@pytest.mark.slow
def test_most_of_them_came_in_time() -> None:
    assert sum(CAME) * 2 >= len(CAME)
