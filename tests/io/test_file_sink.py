"""The file sink: what is visible when, and that a commit happens once."""

import json
import os
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.errors import NameProblem, Place, SinkProblem
from millstream.io import FileSink, Part, open_sink
from millstream.io import staging as staging_module
from tests.io.kit import schema

A = schema("a BIGINT")


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], schema=A)


def sink_at(path: Path, **options: str) -> FileSink:
    sink = open_sink("Out", {"path": str(path), **options}, None)
    assert isinstance(sink, FileSink)
    return sink


def staged(sink: FileSink, part: str, epoch: int, *values: int) -> Part:
    writer = pickle.loads(pickle.dumps(sink)).writer(A, part, epoch)
    if values:
        writer.write(batch(*values))
    return pickle.loads(pickle.dumps(writer.close()))


def visible(path: Path) -> dict[str, list[int]]:
    files = sorted(name for name in os.listdir(path) if not name.startswith(("_", ".")))
    return {name: [json.loads(line)["a"] for line in (path / name).read_text().splitlines()] for name in files}


def test_without_epochs_results_are_seen_as_they_are_flushed(tmp_path: Path) -> None:
    sink = sink_at(tmp_path / "deep" / "out")
    sink.check(A)
    assert not (tmp_path / "deep").exists()  # a check changes nothing
    writer = sink.writer(A, "0", None)
    writer.write(batch(1))
    writer.flush()
    assert visible(tmp_path / "deep" / "out") == {"part-0-00000000.jsonl": [1]}
    writer.write(batch(2))
    writer.close()
    sink.finish()
    assert visible(tmp_path / "deep" / "out") == {"part-0-00000000.jsonl": [1, 2]}


def test_an_epoch_is_seen_after_its_commit_and_once(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sink = sink_at(out)
    parts = [staged(sink, "0", 7, 1), staged(sink, "1", 7, 2), staged(sink, "2", 7)]
    assert visible(out) == {}
    sink.commit(7, parts)
    expected = {"part-0-00000007.jsonl": [1], "part-1-00000007.jsonl": [2]}
    assert visible(out) == expected
    sink.commit(7, parts)
    sink.commit(7, [staged(sink, "0", 7, 99), staged(sink, "5", 7, 98)])  # a replay changes nothing
    assert visible(out) == expected
    staged(sink, "0", 8, 3)  # abandoned
    sink.finish()
    assert visible(out) == expected and not (out / "_staged").exists()


def test_a_crash_between_manifest_and_moves_is_healed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    sink = sink_at(out).with_run("r1")
    parts = [staged(sink, "0", 0, 1), staged(sink, "1", 0, 2)]
    real = os.replace

    def crash(source: str, target: str) -> None:
        if "part-1" in target:
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(staging_module.os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        sink.commit(0, parts)
    monkeypatch.undo()
    again = sink_at(out).with_run("r1")  # a new process, the same run
    again.check(A)
    again.commit(0, [staged(again, "0", 0, 1), staged(again, "1", 0, 2)])
    assert visible(out) == {"part-0-00000000.jsonl": [1], "part-1-00000000.jsonl": [2]}
    again.commit(1, [staged(again, "0", 1, 3)])
    again.finish()
    assert len(visible(out)) == 3 and not (out / "_staged").exists()


def test_a_crash_before_the_manifest_leaves_nothing_visible(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = sink_at(out).with_run("r1")
    staged(first, "0", 0, 1)
    again = sink_at(out).with_run("r1")
    again.begin()
    again.commit(0, [staged(again, "0", 0, 2)])
    assert visible(out) == {"part-0-00000000.jsonl": [2]}
    assert not (out / "_staged" / "r1" / "0").exists()


def test_what_a_task_wrote_must_be_here_to_be_committed(tmp_path: Path) -> None:
    """On a cluster without a shared path it is on another disk; a manifest would make it lost for good."""
    sink = sink_at(tmp_path / "out")
    part = staged(sink, "0", 3, 1)
    shutil.rmtree(tmp_path / "out" / "_staged")
    with pytest.raises(SinkProblem, match="was written and is not there; on a cluster every machine must see this path"):
        sink.commit(3, [part])
    assert sink.staging.last() == -1
    sink.commit(3, [staged(sink, "0", 3, 1)])
    assert visible(tmp_path / "out") == {"part-0-00000003.jsonl": [1]} and sink.staging.last() == 3


def test_a_damaged_manifest_is_one_line(tmp_path: Path) -> None:
    sink = sink_at(tmp_path / "out")
    sink.commit(0, [staged(sink, "0", 0, 1)])
    (manifest,) = (tmp_path / "out" / "_millstream").glob("*/0.json")
    manifest.write_text('{"epoch": 0, "fi')
    with pytest.raises(SinkProblem, match=r"the manifest .* is damaged; restore it"):
        sink.commit(0, [])


def test_a_used_path_is_refused_unless_it_is_ours(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sink = sink_at(out).with_run("r1")
    sink.commit(0, [staged(sink, "0", 0, 1)])
    sink_at(out).with_run("r1").check(A)
    with pytest.raises(SinkProblem, match="exists and is not empty; choose another path, remove it, or set mode"):
        sink_at(out).check(A)
    (tmp_path / "file").touch()
    with pytest.raises(SinkProblem, match="is a file"):
        sink_at(tmp_path / "file").check(A)
    (tmp_path / "empty").mkdir()
    sink_at(tmp_path / "empty").check(A)


def test_append_and_overwrite(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = sink_at(out)
    first.commit(0, [staged(first, "0", 0, 1)])
    for _ in range(2):
        more = sink_at(out, mode="append")
        more.check(A)
        more.commit(0, [staged(more, "0", 0, 2)])
        more.finish()
    assert sorted(visible(out).values()) == [[1], [2], [2]]
    instead = sink_at(out, mode="overwrite").with_run("r2")
    instead.check(A)
    assert len(visible(out)) == 3
    instead.commit(0, [staged(instead, "0", 0, 5)])
    instead.commit(1, [staged(instead, "0", 1, 6)])
    again = sink_at(out, mode="overwrite").with_run("r2")  # after a crash: ours is not overwritten
    again.check(A)
    again.commit(2, [staged(again, "0", 2, 7)])
    assert list(visible(out).values()) == [[5], [6], [7]]


def test_two_runs_that_share_a_directory_keep_both_results(tmp_path: Path) -> None:
    out = tmp_path / "out"
    one, two = sink_at(out).with_run("q1"), sink_at(out).with_run("q2")
    parts = staged(one, "0", 0, 1), staged(two, "0", 0, 2)
    one.commit(0, [parts[0]])
    two.commit(0, [parts[1]])
    assert sorted(visible(out).values()) == [[1], [2]]


def test_a_writer_that_aborts_leaves_nothing(tmp_path: Path) -> None:
    for kind in ("jsonl", "parquet"):
        sink = sink_at(tmp_path / kind, format=kind)
        writer = sink.writer(A, "0", 0)
        writer.write(batch(*range(200_000)))
        writer.abort()
        sink.commit(0, [])
        sink.finish()
        assert [name for name in os.listdir(tmp_path / kind) if not name.startswith("_")] == []


def test_a_run_that_goes_on_without_epochs_writes_a_new_file(tmp_path: Path) -> None:
    for value in (1, 2):
        sink = sink_at(tmp_path / "out").with_run("r")
        sink.check(A)
        writer = sink.writer(A, "0", None)
        writer.write(batch(value))
        writer.close()
    assert visible(tmp_path / "out") == {"part-0-00000000.jsonl": [1], "part-0-00000001.jsonl": [2]}


def test_parquet_is_hidden_until_complete_and_rotates(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sink = FileSink("Out", str(out), "parquet", rows_per_file=200_000)
    writer = sink.writer(A, "0", None)
    writer.write(batch(*range(150_000)))
    assert [name for name in os.listdir(out) if not name.startswith(("_", "."))] == []
    writer.write(batch(*range(150_000)))
    writer.write(batch(1))
    writer.close()
    names = sorted(name for name in os.listdir(out) if not name.startswith("_"))
    assert [pq.read_table(out / name).num_rows for name in names] == [300_000, 1]


def test_no_results_still_make_a_readable_file(tmp_path: Path) -> None:
    for kind in ("csv", "parquet"):
        sink = sink_at(tmp_path / kind, format=kind)
        sink.writer(A, "0", None).close()
        sink.finish()
    assert (tmp_path / "csv" / "part-0-00000000.csv").read_text() == "a\n"
    assert pq.read_table(tmp_path / "parquet" / "part-0-00000000.parquet").schema.equals(A)
    sink = sink_at(tmp_path / "none")
    sink.finish()
    assert visible(tmp_path / "none") == {}


def test_formats_that_can_not_hold_a_type(tmp_path: Path) -> None:
    nested = pa.schema([("a", pa.list_(pa.int64()))])
    with pytest.raises(SinkProblem, match="can not hold column `a`"):
        sink_at(tmp_path / "x", format="csv").check(nested)
    with pytest.raises(SinkProblem, match="'text' holds one column, not 2"):
        sink_at(tmp_path / "x", format="text").check(schema("a BIGINT, b BIGINT"))
    sink_at(tmp_path / "x").check(nested)


def test_text(tmp_path: Path) -> None:
    sink = sink_at(tmp_path / "x", format="text")
    writer = sink.writer(schema("s STRING"), "0", None)
    writer.write(pa.RecordBatch.from_arrays([pa.array(["one", None, "twö"])], names=["s"]))
    writer.close()
    assert (tmp_path / "x" / "part-0-00000000.txt").read_text() == "one\n\ntwö\n"


def test_wrong_options(tmp_path: Path) -> None:
    here = Place(1, 1, 2)
    with pytest.raises(NameProblem, match=r"statement 2.*no mode `appned` in sink Out; did you mean `append`"):
        open_sink("Out", {"path": str(tmp_path), "mode": "appned"}, here)
    with pytest.raises(NameProblem, match="no option `pth` in sink Out"):
        open_sink("Out", {"connector": "console", "pth": "x"}, here)
    with pytest.raises(NameProblem, match="no option `sep` in sink Out") as told:
        open_sink("Out", {"path": str(tmp_path), "sep": ";"}, here)
    assert "`mode`" in str(told.value) and "`run`" not in str(told.value)
    with pytest.raises(SinkProblem, match="the option `path` is missing"):
        open_sink("Out", {"connector": "file"}, here)


def test_a_disk_that_refuses_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = sink_at(tmp_path / "out")
    writer = sink.writer(A, "0", None)

    def full(out: object, rows: pa.RecordBatch) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "encoder", type("Full", (), {"write": staticmethod(full)})())
    with pytest.raises(SinkProblem, match=r"can not write .*out: No space left on device; make room"):
        writer.write(batch(1))
    writer.abort()
    if os.path.exists("/dev/full"):
        with (
            pytest.raises(SinkProblem, match="No space left"),
            staging_module.writing("sink Out", "/dev/full"),
            open("/dev/full", "wb") as file,
        ):
            file.write(b"x" * 10)
            file.flush()
    shutil.rmtree(tmp_path / "out")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_missing_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SinkProblem, match="permission denied"):
        sink_at(tmp_path / "out").check(A)


def test_overwriting_spares_what_no_run_has_written(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SinkProblem, match=r"holds `notes.txt`, which is no result of ours"):
        open_sink("O", {"path": str(tmp_path), "format": "jsonl", "mode": "overwrite"}).check(pa.schema([("a", pa.int64())]))
    assert (tmp_path / "notes.txt").exists()


def test_a_path_must_not_be_empty() -> None:
    with pytest.raises(SinkProblem, match="the option `path` is empty"):
        open_sink("O", {"path": "", "connector": "file", "format": "jsonl"})
