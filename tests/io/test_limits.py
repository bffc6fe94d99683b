"""What one micro-batch takes of a stream: files, bytes and tuples, and files cut where they are too large."""

from __future__ import annotations

import json
import pickle
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import SourceProblem
from millstream.io import ListSource, open_source
from millstream.io.contract import Limits, Position, Source
from tests.io.kit import Answer, files_of, read_all, schema

A = schema("a BIGINT")
AB = schema("a BIGINT, b STRING")


def steps(source: Source, limit: int | None = 1000) -> list[Position]:
    """Positions to the end, each through JSON and each in a process of its own, as far as the source can tell."""
    positions = [source.initial()]
    while not source.finished(positions[-1]):
        source = pickle.loads(pickle.dumps(source))
        positions.append(json.loads(json.dumps(source.latest(positions[-1], limit))))
        assert len(positions) < 10_000
    return positions


def taken(source: Source, positions: list[Position]) -> Answer:
    readings = []
    numbers: list[int] = []
    for start, end in pairwise(positions):
        for unit in source.units(start, end):
            numbers.append(unit.number)
            readings += list(source.read(unit, 1000))
    assert numbers == list(range(len(numbers)))
    return Answer(readings, readings[0].batch.schema)


def hosted(path: Path, columns: pa.Schema, log: Path | None, **limits: int) -> Any:
    return open_source("S", columns, {"path": str(path)}).hosted(None if log is None else str(log), Limits(**limits))  # type: ignore[attr-defined]


def csv(path: Path, rows: int, text: str = "x") -> None:
    path.write_text("a,b\n" + "".join(f"{row},{text}\n" for row in range(rows)))


def test_a_micro_batch_takes_files_up_to_so_many_bytes_and_one_however_large(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in "abcde":
        (data / f"{name}.csv.gz").write_bytes(b"x" * (100 if name != "c" else 1000))
    source = hosted(data, A, tmp_path / "log", bytes=250)
    assert [files_of(p) for p in steps(source)[1:]] == [
        ["a.csv.gz", "b.csv.gz"],
        ["c.csv.gz"],
        ["d.csv.gz", "e.csv.gz"],
    ]
    assert [files_of(p) for p in steps(source, 1)[1:]] == [[f"{name}.csv.gz"] for name in "abcde"]


def test_a_position_costs_what_it_took_and_not_the_past(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(300):
        csv(data / f"{number:03d}.csv", 1)
    source = hosted(data, AB, tmp_path / "log")
    positions = steps(source, 10)
    assert (
        max(len(json.dumps(position)) for position in positions) < 600
    )  # ten names, each with the time of its arrival
    assert taken(source, positions).table.num_rows == 300
    csv(data / "000-early.csv", 1)  # sorts before nearly all
    again = pickle.loads(pickle.dumps(source))
    latest = again.latest(positions[-1], None)
    assert (latest["count"], files_of(latest)) == (301, ["000-early.csv"])


def test_a_replay_and_a_setback_take_the_same_files(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(6):
        csv(data / f"{number}.csv", 1)
    source = hosted(data, AB, tmp_path / "log")
    one, two, three = steps(source, 2)[1:]
    fresh = pickle.loads(pickle.dumps(source))
    assert [u.detail["file"][-5:] for u in fresh.units(one, two)] == ["2.csv", "3.csv"]
    assert [u.number for u in fresh.units(source.initial(), three)] == list(range(6))
    # Spark went back to an older offset: what came later is taken anew.
    other = fresh.latest(one, 3)
    assert (other["count"], other["before"], files_of(other)) == (
        5,
        two["before"],
        ["2.csv", "3.csv", "4.csv"],
    )
    assert pickle.loads(pickle.dumps(source)).latest(one, 2) == two


def test_half_a_line_in_the_log_is_no_line(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    data.mkdir()
    for number in range(4):
        csv(data / f"{number}.csv", 1)
    source = hosted(data, AB, log)
    positions = steps(source, 1)
    text = (log / "taken.jsonl").read_text()
    assert [json.loads(line)[0] for line in text.splitlines()] == [
        "0.csv",
        "1.csv",
        "2.csv",
    ]  # the last is in the position
    (log / "taken.jsonl").write_text(text[:-4])
    again = pickle.loads(pickle.dumps(source))
    assert again.latest(positions[3], 1) == positions[4]
    assert (log / "taken.jsonl").read_text() == text


def test_a_lost_log_is_refused(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    data.mkdir()
    for number in range(4):
        csv(data / f"{number}.csv", 1)
    source = hosted(data, AB, log)
    positions = steps(source, 1)
    (log / "taken.jsonl").unlink()
    said = r"stream S: the checkpoint has lost which files were read; .* lists 0 of 3; bring the file back"
    with pytest.raises(SourceProblem, match=said):
        pickle.loads(pickle.dumps(source)).latest(positions[3], 1)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: text.replace("1.csv", "7.csv"), "it is not what the checkpoint wrote"),  # else 1.csv would be read again
        (lambda text: re.sub(r'\["1.csv".*', "1", text), "not every line of it names a file"),
        (lambda text: text.replace('"1.csv"', '{"1.csv"'), "Expecting"),
    ],
    ids=["letter", "number", "garbage"],
)
def test_a_damaged_log_is_refused(tmp_path: Path, damage: Any, why: str) -> None:
    data, log = tmp_path / "data", tmp_path / "log" / "taken.jsonl"
    data.mkdir()
    for number in range(4):
        csv(data / f"{number}.csv", 1)
    source = hosted(data, AB, log.parent)
    positions = steps(source, 1)
    log.write_text(damage(log.read_text()))
    with pytest.raises(SourceProblem, match=rf"stream S: the checkpoint is damaged in .*taken.jsonl .*: {why}"):
        pickle.loads(pickle.dumps(source)).latest(positions[4], 1)
    with pytest.raises(SourceProblem, match="damaged"):
        pickle.loads(pickle.dumps(source)).units(positions[0], positions[4])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_another_file_in_the_place_of_one_that_was_begun_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"data.{kind}"

    def write(text: str, rows: int) -> None:
        if kind == "csv":
            csv(path, rows, text)
        else:
            pq.write_table(pa.table({"a": range(rows), "b": [text] * rows}), path, row_group_size=10)

    write("old", 400)
    source = hosted(path, AB, tmp_path / "log", tuples=100)
    begun = source.latest(source.initial(), 1)
    size = path.stat().st_size
    write("new", 500)
    assert path.stat().st_size > size
    with pytest.raises(SourceProblem, match=r"is not the file it was when a part of it was read; put it back as it was"):
        source.latest(begun, 1)
    write("old", 400)
    assert source.latest(begun, 1) != begun


@pytest.mark.parametrize("kind", ["csv", "jsonl", "txt", "parquet"])
@pytest.mark.parametrize("limits", [{"bytes": 4000}, {"tuples": 100}, {"bytes": 6000, "tuples": 90}], ids=str)
def test_a_large_file_is_cut(tmp_path: Path, kind: str, limits: dict[str, int]) -> None:
    path = tmp_path / f"data.{kind}"
    columns = schema("line STRING") if kind == "txt" else AB
    if kind == "csv":
        csv(path, 1000, "some text")
    elif kind == "parquet":
        pq.write_table(pa.table({"a": range(1000), "b": [f"text {i}" for i in range(1000)]}), path, row_group_size=20, compression="none")
    else:
        path.write_text("".join(json.dumps({"a": i, "b": "täxt\nwith a line"}) + "\n" for i in range(1000)))
    source = hosted(path, columns, tmp_path / "log", **limits)
    positions = steps(source)
    split, whole = taken(source, positions), Answer(read_all(open_source("S", columns, {"path": str(path)})), columns)
    assert split.rows == whole.rows and split.lines == whole.lines
    assert len(positions) >= 5
    for start, end in pairwise(positions):
        units = source.units(start, end)
        rows = sum(reading.batch.num_rows for unit in units for reading in source.read(unit, 1000))
        assert rows <= limits.get("tuples", 1000)
        if kind != "parquet":
            assert sum(unit.detail["stretch"][1] - unit.detail["stretch"][0] for unit in units) <= limits.get("bytes", 1 << 30)
    assert max(len(source.units(start, end)) for start, end in pairwise(positions)) > 1  # for several tasks


def test_what_can_not_be_cut_is_taken_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text('a,b\n1,"' + "x\n" * 500 + '"\n')  # one record of 500 lines
    csv(data / "b.csv", 1)
    source = hosted(data, AB, None, bytes=100)
    answer = taken(source, steps(source))
    assert [row[0] for row in answer.rows] == [1, 0] and answer.lines == [2, 2]


CELLS = st.sampled_from(["1", "", '"', 'x"', '"a\nb"', '"a""b"', '"', "\r", "\ufeff", "long " * 5, '"x"y', " "])


@given(
    st.lists(st.lists(CELLS, min_size=1, max_size=3), max_size=40),
    st.integers(1, 60),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([None, 0, 2, 20]),
)
def test_cuts_never_change_what_is_read(tmp_path_factory: Any, records: list[list[str]], size: int, end: str, blank: int | None) -> None:
    """Quotes regular and stray, byte order marks and blank lines: cut anywhere, the tuples, letters and lines are the same."""
    path = tmp_path_factory.mktemp("cut") / "data.csv"
    header = blank is not None  # and so many blank lines before it
    path.write_bytes(((end * (blank or 0) + "a,b" + end if header else "") + end.join(",".join(cells) for cells in records)).encode())
    options = {"path": str(path), "header": str(header).lower()}
    columns = schema("a STRING, b STRING")
    whole = Answer(read_all(open_source("S", columns, options)), columns)
    source: Any = open_source("S", columns, options)
    source = source.hosted(None, Limits(bytes=size, tuples=random.Random(size).choice([None, 2])))
    positions = steps(source)
    readings = [r for start, to in pairwise(positions) for u in source.units(start, to) for r in source.read(u, 1000)]
    split = Answer(readings, columns)
    assert (split.rows, split.lines, split.letters) == (whole.rows, whole.lines, whole.letters)


def test_other_sources_keep_to_the_limits() -> None:
    rate: Any = open_source("R", schema("a BIGINT"), {"connector": "rate", "rows": "1000", "unit_rows": "100"})
    assert [p["rows"] for p in steps(rate.hosted(None, Limits(tuples=250)))] == [0, 200, 400, 600, 800, 1000]
    batch = pa.record_batch({"a": pa.array(range(10), pa.int64())})
    source = ListSource("L", A, [batch] * 5)
    assert [p["units"] for p in steps(source.hosted(None, Limits(bytes=170)))] == [0, 2, 4, 5]
    assert [p["units"] for p in steps(source.hosted(None, Limits(tuples=5)))] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("change", ["gone", "shorter"])
def test_a_file_that_was_begun_must_stay_as_it_was(tmp_path: Path, change: str) -> None:
    """Offering it from the start again, or passing over the rest, would be a wrong answer."""
    schema = pa.schema([("n", pa.int64())])
    file = tmp_path / "a.csv"
    file.write_text("n\n" + "".join(f"{n}\n" for n in range(2000)))
    source = open_source("S", schema, {"path": str(tmp_path), "format": "csv"}, None).hosted(None, Limits(bytes=1000))
    begun = source.latest(source.initial(), 1)
    if change == "gone":
        file.rename(tmp_path / "b.tmp")
    else:
        file.write_text("n\n1\n")
    with pytest.raises(SourceProblem, match=r"rest of|not the file it was"):
        source.latest(begun, 1)
