"""A checkpoint says whose it is: what may change goes on with the exact answer, everything else is refused in one line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from millstream.errors import MillstreamError, PlanProblem, SetupProblem
from millstream.io import FileSink, MemorySink
from millstream.runtime.checkpoint import FORMAT, Checkpoint
from millstream.runtime.runs import run_spark
from millstream.runtime.status import Status
from millstream.session import Session

FILES = 8
TEXT = """
CREATE STREAM Bid (auction BIGINT, price DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts SLACK 30 SECONDS
  WITH (connector = 'file', format = 'csv', path = '{place}/bids');
CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '{place}/out');
SET source.max_files_per_batch = 1;
INSERT INTO Out SELECT auction, count(*) AS n, max(price) AS best FROM Bid [RANGE 1 MINUTE] WHERE price > 1.0 GROUP BY auction;
"""


def session(place: Path, change: Callable[[str], str] = str) -> Session:
    made = Session("spark")
    made.sql(change(TEXT.replace("{place}", str(place))))
    return made


def begin(place: Path, change: Callable[[str], str]) -> Status:
    """A run that is stopped after some of its micro-batches."""
    (place / "bids").mkdir()
    for number in range(FILES):
        rows = [f"{auction},{number + 2}.0,2026-01-01 12:{number:02d}:{10 + auction}" for auction in (1, 2, 3)]
        late = ["9,9.0,2025-01-01 12:00:00"] if number == 2 else []
        (place / "bids" / f"{number}.csv").write_text("\n".join(["auction,price,ts", *rows, *late, ""]))
    stop = threading.Event()
    return session(place, change).run(
        checkpoint=str(place / "checkpoint"), stop=stop, on_status=lambda s: s.batches > 3 and stop.set()
    )


@pytest.fixture(scope="module")
def half_way(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has a stage more than its query needs."""
    place = tmp_path_factory.mktemp("half-way")
    status = begin(place, lambda text: text + "SET execution.stages = 2;")
    assert status.stopped and sum(status.letters.values()) == 1
    return place


@pytest.fixture
def place(half_way: Path, tmp_path: Path) -> Path:
    """A copy of it, moved as a whole: to another directory."""
    for name in ("bids", "out", "out_dead_letters", "checkpoint"):
        shutil.copytree(half_way / name, tmp_path / name)
    ours = tmp_path / "checkpoint" / "millstream.json"
    ours.write_text(ours.read_text().replace(str(half_way), str(tmp_path)))
    return tmp_path


def refusal(place: Path, change: Callable[[str], str] = str) -> str:
    with pytest.raises(MillstreamError) as refused:
        session(place, change).prepare(str(place / "checkpoint"))
    assert isinstance(refused.value, PlanProblem | SetupProblem) and "\n" not in str(refused.value)
    return str(refused.value)


def answer(place: Path, sink: str = "out") -> list[tuple[int, str, int, float]]:
    rows = [json.loads(line) for file in (place / sink).glob("part-*") for line in file.read_text().splitlines()]
    return sorted((row["auction"], row["window_start"], row["n"], row["best"]) for row in rows)


EXPECTED = sorted((auction, f"2026-01-01T12:{n:02d}:00.000000Z", 1, n + 2.0) for n in range(FILES) for auction in (1, 2, 3))


@pytest.mark.slow
def test_what_comes_for_a_stream_that_has_ended_is_refused_and_not_passed_over(spark: object, place: Path) -> None:
    """Its windows were closed by the end: the run may be started again, but not with more to read."""
    session(place).run(checkpoint=str(place / "checkpoint"))
    assert answer(place) == EXPECTED
    assert sum(session(place).run(checkpoint=str(place / "checkpoint")).tuples_in.values()) == 0
    (place / "bids" / "more.csv").write_text("auction,price,ts\n1,5.0,2026-01-01 12:30:00\n")
    for change in (str, lambda text: text.replace("format = 'csv'", "format = 'csv', watch = true")):
        with pytest.raises(MillstreamError, match="stream Bid has ended in this checkpoint, and what has come since would not be read"):
            session(place, change).run(checkpoint=str(place / "checkpoint"))
    assert answer(place) == EXPECTED


def test_a_copy_goes_on_where_it_was_and_needs_no_number_of_buckets_or_stages(
    spark: object, place: Path
) -> None:
    """Also with another machine's number of cores: here two buckets were chosen by default, and three cores would make three."""
    known = json.loads((place / "checkpoint" / "millstream.json").read_text())
    assert known["buckets"] == known["partitions"] == 2 and known["stages"] == 2 and known["format"] == FORMAT
    session(place).run(checkpoint=str(place / "checkpoint"))
    assert answer(place) == EXPECTED
    assert len((place / "out_dead_letters" / "Bid-driver-00000002.jsonl").read_text().splitlines()) == 1


def test_what_changes_no_answer_may_change(spark: object, place: Path) -> None:
    (place / "out").rename(place / "moved")
    (place / "out_dead_letters").rename(place / "moved_dead_letters")
    (place / "bids").rename(place / "data")

    def change(text: str) -> str:
        text = text.replace("/out'", "/moved'").replace("/bids'", "/data'").replace("jsonl", "csv")
        text = text.replace("30 SECONDS", "30 SECONDS ETS NONE").replace("per_batch = 1", "per_batch = 3")
        return text + "SET execution.batch = 2; SET execution.buckets = 2; SET execution.interval = '1 hour';"

    done = session(place, change).run(checkpoint=str(place / "checkpoint"))
    assert done.remarks == ["execution.interval has no effect: all streams of the run end"]
    files = [json.loads(line) for file in (place / "moved").glob("part-*.jsonl") for line in file.read_text().splitlines()]
    lines = [line for file in (place / "moved").glob("part-*.csv") for line in file.read_text().splitlines()[1:]]
    assert lines and len(files) + len(lines) == len(EXPECTED)
    seen = {(row["auction"], row["n"], row["best"]) for row in files}
    seen |= {(int(a), int(n), float(best)) for a, n, best, *_ in (line.split(",") for line in lines)}
    assert seen == {(auction, n, best) for auction, _, n, best in EXPECTED}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("SLACK 30", "SLACK 10", "the timestamp of stream Bid was `external ts slack 30 s` and is `external ts slack 10 s`"),
        ("price DOUBLE", "price DECIMAL(9, 2)", "the columns of stream Bid were"),
        ("format = 'csv'", "format = 'csv', delimiter = ';'", "the source of stream Bid was `connector = file, format = csv` and is"),
        ("/bids'", "/bids/*.csv'", "the source of stream Bid was"),
        ("auction, count(*) AS n", "auction, count(*) AS m", "the columns of sink Out were"),
        ("max(price)", "min(price)", "was `aggregate count(*), max(price) by auction"),
        ("1 MINUTE]", "2 MINUTES]", "window 60000000"),
        ("price > 1.0", "price > 0.5", "> 1.0"),
    ],
)
def test_a_changed_query_is_refused_with_what_has_changed(place: Path, old: str, new: str, said: str) -> None:
    refused = refusal(place, lambda text: text.replace(old, new))
    assert said in refused and "belongs to another query" in refused and "give a new checkpoint directory" in refused


def test_another_sink_or_stream_is_another_query(place: Path) -> None:
    more = TEXT.split("INSERT INTO Out")[1].replace("{place}", str(place))
    added = f"CREATE SINK More WITH (connector = 'console'); INSERT INTO More {more}"
    assert "the columns of sink More are new" in refusal(place, lambda text: text + added)


def test_other_buckets_are_refused_with_both_numbers(place: Path) -> None:
    refused = refusal(place, lambda text: text + "SET execution.buckets = 4;")
    assert "has 2 buckets, and execution.buckets asks for 4; leave execution.buckets out to go on with 2" in refused


def test_other_partitions_are_refused_with_both_numbers(place: Path) -> None:
    refused = refusal(place, lambda text: text + "SET execution.partitions = 1;")
    assert "has 2 partitions, and execution.partitions asks for 1; leave execution.partitions out" in refused


def test_a_checkpoint_without_a_number_of_partitions_has_one_for_each_bucket(place: Path) -> None:
    file = place / "checkpoint" / "millstream.json"
    file.write_text(json.dumps({k: v for k, v in json.loads(file.read_text()).items() if k != "partitions"}))
    checkpoint = Checkpoint.open(str(place / "checkpoint"))
    assert checkpoint.partitions(0, 7) == checkpoint.buckets(0, 7) == 2
    checkpoint.close()


def test_many_buckets_share_the_partitions_of_a_checkpoint(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the cores are others when the run goes on: four, where it began with two."""
    path = tmp_path / "checkpoint"
    assert begin(tmp_path, lambda text: text + "SET execution.buckets = 7;").stopped
    known = json.loads((path / "millstream.json").read_text())
    assert (known["buckets"], known["partitions"]) == (7, 2)
    monkeypatch.setattr(type(spark.sparkContext), "defaultParallelism", 4)  # type: ignore[attr-defined]
    done = session(tmp_path).run(checkpoint=str(path))
    assert answer(tmp_path) == EXPECTED
    assert done.remarks == ["the checkpoint keeps 7 buckets in 2 partitions, and this run has 4 cores"]


def test_more_partitions_than_buckets_are_refused(spark: object, tmp_path: Path) -> None:
    (tmp_path / "bids").mkdir()
    (tmp_path / "bids" / "0.csv").write_text("auction,price,ts\n")
    with pytest.raises(PlanProblem, match=r"execution.partitions = 3 is more than there are buckets \(2\); SET"):
        session(tmp_path, lambda text: text + "SET execution.partitions = 3;").run()


def test_more_stages_than_there_are_are_refused_with_both_numbers(place: Path) -> None:
    refused = refusal(place, lambda text: text + "SET execution.stages = 3;")
    assert (
        "has 2 stages, and execution.stages asks for 3; leave execution.stages out to go on with 2" in refused
    )


@pytest.mark.slow
def test_other_stages_that_only_spark_finds_are_one_line(
    spark: object, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a checkpoint elsewhere that a crash has left, where nothing of ours is beside Spark's files."""
    monkeypatch.setattr(Checkpoint, "stages", lambda self, asked, needed: 3)
    last = max((place / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    with pytest.raises(
        PlanProblem, match=r"has 2 stages, and this run 3; SET execution\.stages = 2, or give a new"
    ):
        session(place).run(checkpoint=str(place / "checkpoint"))


@pytest.mark.parametrize("name", ["millstream.json", "metadata", "offsets/last", "commits/last"])
@pytest.mark.parametrize("damage", ["emptied", "cut", "scrambled", "removed"])
def test_damaged_files_are_named(place: Path, name: str, damage: str) -> None:
    file = place / "checkpoint" / name
    if file.name == "last":
        file = max(file.parent.iterdir(), key=lambda path: int(path.name))
    whole = file.read_bytes()
    if damage == "removed":
        if name.endswith("/last"):
            shutil.rmtree(file.parent)
        else:
            file.unlink()
    else:
        file.write_bytes({"emptied": b"", "cut": whole[: len(whole) // 2], "scrambled": bytes(reversed(whole))}[damage])
    said = refusal(place)
    if (name, damage) == ("millstream.json", "removed"):
        assert "is a checkpoint of something else" in said
    else:
        assert re.search(f"is damaged: `{name.split('/')[0]}.*` is missing or broken; restore it", said), said


def test_a_newer_format_is_refused(place: Path) -> None:
    ours = place / "checkpoint" / "millstream.json"
    ours.write_text(ours.read_text().replace(f'"format": {FORMAT}', f'"format": {FORMAT + 1}'))
    assert "was made by a newer version of Millstream" in refusal(place)


def test_a_directory_of_other_files_is_no_checkpoint(place: Path) -> None:
    shutil.rmtree(place / "checkpoint")
    (place / "checkpoint").mkdir()
    (place / "checkpoint" / "thesis.txt").write_text("42")
    assert "is no checkpoint: it holds `thesis.txt`; give a new checkpoint directory" in refusal(place)
    assert [path.name for path in (place / "checkpoint").iterdir()] == ["thesis.txt"]


def test_a_file_or_a_forbidden_place_is_no_checkpoint(place: Path) -> None:
    shutil.rmtree(place / "checkpoint")
    (place / "checkpoint").write_text("")
    assert "can not be used: Not a directory" in refusal(place)
    with pytest.raises(SetupProblem, match=r"can not be used: (Permission denied|No such file)"):
        session(place).prepare("/proc/none/checkpoint")


def test_results_must_be_where_they_were(place: Path) -> None:
    shutil.rmtree(place / "out")
    assert "does not hold what the run of the checkpoint" in refusal(place)


def test_dead_letters_must_be_where_they_were(place: Path) -> None:
    assert "wrote its dead letters to" in refusal(place, lambda text: text + f"SET dead_letters.path = '{place}/others';")


def test_an_old_copy_of_a_checkpoint_is_refused(place: Path) -> None:
    """Micro-batches that the sink has and the checkpoint has not would be cut otherwise the second time."""
    for log in ("offsets", "commits"):
        for file in (place / "checkpoint" / log).iterdir():
            if int(file.name) > 1:
                file.unlink()
    assert "holds micro-batch" in refusal(place)


def test_one_run_at_a_time(place: Path) -> None:
    """Another process holds it; when that dies, however it dies, the checkpoint is free."""
    code = f"""
import sys, time
from millstream.runtime.checkpoint import Checkpoint
held = Checkpoint.open({str(place / "checkpoint")!r})
print("held", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": ":".join(sys.path)}) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        assert f"is in use by process {other.pid} on " in refusal(place)
        other.kill()
    session(place).prepare(str(place / "checkpoint")).checkpoint.close()  # type: ignore[union-attr]


def test_a_query_that_never_ran_leaves_no_claim(spark: object, place: Path) -> None:
    """What is wrong with it may be mended, and the same directory used."""
    fresh = str(place / "fresh")
    with pytest.raises(MillstreamError, match="there is no file or directory"):
        session(place, lambda text: text.replace("/bids'", "/none'").replace("/out'", "/other'")).prepare(fresh)
    session(place, lambda text: text.replace("/out'", "/other'").replace("max(", "min(")).prepare(fresh).checkpoint.close()  # type: ignore[union-attr]


class Unlucky(FileSink):
    """Its first commit never comes."""

    def commit(self, epoch: int, parts: Any) -> None:
        raise RuntimeError("the power went out")


def test_a_crash_in_the_first_micro_batch_finds_its_own_sink_again(spark: object, place: Path) -> None:
    """Tasks had written there, and nothing was committed yet: the next life must not take that for somebody else's."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    fresh = str(place / "fresh")

    def at_once(text: str) -> str:
        return text.replace("/out'", "/first'").replace("per_batch = 1", f"per_batch = {FILES}")

    unlucky = session(place, at_once).prepare(fresh)
    sink = unlucky.sinks[0]
    unlucky.sinks[0] = Unlucky(sink.name, sink.path, sink.format, run=sink.run)  # type: ignore[attr-defined]
    with pytest.raises(MillstreamError, match="the power went out"):
        run_spark(unlucky)
    assert list((place / "first" / "_staged").rglob("*.jsonl"))
    session(place, at_once).run(checkpoint=fresh)
    assert answer(place, "first") == EXPECTED


STATE_FILES = ("*.changelog", "*.zip", "*.sst", "_stateSchema/*/*", "_metadata/*/*")
DAMAGES = [(name, damage) for name in STATE_FILES for damage in ("removed", "emptied", "cut", "scrambled")]
QUICK = {("*.changelog", "cut")}


@pytest.mark.parametrize(("name", "damage"), [pytest.param(*d, marks=() if d in QUICK else pytest.mark.slow) for d in DAMAGES])
def test_damaged_state_never_gives_a_wrong_answer(
    spark: object, place: Path, name: str, damage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for file in (place / "checkpoint" / "state").rglob(name):
        whole = file.read_bytes()
        middle = len(whole) // 2
        if damage == "removed":
            file.unlink()
        else:
            scrambled = whole[:middle] + bytes(255 - byte for byte in whole[middle : middle + 8]) + whole[middle + 8 :]
            file.write_bytes({"emptied": b"", "cut": whole[:middle], "scrambled": scrambled}[damage])
    try:
        session(place).run(checkpoint=str(place / "checkpoint"))
    except MillstreamError as refused:
        assert re.search("the checkpoint .* is damaged: its state can not be read; restore it", str(refused)), str(refused)
    else:
        assert answer(place) == EXPECTED
    assert "Traceback" not in capfd.readouterr().err


def test_what_can_not_be_sent_to_spark_leaves_no_checkpoint(spark: object, tmp_path: Path) -> None:
    class Locked(MemorySink):
        def __getstate__(self) -> dict[str, object]:
            return {"lock": threading.Lock()}

    (tmp_path / "in.csv").write_text("k\n1\n")
    made = Session("spark")
    made.sql(
        f"CREATE STREAM S (k INT) WITH (path = '{tmp_path}/in.csv');"
        f"CREATE SINK Out WITH (path = '{tmp_path}/out');"
    )
    made.add_sink("P", Locked("P"))
    made.sql("INSERT INTO Out SELECT k FROM S; INSERT INTO P SELECT k FROM S;")
    with pytest.raises(SetupProblem, match="sink P can not be sent to processes of Spark"):
        made.run(checkpoint=f"{tmp_path}/checkpoint")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("s3://bucket/bids", 'No FileSystem for scheme "s3"'),
        ("nothing://bucket/bids", 'No FileSystem for scheme "nothing"'),
        ("hdfs://no.such.host.invalid:1/bids", "no.such.host.invalid"),
    ],
)
def test_an_address_that_spark_cannot_use_is_refused_with_its_reason(
    spark: object, place: Path, address: str, why: str
) -> None:
    """Nothing is written before: the sink of this run is a new one."""
    before = sorted(file.name for file in place.iterdir())
    with pytest.raises(SetupProblem) as refused:
        session(place, lambda text: text.replace("/out'", "/fresh'")).run(checkpoint=address)
    said = str(refused.value)
    assert said.startswith(f"the checkpoint {address} can not be used: ") and why in said and "\n" not in said
    assert sorted(file.name for file in place.iterdir()) == before


@pytest.mark.parametrize("address", ["file://host/bids", "file:bids"])
def test_a_checkpoint_of_this_machine_has_an_absolute_address(address: str) -> None:
    with pytest.raises(SetupProblem, match=f"the checkpoint '{address}' is no absolute path; write file:///"):
        Checkpoint.open(address)
