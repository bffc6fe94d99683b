"""The toy program on Spark: right answers, restarts, errors and a clean end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import toy

from millstream.errors import DataProblem, MillstreamError, PlanProblem
from millstream.runtime.spark.run import Commits, run_program

WORDS = ["apple", "axe", "bee", "cat", "cow", "dog"]


@pytest.fixture
def words(tmp_path: Path) -> Path:
    place = tmp_path / "words"
    place.mkdir()
    for number in range(5):
        (place / f"{number:03d}.txt").write_text(" ".join(WORDS[: number + 2] * 3))
    return place


def counted(place: Path) -> Counter[str]:
    return Counter(word for path in place.glob("*.txt") for word in path.read_text().split())


def letters(counts: Counter[str]) -> dict[str, int]:
    firsts = Counter[str]()
    for word, count in counts.items():
        firsts[word[0]] += count
    return dict(firsts)


def run(spark: Any, place: Path, sink: Any, watch: bool = False, **settings: Any):
    program_settings = {key: settings.pop(key) for key in ("stages", "buckets", "forgetful", "slow", "fingerprint") if key in settings}
    program = toy.ToyProgram((("words", toy.FileWords(str(place), watch)),), (sink,), **program_settings)
    return run_program(program, spark=spark, **{"units_per_batch": 2, **settings})


@pytest.mark.parametrize(("stages", "buckets"), [(2, 3), *(pytest.param(1, buckets, marks=pytest.mark.slow) for buckets in (1, 3))])
def test_right_answer_in_memory(spark, words: Path, stages: int, buckets: int) -> None:
    sink = toy.MemorySink()
    seen = []
    summary = run(spark, words, sink, stages=stages, buckets=buckets, on_progress=seen.append)
    expected = dict(counted(words)) if stages == 1 else letters(counted(words))
    assert dict(sink.rows) == expected and len(sink.rows) == len(expected)
    assert sink.finished and sink.epochs == [0, 1, 2] and not summary.stopped
    assert [progress.batch for progress in seen] == [0, 1, 2] and summary.batches == 3
    assert sum(summary.written.values()) == len(expected)


def test_without_stages_ingest_leads_to_the_sink(spark, words: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    run(spark, words, toy.FileSink(str(out)), stages=0)
    assert Counter(word for word, _ in toy.committed(str(out))) == counted(words)


def test_workers_that_forget_everything_give_the_same_answer(spark, words: Path) -> None:
    """Restoring from the state store at every micro-batch, in both stages."""
    sink = toy.MemorySink()
    run(spark, words, sink, stages=2, buckets=2, forgetful=True)
    assert dict(sink.rows) == letters(counted(words))


def test_restart_from_a_checkpoint(spark, words: Path, tmp_path: Path) -> None:
    """Stopped in the middle, started again: the same answer, every epoch committed once."""
    out, checkpoint = tmp_path / "out", str(tmp_path / "checkpoint")
    out.mkdir()
    stop = threading.Event()
    first = run(
        spark, words, toy.FileSink(str(out)), stages=1, buckets=2, slow=0.2, units_per_batch=1, checkpoint=checkpoint,
        stop_event=stop, on_progress=lambda progress: stop.set(),
    )  # fmt: skip
    assert first.stopped and not toy.committed(str(out))
    second = run(spark, words, toy.FileSink(str(out)), stages=1, buckets=2, checkpoint=checkpoint)
    assert not second.stopped
    rows = toy.committed(str(out))
    assert dict(rows) == dict(counted(words)) and len(rows) == len(dict(rows))
    third = run(spark, words, toy.FileSink(str(out)), stages=1, buckets=2, checkpoint=checkpoint)
    assert third.batches == 0 and toy.committed(str(out)) == rows
    with pytest.raises(PlanProblem, match="another query"):
        run(spark, words, toy.FileSink(str(out)), stages=1, buckets=2, checkpoint=checkpoint, fingerprint="changed")


def test_a_commit_that_fails_is_replayed(spark, words: Path, tmp_path: Path) -> None:
    """The results of an epoch were handed over but Spark never heard of it: the epoch comes again."""

    class Breaking(toy.FileSink):
        def commit(self, epoch, parts) -> None:
            super().commit(epoch, parts)
            if epoch == 2:
                raise RuntimeError("the power went out")

    out, checkpoint = tmp_path / "out", str(tmp_path / "checkpoint")
    out.mkdir()
    with pytest.raises(MillstreamError, match="the power went out"):
        run(spark, words, Breaking(str(out)), buckets=2, checkpoint=checkpoint)
    run(spark, words, toy.FileSink(str(out)), buckets=2, checkpoint=checkpoint)
    rows = toy.committed(str(out))
    assert dict(rows) == dict(counted(words)) and len(rows) == len(dict(rows))


@pytest.mark.parametrize(
    ("word", "kind", "said"),
    [
        pytest.param("boom", DataProblem, "boom; use another word", marks=pytest.mark.slow),  # in a stage
        pytest.param("unreadable", DataProblem, "an unreadable word", marks=pytest.mark.slow),  # in the source
        ("crash", MillstreamError, "the query failed on Spark: RuntimeError: crashed in a stage"),
    ],
)
def test_errors_of_workers_come_back_as_themselves(spark, words: Path, word: str, kind: type, said: str, capfd) -> None:
    (words / "003.txt").write_text(word)
    with pytest.raises(kind) as caught:
        run(spark, words, toy.MemorySink())
    assert str(caught.value) == said
    printed = capfd.readouterr()
    assert "Traceback" not in printed.out + printed.err


def test_dead_letters_pass_through_later_stages(spark, words: Path) -> None:
    (words / "001.txt").write_text("bad1 apple bad2")
    got: list[Any] = []
    summary = run(spark, words, toy.MemorySink(), stages=2, on_letters=lambda epoch, letters: got.extend(letters))
    assert sorted(letter.content for letter in got) == ["bad1", "bad2"] and summary.letters == 2


def test_an_unbounded_program_runs_until_it_is_stopped(spark, words: Path) -> None:
    stop = threading.Event()
    sink = toy.MemorySink()
    seen: list[Any] = []
    runner = threading.Thread(
        target=lambda: run(spark, words, sink, watch=True, stages=0, stop_event=stop, on_progress=seen.append), daemon=True
    )
    runner.start()
    deadline = time.monotonic() + 60
    while len(sink.epochs) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    assert sink.epochs == [0, 1, 2]  # idle input runs no micro-batches
    (words / "900.txt").write_text("late")
    while len(sink.epochs) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    stop.set()
    runner.join(30)
    assert not runner.is_alive() and sink.finished
    assert Counter(word for word, _ in sink.rows) == counted(words)


def test_a_stop_lets_the_micro_batch_in_hand_finish(spark, words: Path, tmp_path: Path) -> None:
    """Asked in the middle of one: it is committed, by the sink and by Spark, and no other begins."""
    checkpoint = tmp_path / "checkpoint"
    stop = threading.Event()
    sink = toy.MemorySink()

    def wait() -> None:
        deadline = time.monotonic() + 60
        while not (checkpoint / "offsets" / "1").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    settings: dict[str, Any] = {"units_per_batch": 1, "checkpoint": str(checkpoint), "stop_event": stop}
    summary = run(spark, words, sink, watch=True, stages=1, buckets=2, slow=0.5, **settings)
    assert summary.stopped and sink.epochs == [0, 1] and sink.finished
    assert {f.name for f in (checkpoint / "offsets").iterdir()} == {f.name for f in (checkpoint / "commits").iterdir()} == {"0", "1"}


def test_no_commit_begins_once_the_run_is_stopping() -> None:
    class Frame:
        def collect(self) -> list[Any]:
            return []

    sink = toy.MemorySink()
    commits = Commits(toy.ToyProgram((), (sink,)), None)
    commits(Frame(), 0)
    commits.refuse()
    with pytest.raises(InterruptedError):
        commits(Frame(), 1)
    assert sink.epochs == [0]
