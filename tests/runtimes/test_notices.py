"""What the buckets of all stages wait for reaches the source, also after a restart, and asks for just the enabling timestamps that help."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.core.types import TIMESTAMP
from millstream.graph.cut import cut
from millstream.io import ListSource, MemorySink
from millstream.pipeline import Pipeline
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime.hosted import HostedProgram, HostedStage
from millstream.runtime.launch import Launch
from millstream.runtime.program import Outcome

SECOND = 1_000_000
STREAMS = "".join(f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS ON DEMAND SKEW 0 SECONDS;" for name in "AB")
# Two stages: counts by key, then counts of counts.
QUERY = """
SELECT n, count(*) AS c
FROM (SELECT k, count(*) AS n FROM A UNION ALL B [RANGE 1 SECOND] GROUP BY k) AS s [RANGE 10 SECONDS WA window_start]
GROUP BY n
"""


class Hosted:
    """A program with two buckets, its micro-batches run by hand; every call to `program` is to a copy that knows only the notice."""

    def __init__(self, notices: Path) -> None:
        pipeline = Pipeline()
        pipeline.add_text(STREAMS)
        for key, (name, entry) in list(pipeline.catalog.relations._entries.items()):
            assert isinstance(entry, Stream)
            source = ListSource(name, entry.read_schema, ended=False)
            pipeline.catalog.relations._entries[key] = (name, replace(entry, source=source))
        pipeline.catalog.sinks.add("Out", SinkEntry("Out", {}, None, MemorySink("Out")))
        pipeline.add_text(f"INSERT INTO Out {QUERY};")
        launch = Launch.prepare(pipeline)
        self.sources = launch.sources
        program = HostedProgram(cut(launch.graph), tuple(launch.sources.items()), (), 2, notes_path=str(notices))
        self.driver = program
        self.data = pickle.dumps(program)
        self.stages: dict[tuple[int, int], HostedStage] = {}
        self.states: dict[str, dict[str, Any]] = {
            name: {"at": source.initial(), "units": 0, "clock": 0, "arrived": 0, "mark": None, "ended": False}
            for name, source in launch.sources.items()
        }
        self.results: list[tuple[int, int]] = []

    def push(self, stream: str, now: int, *rows: tuple[int, float]) -> None:
        source, state = self.sources[stream], self.states[stream]
        assert isinstance(source, ListSource)
        times = pa.array([round(ts * SECOND) for _, ts in rows], pa.int64()).view(TIMESTAMP)
        source.push(pa.RecordBatch.from_arrays([pa.array([k for k, _ in rows]), times], schema=source.schema))
        end = source.latest(state["at"], None)
        (unit,) = source.units(state["at"], end)
        self.states[stream] = {**state, "at": end, "units": state["units"] + 1, "arrived": now * SECOND}
        self.micro_batch(list(self.driver.ingest(list(self.states).index(stream), unit)))

    def asked(self, now: float, *moving: str) -> dict[str, float]:
        """What a source would be asked for that has just been started."""
        fresh: HostedProgram = pickle.loads(self.data)
        return {name: mark / SECOND for name, mark in fresh.enabling(self.states, set(moving), round(now * SECOND)).items()}

    def promise(self, marks: dict[str, float]) -> None:
        outcomes: list[Outcome] = []
        for name, mark in marks.items():
            self.states[name]["mark"] = round(mark * SECOND)
            outcomes += self.driver.mark(list(self.states).index(name), self.states[name]["units"], round(mark * SECOND))
        self.micro_batch(outcomes)

    def micro_batch(self, outcomes: list[Outcome]) -> None:
        notes = [outcome.note for outcome in outcomes if outcome.note]
        for index in range(self.driver.stages):
            packets = [packet for outcome in outcomes for packet in outcome.packets]
            outcomes = []
            for bucket in range(2):
                if mine := [packet for packet in packets if packet.bucket == bucket]:
                    stage = self.stages.setdefault((index, bucket), self.driver.stage(index, bucket))
                    outcomes.append(stage.run(mine))
            notes += [outcome.note for outcome in outcomes if outcome.note]
            for outcome in outcomes:
                for sink, block in outcome.results:
                    self.results += [(row["n"], row["c"]) for row in self.driver.rows(sink, block).to_pylist()]
        self.driver.noted(notes)


def test_a_later_stage_is_heard_through_the_earlier_ones(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "notices.json")
    assert hosted.driver.stages == 2
    assert hosted.asked(100) == {}  # nobody has told anything yet
    hosted.push("A", 100, (1, 0.5), (2, 0.6), (2, 0.7))
    hosted.push("B", 100, (3, 0.2))
    # A was at 0.7 s and B at 0.2 s, at 100 s by the clock; the first window ends at 1 s for both.
    assert hosted.asked(100.5) == {}
    assert hosted.asked(100.5, "A") == {}
    assert hosted.asked(100.8, "A") == {"B": 1.0}  # what A is about to bring may be enough
    assert hosted.asked(100.85) == {"A": 1.55, "B": 1.05}
    hosted.promise(hosted.asked(100.85))
    # The counts are out of the first stage, and wait in the second for the end of its 10 s.
    assert hosted.results == []
    assert hosted.asked(105) == {}
    assert hosted.asked(109.7) == {}
    # No later count may begin before 10 s: the first stage promises that once its inputs are at 10 s.
    made = hosted.asked(109.8)
    assert made == {"A": 10.5, "B": 10.0}
    hosted.promise(made)
    assert sorted(hosted.results) == [(1, 2), (2, 1)]
    assert hosted.asked(200) == {}


def test_a_bucket_that_had_no_part_still_waits_after_a_restart(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "notices.json")
    hosted.push("A", 100, (1, 0.5))
    hosted.push("B", 100, (3, 0.5))
    hosted.driver = pickle.loads(hosted.data)  # the user's process is new, and has heard of no bucket
    hosted.driver.noted([])
    assert hosted.asked(100.6) == {"A": 1.1, "B": 1.1}


def test_how_far_a_sink_is_outlives_a_bucket(tmp_path: Path) -> None:
    """The promises of a bucket to its sinks are part of its state, so they outlive a rebuild."""
    hosted = Hosted(tmp_path / "notices.json")
    assert hosted.driver.reached(0) == {"window_end": None, "window_start": None}
    hosted.push("A", 100, (1, 12), (2, 12))
    assert hosted.driver.reached(0) == {"window_end": None, "window_start": None}
    hosted.push("B", 100, (3, 13))
    expected = {"window_end": 20 * SECOND, "window_start": 10 * SECOND}
    assert hosted.driver.reached(0) == expected
    for (index, bucket), stage in list(hosted.stages.items()):
        made = stage.changes(1)
        assert made is not None
        again = hosted.stages[index, bucket] = hosted.driver.stage(index, bucket)
        again.restore([(1, made.data)])
        assert dict(again._note().delivered) == dict(stage._note().delivered) and bool(
            again._note().delivered
        ) == (index == 1)
    hosted.driver = pickle.loads(hosted.data)  # it has to hear of every bucket anew
    assert hosted.driver.reached(0) == {"window_end": None, "window_start": None}
    hosted.push("A", 100, (1, 25))
    hosted.push("B", 100, (3, 26))
    assert hosted.driver.reached(0) == {"window_end": 30 * SECOND, "window_start": 20 * SECOND}


def test_a_notice_that_can_not_be_read_is_none(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "notices.json")
    (tmp_path / "notices.json").write_text('{"waits": tr')
    assert hosted.asked(100) == {}
    hosted.push("A", 100, (1, 0.5))
    hosted.push("B", 100, (3, 0.5))
    assert hosted.asked(100.6) == {"A": 1.1, "B": 1.1}
