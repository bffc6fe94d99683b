"""The directory of a sink is read in the order of its manifests, with the marks that they hold."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millstream.errors import SourceProblem
from millstream.io import FileSource, open_source
from millstream.io.epochs import in_order
from millstream.io.file_sink import FileSink
from tests.io.kit import files_of

A = pa.schema([("a", pa.int64())])
ONE = pa.RecordBatch.from_pydict({"a": [1]}, schema=A)


def epoch(sink: FileSink, number: int, buckets: str, mark: int | None = None, **marks: int | None) -> None:
    """Commit one epoch with a file of each bucket."""
    sink.begin()
    parts = []
    for bucket in buckets:
        writer = sink.writer(A, bucket, number)
        writer.write(ONE)
        parts.append(writer.close())
    sink.commit(number, [*parts, sink.marks({"ts": mark, **marks})])


def listed(path: Path, watch: bool = False) -> list[tuple[str, Any]]:
    names = sorted(name for name in os.listdir(path) if not name.startswith("_"))
    return [(named.name, named.marks) for named in in_order("stream S", str(path), names, watch=watch)]


def source(path: Path, **options: str) -> FileSource:
    found = open_source("S", A, {"path": str(path), "format": "jsonl", **options})
    assert isinstance(found, FileSource)
    return found


def test_epochs_come_before_buckets_and_the_last_file_has_the_mark(tmp_path: Path) -> None:
    sink = FileSink("Out", str(tmp_path / "out"), "jsonl")
    for number in (0, 2, 10):
        epoch(sink, number, "01", 100 * number)
    assert listed(tmp_path / "out") == [
        ("part-0-00000000.jsonl", {"ts": None}), ("part-1-00000000.jsonl", {"ts": 0}),
        ("part-0-00000002.jsonl", {"ts": None}), ("part-1-00000002.jsonl", {"ts": 200}),
        ("part-0-00000010.jsonl", {"ts": None}), ("part-1-00000010.jsonl", {"ts": 1000}),
    ]  # fmt: skip
    read = source(tmp_path / "out")
    units = read.units(read.initial(), read.latest(read.initial(), None))
    assert [unit.detail["marks"]["ts"] for unit in units] == [None, 0, None, 200, None, 1000]


def test_the_mark_is_behind_the_last_stretch_of_the_last_file(tmp_path: Path) -> None:
    sink = FileSink("Out", str(tmp_path / "out"), "jsonl")
    sink.begin()
    writer = sink.writer(A, "0", 0)
    writer.write(pa.RecordBatch.from_pydict({"a": list(range(1000))}, schema=A))
    sink.commit(0, [writer.close(), sink.marks({"ts": 5})])
    from millstream.io.contract import Limits

    read = source(tmp_path / "out").hosted(str(tmp_path / "log"), Limits(bytes=2000))
    positions = [read.initial()]
    while not read.finished(positions[-1]):
        positions.append(json.loads(json.dumps(read.latest(positions[-1], None))))
    units = read.units(positions[0], positions[-1])
    assert len(units) > 3 and [unit.detail["marks"]["ts"] for unit in units] == [None] * (len(units) - 1) + [
        5
    ]


def test_only_committed_epochs_of_a_watched_sink_are_read(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = FileSink("Out", str(path), "jsonl")
    epoch(sink, 0, "0", 1)
    (path / "part-0-00000001.jsonl").write_text('{"a": 1}\n')  # a run in one process would be writing it
    (path / "mine.jsonl").write_text('{"a": 1}\n')
    watched = source(path, watch="true")
    position = watched.latest(watched.initial(), None)
    assert files_of(position) == ["mine.jsonl", "part-0-00000000.jsonl"]
    assert files_of(source(path).latest(source(path).initial(), None)) == [
        "mine.jsonl",
        "part-0-00000001.jsonl",
        "part-0-00000000.jsonl",
    ]
    sink.staging.record(["part-0-00000001.jsonl"], {"marks": {"ts": 7}})
    again = source(path, watch="true")
    assert files_of(again.latest(position, None))[-1] == "part-0-00000001.jsonl"


def test_epochs_are_read_in_order_while_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = FileSink("Out", str(path), "jsonl")
    sink.begin()
    count = 40
    writer = threading.Thread(target=lambda: [epoch(sink, number, "012", number) for number in range(count)])
    watched = source(path, watch="true")
    position = watched.initial()
    writer.start()
    units = []
    while len(units) < 3 * count:
        at = watched.latest(position, 4)
        units += watched.units(position, at)
        position = at
        assert writer.is_alive() or at != watched.initial()
    writer.join()
    names = [os.path.basename(unit.detail["file"]) for unit in units]
    assert names == [f"part-{bucket}-{number:08d}.jsonl" for number in range(count) for bucket in "012"]
    assert [unit.detail["marks"]["ts"] for unit in units[2::3]] == list(range(count))


def test_a_commit_under_way_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = FileSink("Out", str(path), "jsonl")
    epoch(sink, 0, "01", 1)
    epoch(sink, 1, "01", 2)
    (staged, visible), _ = json.loads((path / "_millstream" / sink.run / "0.json").read_text())["files"]
    os.makedirs((path / staged).parent)
    os.rename(path / visible, path / staged)
    assert listed(path, watch=True) == []
    with pytest.raises(SourceProblem, match="stream S: a run was stopped while it showed its results"):
        listed(path)
    sink.finish()  # as the run does when it goes on
    assert len(listed(path, watch=True)) == len(listed(path)) == 4


def test_what_somebody_has_removed_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = FileSink("Out", str(path), "jsonl")
    epoch(sink, 0, "01", 1)
    epoch(sink, 1, "01", 2)
    (path / "part-1-00000000.jsonl").unlink()
    assert [(name, marks["ts"]) for name, marks in listed(path)][:2] == [
        ("part-0-00000000.jsonl", 1),
        ("part-0-00000001.jsonl", None),
    ]


def test_runs_that_share_a_directory_hold_each_other_back(tmp_path: Path) -> None:
    path = tmp_path / "out"
    first, second = (FileSink("Out", str(path), "jsonl", mode="append", run=run) for run in ("r1", "r2"))
    epoch(first, 0, "0", 100)
    epoch(first, 1, "0", 200)
    epoch(second, 0, "0", 30)
    epoch(second, 1, "0", None)
    epoch(second, 2, "0", 250)
    epoch(first, 2, "0", 300)
    assert [marks["ts"] for _, marks in listed(path)] == [None, None, 30, None, 200, 300]
    epoch(first, 3, "0", 400)
    assert [marks["ts"] for _, marks in listed(path, watch=True)][-2:] == [250, 250]  # the second may go on
    second.finish()
    assert [marks["ts"] for _, marks in listed(path, watch=True)][-2:] == [300, 400]
    second.begin()
    assert [marks["ts"] for _, marks in listed(path, watch=True)][-2:] == [250, 250]


def test_a_run_counts_from_its_beginning_where_it_commits_epochs(tmp_path: Path) -> None:
    """One that has committed nothing yet may come with earlier times; one process would commit at its end."""
    path = tmp_path / "out"
    first, second, whole = (
        FileSink("Out", str(path), "jsonl", mode="append", run=run) for run in ("r1", "r2", "r3")
    )
    second.begin()
    epoch(first, 0, "0", 100)
    assert [marks["ts"] for _, marks in listed(path)] == [100]
    assert [marks["ts"] for _, marks in listed(path, watch=True)] == [None]
    epoch(second, 0, "0", 30)
    epoch(first, 1, "0", 200)
    assert [marks["ts"] for _, marks in listed(path, watch=True)] == [None, 30, 30]
    second.finish()
    writer = whole.writer(A, "0", None)
    assert [marks["ts"] for _, marks in listed(path, watch=True)] == [None, 30, 200]
    writer.close()


def test_a_sink_of_an_older_version_has_the_order_and_no_marks(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = FileSink("Out", str(path), "jsonl")
    for number in (0, 1):
        epoch(sink, number, "01", 1)
        manifest = path / "_millstream" / sink.run / f"{number}.json"
        content = json.loads(manifest.read_text())
        del content["marks"]
        manifest.write_text(json.dumps(content))
    (path / "_millstream" / sink.run / "run.json").write_text('{"run": "old"}')
    assert listed(path) == listed(path, watch=True) == [
        (f"part-{bucket}-{number:08d}.jsonl", None) for number in (0, 1) for bucket in "01"
    ]  # fmt: skip


def test_what_one_process_of_an_older_version_wrote_is_read_in_name_order(tmp_path: Path) -> None:
    records = tmp_path / "out" / "_millstream" / "r"
    records.mkdir(parents=True)
    (records / "run.json").write_text('{"run": "r"}')
    for name in ("part-00000-00000001.jsonl", "part-00000-00000000.jsonl"):
        (tmp_path / "out" / name).write_text('{"a": 1}\n')
    names = [("part-00000-00000000.jsonl", None), ("part-00000-00000001.jsonl", None)]
    assert listed(tmp_path / "out") == listed(tmp_path / "out", watch=True) == names


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    sink = FileSink("Out", str(tmp_path / "out"), "jsonl")
    epoch(sink, 0, "0", 1)
    (tmp_path / "out" / "_millstream" / sink.run / "0.json").write_text("{")
    with pytest.raises(SourceProblem, match=r"can not read the manifest .*0\.json"):
        listed(tmp_path / "out")
