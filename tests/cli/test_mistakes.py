"""A mistake of a user's is one line on standard error that says where and what to do; never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream.pipeline
from tests.cli.kit import QUERY, SINK, STREAM, Command, plain

MISTAKES = {
    "wrong SQL": (STREAM + SINK + "INSERT INTO Out SELEC * FROM Bid;", "pipeline.sql: statement 3, line 5, column 17: "),
    "unknown column": (
        STREAM + SINK + "INSERT INTO Out SELECT pric FROM Bid;",
        "pipeline.sql: statement 3, line 5, column 24: no column `pric` in Bid; did you mean `price`?",
    ),
    "unknown stream": (
        STREAM + SINK + "INSERT INTO Out SELECT price FROM Bit;",
        "pipeline.sql: statement 3, line 5, column 35: no stream, table or view `Bit`; did you mean `Bid`?",
    ),
    "a sink where a stream reads": (
        STREAM + SINK.replace("'out'", "'bids/out'") + QUERY,
        "sink Out would write into ",
    ),
    "batches of nothing": (
        "SET execution.batch = 0;",
        "pipeline.sql: statement 1, line 1, column 1: execution.batch takes a whole number of at least 1, not 0",
    ),
    "unknown sink": (
        STREAM + SINK + "INSERT INTO Aut SELECT price FROM Bid;",
        "pipeline.sql: statement 3, line 5, column 13: no sink `Aut`",
    ),
    "no window": (
        STREAM + SINK + "INSERT INTO Out SELECT auction, count(*) FROM Bid GROUP BY auction;",
        "pipeline.sql: statement 3, line 5, column 60: the groups of this GROUP BY (`auction`) would never close",
    ),
    "no variable": (
        STREAM.replace("'bids'", "'${in}'") + SINK + QUERY,
        "pipeline.sql: statement 1, line 3, column 53: no value for `${in}`",
    ),
    "sequence": (
        STREAM + SINK + "INSERT INTO Out SELECT * FROM SEQ(Bid AS a, Bid AS b);",
        "pipeline.sql: statement 3, line 5, column 31: SEQ",
    ),
    "no query": (STREAM + SINK, "pipeline.sql: there is no query to run; write INSERT INTO"),
    "nothing": ("", "pipeline.sql: there is no query to run"),
    "a select": (STREAM + "SELECT * FROM Bid;", "pipeline.sql: statement 2, line 4, column 1: the answer of this query goes nowhere"),
    "no file of a pattern": (
        STREAM.replace("'bids'", "'bidz/*.csv'") + SINK + QUERY,
        "pipeline.sql: statement 1, line 1, column 1: stream Bid: no file matches ",
    ),
    "no source": (STREAM.replace("'bids'", "'nowhere'") + SINK + QUERY, "pipeline.sql: statement 1, line 1, column 1: "),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_one_line_and_status_1(command: Command, name: str) -> None:
    text, line = MISTAKES[name]
    done = command.local(text)
    assert (done.code, done.out) == (1, "")
    assert len(done.lines) == 1, done.err
    assert done.err.startswith(line), done.err
    assert not (command.directory / "out").exists()


def test_a_sink_whose_path_exists(command: Command) -> None:
    command.write("out/precious.jsonl", "{}\n")
    done = command.local(STREAM + SINK + QUERY)
    assert done.code == 1
    assert len(done.lines) == 1
    assert done.err.startswith("pipeline.sql: statement 2, line 4, column 1: sink Out: ")
    assert "exists and is not empty; choose another path" in done.err
    assert (command.directory / "out" / "precious.jsonl").read_text() == "{}\n"


def test_a_file_that_is_no_text(command: Command) -> None:
    (command.directory / "pipeline.sql").write_bytes(b"\xff\xfe\x00S")
    done = command("run", "pipeline.sql", "--runtime", "local")
    assert (done.code, done.err) == (1, "pipeline.sql: this is no text in UTF-8\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "nowhere.sql"],
        ["run"],
        ["run", "pipeline.sql", "--runtime", "flink"],
        ["run", "pipeline.sql", "--set", "in"],
        ["run", "pipeline.sql", "--conf", "spark.executor.memory"],
        ["run", "pipeline.sql", "--runtime", "local", "--master", "local[2]"],
        ["run", "pipeline.sql", "--runtime", "local", "--conf", "spark.executor.memory=1g"],
        ["explain", "pipeline.sql", "--form", "tree"],
        ["rum", "pipeline.sql"],
        ["--frobnicate"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_status_2(command: Command, arguments: list[str]) -> None:
    command.pipeline(STREAM + SINK + QUERY)
    done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


def test_our_own_mistakes_are_one_line_too(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, *arguments: object, **named: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(millstream.pipeline.Pipeline, "add_text", broken)
    done = command.local(STREAM)
    assert (done.code, done.err) == (1, "internal error: RuntimeError: two; run again with MILLSTREAM_DEBUG=1 to see where\n")
    monkeypatch.setenv("MILLSTREAM_DEBUG", "1")
    done = command.local(STREAM)
    assert done.code == 1
    assert "Traceback" in done.err


def test_a_reader_that_leaves_early_is_no_crash(command: Command, tmp_path: Path) -> None:
    command.pipeline(
        "CREATE STREAM N (value BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED"
        "  WITH (connector = 'rate', rows_per_second = 100000, rows = 50000);"
        "CREATE SINK Screen WITH (connector = 'console'); INSERT INTO Screen SELECT value FROM N;"
    )
    process = command.start("run", "pipeline.sql", "--runtime", "local")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    err = plain(process.stderr.read())
    process.stderr.close()
    assert process.wait(60) == 1
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("sink Screen: can not print")
