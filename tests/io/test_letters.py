"""Dead letters are kept, counted, and committed once."""

import json
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from millstream.core.letters import as_json
from millstream.errors import SinkProblem
from millstream.io import DeadLetter, LetterBox

BROKEN = DeadLetter("Bid", "broken", "column `price`: 'abc' is not a DOUBLE", "in.csv", 7, content="1,abc")
LATE = DeadLetter("Bid", "late", "came too late", punctuation="ts >= 5", content='{"ts": 3}')
ODD = DeadLetter("a/b", "error", "half a \ud800 pair")


def test_letters_are_appended_by_stream(tmp_path: Path) -> None:
    box = LetterBox(str(tmp_path / "deep" / "letters"))
    box.put([])
    assert not (tmp_path / "deep").exists()
    box.put([BROKEN, LATE, ODD])
    box.put([BROKEN])
    lines = (tmp_path / "deep" / "letters" / "Bid.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["broken", "late", "broken"]
    assert json.loads(lines[0]) == {
        "stream": "Bid",
        "kind": "broken",
        "reason": BROKEN.reason,
        "file": "in.csv",
        "line": 7,
        "punctuation": None,
        "content": "1,abc",
        "run": box.run,
    }
    assert box.counts == {("Bid", "broken"): 2, ("Bid", "late"): 1, ("a/b", "error"): 1}
    assert box.total() == 4 and box.total("Bid") == 3 and box.total(kind="late") == 1


def test_an_epoch_is_committed_and_counted_once(tmp_path: Path) -> None:
    box = LetterBox(str(tmp_path / "letters"), run="r1")
    for _ in range(2):  # the second time is a replay
        parts = []
        for part in ("0", "1"):
            writer = pickle.loads(pickle.dumps(box)).writer(part, 3)
            writer.put([BROKEN, LATE] if part == "0" else [])
            parts.append(pickle.loads(pickle.dumps(writer.close())))
        box.commit(3, parts)
    box.finish()
    names = [name for name in os.listdir(tmp_path / "letters") if not name.startswith("_")]
    assert names == ["Bid-0-00000003.jsonl"] and len((tmp_path / "letters" / names[0]).read_text().splitlines()) == 2
    assert box.total() == 2
    assert LetterBox(str(tmp_path / "letters"), run="r1").counts == box.counts  # after a crash
    for _ in range(2):
        box.deliver(4, [LATE])
    assert box.total(kind="late") == 2


def test_a_letter_names_its_run(tmp_path: Path) -> None:
    for run in ("monday", "tuesday"):
        LetterBox(str(tmp_path), run).put([BROKEN])
        LetterBox(str(tmp_path), run).deliver(0, [LATE])
    letters = [
        json.loads(line)
        for file in sorted(tmp_path.glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    assert sorted((letter["kind"], letter["run"]) for letter in letters) == [
        ("broken", "monday"), ("broken", "tuesday"), ("late", "monday"), ("late", "tuesday"),
    ]  # fmt: skip


def test_no_letters_leave_no_directory(tmp_path: Path) -> None:
    box = LetterBox(str(tmp_path / "letters"))
    box.commit(0, [box.writer("0", 0).close()])
    box.finish()
    assert not (tmp_path / "letters").exists()


def test_a_place_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SinkProblem, match="dead letters: can not write"):
        LetterBox(str(tmp_path / "file")).put([BROKEN])


def test_the_content_of_a_letter_keeps_every_letter_as_it_is() -> None:
    batch = pa.record_batch({"depot": ["Łódź"], "weight": [1.5]})
    assert as_json(batch, 0) == '{"depot": "Łódź", "weight": 1.5}'
