"""`ms.testing.run` feeds lists and hands back lists."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import millstream as ms

ROOT = Path(__file__).parents[2]

TEXT = """\
CREATE STREAM Bid (auction BIGINT, price DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts SLACK 30 SECONDS
  WITH (connector = 'file', format = 'csv', path = 'bids');
CREATE SINK Out WITH (connector = 'file', path = 'out');
INSERT INTO Out SELECT auction, count(*) AS n FROM Bid [RANGE 1 MINUTE] GROUP BY auction;
"""


@pytest.fixture
def session() -> ms.Session:
    session = ms.Session("local")
    session.sql(TEXT)
    return session


ROWS = [(1, 10.0, "2026-01-01 12:00:05"), (1, 11.0, "2026-01-01 12:00:50"), (2, 5.0, "2026-01-01 12:01:10")]


def test_a_result_is_a_list_of_dictionaries(session: ms.Session) -> None:
    rows = ms.testing.run(session, {"Bid": ROWS})
    start, end = datetime(2026, 1, 1, 12, 0, tzinfo=UTC), datetime(2026, 1, 1, 12, 1, tzinfo=UTC)
    assert len(rows) == 2
    assert rows[0] == {"auction": 1, "n": 2, "window_start": start, "window_end": end}
    assert [row["n"] for row in rows] == [2, 1]
    assert rows == rows.rows("out")
    assert rows[-1:] == [rows[1]]
    assert rows.tables["Out"].num_rows == rows.to_arrow().num_rows == 2
    assert rows.status.tuples_in == {"Bid": 3}
    assert rows.letters == []
    assert repr(rows) == repr(rows.rows())
    assert not Path("out").exists()


@pytest.mark.parametrize("form", ["sequences", "dictionaries", "datetimes", "microseconds", "arrow"])
def test_forms_of_input(session: ms.Session, form: str) -> None:
    moments = [datetime.fromisoformat(ts).replace(tzinfo=UTC) for _, _, ts in ROWS]
    dictionaries = [dict(zip(("auction", "price", "ts"), row, strict=True)) for row in ROWS]
    given: dict[str, object] = {
        "sequences": ROWS,
        "dictionaries": dictionaries,
        "datetimes": [{**d, "ts": m} for d, m in zip(dictionaries, moments, strict=True)],
        "microseconds": [{**d, "ts": int(m.timestamp()) * 1_000_000} for d, m in zip(dictionaries, moments, strict=True)],
        "arrow": pa.table({"ts": moments, "price": [10.0, 11.0, 5.0], "auction": [1, 1, 2]}),
    }
    assert [row["n"] for row in ms.testing.run(session, {"bid": given[form]})] == [2, 1]


@pytest.mark.parametrize("options", [{"batch": 1}, {"files": {"Bid": 3}}, {"batch": 2, "files": {"Bid": 2}}], ids=str)
def test_how_lists_are_cut_changes_nothing(session: ms.Session, options: dict[str, object]) -> None:
    assert ms.testing.run(session, {"Bid": ROWS}, **options) == ms.testing.run(session, {"Bid": ROWS}).rows()


def test_dead_letters_come_back(session: ms.Session) -> None:
    result = ms.testing.run(session, {"Bid": [*ROWS, (3, 1.0, "2026-01-01 11:00:00")]})
    assert [(letter.stream, letter.kind) for letter in result.letters] == [("Bid", "late")]
    assert len(result) == 2


def test_nothing_in_nothing_out_but_the_columns_are_known(session: ms.Session) -> None:
    result = ms.testing.run(session, {})
    assert list(result) == []
    assert result.to_arrow().schema.names == ["auction", "n", "window_start", "window_end"]


def test_several_sinks(session: ms.Session) -> None:
    session.sql("CREATE SINK Dear WITH (connector = 'console'); INSERT INTO Dear SELECT price FROM Bid WHERE price > 10")
    result = ms.testing.run(session, {"Bid": ROWS})
    assert result.rows("Dear") == [{"price": 11.0}]
    assert repr(result) == "Result(Out: 2 tuples, Dear: 1 tuples)"
    with pytest.raises(ms.MillstreamError, match=re.escape("there are 2 sinks; say which with rows(name): Out, Dear")):
        list(result)
    with pytest.raises(ms.MillstreamError, match="no sink `Deer`"):
        result.rows("Deer")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"Bit": []}, "no stream `Bit`; did you mean `Bid`?"),
        ({"Bid": [(1, 2.0)]}, "stream Bid: tuple 1 has 2 values for 3 columns; they are auction, price, ts"),
        ({"Bid": [{"action": 1}]}, "no column `action` in stream Bid; did you mean `auction`?"),
        ({"Bid": [("one", 2.0, None)]}, "stream Bid: a value does not fit column `auction`"),
        (
            {"Bid": [(1, 2.0, None), ("two", 2.0, None)]},
            "stream Bid: a value does not fit column `auction`: Could not convert 'two' with type str: "
            "tried to convert to int64; it is 'two' in tuple 2",
        ),
        ({"Bid": [(1, 2.0, "noon")]}, "stream Bid: a value does not fit column `ts`"),
        ({"Bid": pa.table({"auction": [1]})}, "no column `price` in the table given for stream Bid"),
    ],
    ids=str,
)
def test_wrong_inputs(session: ms.Session, inputs: dict[str, object], message: str) -> None:
    with pytest.raises(ms.MillstreamError) as told:
        ms.testing.run(session, inputs)
    assert str(told.value).startswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inputs": [ROWS]}, "inputs is a dictionary by stream, not a value of type list"),
        ({"inputs": {"Bid": ROWS, "bid": []}}, "inputs names stream `Bid` twice"),
        ({"files": {"Bit": 2}}, "no stream `Bit`; did you mean `Bid`?"),
        ({"files": 2}, "files is a dictionary by stream, not a value of type int"),
        ({"runtime": "flink"}, "no runtime `flink`; there is `spark`, `local`"),
        (
            {"runtime": "spark", "clock": ms.testing.ManualClock()},
            "a clock moved by hand works in one process only",
        ),
        ({"session": "bids.sql"}, "a session is needed, not a value of type str"),
    ],
    ids=str,
)
def test_wrong_calls(session: ms.Session, given: dict[str, object], message: str) -> None:
    with pytest.raises(ms.MillstreamError) as told:
        ms.testing.run(**{"session": session, "inputs": {"Bid": ROWS}, **given})  # type: ignore[arg-type]
    assert str(told.value).startswith(message)


def test_the_settings_of_a_session_stay_as_they_were(session: ms.Session) -> None:
    ms.testing.run(session, {"Bid": ROWS}, batch=1, buckets=3)
    assert session.pipeline.settings.chosen == {}
    with pytest.raises(ms.MillstreamError, match="a session is needed, not a value of type str"):
        ms.testing.Live("bids.sql")


def test_files_are_named_in_any_case(session: ms.Session) -> None:
    result = ms.testing.run(session, {"Bid": [*ROWS, (3, 1.0, "2026-01-01 11:00:00")]}, files={"BID": 4})
    assert [letter.file for letter in result.letters] == ["Bid[3]"]


def test_the_clock_stamps_what_enters() -> None:
    session = ms.Session("local")
    session.sql(
        "CREATE STREAM Door (door INT) TIMESTAMP INTERNAL AS ts WITH (connector = 'socket', port = 9009);"
        "CREATE SINK Out WITH (connector = 'console'); INSERT INTO Out SELECT door, ts FROM Door;"
    )
    rows = ms.testing.run(session, {"Door": [(1,), (2,)]}, clock=ms.testing.ManualClock(120_000_000))
    assert [row["ts"] for row in rows] == [datetime(1970, 1, 1, 0, 2, tzinfo=UTC)] * 2


def test_the_example_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text()
    monkeypatch.chdir(tmp_path)
    (sql,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    (tmp_path / "bids.sql").write_text(sql)
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {}
    exec(code.replace("open(", "__import__('pathlib').Path(").replace(".read()", ".read_text()"), names)
    assert [(row["auction"], row["bids"], row["best"]) for row in names["rows"]] == [(1, 2, 11.0)]  # type: ignore[attr-defined]


def test_a_letter_shows_the_aggregate_that_the_user_wrote() -> None:
    session = ms.Session("local")
    session.add_stream("A", schema="s STRING, ts TIMESTAMP", time="ts")
    session.add_sink("Out")
    session.sql("INSERT INTO Out SELECT CAST(max(s) AS INT) AS top FROM A [RANGE 1 MINUTE]")
    (letter,) = ms.testing.run(session, {"A": [("high", "2026-01-01 12:00:00")]}).letters
    assert "MAX(s)" in letter.reason and "__" not in letter.reason
