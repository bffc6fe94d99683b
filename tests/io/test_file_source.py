"""Files, directories and globs as one stream; text and Parquet; tables."""

import os
import pickle
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.errors import MillstreamError, NameProblem, Place, SourceProblem
from millstream.io import open_source, read_table
from millstream.io.read.parquet import ParquetReader
from tests.io.kit import Answer, files_of, read_all, read_file, read_text, schema

HERE = Place(3, 5, 1)
A = schema("a BIGINT")


def write(path: Path, *values: int) -> None:
    path.write_text("a\n" + "".join(f"{value}\n" for value in values))


def test_a_directory_is_one_stream_in_name_order(tmp_path: Path) -> None:
    for name, number in [("b.csv", 2), ("a.csv", 1), ("c.csv", 3), ("_x.csv", 9), (".y.csv", 9)]:
        write(tmp_path / name, number)
    (tmp_path / "sub").mkdir()
    source = open_source("S", A, {"path": str(tmp_path), "format": "csv"}, None)
    readings = read_all(source)
    assert [r.batch.to_pylist()[0]["a"] for r in readings] == [1, 2, 3]
    assert [os.path.basename(r.file or "") for r in readings] == ["a.csv", "b.csv", "c.csv"]
    assert source.bounded


def test_positions_limit_replay_and_late_files(tmp_path: Path) -> None:
    for name in "bcd":
        write(tmp_path / f"{name}.csv", ord(name))
    source = pickle.loads(pickle.dumps(open_source("S", A, {"path": str(tmp_path)}, None)))
    first = source.latest(source.initial(), 2)
    assert (first["count"], files_of(first)) == (2, ["b.csv", "c.csv"]) and not source.finished(first)
    write(tmp_path / "a.csv", 1)  # sorts before what was taken
    second = source.latest(first, 1)
    third = source.latest(second, None)
    assert (
        files_of(second)[-1] == "a.csv"
        and files_of(third) == ["b.csv", "c.csv", "a.csv", "d.csv"]
        and source.finished(third)
    )
    assert [(u.number, os.path.basename(u.detail["file"])) for u in source.units(first, third)] == [(2, "a.csv"), (3, "d.csv")]
    assert source.latest(third, None) == third and source.units(third, third) == []
    unit = source.units(first, second)[0]
    assert [r.batch for r in source.read(unit, 9)] == [r.batch for r in source.read(unit, 9)]


def test_units_of_an_older_checkpoint_are_read(tmp_path: Path) -> None:
    """Whole files by their names alone, stretches without what is recorded about them today."""
    for name in "ab":
        write(tmp_path / f"{name}.csv", 1, 2, 3)
    source = open_source("S", A, {"path": str(tmp_path)}, None)
    old = {"count": 2, "files": ["a.csv", ["b.csv", 0, 6, 8, 1, 4, 0]]}
    whole, part = source.units(source.initial(), old)
    assert [
        row["a"]
        for unit in (whole, part)
        for reading in source.read(unit, 9)
        for row in reading.batch.to_pylist()
    ] == [1, 2, 3, 1, 2]
    assert source.arrived(whole) == (tmp_path / "a.csv").stat().st_ctime_ns // 1000
    assert not source.finished(old) and source.finished({"count": 1, "files": ["a.csv", "b.csv"]})


def test_a_quiet_directory_is_not_read_again_and_every_new_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from millstream.io import files

    looks = []
    found_files = files.found_files
    monkeypatch.setattr(files, "found_files", lambda owner, path: looks.append(path) or found_files(owner, path))
    source = open_source("S", A, {"path": str(tmp_path), "format": "csv", "watch": "true"}, None)
    (tmp_path / "sub").mkdir()
    position = source.latest(source.initial(), None)
    for number in range(30):  # as fast as the file system's clock may tell, and after it has settled
        time.sleep(0 if number < 20 else 0.15)
        for _ in range(3):
            assert source.latest(position, None) == position
        write(tmp_path / ("sub" if number % 2 else ".") / f"{number}.csv", number)
        position = source.latest(position, None)
        assert len(position["files"]) == number + 1
    time.sleep(0.15)
    assert source.latest(position, None) == position
    looks.clear()
    for _ in range(10):
        assert source.latest(position, None) == position
    assert looks == []
    (tmp_path / "0.csv").unlink()
    missing = {"count": position["count"] - 1, "files": ["gone.csv", *position["files"][1:-1]]}
    assert source.latest(missing, None)["files"][-1] == position["files"][-1]


def test_watching_never_ends(tmp_path: Path) -> None:
    source = open_source("S", A, {"path": str(tmp_path), "format": "csv", "watch": "true"}, None)
    source.check()
    start = source.latest(source.initial(), None)
    assert start == source.initial() and not source.bounded and not source.finished(start)
    write(tmp_path / "a.csv", 1)
    assert files_of(source.latest(start, None)) == ["a.csv"]


def test_an_empty_directory_ends_at_once(tmp_path: Path) -> None:
    source = open_source("S", A, {"path": str(tmp_path), "format": "csv"}, None)
    assert read_all(source) == [] and source.finished(source.initial())


def test_a_glob(tmp_path: Path) -> None:
    write(tmp_path / "x1.csv", 1)
    write(tmp_path / "x2.csv", 2)
    write(tmp_path / "y.csv", 3)
    assert read_file(tmp_path / "x*.csv", "a BIGINT").rows == [(1,), (2,)]
    assert read_file(tmp_path / "z*.csv", "a BIGINT", {"format": "csv"}).rows == []


@pytest.mark.parametrize("watch", ["true", "false"])
def test_a_missing_path(tmp_path: Path, watch: str) -> None:
    source = open_source("S", A, {"path": str(tmp_path / "no"), "format": "csv", "watch": watch}, None)
    with pytest.raises(SourceProblem, match=r"stream S: there is no file or directory .*no; check the option `path`"):
        source.check()


def test_a_file_that_vanished_or_is_corrupt_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", 1)
    source = open_source("S", A, {"path": str(tmp_path)}, None)
    unit = source.units(source.initial(), source.latest(source.initial(), None))[0]
    (tmp_path / "a.csv").unlink()
    with pytest.raises(SourceProblem, match=r"can not read .*a\.csv: the file is gone"):
        list(source.read(unit, 10))
    with pytest.raises(SourceProblem, match=r"can not read .*b\.parquet") as told:
        read_text(tmp_path, "b.parquet", b"PAR1 nonsense", "a BIGINT")
    assert not told.value.message.endswith(".")
    with pytest.raises(SourceProblem, match=r"can not read .*c\.csv\.gz"):
        read_text(tmp_path, "c.csv.gz", b"not gzip", "a BIGINT")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission_denied(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", 1)
    (tmp_path / "a.csv").chmod(0)
    with pytest.raises(SourceProblem, match="permission denied"):
        read_file(tmp_path / "a.csv", "a BIGINT")


def test_options_are_checked_with_their_place(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", 1)
    path = str(tmp_path / "a.csv")
    for options, message in [
        ({"path": path, "delimeter": ";"}, "no option `delimeter` in stream S; did you mean `delimiter`?"),
        ({"path": path, "format": "cvs"}, "no format `cvs` in stream S; did you mean `csv`?"),
        ({"connector": "fil", "path": path}, "no connector `fil` in stream S; did you mean `file`?"),
        ({"path": path, "header": "maybe"}, "stream S: `header` is 'maybe'; write true or false"),
        ({"path": path, "delimiter": "ab"}, "`delimiter` is 'ab'"),
        ({"path": path, "delimiter": '"'}, "`delimiter` and `quote` are both"),
        ({}, "stream S has no connector"),
        ({"pth": path}, "stream S has no connector; write WITH (connector = 'file', path = '...'); there is no option `pth`"),
        ({"connector": "file"}, "the option `path` is missing"),
        ({"connector": "socket"}, "the option `port` is missing"),
        ({"connector": "socket", "port": "99999"}, "`port` is 99999"),
        ({"path": str(tmp_path / "x.dat")}, "there is no file or directory"),
        ({"path": path, "format": "text"}, "one column of type STRING"),
    ]:
        with pytest.raises(MillstreamError) as caught:
            open_source("S", A, options, HERE)
        assert message in str(caught.value) and str(caught.value).startswith("statement 1, line 3, column 5: ")
    (tmp_path / "x.dat").touch()
    with pytest.raises(SourceProblem, match=r"format of .* can not be told"):
        open_source("S", A, {"path": str(tmp_path / "x.dat")}, HERE)
    with pytest.raises(NameProblem, match="no option `limit`"):
        open_source("S", A, {"path": path, "limit": "1"}, HERE)


def test_text_gives_every_line(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.txt", b"one\n\n tw\xc3\xb6 \nthree", "line STRING")
    assert answer.rows == [("one",), ("",), (" twö ",), ("three",)] and answer.lines == [1, 2, 3, 4]
    answer = read_text(tmp_path, "a.log", b"one\r\nbad \xff\r\nthree\r\n", "line STRING", batch_size=1)
    assert answer.rows == [("one",), ("three",)] and answer.lines == [1, 3] and answer.sizes == [1, 1]
    assert answer.reasons == [(2, "not UTF-8 at byte 5 of the line")]
    assert read_text(tmp_path, "e.txt", b"", "line STRING").rows == []


def test_parquet_is_cast_to_the_declared_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "A": pa.array([1, 300, 3], pa.int64()),
            "t": pa.array([0, 1, 2], pa.timestamp("ms")),
            "n": pa.array([1, 2, 3], pa.int32()),
            "s": pa.array(["x", "y", None]).dictionary_encode(),
            "d": pa.array([Decimal("1.5"), None, Decimal("2")], pa.decimal128(9, 4)),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    answer = read_file(tmp_path / "a.parquet", "a TINYINT, t TIMESTAMP, n DOUBLE, s STRING, d DECIMAL")
    assert answer.rows[0] == (1, datetime(1970, 1, 1, tzinfo=UTC), 1.0, "x", Decimal("1.5")) and answer.lines == [1, 3]
    assert answer.reasons == [(2, "column `a`: 300 does not fit TINYINT exactly")]
    answer = read_file(tmp_path / "a.parquet", "a BIGINT", batch_size=2)
    assert answer.sizes == [2, 1] and answer.lines == [1, 2, 3]
    with pytest.raises(SourceProblem, match="has no column `z`; it has `A`, `t`"):
        read_file(tmp_path / "a.parquet", "z BIGINT")
    with pytest.raises(SourceProblem, match=r"column `s` of .* declared BIGINT"):
        read_file(tmp_path / "a.parquet", "s BIGINT")


def test_parquet_finer_than_microseconds_is_broken_unless_zero(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": pa.array([1000, 1001], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    answer = read_file(tmp_path / "a.parquet", "t TIMESTAMP")
    assert answer.lines == [1] and answer.reasons[0][0] == 2


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64()])
@pytest.mark.parametrize(("precision", "scale"), [(5, 2), (12, 0), (18, 2), (38, 35), (38, 0)])
def test_parquet_integers_are_decimals_where_their_values_fit(
    tmp_path: Path, kind: pa.DataType, precision: int, scale: int
) -> None:
    values = [5, 7, None, 2 ** (kind.bit_width - 1) - 1]
    pq.write_table(pa.table({"m": pa.array(values, kind)}), tmp_path / "a.parquet")
    reader = ParquetReader("A", pa.schema([("m", pa.decimal128(precision, scale))]))
    readings = list(reader.read(str(tmp_path / "a.parquet"), 100))
    fits = [value for value in values if value is None or value < 10 ** (precision - scale)]
    found = [value for reading in readings for value in reading.batch.column(0).to_pylist()]
    assert found == [None if value is None else Decimal(value) for value in fits]
    wrong = [f"column `m`: {values[3]} does not fit DECIMAL({precision},{scale}) exactly"]
    assert [letter.reason for reading in readings for letter in reading.letters] == (
        wrong if len(fits) == 3 else []
    )


def test_parquet_values_that_no_type_holds_break_their_rows(tmp_path: Path) -> None:
    """The greatest long stands for `never` in many files; strings may hold any bytes."""
    times = pa.array([0, 2**63 - 1, 1, 2], pa.int64()).cast(pa.timestamp("ms"))
    data = pa.py_buffer(b"ab\xffcd"), pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 1, 2, 3, 5)))
    texts = pa.Array.from_buffers(pa.string(), 4, [None, data[1], data[0]])
    pq.write_table(pa.table({"t": times, "s": texts}), tmp_path / "a.parquet")
    answer = read_file(tmp_path / "a.parquet", "t TIMESTAMP, s STRING")
    assert [row[1] for row in answer.rows] == ["a", "cd"] and answer.lines == [1, 4]
    assert answer.reasons == [
        (2, f"column `t`: {2**63 - 1} does not fit TIMESTAMP exactly"),
        (3, "column `s`: not UTF-8"),
    ]
    assert read_file(tmp_path / "a.parquet", "s STRING").lines == [1, 2, 4]


def test_parquet_without_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "a.parquet")
    assert read_file(tmp_path / "a.parquet", "a BIGINT").rows == []


def test_a_table_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", 1, 2)
    write(tmp_path / "b.csv", 3)
    assert read_table("T", A, {"path": str(tmp_path)}, HERE)["a"].to_pylist() == [1, 2, 3]
    (tmp_path / "b.csv").write_text("a\n1\nx\n")
    with pytest.raises(SourceProblem, match=r"statement 1.*table T: .*b\.csv, line 3: column `a`: 'x' is not a BIGINT"):
        read_table("T", A, {"path": str(tmp_path)}, HERE)
    with pytest.raises(NameProblem, match="no option `watch`"):
        read_table("T", A, {"path": str(tmp_path), "watch": "true"}, HERE)
    with pytest.raises(SourceProblem, match=r"statement 1.*there is no file"):
        read_table("T", A, {"path": str(tmp_path / "no.csv")}, HERE)
    with pytest.raises(SourceProblem, match=r"table T: no file matches .*z\*\.csv; check the option `path`"):
        read_table("T", A, {"path": str(tmp_path / "z*.csv")}, HERE)
    assert Answer([], A).rows == []


def test_directories_below_belong_to_the_stream(tmp_path: Path) -> None:
    for day, value in (("dt=2026-01-02", 2), ("dt=2026-01-01", 1)):
        (tmp_path / day).mkdir()
        (tmp_path / day / "part.csv").write_text(f"a\n{value}\n")
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "part.csv").write_text("a\n9\n")
    source = open_source("S", pa.schema([("a", pa.int64())]), {"path": str(tmp_path), "format": "csv"})
    units = source.units(source.initial(), source.latest(source.initial(), None))
    found = [value for unit in units for reading in source.read(unit, 10) for value in reading.batch.column("a").to_pylist()]
    assert found == [1, 2]


def test_a_directory_behind_a_link_is_looked_at_like_any_other(tmp_path: Path) -> None:
    """And a link to a directory above it is no way into it again."""
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    data.mkdir(), elsewhere.mkdir()
    (data / "linked").symlink_to(elsewhere)
    (data / "self").symlink_to(data)
    (elsewhere / "1.csv").write_text("a\n1\n")
    source = open_source("S", A, {"path": str(data), "format": "csv", "watch": "true"}, HERE)
    at = source.latest(source.initial(), None)
    assert len(source.units(source.initial(), at)) == 1
    time.sleep(0.15)
    assert source.latest(at, None) == at  # from now on it is known to be quiet
    (elsewhere / "2.csv").write_text("a\n2\n")
    assert len(source.units(at, source.latest(at, None))) == 1


def test_a_directory_that_vanishes_during_a_look_was_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dt=1").mkdir()
    (tmp_path / "a.csv").write_text("a\n1\n")
    scandir = os.scandir

    def vanishing(path: str) -> object:
        if str(path).endswith("dt=1") and os.path.isdir(path):
            os.rmdir(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    source = open_source("S", A, {"path": str(tmp_path), "format": "csv", "watch": "true"}, HERE)
    assert len(source.units(source.initial(), source.latest(source.initial(), None))) == 1
    assert not (tmp_path / "dt=1").exists()


def test_a_name_that_is_not_a_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "é.csv").write_text("n\n1\n")
    source = open_source("S", schema("n BIGINT"), {"path": str(tmp_path), "format": "csv"})
    assert source.latest(source.initial(), None)["files"][0][0] == "é.csv"
    try:
        (tmp_path / os.fsdecode(b"\xe9.csv")).write_text("n\n1\n")
    except OSError:
        pytest.skip("this file system takes no other names")
    with pytest.raises(SourceProblem, match=r"stream S: the name of the file b'.*\\xe9.csv' is not UTF-8; rename it"):
        source.latest(source.initial(), None)
