"""CSV: what is read, what is broken, and on which line."""

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import SourceProblem
from millstream.io.read import csv as csv_module
from millstream.io.read.csv import CsvReader
from tests.io.kit import Answer, read_text, schema


def test_columns_are_matched_by_name_in_any_case_and_order(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.csv", "S,extra,A\nx,1,2\n", "a BIGINT, s STRING")
    assert answer.rows == [(2, "x")] and answer.lines == [2]


def test_without_a_header_columns_go_by_order(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.csv", "1|x\n2|y\n", "a BIGINT, s STRING", {"header": "false", "delimiter": "|"})
    assert answer.rows == [(1, "x"), (2, "y")] and answer.lines == [1, 2]


def test_a_missing_column_names_file_and_column(tmp_path: Path) -> None:
    with pytest.raises(SourceProblem, match=r"has no column `b`.*header has `a`, `c`; header = false reads"):
        read_text(tmp_path, "a.csv", "a,c\n1,2\n", "a BIGINT, b BIGINT")
    said = "no column `b`; its header is no text in UTF-8, as csv is; check the option `format`"
    with pytest.raises(SourceProblem, match=said):
        read_text(tmp_path, "a.csv", "PAR1\x15\x04,c\n", "b BIGINT")
    with pytest.raises(SourceProblem, match="more than one column `a`"):
        read_text(tmp_path, "a.csv", "a,A\n1,2\n", "a BIGINT")


@pytest.mark.parametrize("text", ["", "a,b\n", "a,b", "\n\na,b\r\n"])
def test_nothing_to_read_is_no_error(tmp_path: Path, text: str) -> None:
    answer = read_text(tmp_path, "a.csv", text, "a BIGINT, b BIGINT")
    assert answer.rows == [] and answer.letters == []


def test_null_is_unquoted_and_empty_text_is_quoted(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.csv", 'a,s\n,\n"",""\n3,x\n', "a BIGINT, s STRING")
    assert answer.rows == [(None, None), (None, ""), (3, "x")]
    answer = read_text(tmp_path, "a.csv", 'a,s\nNA,NA\n"NA","NA"\n1,\n', "a BIGINT, s STRING", {"null_value": "NA"})
    assert answer.rows == [(None, None), (None, "NA"), (1, "")]


def test_line_numbers_count_physical_lines(tmp_path: Path) -> None:
    text = 'a,s\r\n1,"two\r\nlines"\r\n\r\n2,x\r\n3,"a ""quote"", a\n\n\nbreak"\n4,y'
    answer = read_text(tmp_path, "a.csv", text, "a BIGINT, s STRING")
    assert answer.rows == [(1, "two\r\nlines"), (2, "x"), (3, 'a "quote", a\n\n\nbreak'), (4, "y")]
    assert answer.lines == [2, 5, 6, 10]


def test_broken_rows_are_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    rows = ["id,price,ok", "1,1.5,true", "2,abc,true", "3,1,maybe", "4,2", "x,2,false", "7,3,0,9", '8,"4"z,1', "9,5,1"]
    answer = read_text(tmp_path, "a.csv", "\n".join(rows), "id TINYINT, price DOUBLE, ok BOOLEAN")
    assert answer.rows == [(1, 1.5, True), (9, 5.0, True)] and answer.lines == [2, 9]
    assert answer.reasons == [
        (3, "column `price`: 'abc' is not a DOUBLE"),
        (4, "column `ok`: 'maybe' is not a BOOLEAN"),
        (5, "2 fields where 3 are expected"),
        (6, "column `id`: 'x' is not a TINYINT"),
        (7, "4 fields where 3 are expected"),
        (8, "there is text after a closing quote"),
    ]
    assert answer.letters[0].content == "2,abc,true" and answer.letters[0].kind == "broken" and answer.letters[0].stream == "S"
    assert answer.letters[0].file == str(tmp_path / "a.csv")


def test_a_quote_that_never_closes_costs_one_line(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.csv", 'a,s\n1,x\n2,"oops\n3,y\n4,z\n', "a BIGINT, s STRING")
    assert answer.rows == [(1, "x"), (3, "y"), (4, "z")] and answer.lines == [2, 4, 5]
    assert answer.reasons == [(3, "a quote is opened and never closed")]


def test_a_quote_inside_plain_text_is_text(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.csv", 'a,s\n1,5" pipe\n2,x\n', "a BIGINT, s STRING")
    assert answer.rows == [(1, '5" pipe'), (2, "x")] and answer.lines == [2, 3]


def test_invalid_utf8_breaks_its_row_only(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.csv", b"a,s\n1,ok\n2,\xff\n3,\xc3\xa9\n", "a BIGINT, s STRING")
    assert answer.rows == [(1, "ok"), (3, "é")] and answer.reasons[0][0] == 3 and "UTF-8" in answer.reasons[0][1]
    assert "\\xff" in (answer.letters[0].content or "")


def test_bom_gzip_tabs_and_other_quotes(tmp_path: Path) -> None:
    assert read_text(tmp_path, "a.csv", b"\xef\xbb\xbfa\n1\n", "a BIGINT").rows == [(1,)]
    packed = gzip.compress(b"a\ts\n1\t'x\ty'\n")
    assert read_text(tmp_path, "b.csv.gz", packed, "a BIGINT, s STRING", {"delimiter": "\\t", "quote": "'"}).rows == [(1, "x\ty")]
    assert read_text(tmp_path, "c.csv", 'a,s\n1,"x"\n', "a BIGINT, s STRING", {"quote": ""}).rows == [(1, '"x"')]


def test_one_column_reads_blank_lines_as_null(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.csv", 's\nx\n\n""\n', "s STRING")
    assert answer.rows == [("x",), (None,), ("",)] and answer.lines == [2, 3, 4]


def test_at_most_batch_size_tuples_at_a_time(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.csv", "a\n" + "".join(f"{i}\n" for i in range(25)), "a BIGINT", batch_size=10)
    assert answer.sizes == [10, 10, 5] and answer.lines == list(range(2, 27))


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_where_blocks_are_cut_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    text = 'a,s\n1,"x\ny"\n2,"a""b"\n\nz,q\n3,5"\n4,"c"\n5,\r\n6,"un'
    whole = read_text(tmp_path, "a.csv", text, "a BIGINT, s STRING")
    monkeypatch.setattr(csv_module, "CHUNK", chunk)
    cut = read_text(tmp_path, "a.csv", text, "a BIGINT, s STRING")
    assert (cut.rows, cut.lines, cut.letters) == (whole.rows, whole.lines, whole.letters)
    assert whole.rows == [(1, "x\ny"), (2, 'a"b'), (3, '5"'), (4, "c"), (5, None)]
    assert whole.reasons == [(6, "column `a`: 'z' is not a BIGINT"), (10, "a quote is opened and never closed")]


def test_a_record_without_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_module, "CHUNK", 100)
    monkeypatch.setattr(csv_module, "LONGEST", 1000)
    rows = "".join(f"{i},x\n" for i in range(1000))
    answer = read_text(tmp_path, "a.csv", f'a,s\n-1,"oops\n{rows}', "a BIGINT, s STRING")
    assert answer.rows == [(i, "x") for i in range(1000)] and answer.reasons == [(2, "a quote is opened and never closed")]
    with pytest.raises(SourceProblem, match="longer than"):
        read_text(tmp_path, "b.csv", "a\n" + "1" * 5000, "a BIGINT")


KIND = schema("a BIGINT, s STRING")
MESSY = st.text(st.sampled_from('",\n\r a1é\0'), max_size=60)


@given(MESSY, st.integers(1, 20))
def test_the_fast_path_reads_as_the_careful_one(text: str, chunk: int) -> None:
    answers = []
    size, csv_module.CHUNK = csv_module.CHUNK, chunk
    try:
        for careful in (False, True):
            reader = CsvReader("S", KIND, header=False, careful_only=careful)
            answer = Answer(list(reader.read(io.BytesIO(text.encode()), "f", 100)), KIND)
            answers.append((answer.rows, answer.lines, answer.letters))
    finally:
        csv_module.CHUNK = size
    assert answers[0] == answers[1]


@given(st.lists(st.tuples(st.integers(-5, 10**12), st.text(st.characters(codec="utf-8"), max_size=8)), max_size=20))
def test_what_pythons_csv_module_writes_is_read(rows: list[tuple[int, str]]) -> None:
    import csv

    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_STRINGS if hasattr(csv, "QUOTE_STRINGS") else csv.QUOTE_NONNUMERIC).writerows(rows)
    for careful in (False, True):
        reader = CsvReader("S", KIND, header=False, careful_only=careful)
        answer = Answer(list(reader.read(io.BytesIO(out.getvalue().encode()), "f", 100)), KIND)
        assert answer.rows == rows and not answer.letters


def test_a_byte_that_is_no_utf_8_is_counted_in_the_line(tmp_path: Path) -> None:
    answer = read_text(tmp_path, "a.csv", b"a,b\n1234,abcdef\xff\n", "a BIGINT, b STRING")
    assert answer.reasons == [(2, "not UTF-8 at byte 12 of the line")]


def test_a_byte_order_mark_within_a_file_is_a_character(tmp_path: Path) -> None:
    text = "a,b\n\ufeffx,1\n\ufeffy,2\n".encode()
    for file, whole in (("a.csv", text), ("b.csv", b"\xef\xbb\xbf" + text)):
        assert read_text(tmp_path, file, whole, "a STRING, b BIGINT").rows == [("\ufeffx", 1), ("\ufeffy", 2)]
