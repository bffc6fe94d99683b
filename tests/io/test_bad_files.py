"""A file that cannot be read: the run stops with advice that works, or a letter stands for it."""

from __future__ import annotations

import gzip
import json
import pickle
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.errors import NameProblem, SourceProblem
from millstream.io import FileSource, files, open_source
from millstream.io.contract import Limits, Position, Unit
from millstream.pipeline import Pipeline
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_local
from tests.io.kit import Answer, schema

A = schema("a BIGINT")
ROWS = 20_000


def source(folder: Path, on_bad_file: str | None = "letter", **options: str) -> FileSource:
    given = {"path": str(folder), **options} | ({} if on_bad_file is None else {"on_bad_file": on_bad_file})
    found = open_source("S", A, given)
    assert isinstance(found, FileSource)
    return pickle.loads(pickle.dumps(found))  # type: ignore[no-any-return]


def taken(found: FileSource) -> tuple[Position, list[Unit]]:
    """All that is there, the position through JSON."""
    end = json.loads(json.dumps(found.latest(found.initial(), None)))
    return end, found.units(found.initial(), end)


def answer(found: FileSource, units: list[Unit], batch_size: int = 1000) -> Answer:
    return Answer([reading for unit in units for reading in found.read(unit, batch_size)], A)


def truncated_gzip(path: Path) -> None:
    whole = gzip.compress(b"a\n" + b"".join(b"%d\n" % row for row in range(ROWS)))
    path.write_bytes(whole[: len(whole) // 2])


def broken_group(path: Path) -> None:
    """Four row groups, of which the third does not decompress."""
    pq.write_table(
        pa.table({"a": range(ROWS)}), path, row_group_size=ROWS // 4, compression="zstd", use_dictionary=False
    )
    with pq.ParquetFile(path) as file:
        column = file.metadata.row_group(2).column(0)
        at, size = column.data_page_offset, column.total_compressed_size
    data = bytearray(path.read_bytes())
    data[at + 40 : at + size - 8] = b"x" * (size - 48)
    path.write_bytes(data)


def other_column(path: Path) -> None:
    pq.write_table(pa.table({"b": [1]}), path)


MAKERS: dict[str, tuple[Any, str, int | None]] = {
    "t.csv.gz": (truncated_gzip, "can not read .*t.csv.gz: Truncated", None),
    "g.parquet": (broken_group, "can not read .*g.parquet", ROWS // 2),
    "n.parquet": (lambda path: path.write_bytes(b"PAR1 nonsense"), "can not read .*n.parquet", 0),
    "e.parquet": (lambda path: path.touch(), "can not read .*e.parquet", 0),
    "o.parquet": (other_column, "no column `a`", 0),
    "h.csv": (lambda path: path.write_text("b\n1\n"), "`a`", 0),
    "z.jsonl.gz": (lambda path: path.write_bytes(b"not gzip"), "can not read .*z.jsonl.gz", 0),
}
FORMATS = {"t.csv.gz": "csv", "h.csv": "csv", "z.jsonl.gz": "jsonl"}


@pytest.fixture(params=MAKERS)
def bad(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Path, str, int | None, dict[str, str]]]:
    make, reason, rows = MAKERS[request.param]
    make(tmp_path / request.param)
    yield tmp_path / request.param, reason, rows, {"format": FORMATS.get(request.param, "parquet")}


def good(folder: Path, name: str, *values: int) -> None:
    text = "".join(f"{value}\n" for value in values)
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"a": pa.array(values, pa.int64())}), folder / name)
    else:
        (folder / name).write_text(
            "a\n" + text if "csv" in name else "".join(f'{{"a": {value}}}\n' for value in values)
        )


def test_one_letter_stands_for_what_is_lost(bad: tuple[Path, str, int | None, dict[str, str]]) -> None:
    path, reason, rows, options = bad
    extension = options["format"]
    for name in ("0", "zz"):
        good(path.parent, f"{name}.{extension}", -1)
    found = source(path.parent, **options)
    _, units = taken(found)
    results = [answer(found, units, size) for size in (7, 1000, 1 << 16)]
    first = results[0]
    (letter,) = first.letters
    assert (letter.stream, letter.kind, letter.file, letter.line, letter.content) == (
        "S",
        "broken",
        str(path),
        None,
        None,
    )
    assert first.table.num_rows == len(first.rows) and all(
        result.letters == first.letters for result in results
    )
    assert re.search(reason, letter.reason)
    values = [row[0] for row in first.rows]
    assert values[0] == values[-1] == -1 and values[1:-1] == list(range(len(values) - 2))
    assert all(result.rows == first.rows and result.lines == first.lines for result in results)
    assert len(values) - 2 == rows if rows is not None else ROWS // 3 < len(values) < ROWS


def test_a_replay_makes_the_same_letter(bad: tuple[Path, str, int | None, dict[str, str]]) -> None:
    """Whatever happens to the file after it was taken."""
    path, _, _, options = bad
    found = source(path.parent, **options)
    end, units = taken(found)
    before = answer(found, units)
    if path.name == "g.parquet":
        pq.write_table(pa.table({"a": range(ROWS)}), path, row_group_size=ROWS // 4)
    elif path.name == "t.csv.gz":
        path.write_bytes(gzip.compress(b"a\n" + b"".join(b"%d\n" % row for row in range(ROWS))))
    else:
        good(path.parent, path.name, *range(5))
    again = source(path.parent, "stop", **options)
    after = answer(again, again.units(again.initial(), end))
    assert (after.letters, after.rows) == (before.letters, before.rows)


def test_a_file_is_judged_once_however_often_the_source_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []
    monkeypatch.setattr(
        files, "judge", lambda owner, reader, path, stretch: judged.append(path) or {"sound": True}
    )
    good(tmp_path, "a.csv", 1)
    found = source(tmp_path)
    for _ in range(3):
        assert len(taken(found)[1]) == 1
    assert judged == [str(tmp_path / "a.csv")]


def test_a_file_that_breaks_after_it_was_found_sound_stops_the_run(tmp_path: Path) -> None:
    good(tmp_path, "a.parquet", 1)
    found = source(tmp_path)
    _, units = taken(found)
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(SourceProblem, match="can not read"):
        answer(found, units)


def test_the_run_stops_by_default(bad: tuple[Path, str, int | None, dict[str, str]]) -> None:
    path, reason, _, options = bad
    for choice in (None, "stop"):
        found = source(path.parent, choice, **options)
        _, units = taken(found)
        with pytest.raises(SourceProblem, match=f"stream S: .*{reason}") as problem:
            answer(found, units)
        assert "on_bad_file = 'letter'" in str(problem.value)
        assert ("an empty file" in str(problem.value)) == (options["format"] != "parquet")
    # The advice: a letter, though the file was taken without a verdict; then what is put in its place.
    later = source(path.parent, **options)
    assert len(answer(later, units).letters) == 1
    if options["format"] == "parquet":
        pq.write_table(pa.table({"a": pa.array([], pa.int64())}), path)
    else:
        path.write_bytes(b"")
    assert answer(found, units).rows == [] and answer(found, units).letters == []


def test_a_file_that_is_gone_is_a_letter(tmp_path: Path) -> None:
    good(tmp_path, "a.csv", 1)
    found = source(tmp_path, None)
    _, units = taken(found)
    (tmp_path / "a.csv").unlink()
    with pytest.raises(SourceProblem, match=r"the file is gone; put it back.*on_bad_file"):
        answer(found, units)
    (letter,) = answer(source(tmp_path, format="csv"), units).letters
    assert letter.reason.endswith("a.csv: the file is gone")


@pytest.mark.parametrize("limit", [None, 500, 5_000, 100_000])
def test_the_cut_into_stretches_changes_nothing(tmp_path: Path, limit: int | None) -> None:
    """Rows behind a break are lost, though a later stretch of the file could be read."""
    broken_group(tmp_path / "g.parquet")
    good(tmp_path, "h.parquet", -1)
    found = source(tmp_path).hosted(str(tmp_path / "_log"), Limits(bytes=limit))
    positions = [found.initial()]
    while not found.finished(positions[-1]):
        positions.append(json.loads(json.dumps(found.latest(positions[-1], None))))
    result = answer(found, [unit for start, end in pairwise(positions) for unit in found.units(start, end)])
    assert [row[0] for row in result.rows] == [*range(ROWS // 2), -1]
    assert [letter.file for letter in result.letters] == [str(tmp_path / "g.parquet")]


def test_a_rest_that_is_gone_is_a_letter(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(ROWS)}), tmp_path / "g.parquet", row_group_size=ROWS // 4)
    found = source(tmp_path).hosted(str(tmp_path / "_log"), Limits(bytes=5000))
    one = found.latest(found.initial(), 1)
    first = answer(found, found.units(found.initial(), one))
    (tmp_path / "g.parquet").unlink()
    good(tmp_path, "h.parquet", -1)
    two = found.latest(one, None)
    rest = answer(found, found.units(one, two))
    assert len(first.rows) == ROWS // 4 and rest.rows == [(-1,)] and found.finished(two)
    assert [letter.reason.partition(":")[0] for letter in rest.letters] == [
        f"can not read the rest of {tmp_path}/g.parquet"
    ]
    with pytest.raises(SourceProblem, match="can not read the rest"):
        source(tmp_path, "stop").latest(one, None)


def test_there_is_no_other_choice(tmp_path: Path) -> None:
    with pytest.raises(NameProblem, match="no on_bad_file `skip` in stream S; there is `stop`, `letter`"):
        source(tmp_path, "skip", format="csv")


def test_a_run_goes_on_behind_a_bad_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, values in {"a.csv": (1, 2), "c.csv": (3,)}.items():
        good(tmp_path / "in", name, *values)
    (tmp_path / "in" / "b.csv").write_text("b\n7\n")
    pipeline = Pipeline()
    pipeline.add_text(f"""
        CREATE STREAM S (a BIGINT) WITH (path = '{tmp_path}/in', on_bad_file = 'letter');
        CREATE SINK Out WITH (path = '{tmp_path}/out', format = 'jsonl');
        INSERT INTO Out SELECT a FROM S;
    """)
    status = run_local(Launch.prepare(pipeline))
    (letter,) = [
        json.loads(line) for line in (tmp_path / "out_dead_letters" / "S.jsonl").read_text().splitlines()
    ]
    assert (status.tuples_out, status.letters, letter["file"]) == (
        3,
        {"broken": 1},
        str(tmp_path / "in" / "b.csv"),
    )
