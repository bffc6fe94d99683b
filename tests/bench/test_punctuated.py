"""The auction benchmark: its streams, the answers of its sides, and when they come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.bench import punctuated
from millstream.bench.answer import digest
from millstream.bench.auctions import LASTS, SECOND, Auctions
from millstream.bench.compare import Side, compare
from millstream.bench.punctuated import FILES, NATIVE, ON_SPARK, ONE_PROCESS, delays, prepare, read_until, run, spark_epochs
from millstream.cli.punctuated import show, span
from millstream.errors import DataProblem

NAME = "punctuated-join"
ROWS = 22 * 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("auctions")
    prepare(NAME, ROWS, str(place), native_rows=22 * 100)
    return place


def asked(folder: Path, below: int) -> dict[str, Any]:
    """DuckDB's answer for the auctions that open first."""
    found = duckdb.sql(f"""
        SELECT a.item_id, count(*) AS bids FROM '{folder}/all/Auction/*.parquet' a, '{folder}/all/Bid/*.parquet' b
        WHERE NOT b.closed AND a.item_id = b.item_id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 12 HOURS
        AND a.item_id >= 0 AND a.item_id < {below} GROUP BY ALL""")
    return digest(found.to_arrow_table())


def test_an_auction_is_closed_behind_its_last_bid() -> None:
    made = Auctions.make(22 * 300)
    assert (len(made), made.rows) == (300, 22 * 300)
    assert all(np.diff(made.opened) >= 0) and all(np.diff(made.times) >= 0)
    last = {int(item): at for at, item in enumerate(made.items)}
    assert [made.closed[last[item]] for item in range(300)] == [True] * 300 and made.closed.sum() == 300
    lives = made.times - made.opened[made.items]
    assert lives.min() >= 0 and LASTS[0] * SECOND < lives.max() <= LASTS[1] * SECOND
    assert np.array_equal(made.ended, [made.times[last[item]] for item in range(300)])


def test_files_of_both_streams_have_the_same_stretch_of_time(folder: Path) -> None:
    streams = [[pq.read_table(path) for path in sorted((folder / "all" / name).iterdir())] for name in ("Auction", "Bid")]
    assert len(streams[0]) == len(streams[1]) == 17 and streams[0][-1]["item_id"].to_pylist() == [-1]
    assert sum(table.num_rows for stream in streams for table in stream[:-1]) == ROWS
    for at, (auctions, bids) in enumerate(list(zip(*streams, strict=True))[:15]):
        assert auctions["ts"][-1].as_py() <= bids["ts"][-1].as_py() < streams[0][at + 1]["ts"][0].as_py()


def test_the_first_auctions_are_whole(folder: Path) -> None:
    made = Auctions.make(ROWS)
    first = made.first(100)
    assert (len(first), first.closed.sum()) == (100, 100) and np.array_equal(first.ended, made.ended[:100])
    assert first.rows == sum(pq.read_table(folder / "first" / name).num_rows - 1 for name in ("Auction", "Bid"))


def test_one_process_answers_as_duckdb_at_the_close(folder: Path) -> None:
    found = run(NAME, ONE_PROCESS, ROWS, str(folder))
    assert {name: found[name] for name in ("answer_rows", "digest")} == asked(folder, 100)
    assert found["complete"] == asked(folder, 400)["digest"]
    assert found["rows"] == ROWS
    # A step reads a file, and 16 files span 2 days.
    assert 0 <= found["delay"][0] <= found["delay"][1] < 4 * 3600
    assert 0 < found["state_tuples"] < 100  # 100 auctions open in 12 hours


@pytest.mark.slow
def test_on_spark_results_come_in_the_micro_batch_that_closes_an_auction(folder: Path, spark: object) -> None:
    found = run(NAME, ON_SPARK, ROWS, str(folder))
    assert {name: found[name] for name in ("answer_rows", "digest")} == asked(folder, 100)
    assert found["complete"] == asked(folder, 400)["digest"]
    assert found["later"] == [0, 0]
    assert 0 <= found["delay"][0] <= found["delay"][1] < found["batch_span"] * 1.5
    assert 0 < found["state_tuples"] < 50


@pytest.mark.slow
def test_the_three_sides_agree() -> None:
    """With 4,000 auctions in 2 days, Spark's own operators are given the first day and a half."""
    sides = compare(NAME, rows=22 * 4000, repeats=1, native_rows=22 * 3000)
    ours, alone, native = sides
    assert ours.given == alone.given == 22 * 4000
    assert abs(native.given - 22 * 3000) < 22 * 100
    assert native.runs[0]["delay"][0] > 12 * 3600 - LASTS[1]  # at the end of the window, and not at the close
    assert native.runs[0]["state_tuples"] > 10 * ours.runs[0]["state_tuples"]


def test_answers_that_differ_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where only some sides were given everything."""
    answers = iter([("1", "2"), ("1", "3"), ("1", None)])

    def measured(*_: object) -> dict[str, Any]:
        digest, complete = next(answers)
        return {"answer_rows": 1, "digest": digest, "seconds": 1.0} | ({} if complete is None else {"complete": complete})

    monkeypatch.setattr("millstream.bench.compare._measure", measured)
    monkeypatch.setattr(punctuated, "prepare", lambda *_: None)
    with pytest.raises(DataProblem, match="different answers"):
        compare(NAME, rows=22, repeats=1)


def test_delays_are_those_of_full_micro_batches(folder: Path, tmp_path: Path) -> None:
    until = read_until(folder / "all")
    assert len(until) == 16 // FILES
    ended = Auctions.make(ROWS).ended
    early, late = int(np.argmin(ended)), int(np.argmax(ended))
    pq.write_table(pa.table({"item_id": [early]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"item_id": [late]}), tmp_path / "4.parquet")
    delay, later = delays({2: [tmp_path / "1.parquet"], 4: [tmp_path / "4.parquet"]}, until, ended)
    assert delay.tolist() == [(until[2] - ended[early]) / SECOND] and later.tolist() == [2]


def test_the_notes_of_sparks_sink(tmp_path: Path) -> None:
    """The tenth has all files so far."""
    (tmp_path / "_spark_metadata").mkdir()
    names = {8: ["a"], 9: [], 10: ["b", "c"]}

    def note(files: list[str]) -> str:
        return "\n".join(["v1", *(json.dumps({"path": f"file://{tmp_path}/{name}"}) for name in files)])

    for number, text in {"8": note(names[8]), "9.compact": note(names[8]), "10": note(names[10]), ".10.crc": ""}.items():
        (tmp_path / "_spark_metadata" / number).write_text(text)
    assert spark_epochs(tmp_path) == {8: [tmp_path / "a"], 10: [tmp_path / "b", tmp_path / "c"]}


def test_a_table_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    def side(name: str, steady: float, **more: Any) -> Side:
        base = {
            "seconds": 2.0,
            "steady": steady,
            "rows": 22_000_000,
            "state_tuples": 12_345,
            "state_bytes": 2_000_000,
            "delay": [90.0, 4000.0],
        }
        return Side(name, 22_000_000, ({**base, **more},))

    sides = [
        side(ON_SPARK, 2e6, later=[0.0, 0.0], batch_span=7200.0),
        side(ONE_PROCESS, 4e6),
        side(NATIVE, 5e4, rows=5_500_000, later=[6.0, 7.0], delay=None),
    ]
    show(sides, as_json=False)
    shown = capsys.readouterr().out
    assert all(
        text in shown
        for text in ("12,345", "1 min 30 s", "1 h 6 min", "40.0 x", "80.0 x", "reads 2 h 0 min", "5,500,000 tuples (--native-rows)")
    )
    assert all(len(line) <= 80 for line in shown.splitlines() if line.startswith("│"))
    show(sides, as_json=True)
    figures = json.loads(capsys.readouterr().out)["sides"]
    assert [(each["tuples"], each["ratio"]) for each in figures] == [(22_000_000, 40), (22_000_000, 80), (5_500_000, 1)]
    assert span(5.25) == "5.25 s"


def test_a_result_before_its_time_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = np.load(folder / "ended.npy") + 86400 * SECOND
    monkeypatch.setattr(np, "load", lambda path: later)
    with pytest.raises(DataProblem, match="before its auction was closed"):
        run(NAME, ONE_PROCESS, ROWS, str(folder))
