"""`millstream run`: answers go to sinks, progress to standard error, and the exit status tells how it ended."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.kit import BIDS, QUERY, SINK, STREAM, Command, plain

ROOT = Path(__file__).parents[2]


def answers(directory: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in sorted(directory.glob("*.jsonl")) for line in file.read_text().splitlines()]


def test_answers_go_to_the_sink_and_the_last_line_tells_it(command: Command) -> None:
    done = command.local(STREAM + SINK + QUERY)
    assert (done.code, done.out) == (0, "")
    assert re.fullmatch(r"read 5 tuples from Bid, wrote 4 to Out \(out/\), \d+\.\d s", done.lines[-1])
    given = sorted((r["auction"], r["n"], r["best"]) for r in answers(command.directory / "out"))
    assert given == [(1, 1, 12), (1, 2, 11), (2, 1, 7.5), (2, 1, 9)]


def test_first_pipeline_of_the_readme(command: Command) -> None:
    blocks = dict(re.findall(r"```(csv|sql)\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL))
    done = command.local(blocks["sql"], bids=blocks["csv"])
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) == 2 + 4  # a header, a rule, and the four tuples printed there
    assert "wrote 4 to Screen" in done.err


def test_variables_and_settings(command: Command) -> None:
    text = STREAM.replace("'bids'", "'${in}'") + SINK + QUERY
    done = command.local(text, "--set", "in=bids", "--set", "execution.batch=2")
    assert done.code == 0, done.err
    assert len(answers(command.directory / "out")) == 4


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("execution.bach=2", "no setting `execution.bach`; did you mean `execution.batch`?"),
        ("execution.batch=many", "execution.batch takes a whole number of at least 0, not `many`"),
        ("join.feedback=perhaps", "join.feedback takes true or false, not `perhaps`"),
        ("execution.order=backwards", "no execution.order `backwards`"),
    ],
)
def test_wrong_settings(command: Command, value: str, line: str) -> None:
    done = command.local(STREAM + SINK + QUERY, "--set", value)
    assert done.code == 1
    assert done.err.startswith(line)
    assert len(done.lines) == 1


def test_broken_and_late_tuples_are_dead_letters_and_no_failure(command: Command) -> None:
    done = command.local(STREAM + SINK + QUERY, bids=BIDS + "3,cheap,2026-01-01 12:01:31\n4,1.0,2026-01-01 11:00:00\n")
    assert done.code == 0, done.err
    assert re.search(r"wrote 4 to Out \(out/\), 2 dead letters in out_dead_letters/ \((1 \w+, 1 \w+)\), ", done.lines[-1])
    letters = answers(command.directory / "out_dead_letters")
    assert {letter["stream"] for letter in letters} == {"Bid"}
    assert "late" in {letter["kind"] for letter in letters}


def test_empty_input_gives_an_empty_answer(command: Command) -> None:
    done = command.local(STREAM + SINK + QUERY, bids="auction,price,ts\n")
    assert done.code == 0, done.err
    assert "read 0 tuples from Bid, wrote 0 to Out" in done.lines[-1]
    assert answers(command.directory / "out") == []


def test_explain_in_a_file_is_printed_and_the_rest_runs(command: Command) -> None:
    done = command.local(STREAM + SINK + "EXPLAIN GRAPH SELECT auction FROM Bid;\n" + QUERY)
    assert done.code == 0, done.err
    assert done.out.startswith("#0 source Bid")
    assert len(answers(command.directory / "out")) == 4


def test_explain_alone_needs_no_insert(command: Command) -> None:
    done = command.local(STREAM + "EXPLAIN SELECT auction FROM Bid;", bids=None)
    assert done.code == 0, done.err
    assert "scan Bid" in done.out
    assert done.err == ""


def test_two_queries_are_told_apart(command: Command) -> None:
    text = STREAM + SINK + "CREATE SINK Dear WITH (connector = 'file', path = 'dear');\n" + QUERY
    done = command.local(text + "INSERT INTO Dear SELECT * FROM Bid WHERE price > 9;")
    assert done.code == 0, done.err
    assert "wrote 4 to Out (out/) and 3 to Dear (dear/)" in done.lines[-1]


@pytest.mark.slow
def test_on_spark(command: Command) -> None:
    command.pipeline(STREAM + SINK + QUERY, BIDS + "3,cheap,2026-01-01 12:01:31\n")
    limits = ("--set", "source.max_bytes_per_batch=120", "--metrics", "metrics.jsonl")
    process = command.start("run", "pipeline.sql", "--master", "local[2]", "--checkpoint", "kept", *limits)
    out, err = process.communicate(timeout=200)
    err = plain(err)
    lines = err.splitlines()
    assert (process.returncode, out) == (0, ""), err
    assert lines[0] == "starting Spark ..."
    assert re.search(r"read 6 tuples from Bid, wrote 4 to Out \(out/\), 1 dead letter in out_dead_letters/", lines[-1])
    assert len(answers(command.directory / "out")) == 4
    told = [json.loads(line) for line in (command.directory / "metrics.jsonl").read_text().splitlines()]
    assert told[-1]["over"] and told[-1]["batches"] == len(told) - 1 >= 2  # one line for each micro-batch, and the file took several
    for line in told:
        assert abs(sum(line["batch"]["parts"].values()) - line["batch"]["seconds"]) < 1e-6
    again = command.start("run", "pipeline.sql", "--master", "local[2]", "--checkpoint", "kept")
    _, err = again.communicate(timeout=200)
    lines = plain(err).splitlines()
    assert again.returncode == 0, err
    assert re.fullmatch(
        rf"goes on after micro-batch {told[-1]['batches'] - 1}, which ended at [\dTZ:-]+", lines[1]
    )
    assert len(answers(command.directory / "out")) == 4  # the checkpoint knows that all was done


def test_the_same_insert_again_is_a_warning(command: Command) -> None:
    command.write("changes/1.sql", QUERY)
    command.write("changes/2.sql", "CREATE OR REPLACE SINK Out WITH (connector = 'console')")
    done = command.local(STREAM + SINK + QUERY + QUERY, "--control", "changes")
    assert done.code == 0 and len(done.out) == 0
    warned = "the same query writes into sink `Out` already, this INSERT changes nothing"
    assert done.lines[0] == f"warning: pipeline.sql: statement 4, line 6, column 1: {warned}"
    assert f"warning: changes/1.sql: statement 1, line 1, column 1: {warned}" in done.lines
    refused = next(line for line in done.lines if "nothing was changed by changes/2.sql" in line)
    assert "`Out` can not be replaced while queries run" in refused
    assert len((command.directory / "out" / "part-00000-00000000.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("wach=false", "did you mean `watch`?"),
        ("executionbatch=2", "did you mean `execution.batch`?"),
        ("colour=red", "there is `watch`"),
    ],
)
@pytest.mark.parametrize("name", ["run", "explain"])
def test_a_value_that_fills_nothing_is_one_line_of_warning(
    command: Command, monkeypatch: pytest.MonkeyPatch, name: str, given: str, said: str
) -> None:
    """Nothing else changes: the environment may fill what was meant."""
    monkeypatch.setenv("watch", "false")
    text = STREAM.replace("'bids'", "'bids', watch = ${watch}") + "-- ${colour} is not used\n" + SINK + QUERY
    arguments = ("--runtime", "local") if name == "run" else ()
    done = command(name, command.pipeline(text), *arguments, "--set", given, "--set", "join.feedback=true")
    variable = given.partition("=")[0]
    assert done.code == 0
    assert done.lines[0] == f"warning: no variable `{variable}` in pipeline.sql; {said}"
    assert done.err.count("warning") == 1


def test_values_for_changes_to_come_are_no_mistake(command: Command) -> None:
    (command.directory / "changes").mkdir()
    text = STREAM.replace("'bids'", "'${input}'") + SINK + QUERY
    values = ("--set", "input=bids", "--set", "colour=red")
    done = command.local(text, "--control", "changes", *values)
    assert done.code == 0 and "warning" not in done.err
    done = command.local(text.replace("'out'", "'more'"), "--control", "changes", *values, "--set", "inptu=x")
    assert done.code == 0 and "no variable `inptu` in pipeline.sql; did you mean `input`?" in done.lines[0]


def test_a_misspelt_value_is_named_beside_the_error_it_leads_to(command: Command) -> None:
    done = command.local(STREAM.replace("'bids'", "'${input}'") + SINK + QUERY, "--set", "inptu=bids")
    assert done.code == 1 and len(done.lines) == 2
    assert "did you mean `input`?" in done.lines[0] and "no value for `${input}`" in done.lines[1]
