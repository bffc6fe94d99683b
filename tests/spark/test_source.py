"""Offsets, partitions and the pace of the source, without Spark."""

from __future__ import annotations

import json
import sys
import time
import uuid
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import toy
from pyspark import cloudpickle

from millstream.errors import MillstreamError, PlanProblem
from millstream.runtime.spark import wire
from millstream.runtime.spark.editions import Editions
from millstream.runtime.spark.failures import WorkerFailure, unseal
from millstream.runtime.spark.halt import Halt
from millstream.runtime.spark.source import Pace, Reader


@pytest.fixture(autouse=True)
def by_value() -> None:
    cloudpickle.register_pickle_by_value(toy)


def files(place: Path, count: int) -> str:
    for number in range(count):
        (place / f"{number:03d}.txt").write_text(f"word{number} again")
    return str(place)


def reader(program: Any, units: int | None = 2, tasks: int = 2) -> Reader:
    return Reader(wire.Shipment.pack(program, uuid.uuid4().hex), "shape", tasks, units)


def toy_program(*sources: Any, **settings: Any) -> Any:
    return toy.ToyProgram(tuple((f"s{i}", source) for i, source in enumerate(sources)), (), **settings)


def walk(of: Reader) -> list[dict[str, Any]]:
    offsets = [of.initialOffset()]
    while (after := of.latestOffset(json.loads(json.dumps(offsets[-1])), None)) != offsets[-1]:
        offsets.append(after)
    return offsets


def test_a_bounded_stream_ends_once_and_then_stands_still(tmp_path: Path) -> None:
    offsets = walk(reader(toy_program(toy.FileWords(files(tmp_path, 5)))))
    states = [offset["streams"]["s0"] for offset in offsets]
    assert [state["units"] for state in states] == [0, 2, 4, 5]
    assert [state["ended"] for state in states] == [False, False, False, True]
    assert [offset["step"] for offset in offsets] == [0, 1, 2, 3]


def test_an_empty_stream_only_ends(tmp_path: Path) -> None:
    of = reader(toy_program(toy.FileWords(str(tmp_path))))
    start, end = walk(of)
    (only,) = of.partitions(start, end)
    assert [(errand.unit, errand.mark, errand.number) for errand in only.errands] == [(None, None, 0)]


def test_partitions_are_the_same_again_and_cover_every_unit_once(tmp_path: Path) -> None:
    of = reader(toy_program(toy.FileWords(files(tmp_path, 30))), units=20)
    offsets = walk(of)
    numbers = []
    for start, end in pairwise(offsets):
        parts = of.partitions(start, end)
        again = of.partitions(json.loads(json.dumps(start)), json.loads(json.dumps(end)))
        assert [part.errands for part in parts] == [part.errands for part in again]
        assert len(parts) <= 4 * of.tasks
        numbers += [errand.number for part in parts for errand in part.errands if errand.unit]
    assert numbers == list(range(30))


def test_one_stream_may_end_before_the_other(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    program = toy_program(toy.FileWords(files(tmp_path / "a", 1)), toy.FileWords(files(tmp_path / "b", 4)))
    of = reader(program)
    offsets = walk(of)
    assert [[state["ended"] for state in offset["streams"].values()] for offset in offsets] == [
        [False, False], [True, False], [True, True],
    ]  # fmt: skip


def test_enabling_timestamps_are_in_the_offset(tmp_path: Path) -> None:
    class WithEts(toy.ToyProgram):
        def enabling(self, streams: dict[str, Any], moving: set[str], now: int) -> dict[str, int]:
            return {"s0": 10}

    program = WithEts((("s0", toy.FileWords(files(tmp_path, 1), watch=True)),), (), buckets=2)
    of = reader(program)
    offsets = walk(of)
    assert [offset["streams"]["s0"]["mark"] for offset in offsets] == [None, None, 10]
    (only,) = of.partitions(offsets[-2], offsets[-1])
    assert [(errand.number, errand.mark) for errand in only.errands] == [(1, 10)]
    assert (
        only.errands[0].entered == offsets[2]["streams"]["s0"]["made"] > time.time_ns() // 1000 - 60_000_000
    )
    (batch,) = of.read(only)
    assert batch.schema == wire.ARROW and [row.kind for row in wire.from_batch(batch)] == [wire.PACKET, wire.SPENT]


@pytest.mark.parametrize(("wait", "held"), [(0.12, True), (5.0, False)])
def test_a_micro_batch_is_held_for_a_mark_that_is_nearly_there(tmp_path: Path, wait: float, held: bool) -> None:
    """Else what waits for the silent stream would wait for the whole micro-batch that misses it by a moment."""
    when = tmp_path / "when"

    class WithEts(toy.ToyProgram):
        def enabling(self, streams: dict[str, Any], moving: set[str], now: int) -> dict[str, int]:
            return {"s1": 10} if when.exists() and now >= int(when.read_text()) else {}

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    fast, silent = (toy.FileWords(files(tmp_path / name, 1), watch=True) for name in ("a", "b"))
    of = reader(WithEts((("s0", fast), ("s1", silent)), (), buckets=2))
    first = of.latestOffset(of.initialOffset(), None)
    time.sleep(0.2)  # so long took the micro-batch
    (tmp_path / "a" / "001.txt").write_text("more")
    when.write_text(str(time.time_ns() // 1000 + round(wait * 1e6)))
    began = time.monotonic()
    second = of.latestOffset(first, None)
    assert second["streams"]["s0"]["units"] == 2
    assert second["streams"]["s1"]["mark"] == (10 if held else None)
    assert (time.monotonic() - began > 0.1) == held


def spaced(program: Any, interval: float, units: int | None = 2) -> Reader:
    halt = Halt.new()
    return Reader(wire.Shipment.pack(program, uuid.uuid4().hex), "shape", 2, units, halt, interval)


def test_a_micro_batch_begins_an_interval_after_the_last(tmp_path: Path) -> None:
    """What comes meanwhile comes in one micro-batch, marks of silent streams among it."""

    class WithEts(toy.ToyProgram):
        def enabling(self, streams: dict[str, Any], moving: set[str], now: int) -> dict[str, int]:
            return {"s1": 10}

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    fast, silent = (toy.FileWords(files(tmp_path / name, 1), watch=True) for name in ("a", "b"))
    of = spaced(WithEts((("s0", fast), ("s1", silent)), (), buckets=2), 1.0, units=None)
    began = time.monotonic()
    first = of.latestOffset(of.initialOffset(), None)
    assert time.monotonic() - began < 0.5  # the first one does not wait
    (tmp_path / "a" / "001.txt").write_text("more")
    assert of.latestOffset(first, None) == first  # Spark is told so, and asks again
    (tmp_path / "a" / "002.txt").write_text("still more")
    while (second := of.latestOffset(first, None)) == first:
        assert time.monotonic() - began < 10
    assert time.monotonic() - began > 0.95
    assert second["streams"]["s0"]["units"] == 3 and second["streams"]["s1"]["mark"] == 10


def test_a_micro_batch_that_has_left_something_behind_is_followed_at_once(tmp_path: Path) -> None:
    of = spaced(toy_program(toy.FileWords(files(tmp_path, 5), watch=True)), 60.0)
    began = time.monotonic()
    offsets = [of.initialOffset()]
    for _ in range(3):
        offsets.append(of.latestOffset(offsets[-1], None))
    assert [offset["streams"]["s0"]["units"] for offset in offsets] == [0, 2, 4, 5]
    (tmp_path / "005.txt").write_text("more")
    assert of.latestOffset(offsets[-1], None) == offsets[-1]
    assert time.monotonic() - began < 10


def test_an_interval_delays_neither_a_change_of_queries_nor_a_stop(tmp_path: Path) -> None:
    program = toy_program(toy.FileWords(files(tmp_path, 1), watch=True))
    of = spaced(program, 60.0)
    assert of.halt is not None
    began = time.monotonic()
    first = of.latestOffset(of.initialOffset(), None)
    Editions(of.halt.path).publish(replace(wire.Shipment.pack(program, of.shipment.run), edition=1))
    second = of.latestOffset(first, None)
    assert second["edition"] == 1
    of.halt.ask()
    assert of.latestOffset(second, None) == second and of.halt.answered
    assert time.monotonic() - began < 10


def test_another_programs_checkpoint_is_refused(tmp_path: Path) -> None:
    of = reader(toy_program(toy.FileWords(str(tmp_path))))
    with pytest.raises(WorkerFailure) as failure:
        of.latestOffset(of.initialOffset() | {"shape": "other"}, None)
    assert isinstance(unseal(str(failure.value)), PlanProblem)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (
            "query 1 2",
            "the checkpoint has 1 stage, and this run 2; SET execution.stages = 1, or give a new checkpoint directory",
        ),
        (
            "query 2 3",
            "the checkpoint has 3 buckets, and this run 2; SET execution.buckets = 3, or give a new checkpoint directory",
        ),
        (
            "query 2 2 1",
            "the checkpoint has 1 partition, and this run 2; SET execution.partitions = 1, or give a new checkpoint directory",
        ),
        (
            "other 2 2",
            "the checkpoint belongs to another query; give a new checkpoint directory, or run the query it was made with",
        ),
    ],
)
def test_a_checkpoint_with_other_parts_is_refused_with_the_number_that_differs(
    tmp_path: Path, shape: str, said: str
) -> None:
    shipment = wire.Shipment.pack(toy_program(toy.FileWords(str(tmp_path))), uuid.uuid4().hex)
    of = Reader(shipment, "query 2 2 2", 2, 2)
    with pytest.raises(WorkerFailure) as failure:
        of.latestOffset(of.initialOffset() | {"shape": shape}, None)
    assert str(unseal(str(failure.value))) == said


def test_unseal_finds_pythons_last_line() -> None:
    error = unseal("Job aborted: Traceback (most recent call last):\n  File x\nValueError: no such thing\n\tat org.apache.spark")
    assert isinstance(error, MillstreamError) and "ValueError: no such thing" in str(error)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Error from python worker:\n  python3: No module named millstream.x\nPYTHONPATH was:",
            "lacks the library `millstream.x`",
        ),
        (
            "Traceback\nModuleNotFoundError: No module named 'numba'",
            "a Python worker lacks the library `numba`; workers run",
        ),
        (
            'java.io.IOException: Cannot run program "/nowhere/python": error=2',
            "an executor can not run /nowhere/python; PYSPARK_PYTHON",
        ),
        (
            "An error occurred while calling o16.x.\n: org.apache.spark.SparkException: all is lost\n\tat x",
            "failed on Spark: all is lost",
        ),
    ],
)
def test_unseal_says_what_a_machine_lacks(text: str, said: str) -> None:
    assert said in str(unseal(text))


def test_a_library_that_workers_lack_is_told_with_both_pythons() -> None:
    said = str(unseal("ModuleNotFoundError: No module named 'millstream'", "/usr/bin/python3"))
    assert (
        f"workers run /usr/bin/python3 and this process runs {sys.executable}: set PYSPARK_PYTHON to a Python that has"
        in said
    )


def test_a_block_beyond_all_bounds_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from millstream.errors import DataProblem
    from millstream.runtime.program import Outcome, Packet

    monkeypatch.setattr(wire, "LARGEST", 10)
    with pytest.raises(DataProblem, match="too large"):
        list(wire.rows_of(Outcome(packets=(Packet(0, 0, (0, 0, 0), b"x" * 11),)), (0,), 0, 0))


def test_with_an_interval_the_pace_grows_while_micro_batches_are_short_beside_it(tmp_path: Path) -> None:
    """Else a stream of small files is always behind, and no micro-batch waits for the interval."""
    for interval, grown in ((0.0, 2), (10.0, 4)):
        pace = spaced(toy_program(toy.FileWords(str(tmp_path), watch=True)), interval, units=None).pace
        for _ in range(2):
            pace.took(pace.limit())
        pace.since -= 3.0  # so long took the micro-batch
        assert pace.limit() == grown
        pace.took(1)
        pace.since -= 3.0 * max(interval, 2.0)
        assert pace.limit() == 2


def test_the_pace_grows_only_while_micro_batches_are_short_and_full() -> None:
    pace = Pace(2, None)
    seen = []
    for _ in range(4):
        pace.took(pace.limit())
        seen.append(pace.now)
    assert seen == [2, 2, 4, 8]
    pace.took(1)
    assert pace.limit() == 8
    pace.took(8)
    pace.since -= 100
    assert pace.limit() == 4
    pace.took(3)  # held back by a limit on bytes, and slow all the same
    pace.since -= 100
    assert pace.limit() == 2
    assert Pace(2, 7).limit() == 7
